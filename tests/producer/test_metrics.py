"""`Producer.metrics()`: the results of batches, and the state of the buffer."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import RecordRejected
from aiokwire.metrics import DURATION, Distribution
from aiokwire.producer import Producer, metrics
from aiokwire.threads import run_in_thread
from tests.metric_values import value_of
from tests.producer.conftest import scripted_cluster
from tests.producer.test_back_pressure import SMALL
from tests.producer.test_submit import Gate, submit_unawaited


async def test_acknowledged_records_batches_and_bytes_are_counted_by_topic() -> None:
    async with Broker(topics={"t": 1, "u": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        await producer.send_many("t", [b"x" * 100] * 50)
        await producer.send("u", b"y")
        found = producer.metrics()
        assert value_of(found, metrics.SENT, name="t") == 50
        assert value_of(found, metrics.SENT, name="u") == 1
        assert value_of(found, metrics.BYTES, name="t") > 5000
        assert value_of(found, metrics.BATCHES) == 2
        assert value_of(found, metrics.BATCH_BYTES) > 5000
        assert value_of(found, metrics.QUEUE_TIME) == 2
        assert value_of(found, DURATION, name="send") == 2
        assert value_of(found, metrics.PENDING) == value_of(found, metrics.BUFFER_USAGE) == 0


async def test_compressed_batches_count_as_they_are_sent_and_full_batches_as_they_were_filled() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        Producer(broker.bootstrap_servers, compression_type="gzip") as producer,
    ):
        await producer.send_many("t", [b"x" * 1000] * 50)
        found = producer.metrics()
        assert value_of(found, metrics.BATCH_BYTES) > 50_000
        assert value_of(found, metrics.BYTES) < 5000


async def test_retried_records_and_the_error_of_failed_ones_are_counted(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        codes = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS]
        cluster.node.on_partition = lambda tp, data: int(codes.pop()) if codes else None
        await producer.send("t", b"x")
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.INVALID_TIMESTAMP)
        with pytest.raises(RecordRejected):
            await producer.send("t", b"x")
        found = producer.metrics()
        assert value_of(found, metrics.RETRIES, name="t") == 2
        assert value_of(found, metrics.SENT, type="INVALID_TIMESTAMP") == 1
        assert value_of(found, metrics.SENT, name="t") == 2, "one was acknowledged"
        assert value_of(found, metrics.QUEUE_TIME) == 2, "retries do not count"
        assert value_of(found, "kafka.node.request.latency", request="Produce") == 4


async def test_the_buffer_and_the_records_that_wait_for_it_are_measured(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick, **SMALL)
        assert value_of(producer.metrics(), metrics.BUFFER_LIMIT) == SMALL["buffer_memory"], "before the start, too"
        async with producer:
            await producer.partitions_for("t")
            gate = Gate(cluster)
            submit_unawaited(producer, range(200))
            found = producer.metrics()
            assert value_of(found, metrics.PENDING) + value_of(found, metrics.WAITING) == 200
            assert value_of(found, metrics.WAITING) > 0
            assert 0 < value_of(found, metrics.BUFFER_USAGE) <= SMALL["buffer_memory"]
            assert value_of(found, metrics.OLDEST) >= 0
            gate.open()
            await producer.flush()
            assert value_of(producer.metrics(), metrics.OLDEST) == 0
        assert value_of(producer.metrics(), metrics.SENT) == 200, "after the end, too"


async def test_a_batch_that_is_too_large_for_its_broker_counts_as_split(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        codes = [ErrorCode.MESSAGE_TOO_LARGE]
        cluster.node.on_partition = lambda tp, data: int(codes.pop()) if codes else None
        await producer.send_many("t", [b"a", b"b"])
        assert value_of(producer.metrics(), metrics.SPLITS) == 1
        assert value_of(producer.metrics(), metrics.SENT) == 2


async def test_a_throttled_producer_counts_the_time_of_the_throttle(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.throttle_time_ms = 20
        await producer.send("t", b"x")
        await producer.send("t", b"x")
        throttled = value_of(producer.metrics(), "kafka.node.request.throttle.time", request="Produce")
        assert throttled == pytest.approx(0.04)


async def test_metrics_can_be_read_from_another_thread_while_records_are_sent() -> None:
    async with Broker(topics={"t": 4}) as broker, Producer(broker.bootstrap_servers) as producer:
        reading = True

        def read() -> int:
            rounds = 0
            while reading or not rounds:
                assert producer.metrics()
                rounds += 1
            return rounds

        async with anyio.create_task_group() as group:
            group.start_soon(run_in_thread, read)
            for _ in range(20):
                await producer.send_many("t", [b"x"] * 500)
            reading = False
        assert value_of(producer.metrics(), metrics.SENT) == 10_000


async def test_records_without_acknowledgements_are_counted_as_sent() -> None:
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers, acks=0) as producer:
        await asyncio.gather(*[producer.send("t", b"x") for _ in range(5)])  # noqa: TID251
        found = producer.metrics()
        assert value_of(found, metrics.SENT) == 5
        (duration,) = [one.value for one in found if one.metric is DURATION]
        assert isinstance(duration, Distribution)
        assert duration.sum >= 0
