"""Regression scenarios of other clients' consumers and connections, by their number in our list."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.errors import AuthorizationError, BrokerError, CorruptRecord, OffsetOutOfRange
from aiokwire.producer import Producer
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch, list_offsets, metadata, offset_for_leader_epoch
from aiokwire.records import BatchBuilder
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.types import Compression, TopicPartition
from tests.testing.clients import ONE, Quick, fill, numbers, read, reader_of


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 3, "one": 1}, "auto_create_topics": False}


def batch(base: int, *values: bytes) -> bytearray:
    builder = BatchBuilder(2, 1 << 30)
    for number, value in enumerate(values):
        builder.append(1000 + number, None, value)
    return bytearray(builder.seal(base_offset=base, leader_epoch=0))


def topic_of(request: fetch.FetchRequest) -> fetch.FetchTopic:
    """The only topic of a request that names all, as one without a session does."""
    (topic,) = request.topics
    return topic


def answer(request: fetch.FetchRequest, records: bytes, *, end: int = 10) -> fetch.FetchResponse:
    """A response without a session, with these records for every requested partition."""
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    fetch.PartitionData(
                        partition_index=one.partition,
                        high_watermark=end,
                        last_stable_offset=end,
                        log_start_offset=0,
                        aborted_transactions=[],
                        records=records,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# --- connection and protocol ------------------------------------------------------------------------------------------


async def test_2_a_broker_that_resets_the_first_handshakes_is_not_read_in_old_versions(
    kafka_broker: Broker, quick: Quick
) -> None:
    await fill(kafka_broker, numbers(3), headers=[("h", b"x")])
    lost = kafka_broker.faults.on(ApiKey.API_VERSIONS, times=3).close()
    async with reader_of(kafka_broker, quick, "one") as reader:
        record = await reader.getone(timeout=5)
        assert record.headers == (("h", b"x"),), "versions before headers would have lost them"
        assert lost.hits == 3
    # The connection taken for an old broker's returned no topic ids: fetches use names, but in a current version.
    assert {entry.version for entry in kafka_broker.journal.of(ApiKey.FETCH)} <= {12, 18}


def without_ids(broker: Broker) -> Callable[[metadata.MetadataRequest], metadata.MetadataResponse]:
    def respond(_request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        brokers = []
        for node in broker.nodes:
            host, _, port = broker.address(node).rpartition(":")
            brokers.append(metadata.MetadataResponseBroker(node_id=node, host=host, port=int(port)))
        partition = metadata.MetadataResponsePartition(
            partition_index=0,
            leader_id=broker.faults.leader("one", 0),
            leader_epoch=-1,
            replica_nodes=[1],
            isr_nodes=[1],
        )
        topic = metadata.MetadataResponseTopic(name="one", topic_id=ZERO_UUID, partitions=[partition])
        return metadata.MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=[topic])

    return respond


async def test_4_a_broker_without_topic_ids_is_asked_by_name(kafka_broker: Broker, quick: Quick) -> None:
    await fill(kafka_broker, numbers(3))
    kafka_broker.faults.on(metadata.MetadataRequest, times=None).respond(without_ids(kafka_broker))
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 3) == numbers(3)
        await fill_in(kafka_broker, 3)
        assert await read(reader, 1) == [b"3"]
    assert {entry.version for entry in kafka_broker.journal.of(ApiKey.FETCH)} == {12}


async def fill_in(broker: Broker, number: int) -> None:
    """Write to topic one without the rules, which would hide topic ids from the producer, too."""
    broker.faults.clear_rules()
    await fill(broker, numbers(1, number))
    broker.faults.on(metadata.MetadataRequest, times=None).respond(without_ids(broker))


async def test_6_a_broker_that_is_silent_in_the_handshake_holds_up_nothing_else(
    kafka_broker: Broker, quick: Quick
) -> None:
    for partition in range(3):
        await fill(kafka_broker, [b"%d" % partition], "t", partition)
    silent = kafka_broker.faults.leader("t", 0)
    rule = kafka_broker.faults.on(ApiKey.API_VERSIONS, node=silent, times=None).drop()
    options = {"socket_connection_setup_timeout_ms": 100, "socket_connection_setup_timeout_max_ms": 100}
    async with reader_of(kafka_broker, quick, "t", **options) as reader:
        assert sorted(value or b"" for value in await read(reader, 2)) == [b"1", b"2"]
        rule.remove()
        assert await read(reader, 1) == [b"0"]


async def test_8_pipelined_lookups_whose_connection_dies_each_complete_once(kafka_broker: Broker, quick: Quick) -> None:
    await fill(kafka_broker, numbers(5))
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 5) == numbers(5)
        kafka_broker.faults.on(ApiKey.LIST_OFFSETS, nth=3).close_after()
        found: list[dict[TopicPartition, int]] = []

        async def ask(number: int) -> None:
            found.append(await (reader.beginning_offsets([ONE]) if number % 2 else reader.end_offsets([ONE])))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(ask, number)
        assert sorted(one[ONE] for one in found) == [0, 0, 5, 5, 5]
        await fill(kafka_broker, numbers(5, 5))
        assert await read(reader, 5) == numbers(5, 5)


async def test_12_every_connection_may_be_cut_while_nothing_is_read(
    kafka_broker: Broker, quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(kafka_broker, numbers(5))
    async with reader_of(kafka_broker, quick, "one", connections_max_idle_ms=30) as reader:
        assert await read(reader, 5) == numbers(5)
        reader.pause()
        for node in kafka_broker.nodes:
            await kafka_broker.faults.stop_node(node, fail_over=False)
            await kafka_broker.faults.start_node(node)
        await fill(kafka_broker, numbers(5, 5))
        reader.resume()
        assert await read(reader, 5) == numbers(5, 5)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def bomb() -> bytes:
    plain = BatchBuilder(2, 1 << 30)
    plain.append(1000, None, bytes(40_000_000))
    return bytes(plain.seal(compression=Compression.GZIP, base_offset=0, leader_epoch=0))


def overlong() -> bytes:
    data = batch(0, b"a")
    data[8:12] = (-5).to_bytes(4, "big", signed=True)
    return bytes(data)


def countless() -> bytes:
    data = batch(0, b"a")
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("make", [bomb, overlong, countless])
async def test_14_a_hostile_batch_is_a_typed_error_and_the_position_stays(
    kafka_broker: Broker, quick: Quick, make: Callable[[], bytes]
) -> None:
    await fill(kafka_broker, numbers(3))
    data = make()
    rule = kafka_broker.faults.on(fetch.FetchRequest, times=None).respond(lambda request: answer(request, data))
    async with reader_of(kafka_broker, quick, "one", max_decompressed_bytes=1_000_000, check_crcs=False) as reader:
        for _ in range(2):
            with pytest.raises(CorruptRecord) as caught:
                await reader.getmany(timeout=5)
            assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("one", 0, 0)
            assert await reader.position(ONE) == 0
        rule.remove()
        assert await read(reader, 3) == numbers(3)


async def test_14_partitions_that_come_twice_or_not_at_all_are_neither_doubled_nor_forgotten(
    kafka_broker: Broker, quick: Quick
) -> None:
    await fill(kafka_broker, numbers(3))

    def twice(request: fetch.FetchRequest) -> fetch.FetchResponse:
        response = answer(request, bytes(batch(0, *numbers(3))), end=3)
        response.responses += answer(request, bytes(batch(0, *numbers(3))), end=3).responses
        return response

    kafka_broker.faults.on(fetch.FetchRequest).respond(fetch.FetchResponse())
    kafka_broker.faults.on(fetch.FetchRequest).respond(twice)
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 3) == numbers(3)
        await fill(kafka_broker, numbers(3, 3))
        assert await read(reader, 3) == numbers(3, 3)


# --- metadata ---------------------------------------------------------------------------------------------------------


async def test_16_a_recreated_topic_with_fewer_partitions_is_read_from_its_start(
    kafka_broker: Broker, quick: Quick
) -> None:
    for partition in range(3):
        await fill(kafka_broker, numbers(10, 10 * partition), "t", partition)
    async with reader_of(kafka_broker, quick, "t", metadata_max_age_ms=20) as reader:
        assert sorted(await read(reader, 30), key=str) == sorted(numbers(30), key=str)
        await kafka_broker.delete_topic("t")
        await kafka_broker.create_topic("t", 2)
        for partition in range(2):
            await fill(kafka_broker, numbers(4, 100 + 10 * partition), "t", partition)
        seen = await read(reader, 8)
        assert sorted(seen, key=str) == sorted(numbers(4, 100) + numbers(4, 110), key=str)
        assert reader.assignment == {TopicPartition("t", 0), TopicPartition("t", 1)}
        assert {await reader.position(tp) for tp in reader.assignment} == {4}


@pytest.mark.parametrize(
    "code",
    [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR],
)
async def test_18_an_error_of_one_topic_in_the_metadata_takes_away_no_leader(
    kafka_broker: Broker, quick: Quick, code: ErrorCode
) -> None:
    async with reader_of(kafka_broker, quick, "one", "t", metadata_max_age_ms=20) as reader:
        await reader.position(TopicPartition("t", 0))
        async with Producer(kafka_broker.bootstrap_servers) as producer:
            await producer.send("t", b"first", partition=0)
            assert await read(reader, 1) == [b"first"]
            rule = kafka_broker.faults.on(ApiKey.METADATA, topic="t", times=None).error(code)
            await rule.hit(3)
            await producer.send("t", b"second", partition=0)
            await producer.send("one", b"third")
            assert sorted(value or b"" for value in await read(reader, 2)) == [b"second", b"third"]


async def test_18_a_forbidden_topic_is_reported_and_the_others_are_still_read(
    kafka_broker: Broker, quick: Quick
) -> None:
    async with reader_of(kafka_broker, quick, "one", "t", metadata_max_age_ms=20) as reader:
        await reader.position(TopicPartition("t", 0))
        rule = kafka_broker.faults.on(ApiKey.METADATA, topic="t", times=None).error(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        with pytest.raises(AuthorizationError) as caught:
            await read(reader, 1)
        assert caught.value.topic == "t"
        await fill(kafka_broker, [b"other"])
        seen: list[bytes | None] = []
        while not seen:
            with contextlib.suppress(AuthorizationError):  # each of the three partitions raises it once
                seen = await read(reader, 1)
        assert seen == [b"other"]
        rule.remove()
        await fill(kafka_broker, [b"again"], "t")
        assert await read(reader, 1) == [b"again"]


# --- consumer ---------------------------------------------------------------------------------------------------------


def truncate(broker: Broker, offset: int) -> None:
    """An unclean election: another node leads, whose log is shorter."""
    broker.state.topics.require("one").partitions[0].log.truncate_to(offset)
    broker.faults.move_leader("one", 0, broker.faults.leader("one", 0) % 3 + 1)


async def test_32_a_log_that_an_unclean_election_cut_is_read_on_from_where_it_was_cut(
    kafka_broker: Broker, quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    for start in (0, 5):
        await fill(kafka_broker, numbers(5, start))
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 10) == numbers(10)
        truncate(kafka_broker, 5)
        await fill(kafka_broker, numbers(8, 100))
        assert await read(reader, 8) == numbers(8, 100)
    assert "position reset from 10 to 5" in caplog.text


async def test_32_a_cut_log_is_an_error_when_the_policy_is_none(kafka_broker: Broker, quick: Quick) -> None:
    for start in (0, 5):
        await fill(kafka_broker, numbers(5, start))
    async with reader_of(kafka_broker, quick, "one", auto_offset_reset="none") as reader:
        reader.seek(ONE, 0)
        assert await read(reader, 10) == numbers(10)
        truncate(kafka_broker, 5)
        await fill(kafka_broker, numbers(8, 100))
        with pytest.raises(OffsetOutOfRange) as caught:
            await read(reader, 1)
        assert caught.value.offset == 10


async def test_32_a_leader_without_epochs_causes_no_reset(kafka_broker: Broker, quick: Quick) -> None:
    def undefined(request: Any) -> offset_for_leader_epoch.OffsetForLeaderEpochResponse:
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopicResult(
                    topic="one",
                    partitions=[offset_for_leader_epoch.EpochEndOffset(partition=0, leader_epoch=-1, end_offset=-1)],
                )
            ]
        )

    await fill(kafka_broker, numbers(5))
    asked = kafka_broker.faults.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, times=None).respond(undefined)
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 5) == numbers(5)
        kafka_broker.faults.move_leader("one", 0, 2)
        await fill(kafka_broker, numbers(5, 5))
        assert await read(reader, 5) == numbers(5, 5)
    assert asked.hits >= 1


async def test_32_leaders_that_change_while_a_position_is_checked_cost_and_double_nothing(
    kafka_broker: Broker, quick: Quick
) -> None:
    await fill(kafka_broker, numbers(5))
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 5) == numbers(5)
        checks = [
            kafka_broker.faults.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, node=node).hold(handled=True) for node in (2, 3)
        ]
        held = kafka_broker.faults.on(ApiKey.FETCH, node=1).hold(handled=True)
        await fill(kafka_broker, numbers(5, 5))
        await held.arrived()
        kafka_broker.faults.move_leader("one", 0, 2)
        held.release()  # a response with records, while the position is being checked
        await checks[0].arrived()
        kafka_broker.faults.move_leader("one", 0, 3)
        await fill(kafka_broker, numbers(5, 10))
        for check in checks:
            check.release()
        assert await read(reader, 10) == numbers(10, 5)
        assert await reader.position(ONE) == 15
        before = len(kafka_broker.journal.of(ApiKey.OFFSET_FOR_LEADER_EPOCH))
        await fill(kafka_broker, numbers(5, 15))
        assert await read(reader, 5) == numbers(5, 15)
        assert len(kafka_broker.journal.of(ApiKey.OFFSET_FOR_LEADER_EPOCH)) == before, "checked once for each leader"
        assert before <= 4


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 7])
async def test_36_a_batch_that_cannot_be_decompressed_is_reported_each_time_and_can_be_skipped(
    kafka_broker: Broker, quick: Quick, codec: int
) -> None:
    data = batch(2, b"a", b"b")
    data[22] |= codec  # marked as compressed, but is not
    kafka_broker.faults.on(fetch.FetchRequest, times=None).respond(
        lambda request: answer(request, bytes(data) if topic_of(request).partitions[0].fetch_offset < 4 else b"")
    )
    async with reader_of(kafka_broker, quick, "one", partitions=None, check_crcs=False) as reader:
        reader.seek(ONE, 3)
        for _ in range(3):
            with pytest.raises(CorruptRecord) as caught:
                await reader.getmany(timeout=5)
            assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("one", 0, 3)
            assert await reader.position(ONE) == 3
        # Fetches beyond the batch get a response at once, however many are sent while a thread checks it.
        requests = kafka_broker.journal.requests(fetch.FetchRequest)
        again = [request for request in requests if topic_of(request).partitions[0].fetch_offset < 4]
        assert len(again) < 10, "it does not spin"
        reader.seek(ONE, caught.value.next_offset)
        assert await reader.position(ONE) == 4
        assert await reader.getmany(timeout=0.05) == []


async def test_36_a_broker_that_cannot_read_its_log_or_the_codec_is_named_with_the_offset(
    kafka_broker: Broker, quick: Quick
) -> None:
    await fill(kafka_broker, numbers(5))
    kafka_broker.faults.on(ApiKey.FETCH).error(ErrorCode.CORRUPT_MESSAGE)
    kafka_broker.faults.on(ApiKey.FETCH).error(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    async with reader_of(kafka_broker, quick, "one") as reader:
        with pytest.raises(CorruptRecord) as caught:
            await reader.getmany(timeout=5)
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("one", 0, 0)
        with pytest.raises(BrokerError, match=r"one\[0\] at offset 0"):
            await reader.getmany(timeout=5)
        assert await read(reader, 5) == numbers(5)
    assert len(kafka_broker.journal.requests(list_offsets.ListOffsetsRequest)) == 1
