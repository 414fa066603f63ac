"""`Producer.health()`: buffered and waiting records, and the last error."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel

from aiokwire.error_codes import ErrorCode
from aiokwire.producer import Producer
from tests.producer.conftest import scripted_cluster
from tests.producer.test_back_pressure import SMALL
from tests.producer.test_submit import Gate, submit_unawaited


async def test_health_counts_buffered_and_waiting_records(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick, **SMALL)
        assert not producer.health().ok, "it was not started"
        await producer.start()
        await producer.partitions_for("t")
        assert producer.health().ok
        gate = Gate(cluster)
        submit_unawaited(producer, range(200))
        health = producer.health()
        assert health.records + health.waiting == 200
        assert health.waiting
        assert 0 < health.memory_in_use <= SMALL["buffer_memory"]
        assert health.oldest is not None
        assert not health.ok
        gate.open()
        await producer.flush()
        assert producer.health().ok
        await producer.close()
        assert not producer.health().running


async def test_health_names_the_last_error_while_a_batch_is_retried(quick: dict[str, Any]) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.NOT_ENOUGH_REPLICAS)
        producer.submit_nowait("t", b"x")
        with anyio.fail_after(5):
            while producer.health().last_error is None:
                await anyio.lowlevel.checkpoint()
        assert "NOT_ENOUGH_REPLICAS" in str(producer.health().last_error)
        cluster.node.on_partition = lambda tp, data: None
        await producer.flush()
        assert producer.health().ok
