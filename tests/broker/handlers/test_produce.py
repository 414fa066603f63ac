"""Produce: accepted and rejected requests; responses to old and idempotent producers."""

from __future__ import annotations

import struct

import pytest

from aiokwire.broker import Broker
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import produce
from aiokwire.records import read_batches
from aiokwire.types import Compression, TimestampType
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of


async def _values(client: RawClient, topic: str) -> list[bytes | None]:
    response = await client.ask(fetch_request(topic), 12)
    return values_of(response.responses[0].partitions[0])


@pytest.mark.parametrize("version", range(3, 13))
async def test_every_version_by_name_appends_and_returns_the_offset(client: RawClient, version: int) -> None:
    first = await produce_one(client, "t", batch([b"a", b"b"]), version=version)
    second = await produce_one(client, "t", batch([b"c"]), version=version, acks=1)
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, -1)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert second.log_start_offset == (0 if version >= 5 else -1)
    assert await _values(client, "t") == [b"a", b"b", b"c"]


async def test_version_13_names_topics_by_id(broker: Broker, client: RawClient) -> None:
    topic_id = broker.state.topics.require("t").id
    response = await client.ask(produce_request("", batch([b"a"]), topic_id=topic_id), 13)
    assert response.responses[0].topic_id == topic_id
    assert response.responses[0].partition_responses[0].error_code == 0
    response = await client.ask(produce_request("", batch([b"a"]), topic_id=b"x" * 16), 13)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("codec", list(Compression))
async def test_every_codec_is_kept_as_it_came(client: RawClient, codec: Compression) -> None:
    sent = batch([b"x" * 100] * 5, compression=codec)
    assert (await produce_one(client, "t", sent)).error_code == 0
    response = await client.ask(fetch_request("t"), 12)
    data = response.responses[0].partitions[0].records
    assert data is not None
    assert bytes(data)[16:] == sent[16:], "only offset and leader epoch are the broker's"
    assert values_of(response.responses[0].partitions[0]) == [b"x" * 100] * 5


