"""Finding records by their timestamp: the one place of the log that reads records, and only of one batch at a time.

Which batch may have the record is found by headers and indexes; its records are looked at by `Candidate.find`, which
may take long and touches nothing of the log, so a thread may do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiokwire.broker.log.segment import Segment
from aiokwire.records import read_batches
from aiokwire.types import OffsetAndTimestamp

MOST_DECOMPRESSED = 256 << 20  # bytes of one batch: older logs, and those of a Kafka, may hold such batches


class Candidate(NamedTuple):
    """A batch that may have the record that is looked for."""

    data: bytes
    name: str
    leader_epoch: int
    timestamp: int
    log_start: int

    def find(self, max_decompressed: int = MOST_DECOMPRESSED) -> OffsetAndTimestamp | None:
        """The first record at or after the timestamp and the start of the log.

        Raises: CorruptRecord: the batch is damaged, or decompresses to more than `max_decompressed` bytes.
        """
        [batch] = read_batches(self.data, self.name, -1, max_decompressed=max_decompressed)
        found = batch.find_timestamp(self.timestamp)
        if found is not None and found[0] < self.log_start:
            later = (record for record in batch.records(self.log_start) if record.timestamp >= self.timestamp)
            found = next(((record.offset, record.timestamp) for record in later), None)
        return None if found is None else OffsetAndTimestamp(*found, self.leader_epoch)


def find_timestamp(segments: Sequence[Segment], timestamp: int, log_start: int) -> Iterator[Candidate]:
    """The batches that may have the first record at or after both; usually the first of them does."""
    for segment in tuple(segments):
        if segment.latest[0] < timestamp:
            continue
        start = max(segment.time_index.floor(timestamp), log_start)
        for batch in segment.walk(segment.offset_index.floor(start)):
            if batch.max_timestamp >= timestamp and batch.last_offset >= log_start:
                data = segment.file.pread(batch.size, batch.position)
                yield Candidate(data, segment.name, batch.leader_epoch, timestamp, log_start)


def find_max_timestamp(segments: Sequence[Segment], log_start: int) -> Iterator[Candidate]:
    """The batch that has the first record with the greatest timestamp."""
    best = max(segments, key=lambda segment: segment.latest[0])
    timestamp, last_offset = best.latest
    batch = best.find(last_offset) if timestamp >= 0 else None
    if batch is not None and batch.last_offset >= log_start:
        data = best.file.pread(batch.size, batch.position)
        yield Candidate(data, best.name, batch.leader_epoch, timestamp, log_start)
