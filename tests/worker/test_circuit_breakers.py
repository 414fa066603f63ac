"""A circuit breaker pauses the handlers of a dependency that is down, and keeps their records."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from aiokwire import (
    CircuitBreaker,
    CircuitClosed,
    CircuitOpened,
    Context,
    DeadLetter,
    RetryPolicy,
    Skip,
    TopicPartition,
    Worker,
)
from aiokwire.broker import Broker
from aiokwire.errors import ConfigurationError
from aiokwire.worker.circuit_breaker import Circuit, CircuitState
from aiokwire.worker.metrics import CIRCUIT_OPEN, CIRCUIT_OPENINGS, FAILURES
from tests.metric_values import value_of
from tests.worker.simulated import Timed, send, sim_producer, sim_worker, simulate
from tests.worker.workers import Handled, fill, new_worker, until, until_committed, values

DOWN = ConnectionError("the database is down")


class Outage:
    """A dependency that is down between two times, counted from its creation."""

    def __init__(self, start: float, end: float) -> None:
        self._from = anyio.current_time()
        self._start, self._end = start, end

    def __call__(self, value: str, attempt: int) -> Exception | None:
        return DOWN if self._start <= anyio.current_time() - self._from < self._end else None


@pytest.mark.parametrize(
    ("order", "concurrency", "delivery"),
    [
        ("partition", 16, "at-least-once"),
        ("key", 16, "at-least-once"),
        ("none", 1, "at-least-once"),
        ("key", 16, "exactly-once"),
    ],
)
def test_a_long_outage_makes_no_dead_letter(order: str, concurrency: int, delivery: str) -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(Outage(5, 200))
        worker = sim_worker(order=order, concurrency=concurrency, delivery=delivery, retry=RetryPolicy(attempts=3))
        breaker = CircuitBreaker(failures=1, pause=20, exceptions=OSError)
        worker.add_handler(handler, "t", circuit_breaker=breaker)
        async with worker, sim_producer() as producer:
            for number in range(40):
                await producer.send("t", str(number).encode(), key=str(number % 5).encode())
                await anyio.sleep(1)
            await anyio.sleep(220)
            assert sorted(map(int, handler.finished)) == list(range(40))
        failures = len(handler.calls) - 40
        assert failures <= 10 + concurrency, "one probe in 20 s, and what ran when it opened"
        assert max(attempt for _, _, attempt, _ in handler.calls) == 1
        if order != "none":
            for key in range(5):
                mine = [int(value) for value in handler.finished if int(value) % 5 == key]
                assert mine == sorted(mine)

    simulate(main)


def test_partitions_pause_while_it_is_open_and_others_continue() -> None:
    async def main(broker: Broker) -> None:
        await broker.create_topic("u", 1)
        guarded, free = Timed(Outage(0, 50)), Timed()
        worker = sim_worker(max_poll_interval_ms=20_000)
        breaker = CircuitBreaker(failures=2, pause=60, name="database")
        worker.add_handler(guarded, "t", name="guarded", circuit_breaker=breaker, retry=RetryPolicy(backoff=0.1))
        worker.add_handler(free, "u", name="free")
        events = worker.events()
        async with worker, sim_producer() as producer:
            await send("1", "2")
            opened = await anext(events)
            assert isinstance(opened, CircuitOpened)
            assert (opened.circuit, opened.handlers, opened.error) == ("database", ("guarded",), DOWN)
            assert worker._runtime is not None
            assert worker._runtime.consumer.paused() == {TopicPartition("t", 0)}
            assert value_of(worker.metrics(), CIRCUIT_OPEN, circuit="database") == 1
            for number in range(5):
                await producer.send("u", str(number).encode())
                await anyio.sleep(5)
            assert len(free.finished) == 5
            closed = await anext(events)
            assert isinstance(closed, CircuitClosed)
            assert closed.seconds == pytest.approx(60, abs=1)
            assert worker._runtime.consumer.paused() == frozenset()
            assert value_of(worker.metrics(), CIRCUIT_OPEN, circuit="database") == 0
            assert value_of(worker.metrics(), CIRCUIT_OPENINGS, circuit="database") == 1
            assert value_of(worker.metrics(), FAILURES, action="postpone") == 1
            assert broker.faults.group("billing").generation == 1
            await guarded.until(4)
        assert [event async for event in events] == [], "the stream ends with the worker"

    simulate(main)


def test_handlers_with_one_breaker_share_its_state() -> None:
    async def main(broker: Broker) -> None:
        await broker.create_topic("u", 1)
        first, second = Timed(Outage(0, 50)), Timed()
        database = CircuitBreaker(failures=1, pause=60)
        worker = sim_worker()
        worker.add_handler(first, "t", name="first", circuit_breaker=database)
        worker.add_handler(second, "u", name="second", circuit_breaker=database)
        async with worker:
            await send("1")
            await first.until(1)
            await send("2", topic="u")
            await anyio.sleep(30)
            assert not second.calls
            await second.until(1)
        assert second.calls[0][0] - first.calls[0][0] >= 60

    simulate(main)


def test_a_record_that_always_fails_does_not_keep_the_circuit_open_for_the_others() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda value, _: DOWN if value == "poison" else None)
        worker = sim_worker(order="none", concurrency=1, retry=RetryPolicy(attempts=3, backoff=1))
        worker.add_handler(handler, "t", circuit_breaker=CircuitBreaker(failures=2, pause=10))
        await send("poison")
        async with worker, sim_producer() as producer:
            await anyio.sleep(30)
            assert handler.times()[-1] > 10, "the circuit has opened"
            for number in range(60):
                await producer.send("t", str(number).encode())
                await anyio.sleep(0.4)
            (letter,) = await broker.wait_for_records("t.dlq", 1)
        assert letter.value == b"poison"
        assert len(handler.finished) == 60

    simulate(main)


def test_a_probe_that_never_ends_times_out_and_opens_the_circuit_again() -> None:
    async def main(broker: Broker) -> None:
        calls: list[float] = []
        worker = sim_worker()

        @worker.handler("t", timeout=5, circuit_breaker=CircuitBreaker(failures=1, pause=10))
        async def hang(context: Context) -> None:
            calls.append(anyio.current_time())
            if len(calls) < 4:
                await anyio.sleep_forever()

        await send("1")
        async with worker:
            await anyio.sleep(100)
        assert [round(at - calls[0]) for at in calls] == [0, 15, 30, 45]

    simulate(main)


def test_a_worker_with_an_open_circuit_stops_at_once_and_the_next_one_handles_the_records() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(Outage(0, 50))
        for seconds in (10, 100):
            worker = sim_worker()
            worker.add_handler(handler, "t", circuit_breaker=CircuitBreaker(failures=1, pause=60))
            async with worker:
                if not handler.calls:
                    await send("1", "2", "3")
                await anyio.sleep(seconds)
                before = anyio.current_time()
            assert anyio.current_time() - before < 2
        assert handler.finished == ["1", "2", "3"]

    simulate(main)


async def test_partitions_that_arrive_while_the_circuit_is_open_are_paused(kafka_broker: Broker) -> None:
    handled = Handled()
    handled.fail("1", DOWN)
    breaker = CircuitBreaker(failures=1, pause=3600)
    first, second = (new_worker(kafka_broker) for _ in range(2))
    for worker in (first, second):
        worker.add_handler(handled, "orders", circuit_breaker=breaker)
    async with first:
        async with second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 1)
            (mine,) = first.assignment
            await fill(kafka_broker, "a:1", partition=mine.partition)
            await until(lambda: handled.started == ["1"])
        await until(lambda: len(first.assignment) == 2)
        assert first._runtime is not None
        assert first._runtime.consumer.paused() == first.assignment


async def test_what_the_handler_decides_does_not_count(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "a:3", "a:4")
    handled = Handled()
    handled.fail("1", Skip("old"))
    handled.fail("2", DeadLetter("forged"))
    handled.fail("3", *[ValueError("invalid")] * 3)
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", circuit_breaker=CircuitBreaker(failures=1, exceptions=OSError, pause=3600))
    async with worker:
        await until_committed(kafka_broker, 4)
    assert handled.finished == ["4"]
    assert values(kafka_broker, "orders.dlq") == ["2", "3"]


async def test_opening_and_closing_are_logged_in_one_line_each(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokwire.worker")
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.fail("1", *[DOWN] * 4)
    handled.fail("2", *[DOWN] * 4)
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", name="bill", circuit_breaker=CircuitBreaker(failures=2, pause=0.01))
    async with worker:
        await until(lambda: sorted(handled.finished) == ["1", "2"])
    lines = [each.message for each in caplog.records if each.name == "aiokwire.worker"]
    assert len(lines) == 2
    assert lines[0] == (
        "group 'billing': circuit bill opened after 2 failure(s) in a row: the partitions of handler(s) bill are "
        "paused; retrying with 1 call(s) every 0.01 s. Records are kept, and failed attempts do not count until then: "
        "ConnectionError: the database is down"
    )
    assert lines[1].startswith("group 'billing': circuit bill closed after 0.")


class Moves:
    """Keeps the states of a circuit."""

    def __init__(self) -> None:
        self.states: list[CircuitState] = []

    def moved(self, circuit: Circuit, before: CircuitState, error: BaseException | None) -> None:
        self.states.append(circuit.state)


def counted(breaker: CircuitBreaker, calls: str) -> int | None:
    """Return after how many calls a circuit opens: "f" is a failure, "." a success."""
    found: list[int | None] = []

    async def main(_: Broker) -> None:
        circuit = Circuit(breaker, "test", Moves())
        for number, call in enumerate(calls, 1):
            probed = circuit.begin()
            if call == ".":
                circuit.succeeded(probed)
            else:
                circuit.raised(probed)
                circuit.failed(DOWN)
            if circuit.state is CircuitState.OPEN:
                found.append(number)
                break
        circuit.close()

    simulate(main)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("breaker", "calls", "opens"),
    [
        (CircuitBreaker(failures=3), "ff.ff.fff", 9),
        (CircuitBreaker(failures=3), "ff.ff.ff.", None),
        (CircuitBreaker(failures=None, share=0.5, window=4), "fff.f", 5),
        (CircuitBreaker(failures=None, share=0.5, window=4), "....f.f", 7),
        (CircuitBreaker(failures=None, share=0.5, window=4), "f...f...f...", None),
        (CircuitBreaker(failures=2, share=0.9, window=10), ".ff", 3),
    ],
)
def test_when_a_circuit_opens(breaker: CircuitBreaker, calls: str, opens: int | None) -> None:
    assert counted(breaker, calls) == opens


def test_probes_are_bounded_and_all_of_them_must_succeed() -> None:
    async def main(_: Broker) -> None:
        moves = Moves()
        circuit = Circuit(CircuitBreaker(failures=1, pause=10, probes=2), "test", moves)
        old = circuit.begin()
        assert circuit.failed(DOWN)
        assert not circuit.admits
        await anyio.sleep(11)
        first, second = circuit.begin(), circuit.begin()
        assert not circuit.admits
        circuit.succeeded(old)
        circuit.succeeded(first)
        assert circuit.admits
        circuit.raised(second)  # an error that does not count
        assert not circuit.failed(Skip())
        assert circuit.state is CircuitState.HALF_OPEN
        circuit.succeeded(circuit.begin())
        assert circuit.state is CircuitState.CLOSED
        assert circuit.failed(DOWN)
        assert moves.states == [CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED, CircuitState.OPEN]
        circuit.close()

    simulate(main)


@pytest.mark.parametrize(
    "options",
    [
        {"failures": None},
        {"failures": 0},
        {"share": 2},
        {"window": 0},
        {"pause": 0},
        {"probes": 0},
        {"exceptions": "OSError"},
    ],
)
def test_a_breaker_out_of_its_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        CircuitBreaker(**options)


async def test_at_most_once_has_no_circuit_breaker(kafka_broker: Broker) -> None:
    worker = Worker(kafka_broker.bootstrap_servers, group_id="g", delivery="at-most-once")
    worker.add_handler(Handled(), "orders", circuit_breaker=CircuitBreaker())
    with pytest.raises(ConfigurationError, match="a circuit breaker repeats calls"):
        await worker.start()
