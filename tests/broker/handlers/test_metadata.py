"""The first requests of clients: versions, brokers, coordinators, topics with their partitions.

Metadata, DescribeTopicPartitions, DescribeCluster, FindCoordinator, ApiVersions.
"""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.dispatch import APIS, TELEMETRY_APIS
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, encode_request
from aiokwire.protocol.messages import (
    api_versions,
    describe_cluster,
    describe_topic_partitions,
    find_coordinator,
    list_partition_reassignments,
    metadata,
)
from tests.broker.raw import RawClient


def _asking(*names: str, create: bool = True) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)


@pytest.mark.parametrize("version", range(14))
async def test_every_version_returns_brokers_and_partitions(broker: Broker, client: RawClient, version: int) -> None:
    answer = await client.ask(_asking("t"), version)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(1, "127.0.0.1", broker.port)]
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert [(one.partition_index, one.leader_id, one.replica_nodes, one.isr_nodes) for one in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    if version >= 1:
        assert answer.controller_id == 1
    if version >= 2:
        assert answer.cluster_id == broker.cluster_id
    if version >= 10:
        assert topic.topic_id == broker.state.topics.require("t").id


async def test_all_topics_are_asked_for_by_null_or_in_version_0_by_an_empty_list(
    broker: Broker, client: RawClient
) -> None:
    await broker.create_topic("a", 1)
    for request, version in ((metadata.MetadataRequest(topics=None), 9), (metadata.MetadataRequest(topics=[]), 0)):
        assert [topic.name for topic in (await client.ask(request, version)).topics] == ["a", "t"]
    assert (await client.ask(metadata.MetadataRequest(topics=[]), 9)).topics == []


async def test_a_topic_that_is_asked_for_is_made(broker: Broker, client: RawClient) -> None:
    answer = await client.ask(_asking("new", "t", "new"), 9)
    assert [(topic.error_code, len(topic.partitions)) for topic in answer.topics] == [(0, 4), (0, 2), (0, 4)]
    assert broker.state.topics.get("new") is not None


async def test_no_topic_is_made_when_the_client_or_the_broker_does_not_want_it(client: RawClient) -> None:
    answer = await client.ask(_asking("new", create=False), 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with Broker(auto_create_topics=False) as strict:
        other = await RawClient.connect(strict)
        answer = await other.ask(_asking("new"), 9)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(strict.state.topics) == 0
        await other.close()


@pytest.mark.parametrize("name", ["a b", ".", "..", "x" * 250, "ü", "__consumer_offsets"])
async def test_names_that_no_topic_may_have_are_refused(client: RawClient, name: str) -> None:
    answer = await client.ask(_asking(name), 9)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_topics_are_found_by_id(broker: Broker, client: RawClient) -> None:
    topic_id = broker.state.topics.require("t").id
    request = metadata.MetadataRequest(
        topics=[
            metadata.MetadataRequestTopic(name=None, topic_id=topic_id),
            metadata.MetadataRequestTopic(name=None, topic_id=b"x" * 16),
        ]
    )
    found, unknown = (await client.ask(request, 12)).topics
    assert (found.name, found.error_code) == ("t", 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_operations_are_returned_on_request(client: RawClient) -> None:
    request = _asking("t")
    request.include_topic_authorized_operations = True
    answer = await client.ask(request, 9)
    assert answer.topics[0].topic_authorized_operations > 0
    assert answer.cluster_authorized_operations < 0


# --- ApiVersions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
async def test_the_versions_are_those_of_the_table(client: RawClient, version: int) -> None:
    request = api_versions.ApiVersionsRequest(client_software_name="raw-1", client_software_version="1.0")
    answer = await client.ask(request, version)
    returned = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert returned == {key: (api.first, api.last) for key, api in APIS.items() if key not in TELEMETRY_APIS}
    if version >= 3:
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        assert levels["metadata.version"] == 30
        assert levels["transaction.version"] == 2
        assert levels["group.version"] == 1
        assert "share.version" not in levels
        lowest = {one.name: one.min_version for one in answer.supported_features}
        assert lowest["kraft.version"] == (0 if version >= 4 else 1)


async def test_the_response_to_an_unknown_version_has_version_0(client: RawClient) -> None:
    frame = bytearray(b"".join(encode_request(api_versions.ApiVersionsRequest(), 0, 7, "raw")))
    frame[6:8] = (99).to_bytes(2, "big")
    client.writer.write(frame)
    answer = await client.receive(api_versions.ApiVersionsResponse, 0, 7)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {one.api_key for one in answer.api_keys} == set(APIS) - TELEMETRY_APIS


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", ""), ("a", "1.")])
async def test_software_names_are_checked_as_kafka_does(client: RawClient, name: str, version: str) -> None:
    request = api_versions.ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert (await client.ask(request, 3)).error_code == ErrorCode.INVALID_REQUEST


# --- the others -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_this_broker(broker: Broker, client: RawClient, version: int) -> None:
    answer = await client.ask(describe_cluster.DescribeClusterRequest(), version)
    assert (answer.cluster_id, answer.controller_id) == (broker.cluster_id, 1)
    assert [(one.broker_id, one.host, one.port) for one in answer.brokers] == [(1, "127.0.0.1", broker.port)]


async def test_controllers_are_not_described_here(client: RawClient) -> None:
    answer = await client.ask(describe_cluster.DescribeClusterRequest(endpoint_type=2), 1)
    assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", range(7))
async def test_the_broker_coordinates_groups_and_transactions(broker: Broker, client: RawClient, version: int) -> None:
    for kind, code in ((0, 0), (1, 0), (2, ErrorCode.INVALID_REQUEST)):
        if kind and version == 0:
            continue
        if version >= 4:
            request = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=["a", "b"])
            found = (await client.ask(request, version)).coordinators
            assert [(one.key, one.error_code) for one in found] == [("a", code), ("b", code)]
            assert {one.port for one in found} == {broker.port if not code else -1}
        else:
            answer = await client.ask(find_coordinator.FindCoordinatorRequest(key="a", key_type=kind), version)
            assert (answer.error_code, answer.node_id) == (code, -1 if code else 1)


async def test_there_are_no_reassignments(client: RawClient) -> None:
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)
    answer = await client.ask(request, 0)
    assert (answer.error_code, answer.topics) == (0, [])


async def test_partitions_are_described_in_pieces(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("a", 5)
    await broker.create_topic("z", 1)
    returned: list[tuple[str | None, int]] = []
    cursor = None
    pieces = 0
    while True:
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[], response_partition_limit=3, cursor=cursor
        )
        answer = await client.ask(request, 0)
        returned += [(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions]
        pieces += 1
        cursor = answer.next_cursor
        if cursor is None:
            break
    assert returned == [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("a", 4), ("t", 0), ("t", 1), ("z", 0)]
    assert pieces == 3


async def test_topics_that_do_not_exist_are_named_by_their_codes(client: RawClient) -> None:
    names = [describe_topic_partitions.TopicRequest(name=name) for name in ("none", "t", "a b")]
    answer = await client.ask(describe_topic_partitions.DescribeTopicPartitionsRequest(topics=names), 0)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]


def test_every_api_has_its_own_name() -> None:
    assert len({ApiKey(key).name for key in APIS}) == len(APIS)
