"""Reset policies: their values, lookups and effects."""

from __future__ import annotations

import datetime

import pytest

from aiokwire.clock import wall_ms
from aiokwire.cluster import EARLIEST, LATEST
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.offset_reset import settle
from aiokwire.consumer.positions import FetchState, PartitionState
from aiokwire.consumer.reset_policy import AtMost, ByDuration, ResetTarget, describe, parse_reset, time_of
from aiokwire.errors import ConfigurationError
from aiokwire.hooks import Hooks
from aiokwire.types import OffsetAndTimestamp, OffsetReset, TopicPartition

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:PT0S", 0),
        ("by_duration:P2D", 2 * 86_400_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt15m", 900_000),
        ("by_duration:PT0.0009S", 0),
        (datetime.timedelta(minutes=1), 60_000),
    ],
)
def test_a_duration_is_parsed(given: object, milliseconds: int) -> None:
    target = parse_reset(given)
    assert isinstance(target, ByDuration)
    assert target.milliseconds == milliseconds


@pytest.mark.parametrize(
    "given",
    [
        "by_duration:",
        "by_duration:1h",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:P1DT",
        "by_duration:PT-1H",
        "by_duration:-PT1H",
        "by_duration:P1Y",
        "by_duration:PT1.5H",
        "by_duration:PT1H ",
        "by_duration",
        "soonest",
        datetime.timedelta(seconds=-1),
        True,
        None,
        1.5,
    ],
)
def test_an_invalid_policy_is_refused_with_advice(given: object) -> None:
    with pytest.raises(ConfigurationError, match="duration"):
        parse_reset(given)


def test_a_policy_is_a_name_or_a_time() -> None:
    assert parse_reset("earliest") is OffsetReset.EARLIEST
    assert parse_reset("NEAREST") is OffsetReset.NEAREST
    assert parse_reset(5) == 5
    assert parse_reset(datetime.datetime.fromtimestamp(1.5, tz=datetime.UTC)) == 1500


@pytest.mark.parametrize(
    ("target", "time", "name"),
    [
        (OffsetReset.EARLIEST, EARLIEST, "earliest"),
        (OffsetReset.LATEST, LATEST, "latest"),
        (OffsetReset.NEAREST, EARLIEST, "nearest"),
        (AtMost(9), LATEST, "nearest"),
        (OffsetReset.NONE, None, "none"),
        (1234, 1234, "time 1234"),
    ],
)
def test_each_policy_has_its_lookup_and_name(target: ResetTarget, time: int | None, name: str) -> None:
    assert time_of(target) == time
    assert describe(target) == name


def test_a_duration_counts_from_the_moment_of_the_reset() -> None:
    before = wall_ms()
    time = time_of(ByDuration(1000, "by_duration:PT1S"))
    assert time is not None
    assert before - 1000 <= time <= wall_ms() - 1000
    assert time_of(ByDuration(10**18, "long ago")) == 0


# --- responses --------------------------------------------------------------------------------------------------------


class RecordingHooks(Hooks):
    def __init__(self) -> None:
        self.resets: list[tuple[str, int, int | None, int, str]] = []

    def on_reset(self, topic: str, partition: int, before: int | None, after: int, reason: str) -> None:
        self.resets.append((topic, partition, before, after, reason))


def waiting(target: ResetTarget, position: int | None = None) -> PartitionState:
    state = PartitionState(T0)
    if position is None:
        state.request_reset(target, "subscribed")
    else:
        state.request_reset(OffsetReset.EARLIEST, "subscribed")
        state.move_to(position)
        state.request_reset(target, "out of range")
    return state


def answer(state: PartitionState, *offsets: int) -> RecordingHooks:
    hooks = RecordingHooks()
    for offset in offsets:
        settle(state, OffsetAndTimestamp(offset, -1), ConsumerHooks(hooks))
    return hooks


def test_the_first_reset_has_no_old_position() -> None:
    hooks = answer(waiting(OffsetReset.EARLIEST), 3)
    assert hooks.resets == [("t", 0, None, 3, "earliest; subscribed")]


def test_a_reset_reports_the_old_and_the_new_position_and_the_reason() -> None:
    hooks = answer(waiting(OffsetReset.LATEST, 70), 40)
    assert hooks.resets == [("t", 0, 70, 40, "latest; out of range")]


def test_a_time_without_a_later_record_means_the_end() -> None:
    state = waiting(5000, 70)
    hooks = answer(state, -1)
    assert (state.state, state.cursor.reset_to, hooks.resets) == (FetchState.AWAIT_RESET, OffsetReset.LATEST, [])
    assert "time 5000" in state.cursor.reset_reason
    assert answer(state, 40).resets[0][2:4] == (70, 40)


@pytest.mark.parametrize(
    ("position", "start", "end", "after"),
    [
        (None, 10, 20, 10),
        (3, 10, 20, 10),
        (99, 10, 20, 20),
        (15, 10, 20, 15),  # the log has reached the position meanwhile
        (10, 10, 20, 10),
    ],
)
def test_nearest_moves_the_position_to_the_closer_end(position: int | None, start: int, end: int, after: int) -> None:
    state = waiting(OffsetReset.NEAREST, position)
    hooks = answer(state, start)
    if state.state is FetchState.AWAIT_RESET:
        assert time_of(state.cursor.reset_to) == LATEST
        hooks = answer(state, end)
    assert state.position == after
    assert hooks.resets[0][2:4] == (position, after)
    assert "nearest" in hooks.resets[0][4]


def test_a_hook_that_raises_is_logged_and_the_position_is_reset(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Hooks):
        def on_reset(self, *_args: object) -> None:
            raise ValueError("mine")

    state = waiting(OffsetReset.EARLIEST)
    settle(state, OffsetAndTimestamp(3, -1), ConsumerHooks(Broken()))
    assert state.position == 3
    assert "on_reset" in caplog.text
