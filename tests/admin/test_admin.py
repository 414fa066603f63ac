"""The admin client on the embedded broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aiokwire.admin import (
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from aiokwire.broker import Broker
from aiokwire.cluster import EARLIEST, LATEST, MAX_TIMESTAMP
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BrokerError,
    ClosedError,
    ConfigurationError,
    ConnectionFailed,
    InvalidArgument,
    InvalidRequestError,
)
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.types import TopicPartition


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"orders": 3}) as broker:
        yield broker


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[Admin]:
    async with Admin(broker.bootstrap_servers) as admin:
        yield admin


def settings_of(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


# --- topics -----------------------------------------------------------------------------------------------------------


async def test_a_created_topic_can_be_used_at_once(broker: Broker, admin: Admin) -> None:
    created = await admin.create_topic("new", 4)
    assert (created.name, created.partitions, created.replication_factor) == ("new", 4, 1)
    described = await admin.describe_topic("new")
    assert [partition.partition for partition in described.partitions] == [0, 1, 2, 3]
    assert all(partition.leader is not None for partition in described.partitions)
    assert described.topic_id == created.topic_id
    async with Producer(broker.bootstrap_servers) as producer:
        assert (await producer.send("new", b"x", partition=3)).offset == 0


async def test_the_brokers_defaults_apply_to_numbers_that_are_left_out(admin: Admin) -> None:
    assert (await admin.create_topic("open")).partitions > 0


async def test_creating_an_existing_topic_raises_an_error_with_its_name(admin: Admin) -> None:
    with pytest.raises(InvalidRequestError, match="orders") as caught:
        await admin.create_topic("orders", 1)
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert caught.value.topic == "orders"


async def test_each_of_several_topics_has_its_result_or_its_error(admin: Admin) -> None:
    results = await admin.create_topics([NewTopic("a", 1), NewTopic("orders", 1), NewTopic("b", 2)])
    assert results["a"].partitions == 1
    assert set(results) == {"a", "b", "orders"}
    assert list(results.errors) == ["orders"]
    with pytest.raises(InvalidRequestError):
        results["orders"]
    with pytest.raises(InvalidRequestError):
        results.check()


async def test_validate_only_creates_nothing(admin: Admin) -> None:
    assert (await admin.create_topics([NewTopic("maybe", 1)], validate_only=True)).errors == {}
    assert "maybe" not in [topic.name for topic in await admin.list_topics()]


async def test_topics_are_listed_by_name(admin: Admin) -> None:
    await admin.create_topic("apples", 1)
    assert [(topic.name, topic.partitions) for topic in await admin.list_topics()] == [("apples", 1), ("orders", 3)]


async def test_describing_creates_no_topic_and_returns_an_error_for_an_unknown_one(admin: Admin) -> None:
    results = await admin.describe_topics(["orders", "unknown"])
    assert len(results["orders"].partitions) == 3
    with pytest.raises(BrokerError) as caught:
        results["unknown"]
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.name for topic in await admin.list_topics()] == ["orders"]


async def test_a_deleted_topic_is_gone(admin: Admin) -> None:
    await admin.delete_topic("orders")
    assert await admin.list_topics() == []
    with pytest.raises(BrokerError, match="orders"):
        await admin.delete_topic("orders")


async def test_partitions_are_added_and_never_removed(admin: Admin) -> None:
    assert (await admin.create_partitions({"orders": 5}))["orders"] == 5
    assert len((await admin.describe_topic("orders")).partitions) == 5
    with pytest.raises(InvalidRequestError):
        (await admin.create_partitions({"orders": 2})).check()


@pytest.mark.parametrize("topic", [("", 1), ("a", 0), ("a", -2), ("a", True), (5, 1)])
def test_an_invalid_topic_is_refused_before_a_request_is_sent(topic: tuple[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        NewTopic(*topic)


# --- settings ---------------------------------------------------------------------------------------------------------


async def test_settings_given_at_creation_are_described(admin: Admin) -> None:
    configs = {"cleanup.policy": "compact", "retention.ms": 1000, "preallocate": False}
    await admin.create_topic("kept", 1, configs=configs)
    entries = (await admin.describe_configs([settings_of("kept")]))[settings_of("kept")]
    assert entries["cleanup.policy"].value == "compact"
    assert entries["retention.ms"].value == "1000"
    assert entries["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC
    assert not entries["retention.ms"].is_default


async def test_single_settings_are_altered_and_the_others_are_kept(admin: Admin) -> None:
    orders = settings_of("orders")
    (await admin.alter_configs({orders: {"retention.ms": 5000, "max.message.bytes": 2000}})).check()
    (await admin.alter_configs({orders: {"retention.ms": None}})).check()
    entries = (await admin.describe_configs([orders], ["retention.ms", "max.message.bytes"]))[orders]
    assert set(entries) == {"retention.ms", "max.message.bytes"}
    assert entries["max.message.bytes"].value == "2000"
    assert entries["retention.ms"].is_default


async def test_lists_are_appended_to_and_subtracted_from(admin: Admin) -> None:
    orders = settings_of("orders")
    append = ConfigChange(ConfigOperation.APPEND, "compact")
    (await admin.alter_configs({orders: {"cleanup.policy": append}})).check()
    assert (await admin.describe_configs([orders]))[orders]["cleanup.policy"].value == "delete,compact"
    subtract = ConfigChange(ConfigOperation.SUBTRACT, ["delete"])
    (await admin.alter_configs({orders: {"cleanup.policy": subtract}})).check()
    assert (await admin.describe_configs([orders]))[orders]["cleanup.policy"].value == "compact"


async def test_an_invalid_setting_is_an_error_of_its_resource(admin: Admin) -> None:
    orders, unknown = settings_of("orders"), settings_of("unknown")
    results = await admin.alter_configs({orders: {"retention.ms": "soon"}, unknown: {"retention.ms": 1}})
    assert set(results.errors) == {orders, unknown}


async def test_a_brokers_settings_are_requested_from_that_broker(admin: Admin) -> None:
    node = (await admin.describe_cluster()).brokers[0].node_id
    resource = ConfigResource(ResourceType.BROKER, str(node))
    assert (await admin.describe_configs([resource]))[resource]
    with pytest.raises(InvalidArgument):
        await admin.describe_configs([ConfigResource(ResourceType.BROKER, "first")])


# --- cluster and offsets ----------------------------------------------------------------------------------------------


async def test_the_cluster_is_described(broker: Broker, admin: Admin) -> None:
    cluster = await admin.describe_cluster()
    assert cluster.cluster_id
    assert cluster.controller_id in [one.node_id for one in cluster.brokers]
    assert [f"{one.host}:{one.port}" for one in cluster.brokers] == [broker.bootstrap_servers]


async def test_records_before_an_offset_are_deleted(broker: Broker, admin: Admin) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for partition in (0, 1, 1, 1):
            await producer.send("orders", b"x", partition=partition)
    first, second, empty = (TopicPartition("orders", number) for number in range(3))
    moved = broker.faults.on(ApiKey.DELETE_RECORDS).error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert await admin.delete_records({first: -1, second: 2, empty: 0}) == {first: 1, second: 2, empty: 0}
    assert moved.hits == 1, "it asks again"
    assert await admin.delete_records({second: 1}) == {second: 2}
    assert [(record.partition, record.offset) for record in broker.records("orders")] == [(1, 2)]


async def test_records_beyond_the_end_cannot_be_deleted(broker: Broker, admin: Admin) -> None:
    with pytest.raises(InvalidArgument, match=r"orders\[0\]: the offset must be at least 0, or -1 for the end, not -2"):
        await admin.delete_records({TopicPartition("orders", 0): -2})
    with pytest.raises(InvalidRequestError, match=r"DeleteRecords of orders\[0\] from .*OFFSET_OUT_OF_RANGE"):
        await admin.delete_records({TopicPartition("orders", 0): 5})


async def test_offsets_are_listed_by_time_and_by_constant(broker: Broker, admin: Admin) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(5):
            await producer.send("orders", b"x", partition=0, timestamp=[100, 200, 900, 300, 400][number])
    tp = TopicPartition("orders", 0)
    found = [(await admin.list_offsets({tp: time}))[tp].offset for time in (EARLIEST, LATEST, 250, MAX_TIMESTAMP, 1000)]
    assert found == [0, 5, 2, 2, -1]


async def test_listing_offsets_of_an_unknown_partition_raises(admin: Admin) -> None:
    with pytest.raises((BrokerError, TimeoutError), match="orders"):
        await admin.list_offsets({TopicPartition("orders", 44): LATEST}, timeout=0.3)


# --- life -------------------------------------------------------------------------------------------------------------


async def test_a_closed_admin_client_raises_closed_error(broker: Broker) -> None:
    admin = Admin(broker.bootstrap_servers)
    with pytest.raises(ClosedError, match="start"):
        await admin.list_topics()
    await admin.start()
    await admin.close()
    with pytest.raises(ClosedError):
        await admin.list_topics()
    await admin.close()


async def test_the_start_raises_when_no_broker_can_be_reached() -> None:
    with pytest.raises(ConnectionFailed):
        await Admin("127.0.0.1:1", bootstrap_timeout_ms=0).start()


def test_the_error_of_an_unknown_option_names_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError, match="client_id"):
        Admin("localhost:1", client_ids="x")  # type: ignore[call-arg]  # on purpose
