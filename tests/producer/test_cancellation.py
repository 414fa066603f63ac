"""Cancel a producer's coroutines at every await point in turn, in three ways, in four situations.

After each cancellation: an accepted record is delivered once or reported once, the buffer is
empty, no record waits for room, and no task is left (the suite's own check).
"""

from __future__ import annotations

import asyncio
import collections
import gc
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.consumer import Consumer
from aiokwire.errors import BufferFullError, ClosedError
from aiokwire.producer import Producer, ProducerRecord, Undelivered
from aiokwire.protocol.messages import produce
from aiokwire.types import TopicPartition
from tests.ports import ReservedPort
from tests.producer.cancelling import QUICK, WAYS, assert_nothing_held, cancel_at, settle
from tests.producer.conftest import scripted_cluster

Bytes = Producer[bytes, bytes]
# The call that a test cancels; its records' values have a name that is unique to the attempt.
Call = Callable[[Bytes, bytes], Coroutine[Any, Any, object]]

PARTITIONS = 2
SMALL: dict[str, Any] = {"buffer_memory": 6000, "max_request_size": 2000, "batch_size": 1000}

# --- situations -----------------------------------------------------------------------------------------------------


class Place:
    """The embedded broker in memory, which can be stopped and started again with its data."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._broker: Broker | None = None
        self._port = ReservedPort()

    async def start(self) -> None:
        self._broker = Broker(storage=self._storage, listen=self.bootstrap_servers, topics={"t": PARTITIONS})
        await self._broker.start()

    async def stop(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.close()

    def release(self) -> None:
        self._port.release()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port.number}"

    async def values(self) -> list[bytes]:
        """All values in the log."""
        found: list[bytes] = []
        places = [TopicPartition("t", index) for index in range(PARTITIONS)]
        async with Consumer(bootstrap_servers=self.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign(places)
            ends = await consumer.end_offsets(places)
            while len(found) < sum(ends.values()):
                found += [record.value or b"" for record in await consumer.getmany(timeout=5.0)]
        return found


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    there = Place()
    await there.start()
    try:
        yield there
    finally:
        await there.stop()
        there.release()


async def send(producer: Bytes, name: bytes) -> object:
    return await producer.send("t", name)


async def submit(producer: Bytes, name: bytes) -> object:
    return await (await producer.submit("t", name))


async def send_many(producer: Bytes, name: bytes) -> object:
    return await producer.send_many("t", [name + b"-%d" % number for number in range(20)])


async def send_many_with_headers(producer: Bytes, name: bytes) -> object:
    records: list[bytes | ProducerRecord | None] = [
        ProducerRecord(name + b"-%d" % number, b"key", headers=[("h", b"x" * 100)]) for number in range(20)
    ]
    return await producer.send_many("t", records)


async def flush(producer: Bytes, name: bytes) -> object:
    producer.submit_nowait("t", name)
    await producer.flush(timeout=5)
    return None


async def partitions_for(producer: Bytes, name: bytes) -> object:
    return await producer.partitions_for("t")


CALLS = [send, submit, send_many, send_many_with_headers, flush, partitions_for]


def named(call: Call) -> str:
    return call.__name__.replace("_", " ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS, ids=named)
async def test_a_call_cancelled_without_any_fault(call: Call, way: str) -> None:
    async with place() as there:
        delivered: list[bytes] = []
        for step in itertools.count(1):
            # Another producer each time, so that the topic is not known yet.
            async with Producer(there.bootstrap_servers, **QUICK) as producer:
                reached, outcome = await cancel_at(call(producer, b"%d" % step), step, way)
                await producer.flush(timeout=5)
                assert_nothing_held(producer)
                delivered.append(await _own(producer, step))
            if not reached:
                assert not isinstance(outcome, BaseException)
                break
        assert step > 1
        _assert_each_once(await there.values())


async def _own(producer: Bytes, step: int) -> bytes:
    value = b"after-%d" % step
    assert (await producer.send("t", value)).offset >= 0  # the producer still works
    return value


def _assert_each_once(values: list[bytes]) -> None:
    doubled = {value: count for value, count in collections.Counter(values).items() if count > 1}
    assert not doubled


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS[:5], ids=named)
async def test_a_call_cancelled_while_the_buffer_is_full(call: Call, way: str) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **QUICK, **SMALL) as producer:
        await producer.partitions_for("t")
        gate = anyio.Event()

        async def wait_for_gate(request: produce.ProduceRequest) -> bool | None:
            await gate.wait()
            return None

        cluster.node.on_request = wait_for_gate
        for step in itertools.count(1):
            gate = anyio.Event()
            filled = _fill(producer)
            assert filled
            if call is flush:
                reached, _ = await _cancelled_with_gate(producer.flush(timeout=5), step, way, gate)
            else:
                reached, _ = await _cancelled_with_gate(call(producer, b"%d" % step + b"x" * 700), step, way, gate)
            gate.set()
            await producer.flush(timeout=5)
            assert_nothing_held(producer)
            if not reached:
                break
        assert step > 1
        _assert_each_once([value for value in cluster.values() if value and not value.startswith(b"fill")])


async def _cancelled_with_gate(
    coroutine: Coroutine[Any, Any, object], step: int, way: str, gate: anyio.Event
) -> tuple[bool, object]:
    """Let the broker respond after some turns of the loop: until then the buffer stays full."""
    async with anyio.create_task_group() as group:

        async def open_gate() -> None:
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            gate.set()

        group.start_soon(open_gate)
        return await cancel_at(coroutine, step, way)
    raise AssertionError("unreachable")


def _fill(producer: Bytes) -> int:
    for number in itertools.count():
        try:
            producer.submit_nowait("t", b"fill-%d" % number + b"x" * 900)
        except BufferFullError:
            return number
    raise AssertionError("unreachable")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS[:5], ids=named)
async def test_a_call_cancelled_while_the_broker_is_stopped(call: Call, way: str) -> None:
    async with place() as there, Producer(there.bootstrap_servers, **QUICK) as producer:
        await producer.send("t", b"first")
        for step in itertools.count(1):
            await there.stop()
            async with anyio.create_task_group() as group:

                async def start_again() -> None:
                    for _ in range(20):
                        await anyio.lowlevel.checkpoint()
                    await there.start()

                group.start_soon(start_again)
                reached, outcome = await cancel_at(call(producer, b"%d" % step), step, way)
            await producer.flush(timeout=10)
            assert_nothing_held(producer)
            if not reached:
                assert not isinstance(outcome, BaseException)
                break
        assert step > 1
        _assert_each_once(await there.values())


# --- start and close ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_a_start_cancelled_at_every_step_leaves_nothing_open(way: str) -> None:
    async with place() as there:
        for step in itertools.count(1):
            before = asyncio.all_tasks()
            producer: Bytes = Producer(there.bootstrap_servers, **QUICK)
            reached, _ = await cancel_at(producer.start(), step, way)
            started = producer._started
            if not started:
                with pytest.raises(ClosedError):
                    producer.submit_nowait("t", b"never")
            assert await producer.close() == []
            assert_nothing_held(producer)
            await settle()
            assert _clients(asyncio.all_tasks() - before) == set()
            if not reached:
                assert started
                break
        assert step > 1


def _clients(tasks: set[asyncio.Task[Any]]) -> set[str]:
    """The names of a client's tasks: the broker's connection tasks end a little later."""
    return {task.get_name() for task in tasks if "aiokwire.broker" not in task.get_name()}


@pytest.mark.parametrize("broker_is", ["there", "silent"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_close_cancelled_at_every_step_reports_each_record_once(
    way: str, broker_is: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster:
        silent = False

        async def answer_or_not(request: produce.ProduceRequest) -> bool | None:
            if silent:
                await anyio.sleep_forever()
            return None

        cluster.node.on_request = answer_or_not
        for step in itertools.count(1):
            before = asyncio.all_tasks()
            silent = False
            producer: Bytes = Producer(cluster.bootstrap_servers, **QUICK)
            await producer.start()
            await producer.send("t", b"first")
            silent = broker_is == "silent"
            values = [b"%d-%d" % (step, number) for number in range(3)]
            deliveries = [producer.submit_nowait("t", value) for value in values]
            caplog.clear()
            with caplog.at_level(logging.ERROR, "aiokwire.producer"):
                reached, outcome = await cancel_at(producer.close(timeout=0.05), step, way)
                assert_nothing_held(producer)
                assert all(delivery.done() for delivery in deliveries)
                left: list[Undelivered] = outcome if isinstance(outcome, list) else []
                failed = [value for value in values if value not in cluster.values()]
                del deliveries
                await settle()
                gc.collect()
            if isinstance(outcome, asyncio.CancelledError):
                logged = [record.getMessage() for record in caplog.records]
                assert len(logged) <= 1
                assert logged or not failed  # they were not returned: the log has them
                assert all("3 record(s) for t[0]" in message for message in logged)
            else:
                assert [record.value for record in left] == failed
                assert not caplog.records
            assert await producer.close() == []
            await settle()
            assert not {task for task in asyncio.all_tasks() - before if "aiokwire client" in task.get_name()}
            if not reached:
                break
        assert step > 1


# --- the driver itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_the_test_driver_cancels_at_each_await_and_only_there(way: str) -> None:
    seen: list[int] = []

    async def three_awaits() -> str:
        for number in range(3):
            try:
                await _one_turn()
            except asyncio.CancelledError:
                seen.append(number)
                raise
        return "done"

    outcomes = [await cancel_at(three_awaits(), step, way) for step in range(1, 5)]
    assert seen == [0, 1, 2]
    assert [reached for reached, _ in outcomes] == [True, True, True, False]
    assert outcomes[-1][1] == "done"


def _one_turn() -> Awaitable[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_soon(future.set_result, None)
    return future
