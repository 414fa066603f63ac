"""Lookups of the driver on scripted brokers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from aiokwire.cluster import Client
from aiokwire.errors import AuthorizationError, ConfigurationError
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import metadata
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.lookup import Lookup
from aiokwire.types import TopicPartition
from tests.consumer.conftest import TOPIC_ID, Peer, make_peer

__all__ = ["make_peer"]

Make = Callable[..., Any]
Found = tuple[list[TopicPartition], dict[str, bytes]]


async def partitions_of(peer: Peer, **chosen: str) -> Found:
    options = parse_source({"kafka.bootstrap.servers": peer.bootstrap_servers} | chosen, streaming=False)
    async with Client(options.consumer) as client:
        return await Lookup(client, options).partitions()


async def test_partitions_and_topic_ids_are_looked_up(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders", 0)
        peer.log("orders", 1)
        found = await partitions_of(peer, subscribe="orders")
        assert found == ([TopicPartition("orders", 0), TopicPartition("orders", 1)], {"orders": TOPIC_ID})


@pytest.mark.parametrize("newest", [3, 9])
async def test_partitions_are_looked_up_at_brokers_without_topic_ids(make_peer: Make, newest: int) -> None:
    async with make_peer(newest={ApiKey.METADATA: newest}) as peer:
        peer.log("orders", 0)
        assert await partitions_of(peer, subscribe="orders") == ([TopicPartition("orders", 0)], {})


async def test_a_pattern_matches_whole_names(make_peer: Make) -> None:
    async with make_peer() as peer:
        for name in ("orders", "orders-eu", "old-orders"):
            peer.log(name, 0)
        partitions, _ = await partitions_of(peer, subscribePattern="orders.*")
        assert [tp.topic for tp in partitions] == ["orders", "orders-eu"]


async def test_an_assigned_partition_that_does_not_exist_is_skipped(
    make_peer: Make, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_peer() as peer:
        topic = f"orders-{uuid.uuid4()}"
        peer.log(topic, 0)
        for _ in range(2):  # a stream repeats the lookup before each microbatch, and warns once
            found, _ = await partitions_of(peer, assign=f'{{"{topic}":[0,7]}}')
            assert found == [TopicPartition(topic, 0)]
        assert [record.message for record in caplog.records if "assign" in record.message] == [
            f"assign names {topic}[7], which the cluster does not have: the others are read"
        ]


async def test_an_assignment_without_an_existing_partition_is_an_error(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders", 0)
        with pytest.raises(ConfigurationError, match=r"assign names orders\[7\], which the cluster does not have"):
            await partitions_of(peer, assign='{"orders":[7]}')


async def test_a_forbidden_topic_is_an_error_without_retry(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders", 0)

        async def forbid(request: Request[Any], version: int) -> Response:
            assert isinstance(request, metadata.MetadataRequest)
            answer = peer.describe(request)
            for topic in answer.topics:
                topic.error_code, topic.partitions = 29, []
            response: Response = answer
            return response

        peer.on[ApiKey.METADATA] = forbid
        with pytest.raises(AuthorizationError, match="topic 'orders'"):
            await partitions_of(peer, subscribe="orders")