async def test_partitions_of_one_request_succeed_and_fail_by_themselves(client: RawClient) -> None:
    request = produce.ProduceRequest(
        acks=-1,
        topic_data=[
            produce.TopicProduceData(
                name="t",
                partition_data=[
                    produce.PartitionProduceData(index=1, records=batch([b"a"])),
                    produce.PartitionProduceData(index=7, records=batch([b"b"])),
                    produce.PartitionProduceData(index=0, records=batch([b"c"])[:-1]),
                ],
            ),
            produce.TopicProduceData(
                name="none", partition_data=[produce.PartitionProduceData(index=0, records=batch([b"d"]))]
            ),
        ],
    )
    response = await client.ask(request, 9)
    codes = [[(one.index, one.error_code) for one in topic.partition_responses] for topic in response.responses]
    assert codes == [
        [(1, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, ErrorCode.CORRUPT_MESSAGE)],
        [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
    ]


def _corrupt() -> bytes:
    sent = bytearray(batch([b"abc"]))
    sent[-2] ^= 1
    return bytes(sent)


def _with_count(count: int) -> bytes:
    from crc32c import crc32c

    sent = bytearray(batch([b"abc"]))
    struct.pack_into(">i", sent, 57, count)
    struct.pack_into(">I", sent, 17, crc32c(bytes(sent[21:])))
    return bytes(sent)


def _claiming_append_time() -> bytes:
    from crc32c import crc32c

    sent = bytearray(batch([b"abc"]))
    struct.pack_into(">h", sent, 21, 8)
    struct.pack_into(">I", sent, 17, crc32c(bytes(sent[21:])))
    return bytes(sent)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"abc", ErrorCode.CORRUPT_MESSAGE),
        (_corrupt(), ErrorCode.CORRUPT_MESSAGE),
        (batch([b"a"]) + batch([b"b"]), ErrorCode.INVALID_RECORD),
        (batch([b"a"]) + b"x", ErrorCode.CORRUPT_MESSAGE),
        (batch([b"a"], magic=1), ErrorCode.INVALID_RECORD),
        (batch([b"a"], control=True), ErrorCode.INVALID_RECORD),
        (_with_count(2), ErrorCode.INVALID_RECORD),
        (_with_count(0), ErrorCode.INVALID_RECORD),
        (_claiming_append_time(), ErrorCode.INVALID_TIMESTAMP),
        (batch([b"a"], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
         ErrorCode.INVALID_TXN_STATE),
        (batch([b"a"], timestamp=wall_ms() + 2 * 3_600_000), ErrorCode.INVALID_TIMESTAMP),
        (batch([b"x" * 1_100_000]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=(
        "none", "empty", "text", "corrupt", "two batches", "a tail", "old format", "control", "count above",
        "count below", "append time", "transactional", "future", "too large",
    ),
)  # fmt: skip
async def test_what_may_not_be_appended_is_refused_by_its_code(
    client: RawClient, records: bytes | None, code: ErrorCode
) -> None:
    refused = await produce_one(client, "t", records)
    assert (refused.error_code, refused.base_offset) == (code, -1)
    assert refused.error_message
    assert (await produce_one(client, "t", batch([b"good"]))).base_offset == 0


async def test_unknown_acks_are_refused(client: RawClient) -> None:
    assert (await produce_one(client, "t", batch([b"a"]), acks=2)).error_code == ErrorCode.INVALID_REQUIRED_ACKS


async def test_zstd_is_refused_where_the_version_does_not_know_it(client: RawClient) -> None:
    refused = await produce_one(client, "t", batch([b"a"], compression=Compression.ZSTD), version=6)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


async def test_a_compacted_topic_names_the_records_without_a_key(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("c", 1, {"cleanup.policy": "compact"})
    refused = await produce_one(client, "c", batch([b"a", b"b", b"c"], keys=[b"k", None, None]))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in refused.record_errors] == [1, 2]
    assert (await produce_one(client, "c", batch([b"a", None], keys=[b"k", b"l"]))).base_offset == 0


async def test_log_append_time_replaces_the_producers_timestamps(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("l", 1, {"message.timestamp.type": "LogAppendTime"})
    before = wall_ms()
    produced = await produce_one(client, "l", batch([b"a", b"b"], timestamp=1))
    assert before <= produced.log_append_time_ms <= wall_ms()
    response = await client.ask(fetch_request("l"), 12)
    records = read_batches(response.responses[0].partitions[0].records, "l", 0)[0].records()
    assert [(one.timestamp, one.timestamp_type) for one in records] == [
        (produced.log_append_time_ms, TimestampType.LOG_APPEND_TIME)
    ] * 2


async def test_timestamps_before_the_bound_are_named(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("b", 1, {"message.timestamp.before.max.ms": "60000"})
    refused = await produce_one(client, "b", batch([b"a", b"b"], timestamp=wall_ms() - 60_001 - 3_600_000))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [one.batch_index for one in refused.record_errors] == [0, 1]
    assert (await produce_one(client, "b", batch([b"a"], timestamp=wall_ms()))).error_code == 0


async def test_a_topics_own_limit_holds(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("s", 1, {"max.message.bytes": "200"})
    assert (await produce_one(client, "s", batch([b"x" * 300]))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await produce_one(client, "s", batch([b"x" * 100]))).error_code == 0


async def test_more_replicas_than_there_are_cannot_be_in_sync(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("r", 1, {"min.insync.replicas": "2"})
    assert (await produce_one(client, "r", batch([b"a"]))).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await produce_one(client, "r", batch([b"a"]), acks=1)).error_code == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
async def test_a_topics_codec_is_put_in_place_of_the_producers(broker: Broker, client: RawClient, codec: str) -> None:
    await broker.create_topic("z", 1, {"compression.type": codec})
    sent = batch([b"x" * 50] * 3, keys=[b"k", None, b"l"], compression=Compression.GZIP)
    assert (await produce_one(client, "z", sent)).error_code == 0
    response = await client.ask(fetch_request("z"), 12)
    stored = read_batches(response.responses[0].partitions[0].records, "z", 0)[0]
    assert stored.compression is (Compression.NONE if codec == "uncompressed" else Compression.parse(codec))
    assert [(one.key, one.value) for one in stored.records()] == [
        (b"k", b"x" * 50),
        (None, b"x" * 50),
        (b"l", b"x" * 50),
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
async def test_old_formats_are_brought_to_the_present_one(
    client: RawClient, version: int, magic: int, codec: Compression
) -> None:
    sent = batch([b"a", None, b"c"], keys=[b"1", b"2", None], magic=magic, compression=codec)
    produced = await produce_one(client, "t", sent, version=version)
    assert (produced.error_code, produced.base_offset) == (0, 0)
    response = await client.ask(fetch_request("t"), 12)
    records = read_batches(response.responses[0].partitions[0].records, "t", 0)[0].records()
    assert [(one.offset, one.key, one.value) for one in records] == [(0, b"1", b"a"), (1, b"2", None), (2, None, b"c")]


async def test_a_corrupt_message_of_an_old_format_is_refused(client: RawClient) -> None:
    sent = bytearray(batch([b"a"], magic=1))
    sent[-1] ^= 1
    assert (await produce_one(client, "t", bytes(sent), version=2)).error_code == ErrorCode.CORRUPT_MESSAGE


async def test_an_idempotent_producer_is_checked_by_its_sequence_numbers(client: RawClient) -> None:
    def sealed(value: bytes, sequence: int, epoch: int = 0) -> bytes:
        return batch([value], producer_id=5, producer_epoch=epoch, base_sequence=sequence)

    assert (await produce_one(client, "t", sealed(b"a", 0))).base_offset == 0
    assert (await produce_one(client, "t", sealed(b"b", 1))).base_offset == 1
    again = await produce_one(client, "t", sealed(b"a", 0))
    assert (again.error_code, again.base_offset) == (0, 0), "a duplicate gets its first offset"
    gap = await produce_one(client, "t", sealed(b"d", 3))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await produce_one(client, "t", sealed(b"c", 0, epoch=1))).base_offset == 2
    stale = await produce_one(client, "t", sealed(b"c", 2))
    assert stale.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    lost = await produce_one(client, "t", batch([b"x"], producer_id=5, producer_epoch=1, base_sequence=-1))
    assert lost.error_code == ErrorCode.INVALID_RECORD
    assert await _values(client, "t") == [b"a", b"b", b"c"]
