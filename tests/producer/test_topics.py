"""The producer's topics and the client's metadata."""

from __future__ import annotations

import asyncio
import collections
from typing import Any

import pytest

from aiokwire import Producer
from aiokwire.broker import Broker
from aiokwire.errors import DeliveryFailed
from aiokwire.hooks import Hooks
from aiokwire.producer.config import ProducerOptions


class Versions(Hooks):
    """Counts Produce requests by version."""

    def __init__(self) -> None:
        self.of_produce: collections.Counter[int] = collections.Counter()

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        if api == "ProduceRequest":
            self.of_produce[version] += 1


async def test_a_topic_that_is_sent_to_all_the_time_never_falls_out_of_the_metadata() -> None:
    """It did after `metadata_max_idle_ms`.

    Added partitions went unused, and Produce fell back to naming the topic.
    """
    versions = Versions()
    options: dict[str, Any] = {"metadata_max_idle_ms": 40, "metadata_max_age_ms": 10, "metadata_min_interval_ms": 1}
    async with (
        Broker(topics={"t": 1}) as broker,
        Producer(broker.bootstrap_servers, hooks=versions, linger_ms=0, **options) as producer,
    ):
        loop = asyncio.get_running_loop()
        end = loop.time() + 0.3
        while loop.time() < end:
            await producer.send("t", b"x")
    assert list(versions.of_produce) == [13], versions.of_produce


async def test_the_records_of_an_unknown_topic_fail_soon_and_the_error_names_the_remedy() -> None:
    """They failed after the delivery timeout of two minutes, with an error about metadata."""
    async with (
        Broker(auto_create_topics=False) as broker,
        Producer(broker.bootstrap_servers, unknown_topic_timeout_ms=100) as producer,
    ):
        started = asyncio.get_running_loop().time()
        with pytest.raises(DeliveryFailed) as caught:
            await producer.send("orders", b"x")
        assert asyncio.get_running_loop().time() - started < 5
        assert str(caught.value) == (
            f"1 record(s) for orders were not delivered in {caught.value.elapsed:.3f} s: topic 'orders' does not "
            "exist, and the broker does not create it (auto.create.topics.enable): check its name, or create it"
        )


async def test_a_producer_lets_the_broker_create_a_topic_unless_the_option_forbids_it() -> None:
    async with Broker() as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            assert (await producer.send("made", b"x")).offset == 0
        options: ProducerOptions = {"allow_auto_create_topics": False, "unknown_topic_timeout_ms": 50}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            with pytest.raises(DeliveryFailed, match="'other' does not exist, and allow_auto_create_topics is off"):
                await producer.send("other", b"x")
