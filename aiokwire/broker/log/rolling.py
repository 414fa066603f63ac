"""When a log rolls: Kafka's LogSegment.shouldRoll. Decides only; the log acts."""

from __future__ import annotations

from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.index import OffsetIndex, TimeIndex
from aiokwire.broker.log.segment import MAX_RELATIVE_OFFSET, Segment


def must_roll(active: Segment, config: LogConfig, incoming: int, latest: int, last_offset: int, now_ms: int) -> bool:
    """Whether an append of `incoming` bytes, up to `last_offset` and the timestamp `latest`, needs a new segment."""
    if active.size == 0:
        return False
    return (
        active.size > config.segment_bytes - incoming
        or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        or len(active.offset_index) >= config.segment_index_bytes // OffsetIndex.ENTRY.size
        or len(active.time_index) >= config.segment_index_bytes // TimeIndex.ENTRY.size - 1
        or _waited_ms(active, latest, now_ms) > config.segment_ms - config.segment_jitter_ms
    )


def _waited_ms(active: Segment, latest: int, now_ms: int) -> int:
    """How old the active segment is: by its records' timestamps when they have some."""
    first = active.first_timestamp
    return latest - first if first >= 0 and latest >= 0 else now_ms - active.created_ms
