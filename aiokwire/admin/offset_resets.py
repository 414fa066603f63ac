"""Where a group is to go on: what a reset means for each partition. Plain functions; `group_calls` is the caller."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import NamedTuple, Self

from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition


class ResetKind(enum.Enum):
    """The ways to say where."""

    EARLIEST = enum.auto()
    LATEST = enum.auto()
    CURRENT = enum.auto()
    TIME = enum.auto()
    SHIFT = enum.auto()
    OFFSET = enum.auto()
    OFFSETS = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class ResetTo:
    """Where a group is to go on. Made by its class methods."""

    kind: ResetKind
    number: int = 0
    offsets: Mapping[TopicPartition, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def earliest(cls) -> Self:
        """The first record that is still there."""
        return cls(ResetKind.EARLIEST)

    @classmethod
    def latest(cls) -> Self:
        """The end, as it is at the call."""
        return cls(ResetKind.LATEST)

    @classmethod
    def current(cls) -> Self:
        """Where it is, brought back into what is still there; the end where nothing was committed."""
        return cls(ResetKind.CURRENT)

    @classmethod
    def time(cls, timestamp: int) -> Self:
        """The first record at or after a time (milliseconds since the epoch); the end where there is none."""
        return cls(ResetKind.TIME, timestamp)

    @classmethod
    def shift(cls, by: int) -> Self:
        """So many records on, or back when negative, from where it is."""
        return cls(ResetKind.SHIFT, by)

    @classmethod
    def offset(cls, offset: int) -> Self:
        """The same offset in each partition."""
        return cls(ResetKind.OFFSET, offset)

    @classmethod
    def to_offsets(cls, offsets: Mapping[TopicPartition, int]) -> Self:
        """Each partition to an offset of its own."""
        return cls(ResetKind.OFFSETS, offsets=dict(offsets))


class OffsetChange(NamedTuple):
    """What a reset does in one partition."""

    before: OffsetAndMetadata | None
    after: int


def plan_reset(
    to: ResetTo,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, int],
) -> dict[TopicPartition, OffsetChange]:
    """What happens in each partition of `ends`: never before its begin or behind its end.

    Raises: InvalidArgument: a shift from nowhere, or no offset for a partition.
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
            raise InvalidArgument(f"{tp}: nothing was committed, so there is nothing to shift")
        return before.offset + to.number
    if to.kind is ResetKind.OFFSET:
        return to.number
    if tp not in to.offsets:
        raise InvalidArgument(f"{tp}: no offset was given for it")
    return to.offsets[tp]
