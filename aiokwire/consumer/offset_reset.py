"""Applies the reset policy to the results of lookups. No I/O.

A position is reset only if a partition has none, or if the leader reports that it is outside the
log; never because of a transient error. Each reset is logged with both positions.
"""

from __future__ import annotations

import logging

from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.consumer.reset_policy import AtMost, ResetTarget, describe
from aiokwire.errors import NoOffset, OffsetOutOfRange
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.types import OffsetAndMetadata, OffsetAndTimestamp, OffsetReset

logger: FieldLogger = get_logger(__name__)


def error_without_policy(state: PartitionState) -> NoOffset:
    """Return the error of a partition whose policy is "none"."""
    topic, partition = state.tp
    position = state.cursor.fetch_offset
    advice = "seek, or choose another auto_offset_reset"
    if position < 0:
        return NoOffset(
            f'{state.tp} has no position, and auto_offset_reset is "none": {advice}',
            topic=topic,
            partition=partition,
        )
    return OffsetOutOfRange(
        f'{state.tp}: offset {position} is not in the log, and auto_offset_reset is "none": {advice}',
        topic=topic,
        partition=partition,
        offset=position,
    )


def settle(state: PartitionState, found: OffsetAndTimestamp, hooks: ConsumerHooks) -> None:
    """Move to the offset that was found, or request another lookup."""
    cursor = state.cursor
    target, before, reason = cursor.reset_to, cursor.reset_from, cursor.reset_reason
    if found.offset < 0:
        state.request_reset(OffsetReset.LATEST, f"no record is as late as {describe(target)}; {reason}")
    elif target is OffsetReset.NEAREST and before is not None and before > found.offset:
        state.request_reset(AtMost(before), reason)
    elif isinstance(target, AtMost) and target.offset < found.offset:
        _apply(state, target.offset, UNKNOWN, hooks)
    else:
        _apply(state, found.offset, found.leader_epoch, hooks)


def _apply(state: PartitionState, offset: int, leader_epoch: int, hooks: ConsumerHooks) -> None:
    before = state.cursor.reset_from
    if state.chunks:
        state.chunks[-1].extend(offset)  # buffered records are delivered first
    state.move_to(offset, leader_epoch)
    report(state, before, offset, f"{describe(state.cursor.reset_to)}; {state.cursor.reset_reason}", hooks)


def report(state: PartitionState, before: int | None, after: int, reason: str, hooks: ConsumerHooks) -> None:
    """Log and publish that a position was set."""
    # The first position of an assignment is normal; the loss of a position is worth a warning.
    level = logging.INFO if before is None else logging.WARNING
    source = "none" if before is None else before
    logger.log(level, "%s: position reset from %s to %d (%s)", state.tp, source, after, reason)
    hooks.reset(state, before, after, reason)


def begin(state: PartitionState, committed: OffsetAndMetadata | None, reset: ResetTarget) -> None:
    """Start at the committed offset; without one, at the partition's fallback or by the policy."""
    target = committed or state.cursor.fallback
    if target is None:
        state.request_reset(reset, "the group has committed nothing")
        return
    state.move_to(target.offset, target.leader_epoch)
    if 0 <= target.leader_epoch < state.source.leader_epoch:
        state.cursor.require_validation()  # the log may have been truncated since (KIP-320)
