"""The reason why a partition waits, and since when, decided without I/O."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from aiokwire.backoff import Backoff
from aiokwire.consumer.health import (
    HARMLESS,
    ConsumerHealth,
    GroupHealth,
    PartitionHealth,
    Reason,
    Seen,
    Source,
    check_again,
    group_health,
    reason_of,
)
from aiokwire.consumer.positions import FetchState, PartitionState
from aiokwire.errors import ClosedError, KafkaError
from aiokwire.group import MemberStatus
from aiokwire.types import GroupMetadata, OffsetReset, TopicPartition

TP = TopicPartition("t", 0)
WELL = Source()


def reading(*, end: int = 10) -> PartitionState:
    """Return a partition at position 5 with a leader."""
    state = PartitionState(TP)
    state.source.follow_leader(1)
    state.move_to(5)
    state.ends.apply(end, end, 0, is_committed=True)
    return state


def paused(state: PartitionState) -> None:
    state.pause()


def failed(state: PartitionState) -> None:
    state.fail(KafkaError("corrupt"))


def lost(state: PartitionState) -> None:
    state.set_lost(True)


def held_back(state: PartitionState) -> None:
    state.hold_back()


def leaderless(state: PartitionState) -> None:
    state.source.follow_leader(None)


def retrying(state: PartitionState) -> None:
    state.attempt.retry_after(Backoff(1, 1, rng=random.Random(1)), "not yet", 0.0)


def looked_up(state: PartitionState) -> None:
    state.request_reset(OffsetReset.LATEST, "sought")


def in_flight(state: PartitionState) -> None:
    state.attempt.start()


def at_end(state: PartitionState) -> None:
    state.ends.apply(5, 5, 0, is_committed=True)


@pytest.mark.parametrize(
    ("change", "source", "reason", "detail"),
    [
        (in_flight, WELL, Reason.FETCHING, ""),
        (in_flight, Source(asked_at=95.0), Reason.FETCHING, ""),
        (in_flight, Source(asked_at=80.0), Reason.UNANSWERED, "no response from node 1 for 20.0 s"),
        (at_end, WELL, Reason.AT_END, ""),
        (at_end, Source(has_room=False), Reason.AT_END, ""),
        (at_end, Source(last_error="refused"), Reason.UNREACHABLE, "refused"),
        (paused, Source(last_error="refused"), Reason.PAUSED, ""),
        (failed, WELL, Reason.ERROR, "corrupt"),
        (lost, WELL, Reason.GONE, ""),
        (held_back, WELL, Reason.HELD_BACK, ""),
        (leaderless, WELL, Reason.NO_LEADER, ""),
        (in_flight, Source(throttled_until=102.0), Reason.THROTTLED, "node 1, for 2.0 s more"),
        (in_flight, Source(throttled_until=99.0), Reason.FETCHING, ""),
        (retrying, WELL, Reason.RETRYING, "not yet"),
        (looked_up, WELL, Reason.LOOKING_UP, "AWAIT_RESET"),
        (lambda _state: None, Source(has_room=False), Reason.NO_MEMORY, ""),
        (lambda _state: None, WELL, Reason.FETCHING, "none is in flight"),
    ],
)
def test_the_reason_names_what_a_partition_waits_for(
    change: Callable[[PartitionState], None], source: Source, reason: Reason, detail: str
) -> None:
    state = reading()
    change(state)
    assert reason_of(state, source, 100.0) == (reason, detail)


def test_a_position_that_advances_is_progress() -> None:
    seen = check_again(None, 5, Reason.FETCHING, 1.0)
    assert seen == Seen(5, 1.0, 1.0)
    assert check_again(seen, 6, Reason.NO_LEADER, 4.0) == Seen(6, 4.0, 4.0)


def test_a_harmless_reason_for_waiting_is_not_a_stall() -> None:
    seen = check_again(Seen(5, 1.0, 1.0, is_reported=True), 5, Reason.AT_END, 7.0)
    assert seen == Seen(5, 1.0, 7.0)


def test_a_stall_counts_from_the_last_time_without_a_problem() -> None:
    seen = check_again(Seen(5, 1.0, 7.0), 5, Reason.UNREACHABLE, 9.0)
    assert seen == Seen(5, 1.0, 7.0)
    assert Reason.UNREACHABLE not in HARMLESS


async def test_times_of_a_group_are_reported_as_ages() -> None:
    status = MemberStatus("g")
    status.heartbeat_at, status.rebalanced_at, status.rebalance_took = 90.0, 80.0, 1.5
    assert group_health(status, GroupMetadata("g", 4, "m", None), "g", 100.0) == GroupHealth(
        "g", "NOT_MEMBER", "m", 4, None, "", 10.0, None, 20.0, 1.5
    )


def test_a_consumer_is_healthy_without_stalls_and_with_a_coordinator() -> None:
    good = PartitionHealth(TP, 5, 5, FetchState.FETCHING, Reason.FETCHING, "", 0.0, stalled=False)
    bad = PartitionHealth(TP, 5, 5, FetchState.FETCHING, Reason.NO_LEADER, "", 40.0, stalled=True)
    group = group_health(MemberStatus("g"), None, "g", 1.0)
    lost_coordinator = MemberStatus("g")
    lost_coordinator.lost("refused")

    def health(
        partition: PartitionHealth, group: GroupHealth | None = None, ended: KafkaError | None = None
    ) -> ConsumerHealth:
        return ConsumerHealth({TP: partition}, group, True, 0, None, None, ended)

    assert health(good).ok
    assert health(good, group).ok
    assert not health(good, ended=ClosedError("closed")).ok
    assert not health(bad).ok
    assert health(bad).stalled == [bad]
    assert str(bad) == f"{TP} at 5, lag 5, waits for a leader"
    assert not health(good, group_health(lost_coordinator, None, "g", 1.0)).ok
