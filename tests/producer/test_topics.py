"""The producer's topics and the client's metadata."""

from __future__ import annotations

import asyncio
import collections
from typing import Any

from aiokwire import Producer
from aiokwire.broker import Broker
from aiokwire.hooks import Hooks


class Versions(Hooks):
    """Counts Produce requests by version."""

    def __init__(self) -> None:
        self.of_produce: collections.Counter[int] = collections.Counter()

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        if api == "ProduceRequest":
            self.of_produce[version] += 1


async def test_a_topic_that_is_sent_to_all_the_time_never_falls_out_of_the_metadata() -> None:
    """It did after `metadata_max_idle_ms`: added partitions went unused, and Produce fell back to naming the topic."""
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
