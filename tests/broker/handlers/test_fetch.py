"""Fetch: sizes, waiting, isolation, sessions, epochs, and old versions."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers.fetch import handle
from aiokwire.broker.handlers.produce import handle as write
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import delete_records, delete_topics, fetch
from aiokwire.records import read_batches
from aiokwire.types import Compression
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of


async def _fetch_one(client: RawClient, request: fetch.FetchRequest, version: int = 12) -> fetch.PartitionData:
    response = await client.ask(request, version)
    assert response.error_code == 0
    return response.responses[0].partitions[0]


@pytest.mark.parametrize("version", range(4, 13))
async def test_every_version_by_name_reads_from_an_offset(client: RawClient, version: int) -> None:
    await produce_one(client, "t", batch([b"a", b"b"]))
    await produce_one(client, "t", batch([b"c"]))
    data = await _fetch_one(client, fetch_request("t", 2), version)
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 3, 3)
    assert values_of(data) == [b"c"]
    assert data.aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
async def test_newer_versions_read_by_topic_id(broker: Broker, client: RawClient, version: int) -> None:
    await produce_one(client, "t", batch([b"a"]))
    topic_id = broker.state.topics.require("t").id
    data = await _fetch_one(client, fetch_request("", topic_id=topic_id), version)
    assert values_of(data) == [b"a"]
    data = await _fetch_one(client, fetch_request("", topic_id=b"x" * 16), version)
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
async def test_old_versions_get_old_formats(client: RawClient, version: int, magic: int) -> None:
    await produce_one(client, "t", batch([b"a", b"b"], keys=[b"k", None], compression=Compression.GZIP))
    await produce_one(client, "t", batch([b"c"]))
    data = await _fetch_one(client, fetch_request("t"), version)
    batches = read_batches(data.records, "t", 0)
    assert {one.magic for one in batches} == {magic}
    found = [(one.offset, one.key, one.value) for each in batches for one in each.records()]
    assert found == [(0, b"k", b"a"), (1, None, b"b"), (2, None, b"c")]


@pytest.mark.parametrize("version", range(4, 13))
async def test_zstd_is_served_to_clients_of_every_version(broker: Broker, client: RawClient, version: int) -> None:
    await broker.create_topic("z", 1, configs={"compression.type": "zstd"})
    for topic in ("t", "z"):
        await produce_one(client, topic, batch([b"a"], compression=Compression.ZSTD))
        assert values_of(await _fetch_one(client, fetch_request(topic), version)) == [b"a"]


async def test_an_offset_within_a_batch_gets_the_whole_batch(client: RawClient) -> None:
    await produce_one(client, "t", batch([b"a", b"b", b"c"]))
    data = await _fetch_one(client, fetch_request("t", 1))
    assert read_batches(data.records, "t", 0)[0].base_offset == 0


@pytest.mark.parametrize(("offset", "code"), [(-1, 1), (0, 0), (1, 0), (2, 1)])
async def test_only_offsets_of_the_log_and_its_end_are_in_range(client: RawClient, offset: int, code: int) -> None:
    await produce_one(client, "t", batch([b"a"]))
    data = await _fetch_one(client, fetch_request("t", offset, max_wait_ms=0))
    assert data.error_code == code
    if code:
        assert (data.high_watermark, data.records) == (-1, b"")


async def test_what_does_not_exist_is_answered_without_waiting(client: RawClient) -> None:
    for topic, partition in (("none", 0), ("t", 9), ("t", -1)):
        data = await _fetch_one(client, fetch_request(topic, partition=partition, max_wait_ms=60_000))
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_first_batch_comes_whole_and_limits_are_hard_after_it(client: RawClient) -> None:
    for partition in (0, 1):
        for _ in range(3):
            await produce_one(client, "t", batch([b"x" * 1000]), partition=partition)
    request = fetch_request("t", max_bytes=10, partition_max_bytes=10)
    request.topics[0].partitions.append(fetch.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=10))
    response = await client.ask(request, 12)
    first, second = response.responses[0].partitions
    assert len(values_of(first)) == 1
    assert second.records == b""
    request.max_bytes = 2500
    request.topics[0].partitions[0].partition_max_bytes = 1200
    request.topics[0].partitions[1].partition_max_bytes = 1 << 20
    response = await client.ask(request, 12)
    sizes = [len(one.records or b"") for one in response.responses[0].partitions]
    assert sizes == [1200, 1300], "the last batch is truncated at the limit"


async def test_partitions_are_served_in_the_order_of_the_request(client: RawClient) -> None:
    for partition in (0, 1):
        await produce_one(client, "t", batch([b"x" * 1000]), partition=partition)
    request = fetch_request("t", partition=1, max_bytes=10)
    request.topics[0].partitions.append(fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20))
    response = await client.ask(request, 12)
    assert [one.partition_index for one in response.responses[0].partitions] == [1, 0]
    assert [len(values_of(one)) for one in response.responses[0].partitions] == [1, 0]


async def test_a_fetch_waits_until_there_are_enough_bytes(broker: Broker, client: RawClient) -> None:
    producer = await RawClient.connect(broker)
    client.send(fetch_request("t", max_wait_ms=60_000, min_bytes=2500), 12)
    for value in (b"a", b"b", b"c"):
        await produce_one(producer, "t", batch([value * 1000]))
    data = (await client.receive(fetch.FetchResponse, 12)).responses[0].partitions[0]
    assert len(values_of(data)) == 3
    await producer.close()


async def test_a_fetch_that_finds_too_little_gets_its_response_after_the_wait(client: RawClient) -> None:
    await produce_one(client, "t", batch([b"a"]))
    started = anyio.current_time()
    data = await _fetch_one(client, fetch_request("t", max_wait_ms=150, min_bytes=1 << 20))
    assert anyio.current_time() - started >= 0.14
    assert values_of(data) == [b"a"]


async def test_deleting_the_topic_ends_the_wait(broker: Broker, client: RawClient) -> None:
    other = await RawClient.connect(broker)
    client.send(fetch_request("t", max_wait_ms=60_000), 12)
    request = delete_topics.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    assert (await other.ask(request, 3)).responses[0].error_code == 0
    data = (await client.receive(fetch.FetchResponse, 12)).responses[0].partitions[0]
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await other.close()


async def test_deleted_records_are_out_of_range(client: RawClient) -> None:
    for value in (b"a", b"b", b"c"):
        await produce_one(client, "t", batch([value]))
    request = delete_records.DeleteRecordsRequest(
        topics=[
            delete_records.DeleteRecordsTopic(
                name="t", partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=2)]
            )
        ]
    )
    assert (await client.ask(request, 2)).topics[0].partitions[0].low_watermark == 2
    assert (await _fetch_one(client, fetch_request("t", 1))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    data = await _fetch_one(client, fetch_request("t", 2))
    assert (values_of(data), data.log_start_offset) == ([b"c"], 2)


async def test_read_committed_gets_the_list_of_aborted_transactions(client: RawClient) -> None:
    await produce_one(client, "t", batch([b"a"]))
    data = await _fetch_one(client, fetch_request("t", isolation_level=1))
    assert (values_of(data), data.aborted_transactions) == ([b"a"], [])


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_a_leader_epoch_that_is_not_the_brokers_is_refused(client: RawClient, epoch: int, code: int) -> None:
    request = fetch_request("t")
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert (await _fetch_one(client, request)).error_code == code


async def test_an_older_leader_epoch_is_fenced(broker: Broker, client: RawClient) -> None:
    broker.state.topics.require("t").partitions[0].leader_epoch = 3
    request = fetch_request("t")
    request.topics[0].partitions[0].current_leader_epoch = 2
    assert (await _fetch_one(client, request)).error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_fetch_past_a_truncation_returns_the_diverging_epoch(broker: Broker, client: RawClient) -> None:
    for value in (b"a", b"b", b"c"):
        await produce_one(client, "t", batch([value]))
    broker.state.topics.require("t").partitions[0].log.truncate_to(1)
    request = fetch_request("t", 3, max_wait_ms=60_000)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    data = await _fetch_one(client, request)
    assert data.diverging_epoch == fetch.EpochEndOffset(epoch=0, end_offset=1)
    assert data.records == b""


# --- sessions ---------------------------------------------------------------------------------------------------------


async def _open_session(client: RawClient, version: int = 12) -> fetch.FetchResponse:
    request = fetch_request("t")
    request.topics[0].partitions.append(fetch.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1 << 20))
    request.session_epoch = 0
    return await client.ask(request, version)


async def test_a_session_returns_only_changes(client: RawClient) -> None:
    opened = await _open_session(client)
    assert opened.session_id > 0
    assert [one.partition_index for one in opened.responses[0].partitions] == [0, 1]

    def follow(epoch: int) -> fetch.FetchRequest:
        return fetch.FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=opened.session_id, session_epoch=epoch
        )

    assert (await client.ask(follow(1), 12)).responses == []
    await produce_one(client, "t", batch([b"a"]), partition=1)
    changed = await client.ask(follow(2), 12)
    assert [one.partition_index for one in changed.responses[0].partitions] == [1]
    assert values_of(changed.responses[0].partitions[0]) == [b"a"]
    moved = follow(3)
    moved.topics = [
        fetch.FetchTopic(
            topic="t", partitions=[fetch.FetchPartition(partition=1, fetch_offset=1, partition_max_bytes=1 << 20)]
        )
    ]
    moved.forgotten_topics_data = [fetch.ForgottenTopic(topic="t", partitions=[0])]
    assert (await client.ask(moved, 12)).responses == []
    await produce_one(client, "t", batch([b"b"]), partition=0)
    assert (await client.ask(follow(4), 12)).responses == []
    stale = await client.ask(follow(4), 12)
    assert stale.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    by_id = await client.ask(follow(5), 13)
    assert by_id.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    closing = follow(-1)
    assert (await client.ask(closing, 12)).session_id == 0
    gone = await client.ask(follow(5), 12)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_session_waits_for_data_of_its_partitions(broker: Broker, client: RawClient) -> None:
    opened = await _open_session(client)
    producer = await RawClient.connect(broker)
    client.send(
        fetch.FetchRequest(
            max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, session_id=opened.session_id, session_epoch=1
        ),
        12,
    )
    await produce_one(producer, "t", batch([b"a"]))
    answer = await client.receive(fetch.FetchResponse, 12)
    assert values_of(answer.responses[0].partitions[0]) == [b"a"]
    await producer.close()


async def test_records_that_arrive_before_the_wait_end_it(broker: Broker, client: RawClient) -> None:
    """A fetch that finds nothing is waited for by a task that runs a turn later; an append in
    between was overlooked until max_wait_ms ended."""
    await produce_one(client, "t", batch([b"before"]))
    call = Call(broker.state, api=ApiKey.FETCH, version=12)
    waiting = handle(fetch_request("t", 1, max_wait_ms=60_000), call)
    assert not isinstance(waiting, fetch.FetchResponse)
    writer = Call(broker.state, api=ApiKey.PRODUCE, version=9)
    write(produce_request("t", batch([b"meanwhile"])), writer)
    with anyio.fail_after(10):
        answer = await waiting
    assert values_of(answer.responses[0].partitions[0]) == [b"meanwhile"]
