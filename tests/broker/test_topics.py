"""The topic registry: names, its file, and what a crash in the middle of a change leaves."""

from __future__ import annotations

import json
import random
import sys
import threading
from types import FrameType

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.log import LogManager, MemoryStorage
from aiokwire.broker.topic_registry import FILE, TopicRegistry
from aiokwire.broker.topics import Topic, TopicRules, name_fault
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.records import BatchBuilder
from aiokwire.types import Compression
from tests.broker.logs import flush

NOW = 1_700_000_000_000


def _open(storage: MemoryStorage) -> tuple[TopicRegistry, LogManager]:
    logs = LogManager(storage, rng=random.Random(1))
    logs.open(NOW)
    topics = TopicRegistry(storage, logs, BrokerConfigs({}, node_id=1), random.Random(2))
    topics.load()
    return topics, logs


class _Stops(MemoryStorage):
    """Fails the renaming of partition directories."""

    stopped = False

    def rename(self, source: str, target: str) -> None:
        if self.stopped and self.is_directory(source):
            raise StorageError("killed here")
        super().rename(source, target)


def _append(topic: Topic, count: int) -> None:
    builder = BatchBuilder(2, 1 << 20)
    for _ in range(count):
        builder.append(NOW, None, b"v")
    topic.partitions[0].log.append(bytearray(builder.seal()), now_ms=NOW)


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "x" * 249, "..."])
def test_names_that_are_legal(name: str) -> None:
    assert name_fault(name) is None


@given(st.text(max_size=300))
def test_a_name_is_legal_exactly_when_it_fits_a_directory_name(name: str) -> None:
    plain = all(one.isascii() and (one.isalnum() or one in "._-") for one in name)
    assert (name_fault(name) is None) == (plain and 0 < len(name) < 250 and name not in {".", ".."})


async def test_concurrent_saves_leave_the_newest_state() -> None:
    storage = MemoryStorage()
    topics, _ = _open(storage)

    async def create(number: int) -> None:
        topics.create(f"t{number}", 1, {})
        await topics.save()

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(create, number)
    content = storage.read(FILE)
    assert content is not None
    assert sorted(json.loads(content)["topics"]) == sorted(f"t{number}" for number in range(20))


async def test_a_topic_whose_deletion_was_begun_is_gone_after_a_crash() -> None:
    storage = _Stops()
    topics, logs = _open(storage)
    topic = topics.create("t", 2, {})
    await topics.save()
    storage.stopped = True
    with pytest.raises(StorageError):
        await topics.delete(topic)
    logs.abandon()
    storage.stopped = False
    again, logs = _open(storage)
    assert again.get("t") is None
    assert not logs.logs


async def test_a_name_is_not_free_before_the_directories_of_the_topic_that_had_it_are_gone() -> None:
    topics, logs = _open(MemoryStorage())
    old = topics.create("t", 1, {})
    _append(old, 3)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(topics.delete, old)
        while topics.get("t") is old:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(BrokerError, match="is being deleted") as refused:
            topics.create("t", 1, {})
        with pytest.raises(StorageError, match="is being deleted"):
            topics.create_internal("t", 1, {})
    assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    new = topics.create("t", 1, {})
    assert topics.get("t") is new
    assert (new.partitions[0].log.end_offset, logs.get("t", 0)) == (0, new.partitions[0].log)


async def test_a_topic_stays_when_its_deletion_cannot_be_written_down() -> None:
    storage = MemoryStorage()
    topics, logs = _open(storage)
    topic = topics.create("t", 1, {})
    _append(topic, 3)
    await topics.save()
    storage.capacity = 0
    with pytest.raises(StorageError):
        await topics.delete(topic)
    storage.capacity = None
    assert (topics.get("t"), topics.by_id(topic.id), topic.deleted) == (topic, topic, False)
    topics.create("another", 1, {})
    await topics.save()
    logs.abandon()
    again, _ = _open(storage)
    assert again.require("t").partitions[0].log.end_offset == 3


@pytest.mark.parametrize("ends", ["by request", "by the next start"])
async def test_checkpoints_of_a_deleted_topic_do_not_harm_one_that_takes_its_name(ends: str) -> None:
    storage = _Stops()
    topics, logs = _open(storage)
    old = topics.create("t", 1, {})
    _append(old, 10)
    flush(old.partitions[0].log, NOW)
    old.partitions[0].log.delete_records(10)
    logs.checkpoint()
    if ends == "by request":
        await topics.delete(old)
    else:
        storage.stopped = True
        with pytest.raises(StorageError):
            await topics.delete(old)
        logs.abandon()
        storage.stopped = False
        topics, logs = _open(storage)
    _append(topics.create("t", 1, {}), 3)
    await topics.save()
    logs.abandon()
    log = _open(storage)[0].require("t").partitions[0].log
    assert (log.log_start_offset, log.end_offset) == (0, 3)


async def test_a_topic_that_was_not_written_down_yet_is_taken_in_after_a_crash() -> None:
    storage = MemoryStorage()
    topics, logs = _open(storage)
    made = topics.create("t", 3, {})
    logs.abandon()
    again, _ = _open(storage)
    assert (again.require("t").id, len(again.require("t").partitions)) == (made.id, 3)


async def test_a_topic_that_was_being_made_when_the_broker_was_killed_is_not_held_as_one_of_kafkas() -> None:
    storage = MemoryStorage()
    topics, logs = _open(storage)
    topics.create("earlier", 1, {})
    await topics.save()
    topics.create("t", 3, {})
    logs.abandon()
    assert _open(storage)[0].require("t").configs == {}


