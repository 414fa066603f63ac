"""`Consumer.metrics()`: delivered records by each way of reading, lag, commits, the group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire import clock
from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, metrics
from aiokwire.errors import CommitFailed, InvalidArgument
from aiokwire.group import metrics as group_metrics
from aiokwire.metrics import DURATION, Distribution
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.threads import run_in_thread
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.consumer.groups import QUICK, fill, member, until
from tests.metric_values import value_of

T0 = TopicPartition("t", 0)
Read = Callable[[Consumer[bytes, bytes]], Awaitable[int]]


async def by_iteration(consumer: Consumer[bytes, bytes]) -> int:
    async for _ in consumer:
        return 1
    return 0


async def by_one(consumer: Consumer[bytes, bytes]) -> int:
    await consumer.getone(timeout=5)
    return 1


async def by_lists(consumer: Consumer[bytes, bytes]) -> int:
    return len(await consumer.getmany(7, timeout=5))


async def by_batches(consumer: Consumer[bytes, bytes]) -> int:
    async for batch in consumer.batches():
        return batch.count
    return 0


async def by_arrow(consumer: Consumer[bytes, bytes]) -> int:
    return (await consumer.getarrow(10, timeout=5)).num_rows


def reading(broker: Broker, **options: Any) -> Consumer[bytes, bytes]:
    return Consumer("t", bootstrap_servers=broker.bootstrap_servers, **{**QUICK, **options})


@pytest.mark.parametrize("read", [by_iteration, by_one, by_lists, by_batches, by_arrow])
async def test_every_way_of_reading_counts_each_record_once(read: Read) -> None:
    async with Broker(topics={"t": 2}) as broker:
        await fill(broker, 2, 50)
        async with reading(broker) as consumer:
            seen = 0
            while seen < 100:
                seen += await read(consumer)
                assert value_of(consumer.metrics(), metrics.CONSUMED, name="t") == seen


async def test_records_that_are_delivered_again_after_a_seek_count_again() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1, 50)
        async with reading(broker) as consumer:
            assert len(await consumer.getmany(20, timeout=5)) == 20
            consumer.seek(T0, 5)
            assert value_of(consumer.metrics(), metrics.CONSUMED) == 20
            assert len(await consumer.getmany(100, timeout=5)) == 45
            assert value_of(consumer.metrics(), metrics.CONSUMED) == 65


async def test_the_end_to_end_latency_is_that_of_the_last_record_of_a_fetch() -> None:
    async with Broker(topics={"t": 1}) as broker:
        sent_at = clock.wall_ms() - 60_000
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"old", timestamp=sent_at)
        async with reading(broker) as consumer:
            await consumer.getone(timeout=5)
            await consumer.getmany(timeout=0)
            (latency,) = [one.value for one in consumer.metrics() if one.metric is metrics.END_TO_END]
            assert isinstance(latency, Distribution)
            assert latency.count == 1
            assert 60 <= latency.sum < 120


async def test_the_latency_is_sampled_while_the_application_stays_behind() -> None:
    async with Broker(topics={"t": 1}) as broker:
        for _ in range(6):
            await fill(broker, 1, 20)
        async with reading(broker, max_partition_fetch_bytes=300) as consumer:
            for _ in range(12):
                assert await consumer.getmany(10, timeout=5)
            assert value_of(consumer.metrics(), metrics.END_TO_END) > 1


async def test_lag_is_reported_by_partition() -> None:
    async with Broker(topics={"t": 2}) as broker:
        await fill(broker, 2, 30)
        async with reading(broker) as consumer:
            await consumer.getmany(10, timeout=5, partitions=[T0])
            found = consumer.metrics()
            assert value_of(found, metrics.LAG, name="t", id="0") == 20
            assert value_of(found, metrics.ASSIGNED) == 2
            assert value_of(found, metrics.STALLED) == 0
            assert value_of(found, metrics.BUFFER_USAGE) > 0
            assert value_of(found, metrics.FETCH_LATENCY) >= 1
            assert value_of(found, metrics.POLLS) >= 1


async def test_a_position_that_was_lost_counts_as_a_reset_and_the_first_one_does_not() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1, 10)
        async with reading(broker) as consumer:
            await consumer.getmany(timeout=5)
            assert value_of(consumer.metrics(), metrics.RESETS) == 0
            consumer.seek(T0, 1000)
            assert await consumer.getmany(timeout=5)
            assert value_of(consumer.metrics(), metrics.RESETS, name="t") == 1


async def test_commits_are_timed_by_their_outcome() -> None:
    async with Broker(topics={"t": 2}) as broker:
        await fill(broker, 2)
        async with member(broker, enable_auto_commit=False) as consumer:
            await consumer.getmany(timeout=5)
            await consumer.commit()
            with pytest.raises(CommitFailed):
                await consumer.commit({TopicPartition("other", 0): OffsetAndMetadata(1)})
            found = consumer.metrics()
            assert value_of(found, DURATION, type="CommitFailed") == 1
            assert value_of(found, DURATION) == 2


async def test_a_member_reports_its_rebalances_and_heartbeats() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        async with member(broker) as consumer:
            assert len(await consumer.getmany(timeout=5)) == 10
            assert value_of(consumer.metrics(), group_metrics.REBALANCES, name="g") == 1
            assert value_of(consumer.metrics(), group_metrics.LAST_REBALANCE) >= 0
            await until(lambda: value_of(consumer.metrics(), group_metrics.HEARTBEATS) > 0)
            assert value_of(consumer.metrics(), group_metrics.LAST_HEARTBEAT) >= 0
            assert value_of(consumer.metrics(), group_metrics.REBALANCING) == 0
            consumer.rejoin()
            await until(lambda: value_of(consumer.metrics(), group_metrics.REBALANCES) == 2)


async def test_the_time_since_the_last_poll_grows_while_the_application_does_not_ask() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        async with reading(broker, stalled_after_ms=1000) as consumer:
            await consumer.getmany(timeout=5)
            await until(lambda: _ago(consumer) > 0.05)
            await consumer.getmany(timeout=0)


def _ago(consumer: Consumer[Any, Any]) -> float:
    found = consumer.metrics()
    known = any(one.metric is metrics.LAST_POLL for one in found)
    return value_of(found, metrics.LAST_POLL) if known else 0.0


async def test_metrics_are_available_before_the_start_after_the_end_and_from_another_thread() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        consumer = member(broker)
        assert value_of(consumer.metrics(), metrics.ASSIGNED) == 0
        async with consumer:
            held = broker.faults.on(ApiKey.OFFSET_COMMIT).hold()
            await consumer.getmany(timeout=5)
            found = await run_in_thread(consumer.metrics)
            assert value_of(found, metrics.CONSUMED) == 10
            held.release()
        assert value_of(consumer.metrics(), metrics.CONSUMED) == 10


async def test_a_read_of_an_unassigned_partition_does_not_count_as_a_poll() -> None:
    async with Broker(topics={"t": 1}) as broker, reading(broker) as consumer:
        before = value_of(consumer.metrics(), metrics.POLLS)
        with pytest.raises(InvalidArgument):
            await consumer.getmany(timeout=0, partitions=[TopicPartition("u", 0)])
        with anyio.fail_after(5):
            await consumer.getmany(timeout=0)
        assert value_of(consumer.metrics(), metrics.POLLS) == before + 1
