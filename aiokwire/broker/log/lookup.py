"""Finding records by their timestamp: the one place of the log that reads records, and only of one batch."""

from __future__ import annotations

from collections.abc import Sequence

from aiokwire.broker.log.batches import StoredBatch
from aiokwire.broker.log.segment import Segment
from aiokwire.records import read_batches
from aiokwire.types import OffsetAndTimestamp


def find_timestamp(segments: Sequence[Segment], timestamp: int, log_start: int) -> OffsetAndTimestamp | None:
    """The first record at or after `timestamp`, and at or after `log_start`."""
    for segment in segments:
        if segment.latest[0] < timestamp:
            continue
        start = max(segment.time_index.floor(timestamp), log_start)
        for batch in segment.walk(segment.offset_index.floor(start)):
            if batch.max_timestamp >= timestamp and batch.last_offset >= log_start:
                found = _first_in(segment, batch, timestamp, log_start)
                if found is not None:
                    return found
    return None


def find_max_timestamp(segments: Sequence[Segment], log_start: int) -> OffsetAndTimestamp | None:
    """The first record that has the greatest timestamp."""
    best = max(segments, key=lambda segment: segment.latest[0])
    timestamp, last_offset = best.latest
    batch = best.find(last_offset) if timestamp >= 0 else None
    if batch is None or batch.last_offset < log_start:
        return None
    return _first_in(best, batch, timestamp, log_start)


def _first_in(segment: Segment, batch: StoredBatch, timestamp: int, log_start: int) -> OffsetAndTimestamp | None:
    data = segment.file.pread(batch.size, batch.position)
    [decoded] = read_batches(data, segment.name, -1)
    found = decoded.find_timestamp(timestamp)
    if found is not None and found[0] < log_start:
        later = (record for record in decoded.records(log_start) if record.timestamp >= timestamp)
        found = next(((record.offset, record.timestamp) for record in later), None)
    return None if found is None else OffsetAndTimestamp(*found, batch.leader_epoch)
