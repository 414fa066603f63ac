"""The plan of the next fetch, decided without a loop."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.consumer.fetch_plan import (
    BRIEF_WAIT_MS,
    SMALLEST_GRANT,
    FetchPlan,
    Lane,
    Limits,
    Memory,
    next_retry,
    plan_fetch,
)
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import KafkaError
from aiokwire.types import OffsetReset, TopicPartition

MIB = 1024 * 1024
LIMITS = Limits(min_bytes=1, max_wait_ms=500, max_bytes=50 * MIB, partition_bytes=MIB, memory=64 * MIB)


def states(count: int, offset: int = 0) -> list[PartitionState]:
    made = []
    for number in range(count):
        state = PartitionState(TopicPartition("t", number))
        state.request_reset(OffsetReset.EARLIEST, "subscribed")
        state.move_to(offset)
        made.append(state)
    return made


def plan(
    partitions: list[PartitionState],
    *,
    limits: Limits = LIMITS,
    held: int = 0,
    reserved: int = 0,
    lane: Lane = Lane.MAIN,
    main: FetchPlan | None = None,
    bounded: bool = True,
    now: float = 0.0,
) -> FetchPlan | None:
    memory = Memory(held=held, reserved=reserved, share=limits.share(1), enough=limits.enough(1, len(partitions)))
    return plan_fetch(partitions, now=now, limits=limits, memory=memory, lane=lane, main=main, bounded=bounded)


def numbers(made: FetchPlan | None) -> list[int]:
    assert made is not None
    return [asked.state.tp.partition for asked in made.asked]


def test_all_partitions_are_fetched_in_one_long_fetch() -> None:
    made = plan(states(3))
    assert numbers(made) == [0, 1, 2]
    assert made is not None
    assert made.max_wait_ms == 500


def test_paused_failed_and_unpositioned_partitions_are_left_out() -> None:
    partitions = states(4)
    partitions[0].pause()
    partitions[1].fail(KafkaError("no"))
    partitions[2].request_reset(OffsetReset.LATEST, "out of range")
    assert numbers(plan(partitions)) == [3]


def test_a_partition_with_enough_buffered_is_left_out_and_the_fetch_waits_only_briefly() -> None:
    partitions = states(2)
    partitions[0].buffered = 2 * MIB
    made = plan(partitions)
    assert numbers(made) == [1]
    assert made is not None
    assert made.max_wait_ms == BRIEF_WAIT_MS


def test_a_partition_that_runs_low_is_fetched_before_it_is_empty() -> None:
    partitions = states(1)
    partitions[0].buffered = MIB
    assert numbers(plan(partitions)) == [0]


def test_a_paused_partition_does_not_shorten_the_wait() -> None:
    partitions = states(2)
    partitions[0].pause()
    partitions[0].buffered = 2 * MIB
    made = plan(partitions)
    assert made is not None
    assert made.max_wait_ms == 500


def test_a_partition_waits_for_its_retry() -> None:
    partitions = states(1)
    partitions[0].attempt.postpone(5.0)
    assert plan(partitions, now=4.9) is None
    assert next_retry(partitions, 4.9) == 5.0
    assert numbers(plan(partitions, now=5.0)) == [0]
    assert next_retry(partitions, 5.0) == math.inf


def test_the_partition_served_longest_ago_is_fetched_first() -> None:
    partitions = states(3)
    for partition, turn in zip(partitions, (7, 9, 3), strict=True):
        partition.attempt.mark_served(turn)
    assert numbers(plan(partitions)) == [2, 0, 1]


def test_the_side_lane_sleeps_while_the_main_lane_is_idle() -> None:
    assert plan(states(2), lane=Lane.SIDE) is None


def test_the_side_lane_fetches_newly_fetchable_partitions_with_a_brief_wait() -> None:
    main = plan(states(1))
    made = plan(states(2), lane=Lane.SIDE, main=main)
    assert numbers(made) == [0, 1]
    assert made is not None
    assert made.max_wait_ms == BRIEF_WAIT_MS


def test_a_partition_without_backlog_is_left_to_a_main_lane_with_a_brief_wait() -> None:
    partitions = states(2)
    partitions[0].ends.apply(0, 0, 0, is_committed=True)
    brief = FetchPlan(asked=(), max_bytes=1, max_wait_ms=BRIEF_WAIT_MS, min_bytes=1)
    assert numbers(plan(partitions, lane=Lane.SIDE, main=brief)) == [1]


def test_a_shorter_wait_set_by_the_user_is_used() -> None:
    limits = Limits(min_bytes=1, max_wait_ms=10, max_bytes=MIB, partition_bytes=MIB, memory=8 * MIB)
    partitions = states(2)
    partitions[0].attempt.start()
    made = plan(partitions, limits=limits)
    assert made is not None
    assert made.max_wait_ms == 10


def test_nothing_is_fetched_when_the_memory_is_used_up() -> None:
    assert plan(states(2), held=64 * MIB) is None
    assert plan(states(2), reserved=64 * MIB - SMALLEST_GRANT + 1) is None


def test_a_fetch_whose_first_batch_may_not_fit_waits_for_room() -> None:
    partitions = states(1)

    def plan_with(batch: int) -> FetchPlan | None:
        memory = Memory(held=63 * MIB, reserved=0, share=32 * MIB, enough=MIB, batch=batch)
        return plan_fetch(partitions, now=0.0, limits=LIMITS, memory=memory, lane=Lane.MAIN, main=None, bounded=True)

    assert plan_with(MIB) is not None
    assert plan_with(MIB + 1) is None
    assert plan_with(100 * MIB) is None


def test_a_batch_larger_than_a_share_needs_room_for_a_share_only() -> None:
    memory = Memory(held=32 * MIB, reserved=0, share=32 * MIB, enough=MIB, batch=100 * MIB)
    made = plan_fetch(states(1), now=0.0, limits=LIMITS, memory=memory, lane=Lane.MAIN, main=None, bounded=True)
    assert made is not None


def test_an_empty_buffer_with_a_tiny_budget_makes_progress() -> None:
    limits = Limits(min_bytes=1, max_wait_ms=500, max_bytes=MIB, partition_bytes=MIB, memory=10)
    made = plan(states(1), limits=limits)
    assert made is not None
    assert made.max_bytes == 5


def test_a_fetch_from_an_old_broker_has_as_many_partitions_as_fit_and_at_least_one() -> None:
    limits = Limits(min_bytes=1, max_wait_ms=500, max_bytes=50 * MIB, partition_bytes=MIB, memory=4 * MIB)
    made = plan(states(5), limits=limits, bounded=False)
    assert numbers(made) == [0, 1]
    assert made is not None
    assert made.max_wait_ms == BRIEF_WAIT_MS, "the other partitions wait for the next fetch"


def test_a_limit_that_grew_for_a_large_record_is_requested_in_full() -> None:
    partitions = states(1)
    partitions[0].attempt.set_limit(100 * MIB)
    made = plan(partitions)
    assert made is not None
    assert made.asked[0].limit == 100 * MIB
    assert made.max_bytes == 100 * MIB


@pytest.mark.parametrize("brokers", [1, 3, 10])
def test_fetches_to_all_brokers_on_both_lanes_fit_the_memory(brokers: int) -> None:
    assert LIMITS.share(brokers) * brokers * 2 <= LIMITS.memory


@given(
    held=st.integers(0, 80 * MIB),
    reserved=st.integers(0, 80 * MIB),
    buffered=st.lists(st.integers(0, 3 * MIB), min_size=1, max_size=20),
    bounded=st.booleans(),
)
def test_a_plan_never_exceeds_the_budget(held: int, reserved: int, buffered: list[int], bounded: bool) -> None:
    partitions = states(len(buffered))
    for state, size in zip(partitions, buffered, strict=True):
        state.buffered = size
    made = plan(partitions, held=held, reserved=reserved, bounded=bounded)
    if made is not None and (held or reserved):
        assert held + reserved + made.max_bytes <= LIMITS.memory
