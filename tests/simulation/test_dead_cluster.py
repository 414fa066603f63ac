"""While every broker refuses connections or is silent, each call of a producer meets its deadline.

Options have their defaults, deadlines are met to the second, and the error names the failure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire.errors import (
    BufferFullError,
    ConnectionFailed,
    DeliveryFailed,
    KafkaError,
    RequestTimedOut,
    TransactionAborted,
    TransactionFailed,
    TransactionStateError,
)
from aiokwire.producer import Delivery, Producer
from aiokwire.types import TopicPartition
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import TOPIC

Bytes = Producer[bytes, bytes]
Act = Callable[[Bytes], Awaitable[object]]

DELIVERY = 120.0  # delivery_timeout_ms
TRANSACTION = 60.0  # transaction_timeout_ms
API = 60.0  # default_api_timeout_ms
silent = pytest.mark.parametrize("silent", [False, True], ids=["refusing", "silent"])


async def took(act: Act, producer: Bytes) -> tuple[float, object]:
    """Return the duration of a call, and its result or exception."""
    began = anyio.current_time()
    try:
        outcome = await act(producer)
    except KafkaError as error:
        outcome = error
    return anyio.current_time() - began, outcome


async def send(producer: Bytes) -> object:
    return await producer.send(TOPIC, b"a:1:")


async def send_to_a_new_topic(producer: Bytes) -> object:
    return await producer.send("new", b"a:1:")


async def await_a_submitted_record(producer: Bytes) -> object:
    return await (await producer.submit(TOPIC, b"a:1:"))


async def submit_to_a_full_buffer(producer: Bytes) -> object:
    with contextlib.suppress(BufferFullError):
        while True:
            producer.submit_nowait(TOPIC, b"a:1:" + b"x" * 1000)
    return await producer.submit(TOPIC, b"a:2:" + b"x" * 1000)


async def send_many(producer: Bytes) -> object:
    result = await producer.send_many(TOPIC, [b"a:1:", b"a:2:"])
    assert (result.delivered, result.failed) == (0, 2)
    result.raise_for_errors()
    return result


async def send_many_to_a_new_topic(producer: Bytes) -> object:
    return await producer.send_many("new", [b"a:1:"])


async def partitions_for(producer: Bytes) -> object:
    return await producer.partitions_for("new")


async def flush(producer: Bytes) -> object:
    delivery = producer.submit_nowait(TOPIC, b"a:1:")
    await producer.flush()
    error = delivery.exception()
    assert error is not None
    raise error


@silent
@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (send, DeliveryFailed),
        (send_to_a_new_topic, DeliveryFailed),
        (await_a_submitted_record, DeliveryFailed),
        (submit_to_a_full_buffer, (BufferFullError, Delivery)),  # the records before it may have ended first
        (send_many, KafkaError),
        (send_many_to_a_new_topic, KafkaError),
        (partitions_for, (RequestTimedOut, ConnectionFailed)),
        (flush, DeliveryFailed),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_call_meets_the_delivery_deadline(act: Act, kind: Any, silent: bool) -> None:
    async def main(world: World) -> None:
        producer = world.producer(buffer_memory=50_000, max_request_size=10_000, batch_size=5000)
        await producer.start()
        await producer.send(TOPIC, b"a:0:")
        await world.host.die(power=silent)
        seconds, outcome = await took(act, producer)
        assert isinstance(outcome, kind), outcome
        assert seconds <= DELIVERY + 1.01  # a batch that waits for metadata gets a second more
        seconds, _ = await took(lambda producer: producer.close(timeout=0), producer)
        assert seconds <= 1.01
        assert producer.buffered == 0

    simulate(main)


@silent
def test_start_meets_its_deadline(silent: bool) -> None:
    async def main(world: World) -> None:
        await world.host.die(power=silent)
        for options in ({}, {"transactional_id": "x"}):
            producer = world.producer(**options)
            seconds, outcome = await took(Producer.start, producer)
            assert isinstance(outcome, ConnectionFailed)
            assert seconds <= 60
            assert await producer.close() == []

    simulate(main)


@silent
def test_close_without_a_timeout_meets_the_delivery_deadline(silent: bool) -> None:
    async def main(world: World) -> None:
        producer = world.producer()
        await producer.start()
        await producer.send(TOPIC, b"a:0:")
        await world.host.die(power=silent)
        delivery = producer.submit_nowait(TOPIC, b"a:1:")
        seconds, left = await took(Producer.close, producer)
        assert DELIVERY - 1 <= seconds <= DELIVERY + 1.01
        assert [record.value for record in left] in ([b"a:1:"], [])  # type: ignore[attr-defined]  # a list of Undelivered
        assert isinstance(delivery.exception(), KafkaError)

    simulate(main)


# --- transactions -----------------------------------------------------------------------------------------------------


Die = Callable[[], Awaitable[None]]


async def commit_with_undelivered_records(producer: Bytes, die: Die) -> None:
    async with producer.transaction():
        await die()
        await producer.submit(TOPIC, b"a:1:")


async def commit_with_delivered_records(producer: Bytes, die: Die) -> None:
    async with producer.transaction():
        await producer.send(TOPIC, b"a:1:")
        await die()


async def send_within(producer: Bytes, die: Die) -> None:
    async with producer.transaction():
        await die()
        await producer.send(TOPIC, b"a:1:")


async def abort(producer: Bytes, die: Die) -> None:
    async with producer.transaction() as tx:
        await producer.send(TOPIC, b"a:1:")
        await die()
        await tx.abort()


async def send_offsets(producer: Bytes, die: Die) -> None:
    async with producer.transaction() as tx:
        await die()
        await tx.send_offsets({TopicPartition(TOPIC, 0): 1}, "group")


@silent
@pytest.mark.parametrize(
    ("act", "limit"),
    [
        (commit_with_undelivered_records, TRANSACTION + API),  # to deliver, then to abort
        (commit_with_delivered_records, TRANSACTION),
        (send_within, TRANSACTION + API),
        (abort, API),
        (send_offsets, TRANSACTION + API),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_step_of_a_transaction_meets_its_deadline(
    act: Callable[[Bytes, Die], Awaitable[object]], limit: float, silent: bool
) -> None:
    async def main(world: World) -> None:
        producer = world.producer(transactional_id="x")
        await producer.start()
        async with producer.transaction():
            await producer.send(TOPIC, b"a:0:")

        async def die() -> None:
            await world.host.die(power=silent)

        seconds, outcome = await took(lambda producer: act(producer, die), producer)
        expected = DeliveryFailed if act is send_within else (TransactionAborted, TransactionFailed)
        assert isinstance(outcome, expected), outcome
        assert seconds <= limit + 0.01
        with pytest.raises((TransactionFailed, TransactionStateError)):  # the latter if no broker had the transaction
            await producer.send(TOPIC, b"a:2:")
        seconds, left = await took(Producer.close, producer)
        assert (seconds <= 1.01, left) == (True, [])

    simulate(main)


@silent
def test_closing_within_a_transaction_meets_its_deadline(silent: bool) -> None:
    async def main(world: World) -> None:
        producer = world.producer(transactional_id="x")
        await producer.start()
        with pytest.raises(TransactionFailed):  # no broker could store the outcome
            await close_within(producer, world)

    async def close_within(producer: Bytes, world: World) -> None:
        async with producer.transaction():
            await producer.send(TOPIC, b"a:0:")
            delivery = producer.submit_nowait(TOPIC, b"a:1:")
            await world.host.die(power=silent)
            seconds, left = await took(Producer.close, producer)
            assert seconds <= API + 1.01
            assert left == []
            assert isinstance(delivery.exception(), TransactionAborted)

    simulate(main)
