"""Topics that Kafka wrote: their configs come from Kafka's metadata log, or nothing is deleted."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.cluster_metadata import read_cluster_metadata
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.state import BrokerState
from aiokwire.errors import CorruptRecord
from tests.broker import kafka_directory as kafka
from tests.broker.logs import apply_retention

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
LONG_AGO = 1_500_000_000_000
RETAINED_ALWAYS = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}


@asynccontextmanager
async def _running(storage: MemoryStorage, **options: object) -> AsyncIterator[BrokerState]:
    """A broker that has run its retention once."""
    async with Broker(storage=storage, **options) as broker:  # type: ignore[arg-type]
        state = broker.state
        apply_retention(state.logs, kafka.NOW)
        yield state


def _counts(state: BrokerState) -> dict[str, int]:
    return {
        topic.name: sum(one.log.end_offset - one.log.log_start_offset for one in topic.partitions)
        for topic in state.topics
    }


def _configs(state: BrokerState) -> dict[str, dict[str, str]]:
    return {topic.name: topic.configs for topic in state.topics}


async def test_old_records_of_a_topic_without_retention_survive_the_first_retention_check() -> None:
    storage = MemoryStorage()
    kafka.write_metadata(
        storage,
        [
            kafka.topic("kept", A),
            kafka.partition(A, 0),
            kafka.topic_config("kept", "retention.ms", "-1"),
            kafka.topic("short", B),
            kafka.partition(B, 0),
            kafka.topic_config("short", "retention.ms", "86400000"),
        ],
    )
    kafka.write_partition(storage, "kept-0", A, 3, LONG_AGO)
    kafka.write_partition(storage, "short-0", B, 3, LONG_AGO)
    async with _running(storage) as state:
        assert _counts(state) == {"kept": 3, "short": 0}
        assert _configs(state) == {"kept": {"retention.ms": "-1"}, "short": {"retention.ms": "86400000"}}
    async with _running(storage) as state:
        assert _configs(state)["kept"] == {"retention.ms": "-1"}


async def test_without_the_metadata_log_nothing_is_deleted_until_the_operator_allows_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = MemoryStorage()
    for name in ("a", "b"):
        kafka.write_partition(storage, f"{name}-0", A if name == "a" else B, 3, LONG_AGO)
    with caplog.at_level(logging.WARNING):
        async with _running(storage) as state:
            assert _counts(state) == {"a": 3, "b": 3}
            assert _configs(state) == {"a": RETAINED_ALWAYS, "b": RETAINED_ALWAYS}
    lines = [record.message for record in caplog.records if "without their configs" in record.message]
    assert len(lines) == 1
    assert "__cluster_metadata-0, Kafka's metadata log, is not in the data directory): a, b." in lines[0]
    async with _running(storage) as state:
        assert _counts(state) == {"a": 3, "b": 3}
    async with _running(storage, apply_retention=True) as state:
        assert _counts(state) == {"a": 0, "b": 0}
        assert _configs(state) == {"a": {}, "b": {}}


async def test_a_config_that_the_operator_set_meanwhile_outlives_apply_retention() -> None:
    storage = MemoryStorage()
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    async with _running(storage) as state:
        topic = state.topics.require("a")
        state.topics.set_configs(topic, {**topic.configs, "cleanup.policy": "compact"})
        await state.topics.save()
    async with _running(storage, apply_retention=True) as state:
        assert _configs(state) == {"a": {"cleanup.policy": "compact"}}


async def test_a_corrupt_metadata_log_holds_every_topic(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    kafka.write_metadata(storage, [kafka.topic("a", A), kafka.topic_config("a", "retention.ms", "1000")])
    storage.files[kafka.LOG].data[70] ^= 1
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    with caplog.at_level(logging.WARNING):
        async with _running(storage) as state:
            assert _counts(state) == {"a": 3}
    assert "Kafka's metadata log cannot be read" in caplog.text


async def test_a_directory_of_an_earlier_topic_of_that_name_is_held() -> None:
    storage = MemoryStorage()
    kafka.write_metadata(storage, [kafka.topic("a", B), kafka.topic_config("a", "retention.ms", "1000")])
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    async with _running(storage) as state:
        assert _counts(state) == {"a": 3}


async def test_defaults_from_server_properties_are_unknown_so_that_topics_without_retention_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = MemoryStorage()
    kafka.write_metadata(storage, [kafka.topic("a", A), kafka.partition(A, 0)])
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    with caplog.at_level(logging.WARNING):
        async with _running(storage) as state:
            assert _counts(state) == {"a": 3}
            assert _configs(state) == {"a": {}}
            assert state.configs.dynamic == {"": {"log.retention.ms": "-1"}}
    assert "1 adopted topics have no retention.ms of their own" in caplog.text
    async with _running(storage, log_retention_hours=24) as state:
        assert _counts(state) == {"a": 0}
        assert state.configs.dynamic == {"": {}}


@pytest.mark.parametrize("given", ["static", "dynamic"])
async def test_a_default_retention_that_is_known_is_applied(given: str) -> None:
    storage = MemoryStorage()
    records = [kafka.topic("a", A), kafka.partition(A, 0)]
    if given == "dynamic":
        records.append(kafka.config(4, "", "log.retention.ms", "1000"))
    kafka.write_metadata(storage, records)
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    async with _running(storage, **({"log_retention_ms": 1000} if given == "static" else {})) as state:
        assert _counts(state) == {"a": 0}


async def test_ids_partitions_epochs_and_producer_ids_are_adopted_too() -> None:
    storage = MemoryStorage()
    kafka.write_metadata(
        storage,
        [
            kafka.topic("a", A),
            kafka.partition(A, 0, 4),
            kafka.partition(A, 1, 4),
            kafka.partition(A, 2, 4),
            kafka.new_leader(A, 1),
            kafka.producer_ids(5000),
        ],
    )
    kafka.write_partition(storage, "a-1", A)
    async with _running(storage) as state:
        topic = state.topics.require("a")
        assert (topic.id, len(topic.partitions)) == (A, 3)
        assert [one.leader_epoch for one in topic.partitions] == [6, 6, 6]
    async with _running(storage) as state:
        assert await state.producer_ids.allocate() == 5000


async def test_the_metadata_log_is_unchanged_and_is_not_a_topic() -> None:
    storage = MemoryStorage()
    kafka.write_metadata(storage, [kafka.topic("a", A), kafka.partition(A, 0)])
    kafka.write_partition(storage, "__cluster_metadata-0", bytes(15) + b"\1", 2)
    kafka.write_partition(storage, "a-0", A)
    before = {path: bytes(file.data) for path, file in storage.files.items() if path.startswith("__cluster")}
    async with _running(storage) as state:
        assert [topic.name for topic in state.topics] == ["a"]
    assert {path: bytes(file.data) for path, file in storage.files.items() if path.startswith("__cluster")} == before


async def test_a_config_that_this_broker_does_not_have_is_logged_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    kafka.write_metadata(
        storage,
        [
            kafka.topic("a", A),
            kafka.partition(A, 0),
            kafka.topic_config("a", "future.config", "1"),
            kafka.topic_config("a", "retention.ms", "forever"),
        ],
    )
    kafka.write_partition(storage, "a-0", A, 3, LONG_AGO)
    async with _running(storage) as state:
        assert _configs(state) == {"a": {"retention.ms": "-1"}}
    assert "future.config=1, set in Kafka, was not adopted" in caplog.text


# --- the metadata log itself ------------------------------------------------------------------------------------------


def _read(storage: MemoryStorage) -> dict[str, dict[str, str]]:
    metadata = read_cluster_metadata(storage)
    assert metadata is not None
    return {name: topic.configs for name, topic in metadata.topics.items()}


def test_a_later_record_wins_and_a_null_removes_a_config() -> None:
    storage = MemoryStorage()
    records = [
        kafka.topic("a", A),
        kafka.topic_config("a", "retention.ms", "1"),
        kafka.topic_config("a", "retention.bytes", "2"),
        kafka.topic_config("a", "retention.ms", "3"),
        kafka.topic_config("a", "retention.bytes", None),
    ]
    kafka.write_metadata(storage, records)
    assert _read(storage) == {"a": {"retention.ms": "3"}}


def test_a_topic_of_the_same_name_does_not_inherit_the_configs_of_a_deleted_one() -> None:
    storage = MemoryStorage()
    records = [kafka.topic("a", A), kafka.topic_config("a", "retention.ms", "1"), kafka.remove_topic(A)]
    kafka.write_metadata(storage, [*records, kafka.topic("a", B), kafka.topic("b", C), kafka.remove_topic(C)])
    assert _read(storage) == {"a": {}}


def test_the_newest_snapshot_comes_first_then_what_the_log_has_after_it() -> None:
    storage = MemoryStorage()
    folder = "__cluster_metadata-0"
    old = [kafka.topic("a", A), kafka.topic_config("a", "retention.ms", "1")]
    kafka.write_metadata(storage, old, f"{folder}/{5:020d}-{1:010d}.checkpoint")
    new = [kafka.topic_config("a", "retention.ms", "2"), kafka.topic("a", A)]  # in an order of its own
    kafka.write_metadata(storage, new, f"{folder}/{10:020d}-{1:010d}.checkpoint")
    kafka.write_metadata(storage, [b"unreadable"], f"{folder}/{12:020d}-{1:010d}.checkpoint.part")
    before = [kafka.topic_config("a", "retention.ms", "9")] * 2  # offsets 8 and 9: within the snapshot
    kafka.write_metadata(storage, [*before, kafka.topic("b", B)], f"{folder}/{8:020d}.log", base=8)
    assert _read(storage) == {"a": {"retention.ms": "2"}, "b": {}}


@pytest.mark.parametrize(("end", "expected"), [("end", {"a": {"retention.ms": "1"}}), ("abort", {}), ("open", {})])
def test_a_metadata_transaction_counts_only_once_it_has_ended(end: str, expected: dict[str, dict[str, str]]) -> None:
    storage = MemoryStorage()
    records = [kafka.begin_transaction(), kafka.topic("a", A), kafka.topic_config("a", "retention.ms", "1")]
    records += {"end": [kafka.end_transaction()], "abort": [kafka.abort_transaction()], "open": []}[end]
    kafka.write_metadata(storage, records)
    assert _read(storage) == expected


def test_a_torn_end_is_where_the_log_ends() -> None:
    storage = MemoryStorage()
    kafka.write_metadata(storage, [kafka.topic("a", A)])
    storage.files[kafka.LOG].data += kafka.batch([kafka.topic("b", B)], 1)[:-3]
    assert _read(storage) == {"a": {}}


@pytest.mark.parametrize("missing", ["a middle", "the beginning"])
def test_a_gap_is_corruption(missing: str) -> None:
    storage = MemoryStorage()
    if missing == "a middle":
        kafka.write_metadata(storage, [kafka.topic("a", A)])
    kafka.write_metadata(storage, [kafka.topic("b", B)], f"__cluster_metadata-0/{3:020d}.log", base=3)
    with pytest.raises(CorruptRecord, match=r"ends at offset 1 instead of 3|no records from offset 0 to 3"):
        read_cluster_metadata(storage)


def test_records_of_a_newer_version_are_corrupt_where_they_matter() -> None:
    storage = MemoryStorage()
    newer = bytearray(kafka.topic("a", A))
    newer[2] = 9
    kafka.write_metadata(storage, [bytes(newer)])
    with pytest.raises(CorruptRecord, match="metadata record 2 has version 9"):
        read_cluster_metadata(storage)
