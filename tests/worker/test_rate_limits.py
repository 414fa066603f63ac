"""`RateLimit` bounds the calls that start per second, of a handler and of the whole worker."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import pytest

from aiokwire import RateLimit, RetryPolicy, Worker
from aiokwire.broker import Broker
from aiokwire.errors import ConfigurationError
from tests.worker.simulated import Timed, send, sim_worker, simulate
from tests.worker.workers import Handled, fill, new_worker, until, until_committed


def most_in(times: list[float], seconds: float) -> int:
    """Return the most calls in any period."""
    return max(sum(start <= each < start + seconds for each in times) for start in times)


@pytest.mark.parametrize("limit", [RateLimit(100), RateLimit(100, burst=1), RateLimit(7.5, burst=30), RateLimit(0.5)])
@pytest.mark.parametrize("place", ["worker", "handler"])
def test_calls_start_at_the_rate_exactly(limit: RateLimit, place: str) -> None:
    async def main(_: Broker) -> None:
        handler = Timed()
        count = 300 if limit.per_second > 1 else 10
        await send(*map(str, range(count)))
        worker = sim_worker(rate_limit=limit if place == "worker" else None)
        worker.add_handler(handler, "t", rate_limit=limit if place == "handler" else None)
        async with worker:
            await handler.until(count)
        times = handler.times()
        expected = (count - limit.most_at_once) / limit.per_second
        assert times[-1] == pytest.approx(expected, rel=0.01, abs=0.01)
        for seconds in (0.5, 1, 2):
            assert most_in(times, seconds - 0.001) <= limit.most_at_once + limit.per_second * seconds
        assert [value for _, value, *_ in handler.calls] == list(map(str, range(count)))

    simulate(main)


def test_the_limit_of_the_worker_holds_for_its_handlers_together_and_each_has_its_own() -> None:
    async def main(broker: Broker) -> None:
        await broker.create_topic("u", 1)
        fast, slow = Timed(), Timed()
        worker = sim_worker(rate_limit=RateLimit(20, burst=1), order="none")
        worker.add_handler(fast, "t", name="fast")
        worker.add_handler(slow, "u", name="slow", rate_limit=RateLimit(5, burst=1))
        await send(*map(str, range(150)))
        await send(*map(str, range(50)), topic="u")
        async with worker:
            await fast.until(150)
            assert slow.times()[-1] == pytest.approx((len(slow.calls) - 1) / 5, rel=0.05)
        times = sorted(at for handler in (fast, slow) for at, *_ in handler.calls)
        assert times[-1] - times[0] == pytest.approx((len(times) - 1) / 20, rel=0.02)

    simulate(main)


def test_handlers_with_one_limit_share_it() -> None:
    async def main(broker: Broker) -> None:
        await broker.create_topic("u", 1)
        handlers = Timed(), Timed()
        shared = RateLimit(10, burst=1)
        worker = sim_worker(order="none")
        for topic, handler in zip("tu", handlers, strict=True):
            worker.add_handler(handler, topic, name=topic, rate_limit=shared)
        await send(*map(str, range(50)))
        await send(*map(str, range(50)), topic="u")
        async with worker:
            for handler in handlers:
                await handler.until(50)
        times = sorted(at for handler in handlers for at, *_ in handler.calls)
        assert all(later - earlier > 0.0999 for earlier, later in itertools.pairwise(times))
        assert times[-1] - times[0] == pytest.approx(9.9, rel=0.02)

    simulate(main)


def test_attempts_count_and_other_handlers_are_not_delayed() -> None:
    async def main(broker: Broker) -> None:
        await broker.create_topic("u", 1)
        limited, free = Timed(lambda _, attempt: attempt == 1), Timed()
        worker = sim_worker(retry=RetryPolicy(attempts=2, backoff=0), concurrency=1)
        worker.add_handler(limited, "t", name="limited", rate_limit=RateLimit(1))
        worker.add_handler(free, "u", name="free")
        await send(*map(str, range(5)))
        await send(*map(str, range(100)), topic="u")
        async with worker:
            await free.until(100)
            assert free.times()[-1] < 1
            await limited.until(10)
        assert [round(at) for at in limited.times()] == list(range(10))

    simulate(main)


async def test_a_worker_that_waits_for_its_rate_stops_at_once_and_bounds_what_it_has_read(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f"a:{n}" for n in range(100)))
    handled = Handled()
    worker = new_worker(kafka_broker, rate_limit=RateLimit(0.01), max_in_flight_records=20)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: handled.finished == ["0"])
        await until(lambda: worker.in_flight >= 5)
        assert worker.in_flight <= 20
        with anyio.fail_after(10):
            await worker.close()
    await until_committed(kafka_broker, 1)


@pytest.mark.parametrize("options", [{"per_second": 0}, {"per_second": -1}, {"per_second": 1, "burst": 0}])
def test_a_limit_out_of_its_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RateLimit(**options)


def test_an_invalid_limit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="rate_limit must be a RateLimit, not 100"):
        Worker("localhost:9", group_id="g", rate_limit=100)  # type: ignore[arg-type]
    worker = Worker("localhost:9", group_id="g")
    with pytest.raises(ConfigurationError, match="handler Handled: rate_limit must be a RateLimit"):
        worker.add_handler(Handled(), "orders", rate_limit=100)  # type: ignore[arg-type]
