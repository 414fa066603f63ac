"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import create_partitions, create_topics, delete_records, delete_topics
from tests.broker.raw import RawClient, batch, produce_one


def _topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


@pytest.mark.parametrize("version", range(8))
async def test_every_version_creates(broker: Broker, client: RawClient, version: int) -> None:
    request = create_topics.CreateTopicsRequest(topics=[_topic("new", 3, retention_ms="5000")])
    (result,) = (await client.ask(request, version)).topics
    assert (result.name, result.error_code) == ("new", 0)
    topic = broker.state.topics.require("new")
    assert (len(topic.partitions), topic.configs) == (3, {"retention.ms": "5000"})
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        returned = {one.name: (one.value, one.config_source) for one in result.configs or []}
        assert returned["retention.ms"] == ("5000", 1)
        assert returned["segment.bytes"] == (str(1 << 30), 5)
    if version >= 7:
        assert result.topic_id == topic.id


async def test_defaults_stand_for_minus_one(broker: Broker, client: RawClient) -> None:
    request = create_topics.CreateTopicsRequest(topics=[_topic("new", -1, -1)])
    assert (await client.ask(request, 7)).topics[0].num_partitions == 4


async def test_each_topic_succeeds_or_fails_by_itself(broker: Broker, client: RawClient) -> None:
    wanted = [
        _topic("good"),
        _topic("t"),
        _topic("a b"),
        _topic("bad.config", retention="1"),
        _topic("bad.value", retention_ms="soon"),
        _topic("zero", 0),
        _topic("many", 10_001),
        _topic("replicated", 1, 3),
        _topic("twice"),
        _topic("twice"),
        _topic("__consumer_offsets"),
    ]
    results = (await client.ask(create_topics.CreateTopicsRequest(topics=wanted), 7)).topics
    assert {one.name: one.error_code for one in results} == {
        "good": 0,
        "t": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "bad.config": ErrorCode.INVALID_CONFIG,
        "bad.value": ErrorCode.INVALID_CONFIG,
        "zero": ErrorCode.INVALID_PARTITIONS,
        "many": ErrorCode.INVALID_PARTITIONS,
        "replicated": ErrorCode.INVALID_REPLICATION_FACTOR,
        "twice": ErrorCode.INVALID_REQUEST,
        "__consumer_offsets": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert all(one.error_message for one in results if one.error_code)
    assert [topic.name for topic in broker.state.topics] == ["good", "t"]


async def test_names_that_differ_in_dots_and_underscores_only_collide(client: RawClient) -> None:
    request = create_topics.CreateTopicsRequest(topics=[_topic("a.b"), _topic("a_b")])
    codes = [one.error_code for one in (await client.ask(request, 7)).topics]
    assert codes == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


async def test_validate_only_makes_nothing(broker: Broker, client: RawClient) -> None:
    request = create_topics.CreateTopicsRequest(topics=[_topic("new", 3), _topic("t")], validate_only=True)
    codes = [one.error_code for one in (await client.ask(request, 7)).topics]
    assert codes == [0, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert broker.state.topics.get("new") is None


@pytest.mark.parametrize(
    ("assigned", "code"),
    [
        ([(0, [1]), (1, [1])], 0),
        ([(0, [1]), (2, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [2])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_replicas_may_be_assigned_to_this_broker_only(
    broker: Broker, client: RawClient, assigned: list[tuple[int, list[int]]], code: int
) -> None:
    topic = _topic("new", -1, -1)
    topic.assignments = [
        create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in assigned
    ]
    (result,) = (await client.ask(create_topics.CreateTopicsRequest(topics=[topic]), 7)).topics
    assert result.error_code == code
    assert (broker.state.topics.get("new") is not None) == (code == 0)


async def test_a_full_disk_makes_no_topic(broker: Broker) -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage) as full:
        client = await RawClient.connect(full)
        storage.capacity = sum(len(file.data) for file in storage.files.values())
        request = create_topics.CreateTopicsRequest(topics=[_topic("new")])
        (result,) = (await client.ask(request, 7)).topics
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        storage.capacity = None
        (result,) = (await client.ask(request, 7)).topics
        assert result.error_code == 0
        await client.close()


# --- DeleteTopics -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
async def test_topics_are_deleted_by_name(broker: Broker, client: RawClient, version: int) -> None:
    request = delete_topics.DeleteTopicsRequest(topic_names=["t", "none"], timeout_ms=1000)
    results = (await client.ask(request, version)).responses
    assert [(one.name, one.error_code) for one in results] == [
        ("t", 0),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert len(broker.state.topics) == 0


async def test_topics_are_deleted_by_id(broker: Broker, client: RawClient) -> None:
    topic_id = broker.state.topics.require("t").id
    states = [delete_topics.DeleteTopicState(topic_id=one) for one in (topic_id, b"x" * 16)]
    results = (await client.ask(delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=1000), 6)).responses
    assert [(one.name, one.error_code) for one in results] == [("t", 0), (None, ErrorCode.UNKNOWN_TOPIC_ID)]


async def test_deletion_can_be_forbidden() -> None:
    async with Broker(topics={"t": 1}, delete_topic_enable=False) as broker:
        client = await RawClient.connect(broker)
        request = delete_topics.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        assert (await client.ask(request, 5)).responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
        await client.close()


# --- CreatePartitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added(broker: Broker, client: RawClient, version: int) -> None:
    wanted = [
        create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
        for name, count in (("t", 5), ("none", 5))
    ]
    results = (await client.ask(create_partitions.CreatePartitionsRequest(topics=wanted), version)).results
    assert [(one.name, one.error_code) for one in results] == [("t", 0), ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert len(broker.state.topics.require("t").partitions) == 5
    assert (await produce_one(client, "t", batch([b"a"]), partition=4)).error_code == 0


@pytest.mark.parametrize(
    ("count", "brokers", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1], [1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], 0),
    ],
)
async def test_partitions_only_grow_and_only_here(
    broker: Broker, client: RawClient, count: int, brokers: list[list[int]] | None, code: int
) -> None:
    assignments = (
        None if brokers is None else [create_partitions.CreatePartitionsAssignment(broker_ids=one) for one in brokers]
    )
    wanted = create_partitions.CreatePartitionsTopic(name="t", count=count, assignments=assignments)
    request = create_partitions.CreatePartitionsRequest(topics=[wanted], validate_only=True)
    assert (await client.ask(request, 3)).results[0].error_code == code
    assert len(broker.state.topics.require("t").partitions) == 2, "validate_only changes nothing"


# --- DeleteRecords ----------------------------------------------------------------------------------------------------


async def test_records_are_deleted_up_to_an_offset_or_to_the_end(broker: Broker, client: RawClient) -> None:
    await produce_one(client, "t", batch([b"a", b"b", b"c"]))
    await broker.create_topic("c", 1, {"cleanup.policy": "compact"})

    async def delete(topic: str, partition: int, offset: int) -> tuple[int, int]:
        wanted = delete_records.DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = delete_records.DeleteRecordsRequest(
            topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=[wanted])]
        )
        result = (await client.ask(request, 2)).topics[0].partitions[0]
        return result.error_code, result.low_watermark

    assert await delete("t", 0, 1) == (0, 1)
    assert await delete("t", 0, -1) == (0, 3)
    assert await delete("t", 0, 4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert await delete("t", 9, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await delete("c", 0, 0) == (ErrorCode.POLICY_VIOLATION, -1)
