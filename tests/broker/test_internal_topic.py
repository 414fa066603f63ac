"""Internal topics: the partition of a key, and the records after a restart."""

from __future__ import annotations

import random

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.internal_topic import InternalTopic, java_hash
from aiokwire.broker.log import MemoryStorage, Storage
from aiokwire.errors import StorageError

NAME = "__consumer_offsets"
CONFIGS = {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("ä€😀", 16_603_051)],
)
def test_keys_are_hashed_as_java_does(text: str, value: int) -> None:
    assert java_hash(text) == value


async def test_a_key_keeps_its_partition_when_configs_change(storage: Storage) -> None:
    async with Broker(storage=storage) as broker:
        topic = InternalTopic(broker.state.topics, NAME, 7, CONFIGS)
        where = topic.partition_of("group")
        assert not topic.is_ready("group")
        await topic.prepare("group")
        assert topic.is_ready("group")
        topic.append("group", [(b"\x00\x63k", b"v"), (b"\x00\x63l", None)], 5)
    async with Broker(storage=storage) as broker:
        topic = InternalTopic(broker.state.topics, NAME, 50, CONFIGS)
        assert topic.partition_of("group") == where
        assert [(index, [(one.key, one.value) for one in batch.records()]) for index, batch in topic.replay()] == [
            (where, [(b"\x00\x63k", b"v"), (b"\x00\x63l", None)])
        ]


async def test_a_topic_that_is_only_a_directory_is_not_emptied_by_its_age() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage) as broker:
        topic = InternalTopic(broker.state.topics, NAME, 1, CONFIGS)
        await topic.prepare("group")
        topic.append("group", [(b"\x00\x63", b"v")], 5)
    storage.delete("aiokwire-topics.json")
    async with Broker(storage=storage) as broker:
        assert broker.state.topics.require(NAME).log_config.deletes is False


async def test_a_power_failure_keeps_flushed_records() -> None:
    storage = MemoryStorage()
    broker = Broker(storage=storage)
    await broker.start()
    topic = InternalTopic(broker.state.topics, NAME, 3, CONFIGS)
    await topic.prepare("group")
    topic.append("group", [(b"\x00\x63", b"v")], 5)
    await topic.flush("group", 5)
    broker.state.logs.abandon()
    await broker.close()
    storage.crash(random.Random(5))
    async with Broker(storage=storage) as broker:
        topic = InternalTopic(broker.state.topics, NAME, 3, CONFIGS)
        assert [one.value for _, batch in topic.replay() for one in batch.records()] == [b"v"]


async def test_nothing_is_kept_before_the_topic_is_there() -> None:
    async with Broker() as broker:
        topic = InternalTopic(broker.state.topics, NAME, 3, CONFIGS)
        assert not topic.flush_needed("group")
        with pytest.raises(StorageError, match="the state of 'group' cannot be stored"):
            topic.append("group", [(b"k", b"v")], 5)
