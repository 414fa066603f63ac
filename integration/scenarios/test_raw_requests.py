"""Requests that no client of ours sends: the embedded broker answers them as Kafka does."""

from __future__ import annotations

import pytest

from aiokwire import Admin, Client, ClientConfig, Producer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.cluster import Leader
from aiokwire.protocol.messages import fetch
from aiokwire.records import read_batches
from integration.conftest import BrokerUnderTest

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
