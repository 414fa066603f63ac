"""Requests that our clients do not send: the embedded broker responds as Kafka does."""

from __future__ import annotations

import struct

import pytest

from aiokwire import Admin, Client, ClientConfig, Producer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.cluster import Leader
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import fetch, produce
from aiokwire.records import compress, crc32c, read_batches
from integration.conftest import BrokerUnderTest

NOW = 1_700_000_000_000
RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"  # no key, no value, no headers, the first of its batch
VALUE = b"the same again " * 100


async def _fetch(client: Client, topic: str, version: int) -> fetch.PartitionData:
    request = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            fetch.FetchTopic(
                topic=topic, partitions=[fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
            )
        ],
    )
    response = await client.request(request, to=Leader(TopicPartition(topic, 0)), version=version)
    return response.responses[0].partitions[0]


@pytest.mark.parametrize("configured", [False, True])
async def test_zstd_is_served_to_every_version_of_fetch(modern_broker: BrokerUnderTest, configured: bool) -> None:
    topic = f"zstd-{configured}".lower()
    async with Admin(modern_broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(topic, 1, configs={"compression.type": "zstd"} if configured else {})])
    async with Producer(modern_broker.bootstrap_servers, compression_type="zstd") as producer:
        await producer.send(topic, VALUE)
    async with Client(ClientConfig(bootstrap_servers=modern_broker.bootstrap_servers)) as client:
        for version in range(4, 13):
            data = await _fetch(client, topic, version)
            [batch] = read_batches(data.records, topic, 0)
            assert (batch.compression.name, batch.values()) == ("ZSTD", [VALUE]), version


def _sealed(payload: bytes, count: int, codec: int, max_timestamp: int = NOW) -> bytes:
    """Return a batch with a valid header and CRC around any payload."""
    packed = compress(codec, payload) if codec else payload
    body = struct.pack(">hiqqqhii", codec, count - 1, NOW, max_timestamp, -1, -1, -1, count) + packed
    return struct.pack(">qiib", 0, len(body) + 9, -1, 2) + struct.pack(">I", crc32c(body)) + body


@pytest.mark.parametrize("codec", [0, 4])
async def test_invalid_batches_are_refused_and_a_wrong_max_timestamp_is_corrected(
    modern_broker: BrokerUnderTest, codec: int
) -> None:
    topic = f"nonsense-{codec}"
    async with Admin(modern_broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(topic, 1)])
    async with Client(ClientConfig(bootstrap_servers=modern_broker.bootstrap_servers)) as client:

        async def produce_one(records: bytes) -> ErrorCode:
            partition = produce.PartitionProduceData(index=0, records=records)
            data = [produce.TopicProduceData(name=topic, partition_data=[partition])]
            request = produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)
            response = await client.request(request, to=Leader(TopicPartition(topic, 0)), version=9)
            return ErrorCode.of(response.responses[0].partition_responses[0].error_code)

        for payload, count in ((RECORD, 2), (RECORD * 2, 1), (RECORD + b"\x00", 1)):
            assert await produce_one(_sealed(payload, count, codec)) is ErrorCode.INVALID_RECORD, (payload, count)
        assert await produce_one(_sealed(RECORD, 1, codec, NOW + 1000)) is ErrorCode.NONE
        data = await _fetch(client, topic, 12)
        [batch] = read_batches(data.records, topic, 0)
        assert (batch.max_timestamp, batch.values()) == (NOW, [None])
