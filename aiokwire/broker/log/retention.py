"""The number of a log's oldest segments to remove, and the removal of their files."""

from __future__ import annotations

from collections.abc import Sequence

from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.segment import Segment
from aiokwire.broker.log.work import Work


class Removal(Work):
    """Segments removed from their log: `run` renames their files, so that no start finds them."""

    __slots__ = ("files",)

    def __init__(self, what: str, segments: Sequence[Segment], snapshots: Sequence[str]) -> None:
        """`snapshots` are the files of the segments' producer snapshots, which are deleted."""
        self.files: list[str] = []  # the renamed ones, to be deleted after `file_delete_delay_ms`

        def run() -> None:
            for segment, snapshot in zip(segments, snapshots, strict=True):  # oldest first: a kill leaves no gap
                self.files += segment.retire()
                segment.storage.delete(snapshot)

        super().__init__(what, run)


def plan_retention(segments: Sequence[Segment], log_start_offset: int, config: LogConfig, now_ms: int) -> int:
    """Return the number of oldest segments that are too old, too many, or below the log's start.

    If it includes the active one, the log rolls first. An empty active segment stays.
    """
    last = len(segments) - (segments[-1].size == 0)
    count = 0
    if config.deletes and config.retention_ms >= 0:
        while count < last and now_ms - segments[count].largest_timestamp() > config.retention_ms:
            count += 1
    if config.deletes and config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes
        while count < last and excess >= segments[count].size:
            excess -= segments[count].size
            count += 1
    while count < len(segments) - 1 and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count
