"""Delivery at its edges: deadlines that end while the answer is lost, sequences that break, topics that change under way.

Nothing that was acknowledged may be there twice, whatever the producer had to give up before it.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.errors import DeliveryFailed
from aiokwire.producer import Producer
from aiokwire.protocol.messages import produce
from aiokwire.testing import ApiKey, ErrorCode

Quick = dict[str, Any]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Topic one has one partition."""
    return {"nodes": 2, "topics": {"one": 1}, "auto_create_topics": False}


def writer(broker: Broker, options: Quick, **more: Any) -> Producer[bytes, bytes]:
    return Producer(broker.bootstrap_servers, **{"linger_ms": 0, **options, **more})


def values(broker: Broker, topic: str = "one") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def batches_sent(broker: Broker) -> list[bytes]:
    return [
        bytes(part.records or b"")
        for request in broker.journal.requests(produce.ProduceRequest)
        for topic in request.topic_data
        for part in topic.partition_data
    ]


def epoch_of(data: bytes) -> int:
    return int.from_bytes(data[51:53], "big")


def sequence_of(data: bytes) -> int:
    return int.from_bytes(data[53:57], "big")


# --- a deadline that ends while the answer is lost --------------------------------------------------------------------


@pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
async def test_a_batch_behind_an_expired_one_is_not_doubled_by_the_new_epoch(
    kafka_broker: Broker, quick: Quick, written: bool
) -> None:
    """The first batch's time ends before its answer comes, and so does the connection's: the second one may have been
    written under the old epoch, so it has to be asked for there before it may go under the next one (KIP-360)."""
    both = kafka_broker.on(ApiKey.PRODUCE, times=None).hold(handled=written)
    async with writer(kafka_broker, quick, delivery_timeout_ms=400, request_timeout_ms=10_000) as producer:
        await producer.partitions_for("one")
        first = producer.submit_nowait("one", b"first")
        await both.arrived()
        with anyio.move_on_after(0.2):
            await first
        second = producer.submit_nowait("one", b"second")
        with pytest.raises(DeliveryFailed, match="in flight"):
            await first
        await kafka_broker.stop_node(1, fail_over=False)
        kafka_broker.clear_rules()
        await kafka_broker.start_node(1)
        await second
        await producer.send("one", b"third")
    assert values(kafka_broker) == ([b"first"] if written else []) + [b"second", b"third"]
