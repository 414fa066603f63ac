"""Rules: every verb, the requests that they match, and how long they last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.protocol import ApiKey, Request
from aiokwire.protocol.messages import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def end_of(broker: Broker, partition: int = 0) -> int:
    return len(broker.records("t", partition))


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_an_error_is_returned_once_and_nothing_is_written(broker: Broker, client: RawClient) -> None:
    rule = broker.faults.on(produce.ProduceRequest).error(NOT_LEADER)
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == NOT_LEADER
    assert await end_of(broker) == 0
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    assert rule.hits == 1
    assert broker.state.interceptor is None, "a broker whose rules are used up spends nothing on them"


async def test_an_error_for_one_partition_leaves_the_others_of_its_request_alone(
    broker: Broker, client: RawClient
) -> None:
    broker.faults.on(ApiKey.PRODUCE, topic="t", partition=1).error(ErrorCode.NOT_ENOUGH_REPLICAS)
    request = produce_request("t", batch([b"a"]))
    request.topic_data[0].partition_data.append(produce.PartitionProduceData(index=1, records=batch([b"b"])))
    answer = await client.ask(request, 9)
    assert [one.error_code for one in answer.responses[0].partition_responses] == [0, ErrorCode.NOT_ENOUGH_REPLICAS]
    assert (await end_of(broker, 0), await end_of(broker, 1)) == (1, 0)


async def test_two_errors_for_two_partitions_share_a_request_and_two_for_one_take_turns(
    broker: Broker, client: RawClient
) -> None:
    broker.faults.on(ApiKey.PRODUCE, partition=0).error(NOT_LEADER)
    broker.faults.on(ApiKey.PRODUCE, partition=0).error(ErrorCode.REQUEST_TIMED_OUT)
    broker.faults.on(ApiKey.PRODUCE, partition=1).error(ErrorCode.CORRUPT_MESSAGE)
    request = produce_request("t", batch([b"a"]))
    request.topic_data[0].partition_data.append(produce.PartitionProduceData(index=1, records=batch([b"b"])))
    codes = []
    for _ in range(3):
        answer = await client.ask(request, 9)
        codes.append([one.error_code for one in answer.responses[0].partition_responses])
    assert codes == [[NOT_LEADER, ErrorCode.CORRUPT_MESSAGE], [ErrorCode.REQUEST_TIMED_OUT, 0], [0, 0]]


async def test_a_request_of_which_every_part_has_an_error_leaves_the_next_rule_to_the_next_request(
    broker: Broker, client: RawClient
) -> None:
    seen = broker.faults.on(ApiKey.PRODUCE, topic="t", times=None).observe()
    broker.faults.on(ApiKey.PRODUCE).error(NOT_LEADER)
    delayed = broker.faults.on(ApiKey.PRODUCE).delay(0)
    for code, hits in ((NOT_LEADER, 0), (0, 1)):
        answer = await client.ask(produce_request("t", batch([b"a"])), 9)
        assert answer.responses[0].partition_responses[0].error_code == code
        assert delayed.hits == hits
    assert seen.hits == 2


async def test_an_error_for_a_fetched_partition_ends_the_long_poll_and_gives_the_others_records(
    broker: Broker, client: RawClient
) -> None:
    await produce_one(client, "t", batch([b"a"]))
    broker.faults.on(ApiKey.FETCH, topic="t", partition=1).error(ErrorCode.OFFSET_OUT_OF_RANGE)
    request = fetch_request("t", max_wait_ms=60_000, min_bytes=1_000_000)
    request.topics[0].partitions.append(fetch.FetchPartition(partition=1, partition_max_bytes=1000))
    fine, wrong = (await client.ask(request, 12)).responses[0].partitions
    assert (values_of(fine), fine.error_code) == ([b"a"], 0)
    assert wrong.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_partition_that_only_the_fetch_session_names_is_found(broker: Broker, client: RawClient) -> None:
    request = fetch_request("t")
    request.session_epoch = 0
    session = (await client.ask(request, 12)).session_id
    assert session
    broker.faults.on(ApiKey.FETCH, topic="t", partition=1).error(NOT_LEADER)
    broker.faults.on(ApiKey.FETCH, topic="t", partition=0).error(ErrorCode.KAFKA_STORAGE_ERROR)
    again = await client.ask(fetch.FetchRequest(session_id=session, session_epoch=1, max_wait_ms=60_000), 12)
    assert [one.error_code for one in again.responses[0].partitions] == [ErrorCode.KAFKA_STORAGE_ERROR]
    forgets = fetch.FetchRequest(session_id=session, session_epoch=2)
    forgets.forgotten_topics_data = [fetch.ForgottenTopic(topic="t", partitions=[0])]
    rule = broker.faults.on(ApiKey.FETCH, topic="t", partition=0).error(NOT_LEADER)
    assert (await client.ask(forgets, 12)).responses == []
    assert rule.hits == 0


async def test_an_error_of_the_whole_fetch_stands_on_top(broker: Broker, client: RawClient) -> None:
    broker.faults.on(ApiKey.FETCH).error(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    answer = await client.ask(fetch_request("t"), 12)
    assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


async def test_metadata_has_errors_for_topics_and_for_partitions(broker: Broker, client: RawClient) -> None:
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    broker.faults.on(ApiKey.METADATA, topic="t").error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    broker.faults.on(ApiKey.METADATA, topic="t", partition=1).error(ErrorCode.LEADER_NOT_AVAILABLE)
    (topic,) = (await client.ask(asked, 12)).topics
    assert (topic.error_code, topic.partitions) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    (topic,) = (await client.ask(asked, 12)).topics
    assert [(one.error_code, one.leader_id) for one in topic.partitions] == [(0, 1), (5, -1)]
    broker.faults.on(ApiKey.METADATA, topic="none").error(ErrorCode.UNKNOWN_SERVER_ERROR)
    missing = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="none")])
    assert (await client.ask(missing, 12)).topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "none" in {topic.name for topic in broker.state.topics}, "the error is in the answer only"
    broker.faults.on(ApiKey.METADATA, topic="t").error(ErrorCode.INVALID_TOPIC_EXCEPTION)
    everything = (await client.ask(metadata.MetadataRequest(topics=None), 12)).topics
    assert {topic.name: topic.error_code for topic in everything} == {"none": 0, "t": 17}
    broker.faults.on(ApiKey.METADATA).error(ErrorCode.REBOOTSTRAP_REQUIRED)
    assert (await client.ask(asked, 13)).error_code == ErrorCode.REBOOTSTRAP_REQUIRED


Part = Callable[[Any], int]
OFFSETS = [list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
EPOCHS = [offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
RECORDS = [delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]


@pytest.mark.parametrize(
    ("request_", "version", "code_of"),
    [
        (
            list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name="t", partitions=OFFSETS)]),
            5,
            lambda answer: answer.topics[0].partitions[0].error_code,
        ),
        (
            offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                topics=[offset_for_leader_epoch.OffsetForLeaderTopic(topic="t", partitions=EPOCHS)]
            ),
            4,
            lambda answer: answer.topics[0].partitions[0].error_code,
        ),
        (
            delete_records.DeleteRecordsRequest(
                topics=[delete_records.DeleteRecordsTopic(name="t", partitions=RECORDS)], timeout_ms=1
            ),
            2,
            lambda answer: answer.topics[0].partitions[0].error_code,
        ),
        (
            create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name="new", num_partitions=1)]),
            7,
            lambda answer: answer.topics[0].error_code,
        ),
        (
            delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name="t")]),
            6,
            lambda answer: answer.responses[0].error_code,
        ),
        (
            delete_topics.DeleteTopicsRequest(topic_names=["t"]),
            1,
            lambda answer: answer.responses[0].error_code,
        ),
        (
            create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(name="t", count=3, assignments=None)]
            ),
            3,
            lambda answer: answer.results[0].error_code,
        ),
        (
            find_coordinator.FindCoordinatorRequest(coordinator_keys=["a", "b"]),
            4,
            lambda answer: answer.coordinators[1].error_code,
        ),
        (find_coordinator.FindCoordinatorRequest(key="a"), 1, lambda answer: answer.error_code),
        (
            init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1),
            4,
            lambda answer: answer.error_code,
        ),
        (api_versions.ApiVersionsRequest(), 0, lambda answer: answer.error_code),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Request) else None,
)
async def test_every_api_has_a_place_for_the_error(
    broker: Broker, client: RawClient, request_: Request[Any], version: int, code_of: Part
) -> None:
    broker.faults.on(request_.API).error(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert code_of(await client.ask(request_, version)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [topic.name for topic in broker.state.topics] == ["t"], "nothing was done"
    assert len(broker.state.topics.require("t").partitions) == 2


# --- answers that come late, or never ---------------------------------------------------------------------------------


async def test_a_delay_holds_up_its_connection_and_no_other(broker: Broker, client: RawClient) -> None:
    other = await RawClient.connect(broker)
    broker.faults.on(ApiKey.PRODUCE).delay(1.0)
    started = anyio.current_time()
    client.send(produce_request("t", batch([b"slow"])), 9)
    client.send(api_versions.ApiVersionsRequest(), 0)
    await produce_one(other, "t", batch([b"quick"]))
    assert anyio.current_time() - started < 0.9
    await client.receive(produce.ProduceResponse, 9, 1)
    assert anyio.current_time() - started >= 0.99
    await client.receive(api_versions.ApiVersionsResponse, 0, 2)
    assert [record.value for record in broker.records("t")] == [b"quick", b"slow"]
    await other.close()


async def test_a_delayed_response_belongs_to_a_handled_request(broker: Broker, client: RawClient) -> None:
    rule = broker.faults.on(ApiKey.PRODUCE).delay(0.05, handled=True)
    client.send(produce_request("t", batch([b"a"])), 9)
    await rule.hit()
    await client.receive(produce.ProduceResponse, 9)
    assert await end_of(broker) == 1


@pytest.mark.parametrize("handled", [False, True])
async def test_a_dropped_request_silences_its_connection(broker: Broker, client: RawClient, handled: bool) -> None:
    broker.faults.on(ApiKey.PRODUCE).drop(handled=handled)
    client.send(produce_request("t", batch([b"a"])), 9)
    client.send(produce_request("t", batch([b"b"])), 9)
    with anyio.move_on_after(0.1) as scope:
        await client.reader.read(1)
    assert scope.cancelled_caught, "neither an answer nor an end"
    assert [record.value for record in broker.records("t")] == ([b"a"] if handled else [])
    other = await RawClient.connect(broker)
    assert (await produce_one(other, "t", batch([b"c"]))).error_code == 0
    await other.close()


async def test_a_request_closes_its_connection_before_or_after_it_is_handled(broker: Broker) -> None:
    for verb, written in (("close", 0), ("close_after", 1)):
        client = await RawClient.connect(broker)
        getattr(broker.faults.on(ApiKey.PRODUCE), verb)()
        client.send(produce_request("t", batch([b"a"])), 9)
        assert await client.closed_by_broker()
        assert await end_of(broker) == written
        await client.close()


async def test_a_response_made_by_the_test_is_sent(broker: Broker, client: RawClient) -> None:
    broker.faults.on(ApiKey.METADATA).respond(metadata.MetadataResponse(cluster_id="made up"))
    assert (await client.ask(metadata.MetadataRequest(topics=[]), 9)).cluster_id == "made up"
    broker.faults.on(metadata.MetadataRequest).respond(
        lambda request: metadata.MetadataResponse(controller_id=len(request.topics or []))
    )
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")] * 3)
    assert (await client.ask(asked, 9)).controller_id == 3
    with pytest.raises(InvalidArgument, match="is not a response to PRODUCE"):
        broker.faults.on(ApiKey.PRODUCE).respond(metadata.MetadataResponse())


async def test_a_held_request_waits_for_its_release(broker: Broker, client: RawClient) -> None:
    held = broker.faults.on(ApiKey.PRODUCE).hold()
    client.send(produce_request("t", batch([b"a"])), 9)
    await held.arrived()
    assert await end_of(broker) == 0
    held.release()
    await client.receive(produce.ProduceResponse, 9)
    assert await end_of(broker) == 1


async def test_a_held_response_belongs_to_a_handled_request(broker: Broker, client: RawClient) -> None:
    held = broker.faults.on(ApiKey.PRODUCE).hold(handled=True)
    client.send(produce_request("t", batch([b"a"])), 9)
    await held.arrived()
    assert await end_of(broker) == 1
    broker.faults.clear_rules()
    await client.receive(produce.ProduceResponse, 9)


async def test_waiting_for_a_request_that_does_not_arrive_ends(broker: Broker) -> None:
    with pytest.raises(TimeoutError, match="Hold on FETCH, 0 hit"):
        await broker.faults.on(ApiKey.FETCH).hold().arrived(timeout=0.01)


async def test_an_observer_sees_requests_and_changes_nothing(broker: Broker, client: RawClient) -> None:
    seen = broker.faults.on(produce.ProduceRequest, times=None).observe()
    broker.faults.on(ApiKey.PRODUCE).error(NOT_LEADER)
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == NOT_LEADER
    assert (await produce_one(client, "t", batch([b"a"]), acks=1)).error_code == 0
    assert [request.acks for request in seen.requests] == [-1, 1]


async def test_a_broker_closes_while_it_holds_and_delays(client: RawClient, broker: Broker) -> None:
    broker.faults.on(ApiKey.PRODUCE).hold()
    rule = broker.faults.on(ApiKey.METADATA).delay(60)
    other = await RawClient.connect(broker)
    client.send(produce_request("t", batch([b"a"])), 9)
    other.send(metadata.MetadataRequest(topics=[]), 9)
    await rule.hit()
    with anyio.fail_after(5):
        await broker.close()
    assert await other.closed_by_broker()
    await other.close()


# --- whom a rule is for -----------------------------------------------------------------------------------------------


async def test_a_rule_applies_to_the_requests_of_its_nth_and_times(broker: Broker, client: RawClient) -> None:
    broker.faults.on(ApiKey.PRODUCE, times=2, nth=2).error(NOT_LEADER)
    codes = [(await produce_one(client, "t", batch([b"a"]))).error_code for _ in range(5)]
    assert codes == [0, NOT_LEADER, NOT_LEADER, 0, 0]
    always = broker.faults.on(ApiKey.PRODUCE, times=None).error(NOT_LEADER)
    codes = [(await produce_one(client, "t", batch([b"a"]))).error_code for _ in range(3)]
    assert codes == [NOT_LEADER] * 3
    always.remove()
    always.remove()
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0


async def test_a_rule_is_for_those_that_it_names_only(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("other", 1)
    rules = [
        broker.faults.on(ApiKey.PRODUCE, topic="other").error(NOT_LEADER),
        broker.faults.on(ApiKey.PRODUCE, partition=1).close(),
        broker.faults.on(ApiKey.PRODUCE, client_id="another").drop(),
        broker.faults.on(produce.ProduceRequest, when=lambda request: request.acks == 1).close(),
        broker.faults.on(ApiKey.METADATA).close(),
    ]
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    assert [rule.hits for rule in rules] == [0] * 5
    assert (await produce_one(client, "other", batch([b"a"]))).error_code == NOT_LEADER
    by_id = produce_request("", batch([b"a"]), partition=1, topic_id=broker.state.topics.require("t").id)
    client.send(by_id, 13)
    assert await client.closed_by_broker()


async def test_rules_are_served_first_come_first_served(broker: Broker, client: RawClient) -> None:
    broker.faults.on(ApiKey.METADATA).respond(metadata.MetadataResponse(cluster_id="first"))
    broker.faults.on(ApiKey.METADATA).respond(metadata.MetadataResponse(cluster_id="second"))
    cluster_ids = [(await client.ask(metadata.MetadataRequest(topics=[]), 9)).cluster_id for _ in range(3)]
    assert cluster_ids == ["first", "second", broker.cluster_id]


async def test_rules_may_be_made_before_the_broker_starts() -> None:
    broker = Broker(topics={"t": 1})
    broker.faults.on(ApiKey.PRODUCE).error(NOT_LEADER)
    async with broker:
        client = await RawClient.connect(broker)
        assert (await produce_one(client, "t", batch([b"a"]))).error_code == NOT_LEADER
        await client.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda broker: broker.faults.on(ApiKey.VOTE), "does not serve VOTE"),
        (lambda broker: broker.faults.on(ApiKey.FETCH, node=9), "node 9 does not exist"),
        (lambda broker: broker.faults.on(ApiKey.FETCH, times=0), "times"),
        (lambda broker: broker.faults.on(ApiKey.FETCH, nth=0), "nth"),
        (lambda broker: broker.faults.on(ApiKey.FETCH, partition=-1), "partition"),
        (lambda broker: broker.faults.on(ApiKey.FETCH).error(0), "not an error code"),
        (lambda broker: broker.faults.on(ApiKey.FETCH).error(9999), "not an error code"),
        (lambda broker: broker.faults.on(ApiKey.FETCH).delay(-1), "seconds"),
    ],
)
async def test_an_invalid_rule_is_refused(broker: Broker, make: Callable[[Broker], object], message: str) -> None:
    with pytest.raises((InvalidArgument, ConfigurationError), match=message):
        make(broker)