def test_partitions_missing_on_disk_are_recreated() -> None:
    storage = MemoryStorage()
    entry = {"id": "ab" * 16, "partitions": 2, "configs": {"retention.ms": "7"}}
    storage.write(FILE, json.dumps({"version": 1, "topics": {"t": entry}}).encode())
    topics, logs = _open(storage)
    assert [key.partition for key in logs.logs] == [0, 1]
    assert topics.require("t").partitions[0].log.config.retention_ms == 7
    assert topics.by_id(bytes.fromhex("ab" * 16)) is topics.require("t")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"topics": {"t": {}}}', b'{"topics": {"t": {"id": "x"}}}'])
def test_a_corrupt_file_is_named(content: bytes) -> None:
    storage = MemoryStorage()
    storage.write(FILE, content)
    with pytest.raises(StorageError, match=FILE):
        _open(storage)


def test_a_full_disk_leaves_no_half_topic() -> None:
    storage = MemoryStorage()
    topics, logs = _open(storage)
    topics.create("other", 1, {})
    storage.capacity = sum(len(file.data) for file in storage.files.values()) + 60
    with pytest.raises(StorageError):
        topics.create("t", 4, {})
    assert topics.get("t") is None
    assert [key.topic for key in logs.logs] == ["other"]
    storage.capacity = None
    assert len(topics.create("t", 4, {}).partitions) == 4


def test_internal_names_are_refused() -> None:
    topics, _ = _open(MemoryStorage())
    with pytest.raises(BrokerError, match="internal"):
        topics.create("__transaction_state", 1, {})


def test_rules_follow_the_configs() -> None:
    values = BrokerConfigs({}, node_id=1).topic_values({})
    rules = TopicRules.of(values)
    assert (rules.compacted, rules.log_append_time, rules.compression, rules.compression_level) == (
        False, False, None, None,
    )  # fmt: skip
    changed = TopicRules.of({**values, "cleanup.policy": "compact,delete", "compression.type": "zstd"})
    assert (changed.compacted, changed.compression, changed.compression_level) == (True, Compression.ZSTD, 3)


class _Counting(MemoryStorage):
    """Counts flushes of files and directories."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync(self, path: str) -> None:
        self.synced.append(path)
        super().sync(path)


async def test_a_new_topic_flushes_the_topics_file_and_no_file_per_partition() -> None:
    """It did two flushes per partition within the first Produce request: 28 s for 3,000 of them."""
    storage = _Counting()
    topics, logs = _open(storage)
    storage.synced.clear()
    await topics.create_in_thread("t", 100, {})
    assert all(log.metadata_to_sync for log in logs.logs.values())
    await topics.save()
    assert not any(log.metadata_to_sync for log in logs.logs.values())
    assert storage.synced == [f"{FILE}.tmp"]


async def test_a_partition_that_lost_its_metadata_file_gets_its_topic_id_from_the_topics_file() -> None:
    storage = MemoryStorage()
    topics, logs = _open(storage)
    topic = topics.create("t", 1, {})
    await topics.save()
    _append(topic, 3)
    flush(topic.partitions[0].log, NOW)
    logs.abandon()
    storage.unlock()
    del storage.files["t-0/partition.metadata"].data[:]
    logs = LogManager(storage, rng=random.Random(1))
    topics = TopicRegistry(storage, logs, BrokerConfigs({}, node_id=1), random.Random(2))
    logs.open(NOW, topics.read_ids)
    topics.load()
    again = topics.require("t")
    assert (again.id, again.partitions[0].log.end_offset) == (topic.id, 3)
    assert again.partitions[0].log.topic_id == topic.id


async def test_a_name_is_taken_while_its_partitions_are_made() -> None:
    topics, _ = _open(MemoryStorage())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(topics.create_in_thread, "t", 100, {})
        await anyio.lowlevel.checkpoint()
        with pytest.raises(BrokerError, match="already exists"):
            await topics.create_in_thread("t", 1, {})
    assert len(topics.require("t").partitions) == 100


async def test_many_partitions_are_added_at_once() -> None:
    topics, _ = _open(MemoryStorage())
    topic = topics.create("t", 1, {})
    await topics.add_partitions_in_thread(topic, 50)
    assert [one.index for one in topic.partitions] == list(range(50))


async def test_the_loop_does_next_to_nothing_for_each_partition_of_a_new_topic() -> None:
    """It made the partitions of a topic in one turn: 107 ms for 3,000 of them."""
    topics, _ = _open(MemoryStorage())
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and "/broker/" in frame.f_code.co_filename

    sys.setprofile(count)  # of this thread
    try:
        topic = await topics.create_in_thread("t", 500, {})
        await topics.add_partitions_in_thread(topic, 1000)
    finally:
        sys.setprofile(None)
    assert [partition.index for partition in topic.partitions] == list(range(1000))
    assert {partition.leader for partition in topic.partitions} == {1}
    assert calls < 4000


class _Threads(MemoryStorage):
    """Records the threads that renamed a file."""

    def __init__(self) -> None:
        super().__init__()
        self.renaming: set[int] = set()

    def rename(self, source: str, target: str) -> None:
        self.renaming.add(threading.get_ident())
        super().rename(source, target)


async def test_the_directories_of_a_deleted_topic_are_renamed_in_a_thread() -> None:
    storage = _Threads()
    topics, logs = _open(storage)
    topic = await topics.create_in_thread("t", 500, {})
    await topics.save()
    storage.renaming.clear()
    await topics.delete(topic)
    assert storage.renaming
    assert threading.get_ident() not in storage.renaming
    assert not logs.logs
    assert not [path for path in storage.files if path.startswith("t-") and "-delete" not in path]
    work = logs.deletions_due(NOW + 10**12)
    assert work is not None
    work.do()
    assert not [path for path in storage.files if path.startswith("t-")]
