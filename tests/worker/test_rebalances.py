"""Revoked partitions are finished within a bound, lost ones are not committed."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from aiokwire import Context, RetryPolicy, Worker
from aiokwire.broker import Broker
from aiokwire.testing import ApiKey, ErrorCode
from tests.worker.workers import ORDERS, Handled, committed, fill, new_worker, until, until_committed

PROTOCOLS = [{}, {"partition_assignment_strategy": "range"}, {"group_protocol": "consumer"}]
GUARANTEES = ["at-least-once", "exactly-once"]


def members(broker: Broker, handled: Handled, **options: Any) -> tuple[Worker, Worker]:
    workers = (new_worker(broker, **options), new_worker(broker, **options))
    for worker in workers:
        worker.add_handler(handled, "orders")
    return workers


@pytest.mark.parametrize("options", PROTOCOLS)
@pytest.mark.parametrize("delivery", GUARANTEES)
async def test_every_record_is_handled_once_while_members_come_and_go(
    kafka_broker: Broker, options: dict[str, Any], delivery: str
) -> None:
    handled = Handled()
    first, second = members(kafka_broker, handled, delivery=delivery, **options)
    async with first:
        for n in range(20):
            await fill(kafka_broker, f"k{n % 3}:{n}", partition=n % 2)
        async with second:
            await until(lambda: first.assignment | second.assignment == set(ORDERS) and len(second.assignment) == 1)
            for n in range(20, 40):
                await fill(kafka_broker, f"k{n % 3}:{n}", partition=n % 2)
            await until(lambda: len(handled.finished) == 40)
        await until(lambda: first.assignment == set(ORDERS))
        for n in range(40, 60):
            await fill(kafka_broker, f"k{n % 3}:{n}", partition=n % 2)
        await until(lambda: len(handled.finished) == 60)
    assert sorted(map(int, handled.started)) == list(range(60))
    await until_committed(kafka_broker, 30)
    await until_committed(kafka_broker, 30, partition=1)


@pytest.mark.parametrize("delivery", GUARANTEES)
async def test_running_handlers_of_revoked_partitions_finish_and_are_committed(
    kafka_broker: Broker, delivery: str
) -> None:
    for partition in (0, 1):
        await fill(kafka_broker, f"a:{partition}1", f"a:{partition}2", partition=partition)
    handled = Handled()
    handled.hold("01", "11")
    first, second = members(kafka_broker, handled, delivery=delivery)
    async with first:
        await until(lambda: sorted(handled.started) == ["01", "11"])
        await second.start()
        await until(lambda: any(partition.is_closing for partition in _partitions(first)))
        handled.release("01", "11")
        await until(lambda: len(second.assignment) == 1)
        await until(lambda: len(handled.finished) == 4)
        await second.close()
    assert sorted(handled.started) == ["01", "02", "11", "12"]


def _partitions(worker: Worker) -> list[Any]:
    assert worker._runtime is not None
    return list(worker._runtime.queue.partitions.values())


@pytest.mark.parametrize("delivery", GUARANTEES)
async def test_handlers_of_revoked_partitions_are_cancelled_after_the_bound(
    kafka_broker: Broker, delivery: str
) -> None:
    for partition in (0, 1):
        await fill(kafka_broker, f"a:{partition}1", f"b:{partition}2", partition=partition)
    handled = Handled()
    handled.hold("01", "11")
    first, second = members(kafka_broker, handled, delivery=delivery, revoke_timeout_ms=20)
    async with first:
        await until(lambda: sorted(handled.finished) == ["02", "12"])
        async with second:
            await until(lambda: len(second.assignment) == 1)
            await until(lambda: len(handled.started) == 5)  # the new owner repeats what was cancelled, and only that
            again = handled.started[4]
            handled.release("01", "11")
            await until(lambda: len(handled.finished) == 4)
    assert again in ("01", "11")
    assert sorted(handled.finished) == ["01", "02", "11", "12"]


async def test_nothing_is_committed_for_lost_partitions(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker, commit_interval_ms=60_000)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: handled.finished == ["2"])
        kafka_broker.faults.on(ApiKey.HEARTBEAT).error(ErrorCode.UNKNOWN_MEMBER_ID)
        await until(
            lambda: handled.started.count("1") == 2
        )  # it was cancelled, and is delivered to the next assignment
        assert (await committed(kafka_broker)).offset <= 0
        await until(lambda: handled.finished.count("2") == 2)
        handled.release("1")
        await until(lambda: "1" in handled.finished)
    await until_committed(kafka_broker, 2)
    assert handled.finished.count("1") == 1


async def test_a_static_member_resumes_where_it_was(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2", "a:3")
    handled = Handled()
    handled.hold("1")
    for step in range(2):
        worker = new_worker(kafka_broker, group_instance_id="billing-1", shutdown_timeout_ms=0)
        worker.add_handler(handled, "orders")
        async with worker:
            if step == 0:
                await until(lambda: handled.finished == ["2"])
            else:
                handled.release("1")
                await until(lambda: "3" in handled.finished)
    assert handled.started in (["1", "2", "1", "3"], ["2", "1", "1", "3"])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{}, {"group_protocol": "consumer"}])
async def test_what_finished_is_not_repeated_and_keys_keep_their_order_while_workers_come_and_go(
    kafka_broker: Broker, seed: int, options: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    for partition in (0, 1):
        await fill(kafka_broker, *(f"k{n % 5}:{partition}-{n % 5}-{n}" for n in range(60)), partition=partition)
    finished: list[str] = []
    repeated: list[str] = []

    async def handle(value: str, context: Context) -> None:
        if value in finished:
            repeated.append(value)
        for _ in range(rng.randrange(15)):
            await anyio.lowlevel.checkpoint()
        if rng.random() < 0.2:
            raise ValueError("now and then")
        finished.append(value)

    async def live() -> None:
        """Run a worker until some records have finished; stop it without waiting for the others."""
        worker = new_worker(
            kafka_broker,
            shutdown_timeout_ms=0,
            revoke_timeout_ms=0,
            retry=RetryPolicy(attempts=99, backoff=0),
            **options,
        )
        worker.add_handler(handle, "orders")
        goal = min(120, len(finished) + rng.randrange(1, 25))
        async with worker:
            await until(lambda: len(finished) >= goal)

    while len(finished) < 120:
        async with anyio.create_task_group() as group:
            group.start_soon(live)
            group.start_soon(live)
    assert not repeated
    assert len(finished) == 120
    for chain in {value.rpartition("-")[0] for value in finished}:
        numbers = [int(value.rpartition("-")[2]) for value in finished if value.startswith(f"{chain}-")]
        assert numbers == sorted(numbers)
