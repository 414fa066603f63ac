"""A full buffer under load: the order and cost of waking tasks, and the memory of batches."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import DeliveryFailed, InvalidArgument, RecordRejected
from aiokwire.producer import Delivery, Producer
from aiokwire.protocol.messages import produce
from aiokwire.records import read_batches
from tests.producer.conftest import ScriptedCluster, scripted_cluster

Bytes = Producer[bytes, bytes]
Quick = dict[str, Any]
RECORD = 1000  # bytes
PER_BATCH = 15  # records that fit
BATCH = 16 * RECORD
BUFFER = 8 * BATCH
SMALL: dict[str, Any] = {"buffer_memory": BUFFER, "batch_size": BATCH, "max_request_size": 4 * RECORD, "linger_ms": 5}


class Counted:
    """Awaits an object and counts its waits."""

    def __init__(self, inner: Awaitable[Delivery]) -> None:
        self._inner = inner
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Delivery]:
        steps = self._inner.__await__()
        try:
            while True:
                waited_for = next(steps)
                self.waits += 1
                yield waited_for
        except StopIteration as end:
            delivery: Delivery = end.value
            return delivery


def value_of(number: int) -> bytes:
    return b"%06d" % number + b"x" * (RECORD - 6)


async def crowd(producer: Bytes, count: int) -> tuple[list[int], list[int]]:
    """Submit one record in each of `count` tasks.

    Return the order in which they got room, and the wake-ups of each.
    """
    served: list[int] = []
    waits: list[int] = []

    async def one(number: int) -> None:
        counted = Counted(producer.submit("t", value_of(number)))
        delivery = await counted
        served.append(number)
        waits.append(counted.waits)
        await delivery

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(one, number)
    return served, waits


def sent_batches(cluster: ScriptedCluster) -> list[int]:
    """The number of records of each batch."""
    return [
        batch.count
        for _, request in cluster.node.requests
        for topic in request.topic_data
        for part in topic.partition_data
        for batch in read_batches(bytes(part.records or b""), "t", part.index)
    ]


async def test_24_ten_thousand_tasks_at_a_full_buffer_keep_batches_full_and_wake_once(quick: Quick) -> None:
    """Scenario 24: other clients wake all tasks per free place, or send batches of one record."""
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        served, waits = await crowd(producer, 10_000)
        assert served == list(range(10_000)), "first come, first served"
        assert max(waits) == 1, "each task wakes once"
        assert cluster.values() == [value_of(number) for number in range(10_000)]
        batches = sent_batches(cluster)
        assert max(batches) == PER_BATCH
        assert 10_000 / len(batches) > 0.9 * PER_BATCH, f"{len(batches)} batches"
        assert producer.buffered == 0


async def calls_of_a_crowd(count: int, quick: Quick) -> int:
    """The number of function calls: a measure of work, independent of the load of the machine."""
    calls = 0

    def count_calls(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        sys.setprofile(count_calls)
        try:
            await crowd(producer, count)
        finally:
            sys.setprofile(None)
    return calls


async def test_24_the_work_for_a_crowd_grows_no_faster_than_the_crowd(quick: Quick) -> None:
    """Scenario 24: four times as many tasks cost sixteen times as much."""
    few, many = await calls_of_a_crowd(1000, quick), await calls_of_a_crowd(4000, quick)
    assert many < 4 * few * 1.25, f"{few / 1000:.0f} calls per record became {many / 4000:.0f}"


async def test_cancelled_tasks_of_a_crowd_leave_the_others_in_order(quick: Quick) -> None:
    gate = anyio.Event()

    async def wait_for_gate(request: produce.ProduceRequest) -> bool | None:
        await gate.wait()
        return None

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        cluster.node.on_request = wait_for_gate
        async with anyio.create_task_group() as staying, anyio.create_task_group() as going:
            for number in range(3000):
                group = staying if number < 200 or number % 10 == 0 else going
                group.start_soon(producer.send, "t", value_of(number))
            while producer.waiting < 2500:
                await anyio.lowlevel.checkpoint()
            going.cancel_scope.cancel()
            gate.set()
        assert cluster.values() == [value_of(number) for number in range(3000) if number < 200 or number % 10 == 0]
        assert producer.buffered == 0
        assert producer.waiting == 0


async def outcome(call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    given = call(**arguments)
    return await given if inspect.isawaitable(given) else given


async def test_a_bad_record_takes_no_room(quick: Quick) -> None:
    bad: list[dict[str, Any]] = [
        {"value": "text"},
        {"key": 5},
        {"partition": 7},
        {"headers": [("h", b"x"), ("\ud800", b"")]},
        {"headers": [("h", "no bytes")]},
        {"timestamp": -5},
        {"value": b"x" * 5 * RECORD},
    ]
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        for before in (0, 1):  # alone in a batch, and after another record
            deliveries = [producer.submit_nowait("t", b"good") for _ in range(before)]
            taken = producer.buffered
            for arguments in bad:
                for call in (producer.submit_nowait, producer.submit, producer.send):
                    with pytest.raises((InvalidArgument, RecordRejected)):
                        await outcome(call, {"topic": "t", "value": b"v", **arguments})
                    assert producer.buffered == taken
            for delivery in deliveries:
                await delivery
        assert cluster.values() == [b"good"]


# --- memory -----------------------------------------------------------------------------------------------------------

LARGE = 1 << 20


def large_values(name: bytes) -> list[bytes]:
    """More than the buffers of the sockets hold: most of it stays in the transport."""
    return [name + b"%04d" % number * (RECORD // 4) for number in range(9 * LARGE // 2 // RECORD)]


@pytest.mark.parametrize("ends", ["it reads on", "it hangs up"])
async def test_bytes_in_flight_to_a_slow_reader_are_not_overwritten(ends: str, quick: Quick) -> None:
    """The batches expire while the transport still holds their bytes: their room stays taken, and
    the next batches use other memory, until the reader has the bytes or the connection is gone."""
    options = {**quick, "batch_size": LARGE, "buffer_memory": 12 * LARGE, "linger_ms": 0, "delivery_timeout_ms": 1000}
    gate = anyio.Event()
    held = True

    async def wait_for_gate(request: produce.ProduceRequest) -> bool | None:
        if held:
            await gate.wait()
            return None if ends == "it reads on" else False
        return None

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **options) as producer:
        await producer.send("t", b"0")  # the first batch of a sequence is sent alone
        cluster.node.on_request = wait_for_gate
        late = [producer.submit_nowait("t", value) for value in large_values(b"1")]
        for delivery in (late[0], late[-1]):
            with pytest.raises(DeliveryFailed, match="in flight"):
                await delivery
        assert producer.buffered >= 4 * LARGE, "bytes in flight are counted, although their deliveries are done"
        more = [producer.submit_nowait("t", value) for value in large_values(b"2")]
        gate.set()
        if ends == "it hangs up":
            cluster.node.stop()
            held = False
            await cluster.node.start()
        for delivery in more:
            await delivery
        written = large_values(b"1") if ends == "it reads on" else []
        assert cluster.values() == [b"0", *written, *large_values(b"2")]
        assert producer.buffered == 0
