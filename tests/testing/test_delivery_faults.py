"""Delivery on the embedded broker: retries, sequence wrap, the broker's clock, recreated topics."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.protocol.messages import init_producer_id
from aiokwire.records import read_batches
from aiokwire.testing import ApiKey, ErrorCode
from tests.testing.clients import Quick, batches_sent, values, writer

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Topic one has one partition, led by node 1."""
    return {"nodes": 2, "topics": {"one": 1}, "auto_create_topics": False}


# --- a retry is the same bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1000, 100_000], ids=["encoded on the loop", "encoded in a thread"])
@pytest.mark.parametrize("codec", CODECS)
async def test_20_a_retry_is_the_same_bytes_whatever_happened_in_between(
    kafka_broker: Broker, quick: Quick, codec: str, size: int
) -> None:
    """Scenario 20: an error, a lost connection, no response, another leader: the same batch."""
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.NOT_ENOUGH_REPLICAS)
    kafka_broker.faults.on(ApiKey.PRODUCE).close()
    moving = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
    async with writer(
        kafka_broker, quick, linger_ms=5, compression_type=codec, batch_size=200_000, request_timeout_ms=20_000
    ) as producer:
        await producer.partitions_for("one")
        deliveries = [producer.submit_nowait("one", b"%04d" % number * 25) for number in range(size // 100)]
        await moving.arrived()
        kafka_broker.faults.move_leader("one", 0, 2)
        moving.release()
        assert [(await delivery).offset for delivery in deliveries] == list(range(size // 100))
    first, *others = batches_sent(kafka_broker)
    assert len(others) == 3
    assert all(other == first for other in others)
    (batch,) = read_batches(first, "one", 0)
    assert (batch.count, batch.base_sequence) == (size // 100, 0)
    assert [entry.node for entry in kafka_broker.journal.of(ApiKey.PRODUCE)] == [1, 1, 1, 2]


# --- sequence numbers at their end ------------------------------------------------------------------------------------


async def test_22_a_sequence_wraps_within_a_batch_and_under_retries(kafka_broker: Broker, quick: Quick) -> None:
    """Scenario 22: a batch across 2^31 - 1 loses its response, with another batch behind it.

    No OUT_OF_ORDER_SEQUENCE_NUMBER, no duplicate, no new epoch.
    """
    seen = kafka_broker.faults.on(ApiKey.PRODUCE, times=None).observe()
    kafka_broker.faults.on(ApiKey.PRODUCE, nth=2, times=2).close_after()
    async with writer(kafka_broker, quick, linger_ms=2, batch_size=400) as producer:
        await producer.partitions_for("one")
        while producer._core.idempotence.producer_id < 0:
            await anyio.lowlevel.checkpoint()
        (partition,) = producer._core.accumulator.topics["one"].partitions
        partition.producer_id = producer._core.idempotence.producer_id
        partition.producer_epoch = producer._core.idempotence.producer_epoch
        partition.next_sequence = 2**31 - 20  # as after that number of records
        deliveries = [producer.submit_nowait("one", b"%04d" % number) for number in range(100)]
        assert [(await delivery).partition for delivery in deliveries] == [0] * 100
    batches = {
        int.from_bytes(data[53:57], "big"): read_batches(data, "one", 0)[0] for data in batches_sent(kafka_broker)
    }
    (wrapping,) = [sequence for sequence, batch in batches.items() if sequence + batch.count > 2**31]
    assert wrapping < 2**31 - 1
    assert {batch.producer_epoch for batch in batches.values()} == {0}
    assert seen.hits > len(batches), "something was sent again"
    assert values(kafka_broker) == [b"%04d" % number for number in range(100)]
    assert len(kafka_broker.journal.requests(init_producer_id.InitProducerIdRequest)) == 1


# --- timestamps -------------------------------------------------------------------------------------------------------


async def test_the_timestamp_of_a_delivery_is_the_one_that_the_topic_keeps(kafka_broker: Broker, quick: Quick) -> None:
    await kafka_broker.create_topic("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    long_ago = 1_600_000_000_000
    async with writer(kafka_broker, quick) as producer:
        own = await producer.send("one", b"a", timestamp=long_ago)
        brokers = await producer.send("stamped", b"a", timestamp=long_ago)
        many = [await producer.submit("stamped", b"b", timestamp=long_ago) for _ in range(3)]
        later = [(await delivery).timestamp for delivery in many]
    assert own.timestamp == long_ago
    held = kafka_broker.records("stamped")
    assert [brokers.timestamp, *later] == [record.timestamp for record in held]
    assert brokers.timestamp > long_ago


# --- topics that change -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3], ids=["fewer partitions", "more partitions"])
async def test_16_a_recreated_topic_gets_the_batches_in_flight_in_order(
    kafka_broker: Broker, quick: Quick, partitions: int
) -> None:
    """Scenario 16, producer's half: batches for the old topic id are rejected and sent to the new.

    Sequences continue, without duplicates or hangs. Records that the old topic acknowledged are
    deleted with it.
    """
    await kafka_broker.create_topic("t", 2)
    held = kafka_broker.faults.on(ApiKey.PRODUCE, topic="t", nth=2).hold()
    async with writer(kafka_broker, quick) as producer:
        await producer.partitions_for("t")
        deliveries = []
        for number in range(60):
            deliveries.append(producer.submit_nowait("t", b"%d" % number, partition=0))
            await anyio.lowlevel.checkpoint()
            if number == 40:
                await held.arrived()
                await kafka_broker.delete_topic("t")
                await kafka_broker.create_topic("t", partitions)
                held.release()
        with anyio.fail_after(10):
            offsets = [(await delivery).offset for delivery in deliveries]
            assert (await producer.send("t", b"60", partition=0)).offset == len(values(kafka_broker, "t")) - 1
            assert await producer.partitions_for("t") == partitions
        there = [int(value or b"") for value in values(kafka_broker, "t")]
    assert there == list(range(there[0], 61)), "in order, each once"
    assert offsets[-1] == len(there) - 2
    assert there[0] > 0, "the old topic had some"
