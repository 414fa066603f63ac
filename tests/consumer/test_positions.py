"""The state machine and the positions of a partition, without a loop."""

from __future__ import annotations

import pytest

from aiokwire.consumer import TRANSITIONS, FetchEvent, FetchState
from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.errors import KafkaError
from aiokwire.machine import InvalidTransition
from aiokwire.types import OffsetReset, TopicPartition


def fetching(offset: int = 10, epoch: int = UNKNOWN) -> PartitionState:
    state = PartitionState(TopicPartition("t", 0))
    state.request_reset(OffsetReset.LATEST, "subscribed")
    state.move_to(offset, epoch)
    return state


def test_every_state_can_be_reached() -> None:
    reached = {FetchState.INITIALIZING}
    while True:
        more = {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(FetchState)


@pytest.mark.parametrize("state", list(FetchState))
def test_a_seek_changes_every_state_to_fetching(state: FetchState) -> None:
    assert TRANSITIONS[state, FetchEvent.POSITION] is FetchState.FETCHING


@pytest.mark.parametrize("state", list(FetchState))
def test_a_reset_can_be_requested_in_every_state(state: FetchState) -> None:
    assert TRANSITIONS[state, FetchEvent.RESET] is FetchState.AWAIT_RESET


def test_a_new_partition_has_no_position_and_cannot_be_fetched() -> None:
    state = PartitionState(TopicPartition("t", 0))
    assert state.position is None
    assert not state.is_fetchable


def test_a_move_makes_fetches_in_flight_stale() -> None:
    state = fetching()
    state.attempt.start()
    before = state.attempt.generation
    state.move_to(20)
    assert state.attempt.generation > before
    assert not state.attempt.in_flight
    assert state.position == state.cursor.fetch_offset == 20


def test_a_move_clears_an_error() -> None:
    state = fetching()
    state.fail(KafkaError("no"))
    assert not state.is_fetchable
    state.move_to(11)
    assert state.error is None
    assert state.is_fetchable


def test_a_paused_partition_is_not_fetchable_and_keeps_its_position() -> None:
    state = fetching(10)
    state.pause()
    assert not state.is_fetchable
    assert state.position == 10


def test_lag_is_unknown_before_the_first_fetch_and_never_negative() -> None:
    state = fetching(10)
    assert state.lag is None
    state.ends.apply(25, 25, 0, is_committed=True)
    assert state.lag == 15
    state.ends.apply(5, 5, 0, is_committed=True)
    assert state.lag == 0


def test_validation_is_needed_when_the_leader_epoch_is_later_than_that_of_the_records() -> None:
    state = fetching(10, epoch=3)
    state.source.follow_epoch(3)
    assert not state.needs_validation(3)
    assert state.needs_validation(4)


def test_without_an_epoch_no_validation_is_needed() -> None:
    state = fetching(10)
    state.source.follow_epoch(3)
    assert not state.needs_validation(4)


def test_a_fetching_partition_cannot_become_validated() -> None:
    with pytest.raises(InvalidTransition):
        fetching().cursor.validated()


def test_the_repr_shows_state_and_position() -> None:
    state = fetching(10)
    state.pause()
    assert repr(state) == "<PartitionState t[0] FETCHING at 10, paused>"
