"""`Worker.health()`: which record holds back a partition, for how long, and why."""

from __future__ import annotations

import anyio
import pytest

from aiokwire import ClosedError, RetryPolicy
from aiokwire.broker import Broker
from aiokwire.web import Services
from tests.worker.workers import ORDERS, Handled, fill, new_worker, until, until_committed


async def test_a_handler_that_runs_for_long_stalls_its_partition(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "a:1", "b:2")
    await fill(kafka_broker, "c:3", partition=1)
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker, stalled_after_ms=200)
    worker.add_handler(handled, "orders", name="bill")
    with pytest.raises(ClosedError, match="not started"):
        worker.health()
    services = Services(worker=worker)
    async with services.lifespan():
        await until(lambda: set(handled.finished) == {"0", "2", "3"})
        health = worker.health()
        assert (health.running, health.retries, health.failure) == (1, 0, None)
        assert list(health.partitions) == [ORDERS[0]], "the other partition has no unfinished record"
        assert not health.partitions[ORDERS[0]].stalled
        await until(lambda: bool(worker.health().stalled))
        (stalled,) = worker.health().stalled
        assert (stalled.partition, stalled.offset, stalled.in_flight) == (ORDERS[0], 1, 1)
        assert "handler bill has been running for 0 s, attempt 1" in stalled.reason
        report = services.report()
        assert (report.is_ready, report.is_alive) == (False, True)
        assert "orders[0] at 1, 1 in flight" in report.services["worker"].reasons[0]
        handled.release("1")
        await until_committed(kafka_broker, 3)
        await until(lambda: services.report().is_ready)
        assert worker.health().partitions == {}


async def test_a_record_that_waits_for_its_next_attempt_stalls_its_partition(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    handled = Handled()
    handled.fail("1", ValueError("the database is down"))
    policy = RetryPolicy(attempts=2, backoff=60, backoff_max=60)
    worker = new_worker(kafka_broker, stalled_after_ms=100, shutdown_timeout_ms=0)
    worker.add_handler(handled, "orders", name="bill", retry=policy)
    async with worker:
        await until(lambda: handled.finished == ["3"])
        await until(lambda: bool(worker.health().stalled))
        health = worker.health()
        assert (health.retries, health.running) == (1, 0)
        assert health.stalled[0].reason == "the record waits for attempt 2 of handler bill"
        assert "waits for attempt 2" in health.reasons[0]


async def test_a_worker_that_failed_has_ended(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    handled = Handled()
    handled.fail("1", ValueError("no"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", name="bill", retry=RetryPolicy(attempts=1, then="stop"))
    await worker.start()
    await until(lambda: worker.failure is not None)
    health = worker.health()
    assert (health.ok, health.has_ended) == (False, True)
    assert health.reasons == [f"it has failed: {worker.failure}"]
    with pytest.raises(Exception, match="handler bill"):
        await worker.close()


async def test_progress_resets_the_time_of_a_partition(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    handled = Handled()
    handled.hold("1", "2")
    worker = new_worker(kafka_broker, stalled_after_ms=300)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: bool(worker.health().stalled if handled.started else ()))
        handled.release("1")
        await until(lambda: handled.started == ["1", "2"])
        place = worker.health().partitions[ORDERS[0]]
        assert (place.offset, place.stalled) == (1, False)
        assert place.idle < 0.3
        handled.release("2")
        with anyio.fail_after(10):
            await until_committed(kafka_broker, 2)
