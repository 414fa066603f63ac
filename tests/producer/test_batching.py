"""Batches: the choice of partitions, growth and compression."""

from __future__ import annotations

import random
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import ClosedError
from aiokwire.producer import Producer
from aiokwire.protocol.messages import produce
from tests.producer.conftest import Script, scripted_cluster

Quick = dict[str, Any]
TEXT = [b"%d: the quick brown fox jumps over the lazy dog, %d times out of %d" % (n * 7, n, n * n) for n in range(3000)]


# --- partitions -------------------------------------------------------------------------------------------------------


async def spread(turns_of_the_second: int, quick: Quick) -> tuple[int, int]:
    """Return how many records without a key each of two partitions gets, when the second broker
    responds after `turns_of_the_second` turns of the loop, the first at once."""
    options = {**quick, "linger_ms": 0, "batch_size": 2000, "buffer_memory": 60_000, "max_request_size": 2000}
    async with (
        scripted_cluster(2) as cluster,
        Producer(cluster.bootstrap_servers, rng=random.Random(7), **options) as producer,
    ):
        cluster.leaders["t"] = [1, 2]

        async def slow(request: produce.ProduceRequest) -> bool | None:
            for _ in range(turns_of_the_second):
                await anyio.lowlevel.checkpoint()
            return None

        cluster.nodes[2].on_request = slow
        await producer.partitions_for("t")
        for _ in range(6000):
            await producer.submit("t", b"x" * 100)
        await producer.flush(timeout=15)
        return len(cluster.values(0)), len(cluster.values(1))


async def test_records_without_a_key_are_spread_evenly_over_equal_brokers(quick: Quick) -> None:
    first, second = await spread(0, quick)
    assert first + second == 6000
    assert 0.7 < first / second < 1.4


async def test_a_slow_broker_gets_fewer_records(quick: Quick) -> None:
    """KIP-794: the backlog of a broker shows how fast it is."""
    first, second = await spread(100, quick)
    assert first + second == 6000
    assert second < first / 2


# --- how long a batch grows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flushed", [False, True])
async def test_a_batch_grows_until_its_broker_takes_another_request(quick: Quick, *, flushed: bool) -> None:
    """Its linger ends at once, but it would only queue; a flush does not wait for more records."""
    gate, came = anyio.Event(), anyio.Event()

    async def hold(request: produce.ProduceRequest) -> bool | None:
        came.set()
        await gate.wait()
        return None

    async with scripted_cluster() as cluster:
        cluster.node.on_request = hold
        script = cluster.node.on_partition = Script()
        options = {**quick, "linger_ms": 0, "max_in_flight_requests_per_connection": 1}
        async with Producer(cluster.bootstrap_servers, **options) as producer:
            await producer.submit("t", b"first")
            with anyio.fail_after(5):
                await came.wait()
            for number in range(100):
                await producer.submit("t", b"%d" % number)
                await anyio.lowlevel.checkpoint()
                if flushed and number == 49:
                    with anyio.move_on_after(0):
                        await producer.flush()
            gate.set()
            await producer.flush(timeout=5)
        assert cluster.values() == [b"first", *(b"%d" % number for number in range(100))]
        assert len(script.data) == (3 if flushed else 2)


# --- compression ------------------------------------------------------------------------------------------------------


async def bytes_sent(quick: Quick, **options: Any) -> int:
    async with scripted_cluster() as cluster:
        script = cluster.node.on_partition = Script()
        async with Producer(cluster.bootstrap_servers, **{**quick, "linger_ms": 50, **options}) as producer:
            await producer.partitions_for("t")
            for value in TEXT[: options.get("batch_size", 500_000) // 100]:
                producer.submit_nowait("t", value)
            await producer.flush()
        assert cluster.values() == TEXT[: options.get("batch_size", 500_000) // 100]
        return sum(map(len, script.data))


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", 1, 19)])
async def test_a_higher_compression_level_takes_fewer_bytes(quick: Quick, codec: str, low: int, high: int) -> None:
    """KIP-390."""
    options = {"compression_type": codec, "batch_size": 200_000}
    large, small = [await bytes_sent(quick, **options, compression_level=level) for level in (low, high)]
    assert small < 0.98 * large
    assert large < await bytes_sent(quick, batch_size=200_000)


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("AnyIO worker")}


async def test_small_batches_are_compressed_on_the_loop_and_large_ones_in_a_thread(quick: Quick) -> None:
    before = workers()
    await bytes_sent(quick, compression_type="lz4", batch_size=10_000)
    assert not workers() - before, "a hop to a thread would cost more than the compression"
    await bytes_sent(quick, compression_type="lz4", batch_size=200_000)
    assert workers() - before


# --- closing under load (26) ------------------------------------------------------------------------------------------


async def test_26_records_during_a_close_are_refused_and_do_not_delay_it(quick: Quick) -> None:
    """Scenario 26: a record produced during the close wedged the flush in it; a close with a linger
    of 30 s sends at once, and a flush that was under way ends with it."""
    held, gate = anyio.Event(), anyio.Event()

    async def hold(request: produce.ProduceRequest) -> bool | None:
        held.set()
        await gate.wait()
        return None

    async with scripted_cluster() as cluster:
        cluster.node.on_request = hold
        producer: Producer[bytes, bytes] = Producer(cluster.bootstrap_servers, **quick, linger_ms=30_000)
        await producer.start()
        delivery = producer.submit_nowait("t", b"before")
        left = []
        refused = 0
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:

                async def close() -> None:
                    left.append(await producer.close())

                group.start_soon(producer.flush)
                group.start_soon(close)
                await held.wait()
                for call in (producer.send, producer.submit, producer.send_many, producer.flush):
                    arguments: list[Any] = [] if call == producer.flush else ["t", [b"x"]]
                    with pytest.raises(ClosedError, match="was closed"):
                        await call(*arguments)
                    refused += 1
                gate.set()
        assert (left, refused) == ([[]], 4)
        assert (await delivery).offset == 0
        assert cluster.values() == [b"before"]
