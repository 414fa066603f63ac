"""Several nodes in one broker: leaders, coordinators, metadata, and stopped nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.broker.dispatch import is_coordinated_elsewhere
from aiokwire.broker.log import MemoryStorage
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError, InvalidArgument
from aiokwire.protocol import ApiKey, Request
from aiokwire.protocol.messages import (
    add_partitions_to_txn,
    describe_cluster,
    describe_topic_partitions,
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    txn_offset_commit,
)
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest_asyncio.fixture
async def trio() -> AsyncIterator[Broker]:
    """Three nodes; partitions 0, 1 and 2 of topic t are led by nodes 1, 2 and 3, in this order."""
    async with Broker(nodes=3, topics={"t": 3}) as broker:
        yield broker


async def metadata_of(broker: Broker, node: int) -> metadata.MetadataResponse:
    client = await RawClient.connect(broker, node)
    answer = await client.ask(metadata.MetadataRequest(topics=None), 12)
    await client.close()
    return answer


async def test_every_node_names_all_nodes_and_leaders(trio: Broker) -> None:
    for node in trio.nodes:
        answer = await metadata_of(trio, node)
        assert [f"{one.host}:{one.port}" for one in answer.brokers] == trio.bootstrap_servers.split(",")
        assert [one.node_id for one in answer.brokers] == [1, 2, 3]
        assert answer.controller_id == 1
        (topic,) = answer.topics
        assert [(one.leader_id, one.leader_epoch) for one in topic.partitions] == [(1, 0), (2, 0), (3, 0)]
        assert topic.partitions[1].replica_nodes == [2, 3, 1]
        assert topic.partitions[1].isr_nodes == [2, 3, 1]


async def test_a_node_serves_what_it_leads_and_refuses_the_rest(trio: Broker) -> None:
    client = await RawClient.connect(trio, 2)
    assert (await produce_one(client, "t", batch([b"a"]), partition=1)).error_code == 0
    assert (await produce_one(client, "t", batch([b"a"]), partition=0)).error_code == NOT_LEADER
    assert trio.records("t", 0) == []
    (answer,) = (await client.ask(fetch_request("t", partition=1), 12)).responses
    assert values_of(answer.partitions[0]) == [b"a"]
    (answer,) = (await client.ask(fetch_request("t", partition=2, max_wait_ms=60_000), 12)).responses
    assert answer.partitions[0].error_code == NOT_LEADER
    wanted = [list_offsets.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(3)]
    asked = list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name="t", partitions=wanted)])
    codes = [one.error_code for one in (await client.ask(asked, 5)).topics[0].partitions]
    assert codes == [NOT_LEADER, 0, NOT_LEADER]
    epochs = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        topics=[
            offset_for_leader_epoch.OffsetForLeaderTopic(
                topic="t", partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
        ]
    )
    assert (await client.ask(epochs, 4)).topics[0].partitions[0].error_code == NOT_LEADER
    await client.close()


async def test_a_leader_moves_under_a_new_epoch_with_its_records(trio: Broker) -> None:
    one, three = await RawClient.connect(trio, 1), await RawClient.connect(trio, 3)
    await produce_one(one, "t", batch([b"a"]))
    assert trio.faults.move_leader("t", 0, 3) == 1
    assert trio.faults.leader("t", 0) == 3
    assert (await produce_one(one, "t", batch([b"b"]))).error_code == NOT_LEADER
    assert (await produce_one(three, "t", batch([b"b"]))).base_offset == 1
    assert [(record.value, record.leader_epoch) for record in trio.records("t", 0)] == [(b"a", 0), (b"b", 1)]
    assert (await metadata_of(trio, 2)).topics[0].partitions[0].leader_id == 3
    stale = fetch_request("t")
    stale.topics[0].partitions[0].current_leader_epoch = 0
    (answer,) = (await three.ask(stale, 12)).responses
    assert answer.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    await one.close()
    await three.close()


async def test_a_long_poll_ends_when_its_leader_moves(trio: Broker) -> None:
    client = await RawClient.connect(trio, 1)
    seen = trio.faults.on(ApiKey.FETCH).observe()
    client.send(fetch_request("t", max_wait_ms=60_000), 12)
    await seen.hit()
    trio.faults.move_leader("t", 0, 2)
    (answer,) = (await client.receive(fetch.FetchResponse, 12)).responses
    assert answer.partitions[0].error_code == NOT_LEADER
    await client.close()


@pytest.mark.parametrize(("version", "leader", "endpoints"), [(9, None, []), (10, (2, 1), [2])])
async def test_the_new_leader_is_named_to_producers_whose_version_can_carry_it(
    trio: Broker, version: int, leader: tuple[int, int] | None, endpoints: list[int]
) -> None:
    client = await RawClient.connect(trio, 1)
    trio.faults.move_leader("t", 0, 2)
    answer = await client.ask(produce_request("t", batch([b"a"])), version)
    hint = answer.responses[0].partition_responses[0].current_leader
    assert (hint and (hint.leader_id, hint.leader_epoch)) == leader
    assert [one.node_id for one in answer.node_endpoints] == endpoints
    assert all(f"{one.host}:{one.port}" == trio.address(one.node_id) for one in answer.node_endpoints)
    await client.close()


@pytest.mark.parametrize(("version", "hinted", "endpoints"), [(11, False, []), (12, True, []), (16, True, [2])])
async def test_the_new_leader_is_named_to_consumers_whose_version_can_carry_it(
    trio: Broker, version: int, hinted: bool, endpoints: list[int]
) -> None:
    client = await RawClient.connect(trio, 1)
    trio.faults.move_leader("t", 0, 2)
    topic_id = trio.state.topics.require("t").id
    asked = fetch_request("t") if version < 13 else fetch_request("", topic_id=topic_id)
    answer = await client.ask(asked, version)
    hint = answer.responses[0].partitions[0].current_leader
    assert (hint is not None and (hint.leader_id, hint.leader_epoch) == (2, 1)) == hinted
    assert [one.node_id for one in answer.node_endpoints] == endpoints
    await client.close()


async def test_frozen_metadata_stays_as_it_was(trio: Broker) -> None:
    trio.faults.freeze_metadata()
    trio.faults.move_leader("t", 0, 2)
    await trio.faults.stop_node(3)
    await trio.create_topic("later", 1)
    answer = await metadata_of(trio, 2)
    assert [one.node_id for one in answer.brokers] == [1, 2, 3]
    by_name = {topic.name: topic for topic in answer.topics}
    assert [(one.leader_id, one.leader_epoch) for one in by_name["t"].partitions] == [(1, 0), (2, 0), (3, 0)]
    assert by_name["later"].partitions[0].leader_id == 1
    client = await RawClient.connect(trio, 1)
    refused = await produce_one(client, "t", batch([b"a"]), version=10)
    assert (refused.error_code, refused.current_leader) == (NOT_LEADER, None)
    await client.close()
    trio.faults.thaw_metadata()
    answer = await metadata_of(trio, 2)
    assert [one.node_id for one in answer.brokers] == [1, 2]
    assert [one.leader_id for one in answer.topics[1].partitions] == [2, 2, 1]


async def test_a_stopped_node_is_disconnected_and_restarts_at_its_port(trio: Broker) -> None:
    client = await RawClient.connect(trio, 1)
    held = trio.faults.on(ApiKey.PRODUCE).hold()
    client.send(produce_request("t", batch([b"a"])), 9)
    await held.arrived()
    address = trio.address(1)
    await trio.faults.stop_node(1)
    await trio.faults.stop_node(1)
    assert await client.closed_by_broker()
    held.release()
    with pytest.raises(OSError, match="Connect"):
        await RawClient.connect(trio, 1)
    answer = await metadata_of(trio, 2)
    assert [one.node_id for one in answer.brokers] == [2, 3]
    assert answer.controller_id == 2
    assert [one.leader_id for one in answer.topics[0].partitions] == [2, 2, 3]
    assert answer.topics[0].partitions[0].isr_nodes == [2, 3]
    assert answer.topics[0].partitions[0].offline_replicas == [1]
    await trio.faults.start_node(1)
    await trio.faults.start_node(1)
    assert trio.address(1) == address
    again = await RawClient.connect(trio, 1)
    assert (await produce_one(again, "t", batch([b"a"]))).error_code == NOT_LEADER
    assert (await metadata_of(trio, 1)).controller_id == 1
    assert trio.records("t", 0) == [], "what a node had in its hands when it stopped was not done"
    await again.close()
    await client.close()


async def test_without_fail_over_there_is_no_leader_until_the_node_is_back(trio: Broker) -> None:
    await trio.faults.stop_node(2, fail_over=False)
    (topic,) = (await metadata_of(trio, 1)).topics
    assert (topic.partitions[1].error_code, topic.partitions[1].leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    client = await RawClient.connect(trio, 1)
    described = await client.ask(
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name="t")]
        ),
        0,
    )
    assert [one.leader_id for one in described.topics[0].partitions] == [1, -1, 3]
    assert (await client.ask(describe_cluster.DescribeClusterRequest(), 0)).controller_id == 1
    refused = await produce_one(client, "t", batch([b"a"]), partition=1, version=10)
    assert (refused.error_code, refused.current_leader) == (NOT_LEADER, None)
    await trio.faults.start_node(2)
    (topic,) = (await metadata_of(trio, 1)).topics
    assert (topic.partitions[1].error_code, topic.partitions[1].leader_id, topic.partitions[1].leader_epoch) == (
        0,
        2,
        0,
    )
    await client.close()


async def test_a_fetch_session_does_not_outlive_its_node(trio: Broker) -> None:
    client = await RawClient.connect(trio, 1)
    request = fetch_request("t")
    request.session_epoch = 0
    session = (await client.ask(request, 12)).session_id
    await client.close()
    await trio.faults.stop_node(1, fail_over=False)
    await trio.faults.start_node(1)
    client = await RawClient.connect(trio, 1)
    answer = await client.ask(fetch.FetchRequest(session_id=session, session_epoch=1), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    await client.close()


async def test_keys_have_coordinators_that_move(trio: Broker) -> None:
    assert {trio.faults.coordinator(f"group-{number}") for number in range(50)} == {1, 2, 3}
    trio.faults.move_coordinator("g", 3)
    client = await RawClient.connect(trio, 1)
    (answer,) = (await client.ask(find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"]), 4)).coordinators
    assert (answer.node_id, f"{answer.host}:{answer.port}") == (3, trio.address(3))
    old = await client.ask(find_coordinator.FindCoordinatorRequest(key="g"), 1)
    assert old.node_id == 3
    await trio.faults.stop_node(3)
    assert trio.faults.coordinator("g") in {1, 2}
    await trio.faults.start_node(3)
    assert trio.faults.coordinator("g") == 3
    await client.close()


async def test_other_nodes_respond_with_not_coordinator(trio: Broker) -> None:
    trio.faults.move_coordinator("tx", 2)
    codes = []
    for node in trio.nodes:
        client = await RawClient.connect(trio, node)
        asked = init_producer_id.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000)
        codes.append((await client.ask(asked, 4)).error_code == ErrorCode.NOT_COORDINATOR)
        nobodys = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        assert (await client.ask(nobodys, 4)).error_code == 0
        await client.close()
    assert codes == [True, False, True]


@pytest.mark.parametrize(
    "request_",
    [
        end_txn.EndTxnRequest(transactional_id="k"),
        txn_offset_commit.TxnOffsetCommitRequest(transactional_id="other", group_id="k"),
        offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(group_id="k")]),
        add_partitions_to_txn.AddPartitionsToTxnRequest(v3_and_below_transactional_id="k"),
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=[add_partitions_to_txn.AddPartitionsToTxnTransaction(transactional_id="k")]
        ),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_a_request_is_for_the_coordinator_of_its_key(trio: Broker, request_: Request[Any]) -> None:
    trio.faults.move_coordinator("k", 3)
    assert [is_coordinated_elsewhere(request_, trio.state, node) for node in trio.nodes] == [True, True, False]


async def test_all_nodes_stop_and_restart(trio: Broker) -> None:
    for node in trio.nodes:
        await trio.faults.stop_node(node)
    for node in reversed(trio.nodes):
        await trio.faults.start_node(node)
    leaders = [one.leader_id for one in (await metadata_of(trio, 2)).topics[0].partitions]
    assert leaders == [3, 3, 3], "the last one that ran had taken all over"


async def test_an_epoch_outlives_the_broker() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage, nodes=2, topics={"t": 1}) as broker:
        broker.faults.move_leader("t", 0, 2)
        client = await RawClient.connect(broker, 2)
        await produce_one(client, "t", batch([b"a"]))
        await client.close()
    async with Broker(storage=storage) as broker:
        assert (await metadata_of(broker, 1)).topics[0].partitions[0].leader_epoch == 1


async def test_nodes_get_consecutive_ports_after_a_fixed_one() -> None:
    async with Broker() as probe:
        free = probe.port
    async with Broker(nodes=2, advertised="kafka.example:9000", listen="127.0.0.1:0") as broker:
        assert [broker.address(node) for node in broker.nodes] == ["kafka.example:9000", "kafka.example:9001"]
    async with Broker(listen=f"127.0.0.1:{free}") as broker:
        assert broker.address(1) == f"127.0.0.1:{free}"


async def test_an_unknown_node_is_refused(trio: Broker) -> None:
    with pytest.raises(InvalidArgument, match="the nodes are 1, 2, 3"):
        trio.faults.move_leader("t", 0, 4)
    with pytest.raises(BrokerError):
        trio.faults.move_leader("t", 9, 1)
    await trio.faults.stop_node(2)
    for move in (lambda: trio.faults.move_leader("t", 0, 2), lambda: trio.faults.move_coordinator("g", 2)):
        with pytest.raises(InvalidArgument, match="node 2 is stopped"):
            move()
    with pytest.raises(ConfigurationError, match="nodes"):
        Broker(nodes=0)


async def test_a_rule_may_be_for_one_node(trio: Broker) -> None:
    trio.faults.on(ApiKey.METADATA, node=2).close()
    assert (await metadata_of(trio, 1)).controller_id == 1
    client = await RawClient.connect(trio, 2)
    client.send(metadata.MetadataRequest(topics=[]), 9)
    assert await client.closed_by_broker()
    await client.close()


async def test_min_insync_replicas_counts_the_nodes_that_run(trio: Broker) -> None:
    await trio.create_topic("safe", 1, {"min.insync.replicas": "3"})
    client = await RawClient.connect(trio, 1)
    assert (await produce_one(client, "safe", batch([b"a"]))).error_code == 0
    await trio.faults.stop_node(3)
    assert (await produce_one(client, "safe", batch([b"a"]))).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    with anyio.fail_after(10):
        await client.ask(produce.ProduceRequest(acks=1, timeout_ms=1), 9)
    await client.close()
