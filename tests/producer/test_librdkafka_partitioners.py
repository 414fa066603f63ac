"""librdkafka's partitioners, compared with the partitions that confluent-kafka chooses."""

from __future__ import annotations

import random
from typing import Any

import anyio.to_thread
import confluent_kafka
import pytest

from aiokwire.broker import Broker
from aiokwire.producer import Producer

NAMES = ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
PARTITIONS = 11
# Records without a key are placed at random by these; by librdkafka's default those with an empty one are, too.
RANDOM: dict[str, set[bytes | None]] = {
    "consistent_random": {None, b""},
    "murmur2_random": {None},
    "fnv1a_random": {None},
}


def keys() -> list[bytes | None]:
    rng = random.Random(1)
    return [None, b"", *(rng.randbytes(rng.randrange(1, 40)) for _ in range(60))]


def chosen_by_librdkafka(bootstrap_servers: str, partitioner: str) -> list[int]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap_servers, "partitioner": partitioner})
    chosen: dict[int, int] = {}

    def delivered(number: int, message: Any) -> None:
        chosen[number] = message.partition()

    for number, key in enumerate(keys()):
        producer.produce("t", b"", key, on_delivery=lambda _error, message, at=number: delivered(at, message))  # type: ignore[misc]  # mypy cannot type a lambda's default
    producer.flush(10)
    return [chosen[number] for number in range(len(keys()))]


@pytest.mark.parametrize("partitioner", NAMES)
async def test_a_key_goes_to_the_partition_that_librdkafka_chooses(partitioner: str) -> None:
    async with Broker(topics={"t": PARTITIONS}) as broker:
        theirs = await anyio.to_thread.run_sync(chosen_by_librdkafka, broker.bootstrap_servers, partitioner)
        async with Producer(broker.bootstrap_servers, partitioner=partitioner) as producer:
            ours = [(await producer.send("t", b"", key)).partition for key in keys()]
    compared = [
        (key, mine, other)
        for key, mine, other in zip(keys(), ours, theirs, strict=True)
        if key not in RANDOM.get(partitioner, set())
    ]
    assert len(compared) >= 60
    assert [key for key, mine, other in compared if mine != other] == []


@pytest.mark.parametrize("partitioner", NAMES)
async def test_rows_of_arrow_go_where_single_records_go(partitioner: str) -> None:
    pa = pytest.importorskip("pyarrow")
    given = [key for key in keys() if key]
    async with (
        Broker(topics={"t": PARTITIONS}) as broker,
        Producer(broker.bootstrap_servers, partitioner=partitioner) as producer,
    ):
        single = [(await producer.send("t", b"", key)).partition for key in given]
        for key, partition in zip(given, single, strict=True):
            table = pa.table({"key": pa.array([key], pa.binary()), "value": pa.array([b""], pa.binary())})
            result = await producer.send_arrow("t", table)
            assert list(result.ranges) == [partition]
