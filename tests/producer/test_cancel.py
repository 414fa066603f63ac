"""`Delivery.cancel` withdraws one buffered record; order and accounting of the others are kept."""

from __future__ import annotations

import gc
from typing import Any

import anyio.lowlevel
import pytest

from aiokwire.errors import DeliveryFailed
from aiokwire.producer import BatchFailed, Producer
from tests.producer.conftest import scripted_cluster
from tests.producer.test_submit import Gate

Quick = dict[str, Any]


@pytest.mark.parametrize("known", [True, False], ids=["partitions known", "partitions not known"])
@pytest.mark.parametrize("which", [[0], [2], [4], [0, 1, 2, 3, 4], [3, 1], [1, 2]])
async def test_a_cancelled_record_is_not_sent_and_the_others_keep_their_order(
    which: list[int], known: bool, quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, linger_ms=1000) as producer:
        if known:
            await producer.partitions_for("t")
        deliveries = [producer.submit_nowait("t", b"%d" % number) for number in range(5)]
        for index in which:
            assert deliveries[index].cancel()
            assert not deliveries[index].cancel(), "a second time there is nothing to cancel"
        deliveries.append(producer.submit_nowait("t", b"5"))
        await producer.flush()
        left = [number for number in range(6) if number not in which]
        assert cluster.values() == [b"%d" % number for number in left]
        for number, delivery in enumerate(deliveries):
            if number in which:
                with pytest.raises(DeliveryFailed, match="cancelled") as caught:
                    await delivery
                assert caught.value.stage == "cancelled"
            else:
                assert (await delivery).offset == left.index(number)
        assert producer.buffered == 0
        del deliveries, delivery
        gc.collect()
        assert caplog.text == ""


async def test_a_record_that_was_sent_cannot_be_cancelled(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, linger_ms=0) as producer:
        await producer.send("t", b"first")
        gate = Gate(cluster)
        delivery = producer.submit_nowait("t", b"x")
        while not gate.held:
            await anyio.lowlevel.checkpoint()
        assert not delivery.cancel()
        gate.open()
        assert (await delivery).offset == 1
        assert not delivery.cancel()


async def test_a_cancellation_makes_room_for_waiting_records(quick: Quick) -> None:
    options = {**quick, "buffer_memory": 8000, "max_request_size": 4000, "batch_size": 4000, "linger_ms": 1000}
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **options) as producer:
        await producer.partitions_for("t")
        Gate(cluster)
        deliveries = [producer.submit_nowait("t", b"x" * 1800) for _ in range(4)]
        waits = producer.submit("t", b"y" * 1800)
        assert producer.waiting == 1
        assert deliveries[3].cancel()
        assert producer.waiting == 0
        assert not (await waits).done()
        await producer.close(timeout=0)
        for delivery in deliveries:
            delivery.exception()


async def test_a_bulk_call_counts_its_records_though_another_one_was_cancelled(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, linger_ms=1000) as producer:
        await producer.partitions_for("t")
        delivery = producer.submit_nowait("t", b"0")
        kept = producer.submit_nowait("t", b"1")
        assert delivery.cancel()
        result = await producer.send_many("t", [b"2", b"3"])
        assert (result.delivered, result.ranges) == (2, {0: [(1, 2)]})
        assert (await kept).offset == 0


async def test_health_does_not_count_records_that_were_cancelled(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, linger_ms=1000) as producer:
        waiting_for_metadata = [producer.submit_nowait("t", b"%d" % number) for number in range(5)]
        assert producer.health().records == 5
        assert waiting_for_metadata[1].cancel()
        assert waiting_for_metadata[3].cancel()
        assert producer.health().records == 3
        await producer.partitions_for("t")
        assert producer.health().records == 3
        assert waiting_for_metadata[0].cancel()
        assert producer.health().records == 2
        await producer.flush()
        assert cluster.values() == [b"2", b"4"]


async def test_a_producer_whose_records_were_all_cancelled_has_none(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, linger_ms=1000) as producer:
        assert producer.submit_nowait("t", b"x").cancel()
        assert producer.health().records == 0
        assert producer.health().oldest is None


async def test_the_failure_of_a_topic_does_not_count_or_log_records_that_were_cancelled(
    quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster:
        options = {**quick, "unknown_topic_timeout_ms": 100, "linger_ms": 0}
        async with Producer(cluster.bootstrap_servers, **options) as producer:
            stream = producer.events()
            kept = producer.submit_nowait("nowhere", b"kept")
            assert producer.submit_nowait("nowhere", b"cancelled").cancel()
            with pytest.raises(DeliveryFailed, match=r"^1 record\(s\) for nowhere"):
                await kept
            assert producer.submit_nowait("nowhere", b"cancelled").cancel()
            await producer.flush()
        failed = [event.records async for event in stream if isinstance(event, BatchFailed)]
        del kept
        gc.collect()
    assert failed == [1]
    assert caplog.text == ""


@pytest.mark.parametrize("cancelled", ["before the flush", "during the flush"])
async def test_a_flush_does_not_wait_for_a_topic_whose_records_were_all_cancelled(cancelled: str, quick: Quick) -> None:
    """It waited for the topic's metadata, up to `unknown_topic_timeout_ms`."""
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        deliveries = [producer.submit_nowait("unknown", b"x") for _ in range(2)]
        async with anyio.create_task_group() as group:
            if cancelled == "during the flush":
                group.start_soon(producer.flush, 2.0)
                await anyio.lowlevel.checkpoint()
            assert [delivery.cancel() for delivery in deliveries] == [True, True]
            group.start_soon(producer.flush, 2.0)
        assert producer.buffered == 0
        assert producer.health().records == 0
        cluster.leaders["unknown"] = [1]
        assert (await producer.send("unknown", b"after")).offset == 0
