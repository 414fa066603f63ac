"""Unusual arguments of a record: iterators, mappings, typed memoryviews."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from aiokwire.errors import InvalidArgument
from aiokwire.producer import Producer, ProducerRecord
from aiokwire.protocol.messages import produce
from aiokwire.records import read_batches
from tests.producer.conftest import scripted_cluster
from tests.producer.test_accumulator import made
from tests.producer.test_back_pressure import BUFFER, SMALL, outcome

Quick = dict[str, Any]
PAIR = ("trace", b"1")


def generator() -> Iterator[tuple[str, bytes]]:
    yield PAIR


@pytest.mark.parametrize("make", [generator, lambda: iter([PAIR]), {"trace": b"1"}.items, lambda: {PAIR}])
async def test_headers_that_can_be_read_only_once_are_refused(make: Callable[[], Any], quick: Quick) -> None:
    """They were lost without an error when the record had to wait: the check had consumed them."""
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        for call in (producer.send, producer.submit, producer.submit_nowait):
            with pytest.raises(InvalidArgument, match="headers must be a list or tuple"):
                await outcome(call, {"topic": "t", "value": b"x", "headers": make()})
        with pytest.raises(InvalidArgument, match="headers must be a list or tuple"):
            await producer.send_many("t", [ProducerRecord(b"x", headers=make())])


async def test_a_mapping_as_headers_is_refused_with_the_right_form(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        with pytest.raises(InvalidArgument, match=r"not dict: pass list\(headers\.items\(\)\)"):
            producer.submit_nowait("t", b"x", headers={"a": b"1"})  # type: ignore[arg-type]  # on purpose


async def test_a_record_that_waits_for_room_is_not_changed_by_its_caller(quick: Quick) -> None:
    gate = anyio.Event()

    async def wait_for_gate(request: produce.ProduceRequest) -> bool | None:
        await gate.wait()
        return None

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        cluster.node.on_request = wait_for_gate
        deliveries = []
        while producer.buffered + 3200 < BUFFER:
            deliveries.append(producer.submit_nowait("t", b"x" * 3000))
        value, headers = bytearray(b"v" * 3900), [PAIR]
        async with anyio.create_task_group() as group:

            async def send() -> None:
                await producer.send("t", value, headers=headers)

            group.start_soon(send)
            with anyio.fail_after(5):
                while not producer.waiting:
                    await anyio.lowlevel.checkpoint()
            value[:] = b"w" * 3900
            headers.clear()
            gate.set()
        for delivery in deliveries:
            await delivery
        assert cluster.values()[-1] == b"v" * 3900
        part = cluster.node.requests[-1][1].topic_data[0].partition_data[0]
        last = [record for batch in read_batches(bytes(part.records or b""), "t", 0) for record in batch.records()][-1]
        assert tuple(last.headers) == (PAIR,)


async def test_typed_memoryviews_count_in_bytes(quick: Quick) -> None:
    """`len` of an array's memoryview counts items: a waiting record was accepted without room."""
    numbers = memoryview(array.array("i", range(400)))
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        accumulator, _ = made()
        plain = accumulator.need(bytes(numbers), bytes(numbers), None)
        assert accumulator.need(numbers, numbers, None) == plain  # type: ignore[arg-type]
        assert accumulator.need(b"", None, [("h", numbers)]) == accumulator.need(b"", None, [("h", bytes(numbers))])  # type: ignore[list-item]
        await producer.send("t", numbers, headers=[("h", numbers)])  # type: ignore[list-item]
        assert cluster.values() == [numbers.tobytes()]
