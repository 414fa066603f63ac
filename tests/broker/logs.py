"""Operations on a partition's log that the broker leaves to its chores and handlers."""

from __future__ import annotations

from aiokwire.broker.log import LogManager, PartitionLog
from aiokwire.types import OffsetAndTimestamp


def flush(log: PartitionLog, now_ms: int) -> None:
    """Flush everything appended so far."""
    work = log.prepare_flush(now_ms)
    if work is not None:
        work.do()


def first_at(log: PartitionLog, timestamp: int | None) -> OffsetAndTimestamp | None:
    """Return the first record at or after a timestamp; for None the first with the greatest one.

    Raises: CorruptRecord: a batch is corrupt.
    """
    found = (candidate.find() for candidate in log.candidates(timestamp))
    return next((record for record in found if record is not None), None)


def apply_retention(manager: LogManager, now_ms: int) -> int:
    """Remove the segments that are too old or too many; return the number of logs that had some."""
    removals = [work for work in manager.retention_due(now_ms) if work is not None]
    for work in removals:
        work.do()
    return len(removals)
