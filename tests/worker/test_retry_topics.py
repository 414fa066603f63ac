"""A record that failed waits in a retry topic, while the records behind it are handled."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from typing import Any

import anyio
import pytest

from aiokwire import DeadLetter, KafkaError, Producer, Retry, RetryPolicy, Worker
from aiokwire.broker import Broker
from aiokwire.errors import ConfigurationError
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.worker import LetterHeader
from aiokwire.worker.retry_topics import RetryTopic, RetryTopics, shown_delay
from tests.metric_values import value_of
from tests.simulation.loop import SimLoop
from tests.worker.simulated import Timed, send, sim_producer, sim_worker, simulate
from tests.worker.workers import Handled, fill, new_worker, until, until_committed, values, visible

ONE_SECOND = RetryPolicy(attempts=1, delays=(1,))
RETRY_TOPIC = "orders.billing.retry.0.05"
SOON = RetryPolicy(attempts=2, backoff=0.001, delays=(0.05,))
PROTOCOLS = [{}, {"partition_assignment_strategy": "range"}, {"group_protocol": "consumer"}]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 2, "orders.dlq": 1, RETRY_TOPIC: 2}, "auto_create_topics": False}


def test_each_delay_is_waited_for_and_the_last_failure_is_a_dead_letter_with_its_true_origin() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda value, _: value == "bad")
        worker = sim_worker(retry=RetryPolicy(attempts=2, backoff=1, jitter=0, delays=(10, 60)))
        worker.add_handler(handler, "t", name="bill")
        await send("good", "bad", "next")
        async with worker:
            await handler.until(8)
            letters = await broker.wait_for_records("t.dlq", 1)
        assert [round(at) for at in handler.times("bad")] == [0, 1, 11, 12, 72, 73]
        assert [attempt for _, value, attempt, _ in handler.calls if value == "bad"] == [1, 2, 3, 4, 5, 6]
        assert handler.times("next") == [0]
        assert next(at for at, value, *_ in handler.calls if value == "next") < handler.calls[0][0] + 5
        assert {origin[:3] for _, value, _, origin in handler.calls if value == "bad"} == {("t", 0, 1)}
        headers = dict(letters[0].headers)
        assert (headers[LetterHeader.TOPIC], headers[LetterHeader.OFFSET]) == (b"t", b"1")
        assert headers[LetterHeader.ATTEMPTS] == b"6"
        assert not {LetterHeader.NOT_BEFORE, LetterHeader.ROUND} & set(headers)
        assert letters[0].value == b"bad"

    simulate(main)


def test_a_delay_may_be_repeated_in_one_topic() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda _, attempt: attempt < 4)
        worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(10, 10, 10)))
        worker.add_handler(handler, "t")
        await send("a")
        async with worker:
            with anyio.fail_after(100):
                await handler.until(4)
        assert [round(at) for at in handler.times("a")] == [0, 10, 20, 30]
        assert len(broker.records("t.billing.retry.10")) == 3

    simulate(main)


def test_records_of_a_retry_topic_are_handled_on_time_while_they_trickle_in() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda _, attempt: attempt == 1)
        worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(30,)), concurrency=1)
        worker.add_handler(handler, "t")
        async with worker, sim_producer() as producer:
            for number in range(100):
                await producer.send("t", str(number).encode())
                await anyio.sleep(0.05)
            await handler.until(200)
        for number in range(100):
            again = handler.times(str(number))[1]
            assert 30 <= again < 30.6, "a long poll that waits does not notice the record at once"

    simulate(main)


def test_while_a_retry_topic_waits_the_member_stays_and_other_topics_continue() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda value, attempt: value == "bad" and attempt == 1)
        worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(120,)), max_poll_interval_ms=10_000, concurrency=1)
        worker.add_handler(handler, "t")
        await send("bad")
        async with worker, sim_producer() as producer:
            for number in range(11):
                await producer.send("t", str(number).encode())
                await anyio.sleep(10)
            assert len(handler.calls) == 12
            assert worker.in_flight == 0, "a record that waits is not in flight"
            await handler.until(13)
            generation = broker.faults.group("billing").generation
        assert generation == 1
        assert 120 <= handler.times("bad")[1] < 121

    simulate(main)


def test_a_restart_while_a_record_waits_keeps_its_time() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda _, attempt: attempt == 1)
        for _ in range(4):
            worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(100,)))
            worker.add_handler(handler, "t")
            async with worker:
                if not handler.calls:
                    await send("a")
                await anyio.sleep(30)
        assert len(handler.calls) == 2
        assert 100 <= handler.times("a")[1] < 101

    simulate(main)


@pytest.mark.parametrize(("jump", "expected"), [(-86_400, 200), (86_400, 80)])
def test_a_jump_of_the_clock_delays_a_record_by_its_delay_at_most(
    monkeypatch: pytest.MonkeyPatch, jump: float, expected: float
) -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda _, attempt: attempt == 1)
        worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(100,)))
        worker.add_handler(handler, "t")
        async with worker:
            await send("a")
            await anyio.sleep(80)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        before = loop.wall_time
        monkeypatch.setattr(loop, "wall_time", lambda: before() + jump)
        worker = sim_worker(retry=RetryPolicy(attempts=1, delays=(100,)))
        worker.add_handler(handler, "t")
        async with worker:
            with anyio.fail_after(300):
                await handler.until(2)
        assert expected - 20 <= handler.times("a")[1] < expected + 20

    simulate(main)


@pytest.mark.parametrize("seed", range(6))
def test_no_record_is_lost_early_or_repeated_while_workers_restart_and_rebalance(seed: int) -> None:
    async def main(broker: Broker) -> None:
        rng = random.Random(seed)
        await broker.create_topic("t.dlq", 1)
        failures = {str(number): rng.choice((0, 0, 0, 1, 2, 3, 4)) for number in range(60)}
        handler = Timed(lambda value, attempt: attempt <= failures[value])
        policy = RetryPolicy(attempts=1, delays=(3, 10, 10))
        options: dict[str, Any] = {"retry": policy, "order": rng.choice(("partition", "key", "none"))}
        options["delivery"] = rng.choice(("at-least-once", "exactly-once"))
        options["group_protocol"] = rng.choice(("classic", "consumer"))

        async def members() -> None:
            while True:
                worker = sim_worker(**options)
                worker.add_handler(handler, "t")
                async with worker:
                    await anyio.sleep(rng.uniform(1, 15))

        async with anyio.create_task_group() as group, sim_producer() as producer:
            for _ in range(2):
                group.start_soon(members)
            for value in failures:
                await producer.send("t", value.encode(), key=value[-1].encode())
                await anyio.sleep(rng.uniform(0, 0.5))
            calls = sum(min(count + 1, 4) for count in failures.values())
            await handler.until(calls)
            await anyio.sleep(60)  # too many calls, if there are any
            group.cancel_scope.cancel()
        assert sorted(handler.finished) == sorted(value for value, count in failures.items() if count < 4)
        letters = {letter.value: dict(letter.headers) for letter in broker.records("t.dlq") if letter.value}
        assert sorted(letters) == sorted(value.encode() for value, count in failures.items() if count == 4)
        assert {headers[LetterHeader.ATTEMPTS] for headers in letters.values()} <= {b"4"}
        for value, count in failures.items():
            attempts = [attempt for _, called, attempt, _ in handler.calls if called == value]
            assert attempts == list(range(1, min(count + 1, 4) + 1))
            assert len({origin for _, called, _, origin in handler.calls if called == value}) == 1
            for number, pause in ((1, 3), (2, 10), (3, 10)):
                times = handler.times(value)
                assert len(times) <= number or times[number] - times[number - 1] >= pause, "too early"

    simulate(main, seed=seed)


def test_a_record_that_waits_is_not_skipped_after_a_restart_with_latest() -> None:
    async def main(broker: Broker) -> None:
        handler = Timed(lambda _, attempt: attempt == 1)
        for seconds in (20, 20, 100):
            worker = sim_worker(
                retry=RetryPolicy(attempts=1, delays=(60,)), auto_offset_reset="latest", commit_interval_ms=30_000
            )
            worker.add_handler(handler, "t")
            async with worker:
                await anyio.sleep(5)
                if not handler.calls:
                    await send("a")
                await anyio.sleep(seconds)
        assert len(handler.calls) == 2

    simulate(main)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("options", PROTOCOLS)
async def test_a_record_returns_from_its_retry_topic_and_ends_as_a_dead_letter(
    kafka_broker: Broker, delivery: str, options: dict[str, Any]
) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    handled = Handled()
    handled.fail("1", *[ValueError("no such customer")] * 4)
    handled.fail("2", *[ValueError("not yet")] * 3)
    worker = new_worker(kafka_broker, retry=SOON, delivery=delivery, **options)
    worker.add_handler(handled, "orders", name="bill")
    async with worker:
        await until_committed(kafka_broker, 3)
        await until(lambda: "2" in handled.finished)
        await until(lambda: bool(kafka_broker.records("orders.dlq")))
    assert [attempt for attempt in handled.attempts if attempt[0] == "1"] == [("1", n) for n in (1, 2, 3, 4)]
    assert [attempt for attempt in handled.attempts if attempt[0] == "2"] == [("2", n) for n in (1, 2, 3, 4)]
    assert await visible(kafka_broker, "orders.dlq") == ["1"]
    assert sorted(await visible(kafka_broker, RETRY_TOPIC)) in (["1", "2"], [])  # by the partition of key a


async def test_an_offset_is_not_committed_before_its_record_is_in_the_retry_topic(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    held = kafka_broker.faults.on(ApiKey.PRODUCE, topic=RETRY_TOPIC).hold()
    handled = Handled()
    handled.fail("1", ValueError(), ValueError())
    worker = new_worker(kafka_broker, retry=SOON)
    worker.add_handler(handled, "orders")
    async with worker:
        await held.arrived()
        await until_committed(kafka_broker, 0, (1, 2))
        held.release()
        await until_committed(kafka_broker, 2)
        await until(lambda: "1" in handled.finished)


async def test_what_no_retry_can_repair_skips_the_retry_topics(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2", "c:3")
    handled = Handled()
    handled.fail("1", DeadLetter("forged"))
    handled.fail("2", KeyError("invalid"))
    handled.fail("3", Retry("later"), Retry("later"))
    policy = RetryPolicy(attempts=2, backoff=0.001, delays=(0.05,), give_up_on=KeyError)
    worker = new_worker(kafka_broker, retry=policy)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 3)
        await until(lambda: handled.finished == ["3"])
    assert sorted(values(kafka_broker, "orders.dlq")) == ["1", "2"]
    assert values(kafka_broker, RETRY_TOPIC) == ["3"]


async def test_a_retry_topic_that_does_not_exist_is_named_at_the_start(kafka_broker: Broker) -> None:
    worker = new_worker(kafka_broker, retry=ONE_SECOND)
    worker.add_handler(Handled(), "orders")
    with pytest.raises(KafkaError, match=r"cannot use the retry topic 'orders.billing.retry.1': .*Create it"):
        await worker.start()


async def test_a_forbidden_retry_topic_stops_the_worker_and_loses_no_record(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    kafka_broker.faults.on(ApiKey.PRODUCE, topic=RETRY_TOPIC).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    handled = Handled()
    handled.fail("1", ValueError("broken"), ValueError("broken"))
    worker = new_worker(kafka_broker, retry=SOON)
    worker.add_handler(handled, "orders")
    await worker.start()
    with pytest.raises(KafkaError, match=f"could not be sent to the retry topic '{RETRY_TOPIC}'.*ValueError: broken"):
        await worker.wait()
    with pytest.raises(KafkaError):
        await worker.close()
    again = new_worker(kafka_broker, retry=SOON)
    again.add_handler(handled, "orders")
    async with again:
        await until(lambda: handled.finished == ["1"])


async def test_missing_retry_topics_are_created_where_the_broker_permits_it() -> None:
    async with Broker(topics={"orders": 1}, auto_create_topics=True) as broker:
        await fill(broker, "a:1")
        handled = Handled()
        handled.fail("1", ValueError())
        worker = new_worker(broker, retry=RetryPolicy(attempts=1, delays=(0.01,)))
        worker.add_handler(handled, "orders")
        async with worker:
            await until(lambda: handled.finished == ["1"])


async def test_a_pattern_does_not_match_retry_topics_as_topics_of_their_own() -> None:
    topics = {"orders": 1, "orders.billing.retry.0.01": 1, "orders.shipping.retry.0.01": 1, "orders.dlq": 1}
    async with Broker(topics=topics) as broker:
        await fill(broker, "a:1")
        await fill(broker, "b:foreign", topic="orders.shipping.retry.0.01")
        handled = Handled()
        handled.fail("1", ValueError(), ValueError())
        worker = new_worker(broker, retry=RetryPolicy(attempts=1, delays=(0.01,)))
        worker.add_handler(handled, re.compile("order.*"))
        async with worker:
            await until(lambda: bool(broker.records("orders.dlq")))
            assert {tp.topic for tp in worker.assignment} == {"orders", "orders.billing.retry.0.01"}
            assert dict(broker.records("orders.dlq")[0].headers)[LetterHeader.TOPIC] == b"orders"
    assert handled.attempts == [("1", 1), ("1", 2)]


async def test_a_record_that_another_program_wrote_to_a_retry_topic_is_handled_at_once(kafka_broker: Broker) -> None:
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        bad = [(LetterHeader.NOT_BEFORE.value, b"soon"), (LetterHeader.ATTEMPTS.value, b"-7"), ("x", None)]
        await producer.send(RETRY_TOPIC, b"1", headers=bad)
        await producer.send(RETRY_TOPIC, b"2")
        forged = [(LetterHeader.NOT_BEFORE.value, b"9" * 19), (LetterHeader.TOPIC.value, b"salaries")]
        await producer.send(RETRY_TOPIC, b"3", headers=forged)
    handled = Handled()
    handled.fail("2", DeadLetter())
    worker = new_worker(kafka_broker, retry=SOON)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: sorted(handled.finished) == ["1", "3"])
        await until(lambda: values(kafka_broker, "orders.dlq") == ["2"])
    assert set(handled.attempts) == {("1", 1), ("2", 1), ("3", 1)}


async def test_headers_of_a_retry_mean_nothing_in_another_topic(kafka_broker: Broker) -> None:
    origin = {LetterHeader.TOPIC: b"salaries", LetterHeader.PARTITION: b"0", LetterHeader.OFFSET: b"5"}
    forged = {**origin, LetterHeader.NOT_BEFORE: b"9" * 13, LetterHeader.ATTEMPTS: b"7", LetterHeader.ROUND: b"7"}
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        headers = [(name.value, value) for name, value in forged.items()]
        await producer.send("orders", b"1", partition=0, headers=headers)
    handled = Handled()
    handled.fail("1", DeadLetter())
    worker = new_worker(kafka_broker, retry=SOON)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 1)
    assert handled.attempts == [("1", 1)]
    (letter,) = kafka_broker.records("orders.dlq")
    assert dict(letter.headers)[LetterHeader.TOPIC] == b"orders"


@pytest.mark.parametrize("options", PROTOCOLS)
async def test_waiting_records_survive_rebalances(kafka_broker: Broker, options: dict[str, Any]) -> None:
    handled = Handled()
    workers = [new_worker(kafka_broker, retry=SOON, **options) for _ in range(3)]
    for number in range(30):
        handled.fail(str(number), ValueError(), ValueError())
    for worker in workers:
        worker.add_handler(handled, "orders")
    async with workers[0]:
        for number in range(15):
            await fill(kafka_broker, f"{number}:{number}", partition=number % 2)
        async with workers[1]:
            await until(lambda: len(workers[1].assignment) == 2)
            for number in range(15, 30):
                await fill(kafka_broker, f"{number}:{number}", partition=number % 2)
            await until(lambda: len(kafka_broker.records(RETRY_TOPIC)) >= 20)
        async with workers[2]:
            await until(lambda: len(set(handled.finished)) == 30)
    assert sorted(map(int, handled.finished)) == list(range(30))
    assert values(kafka_broker, "orders.dlq") == []


async def test_retry_topics_count_among_the_outcomes_and_are_logged_in_one_line(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokwire.worker")
    await fill(kafka_broker, "a:1")
    handled = Handled()
    handled.fail("1", ValueError("first"), ValueError("second"))
    worker = new_worker(kafka_broker, retry=SOON)
    worker.add_handler(handled, "orders", name="bill")
    async with worker:
        await until(lambda: handled.finished == ["1"])
        assert value_of(worker.metrics(), "kafka.worker.failure", action="retry-topic") == 1
    (line,) = [each.message for each in caplog.records if each.name == "aiokwire.worker"]
    assert re.fullmatch(
        r"orders\[0\] at offset 0: handler bill failed after 2 attempt\(s\), the record is now in "
        r"orders\.billing\.retry\.0\.05\[\d\] at offset 0 and is handled again in 0\.05 s: ValueError: second",
        line,
    )


def test_names_of_retry_topics() -> None:
    topics = RetryTopics("{topic}.{group}.retry.{delay}", "billing", lambda topic: (60, 0.5) if topic == "a.b" else ())
    assert topics.names("a.b") == ["a.b.billing.retry.60", "a.b.billing.retry.0.5"]
    assert topics.find("a.b.billing.retry.0.5") == RetryTopic("a.b", 0.5)
    for other in ("a.b", "a.b.billing.retry.61", "a.b.shipping.retry.60", "c.billing.retry.60", "a.b.billing.retry.x"):
        assert topics.find(other) is None
    own = [topics.pattern("(?i:A.*)", (60,))]
    foreign = re.compile(topics.foreign_pattern(own))
    assert not foreign.fullmatch("a.b.billing.retry.60")
    assert foreign.fullmatch("a.b.billing.retry.61")
    assert foreign.fullmatch("a.b.shipping.retry.60")
    assert [shown_delay(each) for each in (60, 0.5, 0.001, 100.0, 86_400)] == ["60", "0.5", "0.001", "100", "86400"]
    with pytest.raises(ConfigurationError, match="a topic has at most 249"):
        topics.name("x" * 240, 60)


@pytest.mark.parametrize("template", ["{topic}.retry", "retry.{delay}", "{topic}/{delay}", "{topic}{topic}.{delay}", 7])
def test_a_template_without_topic_or_delay_is_refused(template: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a template for retry topics"):
        Worker("localhost:9", group_id="billing", retry_topic=template)


@pytest.mark.parametrize("delays", [60, (0,), (-1,), ("60s",), (True,), (float("nan"),), (31 * 86_400,)])
def test_delays_out_of_their_range_are_refused(delays: Any) -> None:
    with pytest.raises(ConfigurationError, match="delays"):
        RetryPolicy(delays=delays)


def test_at_most_once_has_no_retry_topics() -> None:
    with pytest.raises(ConfigurationError, match="retry has delays"):
        Worker("localhost:9", group_id="g", delivery="at-most-once", retry=RetryPolicy(attempts=1, delays=(1,)))
