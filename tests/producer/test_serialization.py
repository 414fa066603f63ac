"""Serializers: sync and async, plain or with topic and headers, through every way of sending."""

from __future__ import annotations

import json
from typing import Any

import anyio.lowlevel
import pytest

from aiokwire.errors import DeliveryFailed, InvalidArgument
from aiokwire.producer import Producer, ProducerRecord
from aiokwire.types import Headers
from tests.producer.conftest import scripted_cluster

Quick = dict[str, Any]


def with_context(given: Any, topic: str, headers: Headers) -> bytes:
    return f"{topic}:{given}:{','.join(name for name, _ in headers)}".encode()


async def slowly(given: Any) -> bytes:
    await anyio.lowlevel.checkpoint()
    return json.dumps(given).encode()


async def slowly_with_context(given: Any, topic: str, headers: Headers) -> bytes:
    await anyio.lowlevel.checkpoint()
    return with_context(given, topic, headers)


async def broken(given: Any) -> bytes:
    await anyio.lowlevel.checkpoint()
    raise ValueError("no schema")


def broken_at_once(given: Any) -> bytes:
    raise ValueError("no key")


@pytest.mark.parametrize("serializer", [with_context, slowly_with_context])
async def test_a_serializer_of_three_arguments_sees_topic_and_headers(serializer: Any, quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, value_serializer=serializer, **quick) as producer:
            await producer.send("t", 1, headers=[("a", b""), ("b", None)])
            await (await producer.submit("t", 2))
            await producer.send_many("t", [3, ProducerRecord(4, headers=[("c", b"")]), None])
        assert cluster.values() == [b"t:1:a,b", b"t:2:", b"t:3:", b"t:4:c", None]


async def test_async_and_sync_serializers_mix(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(
            cluster.bootstrap_servers, key_serializer=str.encode, value_serializer=slowly, **quick
        ) as producer:
            await producer.send("t", {"a": 1}, "k")
            await (await producer.submit("t", [2], "k"))
        assert cluster.values() == [b'{"a": 1}', b"[2]"]


async def test_submit_nowait_refuses_an_async_serializer(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, value_serializer=slowly, **quick) as producer:
            with pytest.raises(InvalidArgument, match=r"value_serializer: an asynchronous.*await producer\.send"):
                producer.submit_nowait("t", 1)
            producer.submit_nowait("t", None)  # nothing to serialize
        assert cluster.values() == [None]


async def test_an_error_of_an_async_serializer_is_named_and_the_record_is_refused(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, value_serializer=broken, **quick) as producer:
            with pytest.raises(InvalidArgument, match=r"value_serializer failed while it was awaited.*no schema"):
                await producer.send("t", 1)
            with pytest.raises(InvalidArgument, match="no schema"):
                await producer.submit("t", 1)
            assert producer.buffered == 0
        async with Producer(
            cluster.bootstrap_servers, value_serializer=slowly, key_serializer=broken_at_once, **quick
        ) as producer:
            with pytest.raises(InvalidArgument, match=r"key_serializer failed on a str.*no key"):
                await producer.send("t", 1, "k")  # the value's coroutine must not complain: warnings are errors
        assert cluster.values() == []


# --- purge ----------------------------------------------------------------------------------------------------------


async def test_a_purge_fails_the_delivery_of_each_waiting_record(
    quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, **{**quick, "linger_ms": 60_000}) as producer:
            parked = [producer.submit_nowait("t", b"parked") for _ in range(2)]
            assert producer.purge() == 2
            await producer.send("t", b"first")
            waiting = [producer.submit_nowait("t", b"dropped") for _ in range(3)]
            assert producer.purge() == 3
            assert producer.buffered == 0
            assert producer.purge() == 0
            for delivery in parked + waiting:
                with pytest.raises(DeliveryFailed, match="purged") as caught:
                    await delivery
                assert caught.value.stage == "purged"
            await producer.send("t", b"last")
        assert cluster.values() == [b"first", b"last"]
    assert "were not delivered" not in caplog.text


async def test_a_purge_leaves_batches_in_flight(quick: Quick) -> None:
    gate = anyio.Event()
    seen = anyio.Event()

    async def hold(request: object) -> None:
        seen.set()
        await gate.wait()

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        await producer.send("t", b"first")
        cluster.node.on_request = hold
        async with anyio.create_task_group() as group:
            group.start_soon(producer.send, "t", b"flying")
            await seen.wait()
            assert producer.purge() == 0
            gate.set()
        assert cluster.values() == [b"first", b"flying"]


async def test_a_purge_makes_room_for_waiting_records(quick: Quick) -> None:
    gate = anyio.Event()

    async def hold(request: object) -> None:
        await gate.wait()

    small: dict[str, Any] = {"buffer_memory": 12_000, "max_request_size": 2000, "batch_size": 1000}
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **small) as producer:
        await producer.send("t", b"first")
        cluster.node.on_request = hold
        with anyio.move_on_after(0.05):  # five batches are in flight, the others wait behind them
            while True:
                await producer.submit("t", b"x" * 900)
        assert producer.buffered > 10_000
        async with anyio.create_task_group() as group:
            group.start_soon(producer.send, "t", b"served" * 150)
            while not producer.waiting:
                await anyio.lowlevel.checkpoint()
            assert producer.purge() > 0
            while producer.waiting:
                await anyio.lowlevel.checkpoint()
            gate.set()
        await producer.flush(timeout=5)
        assert producer.buffered == 0
        assert cluster.values()[-1] == b"served" * 150
