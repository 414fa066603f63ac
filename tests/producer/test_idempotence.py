"""Sequence numbers, epochs, and batches under another number."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import DeliveryFailed
from aiokwire.producer import Producer
from aiokwire.producer._accumulator import NOWAIT, Accumulator
from aiokwire.producer._partition import Partition, next_sequence
from aiokwire.producer.idempotence import MAX_EPOCH, Idempotence
from aiokwire.records import read_batches
from aiokwire.types import Compression
from tests.producer.conftest import scripted_cluster
from tests.producer.test_planning import Silent, partitions, send


def ready(epoch: int = 0) -> Idempotence:
    idempotence = Idempotence(wanted=True, insisted=False)
    idempotence.producer_id, idempotence.producer_epoch = 77, epoch
    return idempotence


def test_after_the_last_sequence_comes_the_first() -> None:
    assert next_sequence(2**31 - 1, 1) == 0
    assert next_sequence(2**31 - 5, 10) == 5


@given(st.integers(0, 2**31 - 1), st.integers(1, 100_000))
def test_a_sequence_never_leaves_its_range(sequence: int, count: int) -> None:
    assert 0 <= next_sequence(sequence, count) < 2**31


async def test_batches_of_a_partition_are_numbered_one_after_the_other() -> None:
    (partition,) = await partitions(1, 3)
    idempotence = ready()
    stamped = [send(partition) for _ in range(3)]
    for batch in stamped:
        assert idempotence.can_stamp(partition)
        idempotence.stamp(partition, batch)
    assert [batch.base_sequence for batch in stamped] == [0, 1, 2]
    idempotence.stamp(partition, stamped[0])
    assert stamped[0].base_sequence == 0, "a retry keeps its number"
    assert partition.next_sequence == 3


async def test_only_a_broken_sequence_restarts_under_the_next_epoch() -> None:
    broken, other = await partitions(2, 2)
    idempotence = ready()
    for partition in (broken, other):
        idempotence.stamp(partition, send(partition))
    broken.break_sequence()
    assert idempotence.can_stamp(broken)
    batch = send(broken)
    idempotence.stamp(broken, batch)
    assert (batch.producer_epoch, batch.base_sequence) == (1, 0)
    batch = send(other)
    idempotence.stamp(other, batch)
    assert (batch.producer_epoch, batch.base_sequence) == (0, 1)


async def test_a_second_broken_partition_shares_an_epoch_that_it_has_not_used() -> None:
    first, second = await partitions(2, 2)
    idempotence = ready()
    for partition in (first, second):
        idempotence.stamp(partition, send(partition))
        partition.break_sequence()
    assert idempotence.can_stamp(first)
    assert idempotence.can_stamp(second)
    assert idempotence.producer_epoch == 1


async def test_when_the_epochs_are_used_up_a_new_producer_id_is_due() -> None:
    (partition,) = await partitions(1, 2)
    idempotence = ready(MAX_EPOCH - 1)
    idempotence.stamp(partition, send(partition))
    partition.break_sequence()
    assert not idempotence.can_stamp(partition)
    assert not idempotence.ready
    idempotence.producer_id, idempotence.producer_epoch = 78, 0
    assert idempotence.can_stamp(partition)
    batch = send(partition)
    idempotence.stamp(partition, batch)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (78, 0, 0)


async def test_a_batch_with_other_numbers_has_the_same_records() -> None:
    accumulator = Accumulator(Silent(), limit=1 << 20, batch_size=1 << 16, max_record=1 << 16, delivery_timeout=1.0)
    accumulator.open(asyncio.get_running_loop())
    topic = accumulator.add_topic("t")
    accumulator.set_partitions(topic, [1], [2])
    for number in range(50):
        accumulator.append("t", b"%d" % number, b"k", None, 1000 + number, [("h", b"v")], NOWAIT)
    partition: Partition = topic.partitions[0]
    for codec in (Compression.NONE, Compression.LZ4):
        if partition.open is None:
            break
        accumulator.seal(partition)
        batch = partition.take_next()
        data = batch.seal(codec, None)
        batch.number(5, 6, 7)
        patched = batch.data
        assert patched is not None
        before = read_batches(bytes(data), "t", 0)[0]
        after = read_batches(bytes(patched), "t", 0)[0]
        assert (after.producer_id, after.producer_epoch, after.base_sequence) == (5, 6, 7)
        assert after.records() == before.records()


async def test_v11_a_response_without_error_and_producer_id_is_retried_after_a_backoff(quick: dict[str, Any]) -> None:
    """It was retried without a pause: 5,000 requests a second."""
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **{**quick, "retry_backoff_ms": 50}, delivery_timeout_ms=400) as producer,
    ):
        cluster.no_ids = True
        with pytest.raises(DeliveryFailed, match="InitProducerId has no error, producer id -1"):
            await producer.send("t", b"x")
        assert cluster.ids_asked < 100
