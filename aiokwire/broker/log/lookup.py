"""Finds records by timestamp: the only place of the log that reads records, of one batch at a time.

Headers and indexes lead to the batches that may have the record; `Candidate.find` searches a batch.
It may take long and does not use the log, so that it can run in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiokwire.broker.log.segment import Segment
from aiokwire.records import read_batches
from aiokwire.types import OffsetAndTimestamp

MOST_DECOMPRESSED = 256 << 20  # bytes of one batch: older logs, and Kafka's, may have such batches


class Candidate(NamedTuple):
    """A batch that may have the record of a lookup by time: its records must be decoded."""

    data: bytes
    name: str
    leader_epoch: int
    timestamp: int
    log_start: int

    def find(self, max_decompressed: int = MOST_DECOMPRESSED) -> OffsetAndTimestamp | None:
        """Return the first record at or after the timestamp and the start of the log.

        Raises: CorruptRecord: the batch is corrupt, or exceeds `max_decompressed` bytes.
        """
        [batch] = read_batches(self.data, self.name, -1, max_decompressed=max_decompressed)
        found = batch.find_timestamp(self.timestamp)
        if found is not None and found[0] < self.log_start:
            later = (record for record in batch.records(self.log_start) if record.timestamp >= self.timestamp)
            found = next(((record.offset, record.timestamp) for record in later), None)
        return None if found is None else OffsetAndTimestamp(*found, self.leader_epoch)


def find_timestamp(segments: Sequence[Segment], timestamp: int, log_start: int) -> Iterator[Candidate]:
    """Yield batches that may have the first record at or after both; usually the first does."""
    for segment in tuple(segments):
        if segment.latest[0] < timestamp:
            continue
        start = max(segment.time_index.floor(timestamp), log_start)
        for batch in segment.walk(segment.offset_index.floor(start)):
            if batch.max_timestamp >= timestamp and batch.last_offset >= log_start:
                data = segment.file.pread(batch.size, batch.position)
                yield Candidate(data, segment.name, batch.leader_epoch, timestamp, log_start)


def find_max_timestamp(segments: Sequence[Segment], log_start: int) -> Iterator[Candidate]:
    """Yield the batch with the first record of the greatest timestamp."""
    best = max(segments, key=lambda segment: segment.latest[0])
    timestamp, last_offset = best.latest
    batch = best.find(last_offset) if timestamp >= 0 else None
    if batch is not None and batch.last_offset >= log_start:
        data = best.file.pread(batch.size, batch.position)
        yield Candidate(data, best.name, batch.leader_epoch, timestamp, log_start)
