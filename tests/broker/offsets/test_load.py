"""Reading what groups committed at a start: the last commit of each key, and what that costs."""

from __future__ import annotations

import random
import sys
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.configs import BrokerConfigs, static_configs
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.offsets import CommittedOffset
from aiokwire.broker.offsets.records import decode_latest, encode_key, encode_value
from aiokwire.broker.state import BrokerState
from aiokwire.records import Record
from aiokwire.types import TopicPartition

NOW = 1_700_000_000_000


def _open(storage: MemoryStorage) -> BrokerState:
    state = BrokerState(storage, BrokerConfigs(static_configs({}), node_id=1), random.Random(3))
    state.open()
    return state


async def _committed(rounds: int, partitions: int) -> MemoryStorage:
    storage = MemoryStorage()
    state = _open(storage)
    await state.offsets.log.prepare("g")
    for offset in range(rounds):
        offsets = {TopicPartition("t", index): CommittedOffset(offset, 0, "", NOW) for index in range(partitions)}
        state.offsets.commit("g", offsets, NOW)
    state.offsets.delete("g", [TopicPartition("t", 0)], NOW)
    state.logs.abandon()
    return storage


async def test_commits_that_later_ones_replaced_are_not_decoded_at_a_start() -> None:
    storage = await _committed(rounds=100, partitions=20)
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and "broker/offsets" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        state = _open(storage)
    finally:
        sys.setprofile(None)
    known = state.offsets.of_group("g")
    assert {tp.partition: one.offset for tp, one in known.items()} == dict.fromkeys(range(1, 20), 99)
    assert calls < 1000  # one for each of 2,000 commits would be too many
    state.logs.abandon()


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.integers(0, 2**31 - 1), st.text(max_size=3))))
def test_offsets_decoded_in_bulk_equal_the_committed_ones(commits: list[tuple[str, str, int, str]]) -> None:
    expected = [
        (group, TopicPartition(topic, partition), CommittedOffset(index, 4, metadata, NOW, index))
        for index, (group, topic, partition, metadata) in enumerate(commits)
    ]
    records = [
        Record("__consumer_offsets", 0, index, NOW, encode_key(group, tp), encode_value(committed))
        for index, (group, tp, committed) in enumerate(expected)
    ]
    assert list(decode_latest(records)) == expected
