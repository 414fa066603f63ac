"""From a reset policy to an offset: what to look up, and what the answers mean. No I/O.

A reset happens only when a partition has no position, or when its leader says that the position lies outside of the
log; never because of an error that passes. Each is logged with where it came from and where it went.
"""

from __future__ import annotations

import logging
from typing import Final

from aiokwire.cluster import EARLIEST, LATEST
from aiokwire.consumer.positions import FetchEvent, PartitionState, ResetTarget
from aiokwire.errors import NoOffset, OffsetOutOfRange
from aiokwire.types import OffsetAndMetadata, OffsetAndTimestamp, OffsetReset

logger = logging.getLogger(__name__)

_TIMES: Final = {OffsetReset.EARLIEST: EARLIEST, OffsetReset.LATEST: LATEST}


def time_of(target: ResetTarget) -> int | None:
    """What ListOffsets is asked for; None when the policy is to have none."""
    if isinstance(target, OffsetReset):
        return _TIMES.get(target)
    return target


def error_without_policy(state: PartitionState) -> NoOffset:
    """The error of a partition whose policy is "none"."""
    topic, partition = state.tp
    position = state.fetch_offset
    advice = "seek, or choose another auto_offset_reset"
    if position < 0:
        return NoOffset(
            f'{state.tp}: there is no position, and auto_offset_reset is "none": {advice}',
            topic=topic,
            partition=partition,
        )
    return OffsetOutOfRange(
        f'{state.tp}: the log does not hold offset {position}, and auto_offset_reset is "none": {advice}',
        topic=topic,
        partition=partition,
        offset=position,
    )


def describe(target: ResetTarget) -> str:
    return target.value if isinstance(target, OffsetReset) else f"time {target}"


def apply_reset(state: PartitionState, found: OffsetAndTimestamp) -> None:
    """Go on at the offset that was found."""
    before = None if state.fetch_offset < 0 else state.fetch_offset
    if state.chunks:
        state.chunks[-1].extend(found.offset)  # what was fetched before is handed over before
    state.move_to(found.offset, found.leader_epoch)
    # The first position of an assignment is no event; one that was lost is.
    level = logging.INFO if before is None else logging.WARNING
    logger.log(
        level,
        "%s: position reset from %s to %d (%s; %s)",
        state.tp,
        "none" if before is None else before,
        found.offset,
        describe(state.reset_to),
        state.reset_reason,
    )


def begin(state: PartitionState, committed: OffsetAndMetadata | None, reset: ResetTarget) -> None:
    """Go on where the group stands; where it has committed nothing, where the partition was told, or by the policy."""
    target = committed or state.fallback
    if target is None:
        state.ask_for_reset(reset, "the group has committed nothing")
        return
    epoch = target.leader_epoch
    state.move_to(target.offset, epoch)
    if 0 <= epoch < state.leader_epoch:
        state.machine.fire(FetchEvent.NEW_LEADER)  # does its log hold what was read then? (KIP-320)
