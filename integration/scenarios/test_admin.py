"""Administration of topics, partitions, configs and offsets."""

from __future__ import annotations

import uuid

import pytest

from aiokwire import Admin, BrokerError, ErrorCode, InvalidRequestError, Producer, StaleMetadataError, TopicPartition
from aiokwire.admin import ConfigResource, ConfigSource, NewTopic, ResetTo, ResourceType
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.scenarios.common import PATIENCE, consumer, take

DAY = 24 * 3600 * 1000


def fresh() -> str:
    return f"admin-{uuid.uuid4().hex[:10]}"


async def test_a_topic_is_created_listed_described_used_and_deleted(broker: BrokerUnderTest) -> None:
    if not broker.has_admin:
        pytest.skip(f"{broker.name} has no request that creates topics")
    name = fresh()
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topic(name, 3, replication_factor=1, timeout=PATIENCE)
        assert name in [topic.name for topic in await admin.list_topics()]
        described = await admin.describe_topic(name)
        assert [partition.partition for partition in described.partitions] == [0, 1, 2]
        assert all(partition.leader is not None and partition.replicas for partition in described.partitions)
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send(name, b"value", partition=2)
        async with consumer(broker, [TopicPartition(name, 2)]) as reader:
            assert [record.value for record in await take(reader, 1)] == [b"value"]
        with pytest.raises(InvalidRequestError) as twice:
            await admin.create_topic(name, 3, replication_factor=1, timeout=PATIENCE)
        assert twice.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await admin.delete_topic(name, timeout=PATIENCE)
        with pytest.raises(StaleMetadataError):
            await admin.delete_topic(name, timeout=PATIENCE)


async def test_each_of_several_topics_has_its_own_result(broker: BrokerUnderTest) -> None:
    if not broker.has_admin:
        pytest.skip(f"{broker.name} has no request that creates topics")
    good, taken = fresh(), broker.create("admin")
    async with Admin(broker.bootstrap_servers) as admin:
        wanted = [NewTopic(good, 1, 1), NewTopic(taken, 1, 1), NewTopic("not a name!", 1, 1)]
        results = await admin.create_topics(wanted, timeout=PATIENCE)
        assert set(results.succeeded) == {good}
        assert results.errors[taken].code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert results.errors["not a name!"].code is ErrorCode.INVALID_TOPIC_EXCEPTION
        with pytest.raises(BrokerError, match=taken):
            results[taken]
        await admin.delete_topic(good, timeout=PATIENCE)


async def test_partitions_are_added_to_a_topic(broker: BrokerUnderTest) -> None:
    if not broker.has_configs:
        pytest.skip(f"{broker.name} has no request that adds partitions")
    name = broker.create("admin")
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_partitions({name: PARTITIONS + 2}, timeout=PATIENCE)
        assert len((await admin.describe_topic(name)).partitions) == PARTITIONS + 2
        shrunk = await admin.create_partitions({name: 1}, timeout=PATIENCE)
        assert shrunk.errors[name].code is ErrorCode.INVALID_PARTITIONS
    async with Producer(broker.bootstrap_servers) as producer:
        assert (await producer.send(name, b"new", partition=PARTITIONS + 1)).offset == 0


async def test_configs_are_set_described_changed_and_reset(broker: BrokerUnderTest) -> None:
    if not broker.has_configs:
        pytest.skip(f"{broker.name} has no requests for configs")
    name = fresh()
    topic = ConfigResource(ResourceType.TOPIC, name)
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topic(name, 1, replication_factor=1, configs={"retention.ms": DAY}, timeout=PATIENCE)
        configs = (await admin.describe_configs([topic]))[topic]
        assert configs["retention.ms"].value == str(DAY)
        assert configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC
        assert configs["cleanup.policy"].value == "delete"
        (await admin.alter_configs({topic: {"retention.ms": None, "max.message.bytes": 2000}})).check()
        configs = (await admin.describe_configs([topic]))[topic]
        assert configs["retention.ms"].source is not ConfigSource.DYNAMIC_TOPIC
        assert configs["max.message.bytes"].value == "2000"
        with pytest.raises(InvalidRequestError):
            (await admin.alter_configs({topic: {"no.such.config": 1}})).check()


async def test_the_cluster_is_described(broker: BrokerUnderTest) -> None:
    async with Admin(broker.bootstrap_servers) as admin:
        cluster = await admin.describe_cluster(timeout=PATIENCE)
    assert broker.bootstrap_servers in {f"{one.host}:{one.port}" for one in cluster.brokers}
    if broker.has_configs:
        assert cluster.cluster_id
        assert cluster.controller_id in {one.node_id for one in cluster.brokers}


async def test_offsets_are_listed(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create("admin"), 1)
    async with Producer(broker.bootstrap_servers) as producer:
        for _ in range(3):
            await producer.send(place.topic, b"value", partition=place.partition)
    async with Admin(broker.bootstrap_servers) as admin:
        latest = await admin.list_offsets({place: -1}, timeout=PATIENCE)
        earliest = await admin.list_offsets({place: -2}, timeout=PATIENCE)
    assert (earliest[place].offset, latest[place].offset) == (0, 3)


async def test_a_groups_offsets_are_written_read_reset_and_shown(broker: BrokerUnderTest) -> None:
    if not broker.has_admin:
        pytest.skip(f"{broker.name} keeps offsets in ZooKeeper")
    group, topic = fresh(), broker.create("groups")
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(10):
            await producer.send(topic, b"%d" % number, partition=1)
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.alter_group_offsets(group, {places[0]: 0, places[1]: 4}, timeout=PATIENCE)
        assert group in [one.group_id for one in await admin.list_groups()]
        described = await admin.describe_group(group)
        assert (described.state, described.members) == ("Empty", ())
        lag = await admin.group_lag(group)
        assert {tp: one.lag for tp, one in lag.items()} == {places[0]: 0, places[1]: 6}
        changes = await admin.reset_group_offsets(group, ResetTo.latest(), [topic])
        assert {tp.partition: change.after for tp, change in changes.items()} == {0: 0, 1: 10, 2: 0, 3: 0}
        assert {tp.partition: one.offset for tp, one in (await admin.list_group_offsets(group)).items()} == {
            0: 0, 1: 10, 2: 0, 3: 0,
        }  # fmt: skip
        with pytest.raises(InvalidRequestError) as unknown:
            await admin.describe_group(fresh())
        assert unknown.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        if broker.has_configs:
            await admin.delete_group(group)
            assert await admin.list_group_offsets(group) == {}
