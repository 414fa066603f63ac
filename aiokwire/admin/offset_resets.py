"""Resets of a group's offsets: each partition's new offset. Plain functions for `group_calls`."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import NamedTuple, Self

from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition


class ResetKind(enum.Enum):
    """The kinds of targets."""

    EARLIEST = enum.auto()
    LATEST = enum.auto()
    CURRENT = enum.auto()
    TIME = enum.auto()
    SHIFT = enum.auto()
    OFFSET = enum.auto()
    OFFSETS = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class ResetTo:
    """The target of a reset. Created by its class methods."""

    kind: ResetKind
    number: int = 0
    offsets: Mapping[TopicPartition, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def earliest(cls) -> Self:
        """Move to the first available record."""
        return cls(ResetKind.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """Move to the end at the time of the call."""
        return cls(ResetKind.LATEST)

    @classmethod
    def current(cls) -> Self:
        """Stay at the committed offset, within the available records; without one, at the end."""
        return cls(ResetKind.CURRENT)

    @classmethod
    def time(cls, timestamp: int) -> Self:
        """Move to the first record from a time on (milliseconds since the epoch), or the end."""
        return cls(ResetKind.TIME, timestamp)

    @classmethod
    def shift(cls, by: int) -> Self:
        """Move by a number of offsets from the committed one: forward, or back if negative."""
        return cls(ResetKind.SHIFT, by)

    @classmethod
    def offset(cls, offset: int) -> Self:
        """Move to the same offset in each partition."""
        return cls(ResetKind.OFFSET, offset)

    @classmethod
    def to_offsets(cls, offsets: Mapping[TopicPartition, int]) -> Self:
        """Move each partition to its own offset."""
        return cls(ResetKind.OFFSETS, offsets=dict(offsets))

    def wanted(self, tp: TopicPartition, change: OffsetChange) -> int:
        """Return a change's planned offset; `change.after` differs if it is outside the log."""
        return _wanted(self, tp, change.before, change.after, change.after, change.after)


class OffsetChange(NamedTuple):
    """The change of one partition by a reset."""

    before: OffsetAndMetadata | None
    after: int


def plan_reset(
    to: ResetTo,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetChange]:
    """Plan the change of each partition in `ends`, never to before its begin or after its end.

    Raises: InvalidArgument: no committed offset to shift, or no offset for a partition.
    """
    changes = {}
    for tp in sorted(ends):
        before = committed.get(tp)
        wanted = _wanted(to, tp, before, begins[tp], ends[tp], at_time.get(tp, -1))
        changes[tp] = OffsetChange(before, max(begins[tp], min(wanted, ends[tp])))
    return changes


def _wanted(
    to: ResetTo, tp: TopicPartition, before: OffsetAndMetadata | None, begin: int, end: int, at_time: int
) -> int:
    if to.kind is ResetKind.EARLIEST:
        return begin
    if to.kind is ResetKind.LATEST:
        return end
    if to.kind is ResetKind.TIME:
        return at_time if at_time >= 0 else end
    if to.kind is ResetKind.CURRENT:
        return end if before is None else before.offset
    if to.kind is ResetKind.SHIFT:
        if before is None:
            raise InvalidArgument(
                f"{tp}: the group has no committed offset to shift: use earliest, latest or an offset"
            )
        return before.offset + to.number
    if to.kind is ResetKind.OFFSET:
        return to.number
    if tp not in to.offsets:
        raise InvalidArgument(f"{tp}: to_offsets has no offset for this partition: add one, or leave the partition out")
    return to.offsets[tp]
