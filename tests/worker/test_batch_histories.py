"""Random histories of batches: nothing is lost, repeated without need, or overtaken."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from aiokwire import BatchError, Context, Record, RetryPolicy
from aiokwire.broker import Broker
from aiokwire.types import Order, TopicPartition
from aiokwire.worker.completed_offsets import CompletedOffsets
from aiokwire.worker.handlers import HandlerRegistry
from aiokwire.worker.work_queue import HandlerLine, InFlightBatch, WorkQueue
from tests.worker.workers import fill, new_worker, until

TP = TopicPartition("orders", 0)


def chain_of(order: Order, record: Any) -> object:
    if order is Order.PARTITION:
        return "all"
    return record.key if order is Order.KEY and record.key is not None else record.offset


class History:
    """Drives a `WorkQueue` at random, and checks each batch that it returns."""

    def __init__(self, order: Order, rng: random.Random) -> None:
        async def handle(batch: list[bytes]) -> None: ...

        self.order = order
        self.rng = rng
        self.most = rng.randrange(1, 8)
        handler = HandlerRegistry().add("orders", handle, max_records=self.most, max_wait=rng.choice([0, 1e9]))
        self.queue = WorkQueue(order, 1000, 1 << 20, lambda: None)
        line = HandlerLine(handler, RetryPolicy(), 1.0, handler)
        self.queue.assign(TP, line, CompletedOffsets())
        self.partition = self.queue.partitions[TP]
        self.next = 0
        self.running: list[InFlightBatch] = []
        self.put_off: list[InFlightBatch] = []
        self.done: list[Any] = []

    def step(self) -> None:
        choice = self.rng.randrange(6)
        if choice == 0 and self.next < 200:
            self.admit()
        elif choice == 1 and self.put_off:
            self.queue.put_back(self.put_off.pop(self.rng.randrange(len(self.put_off))))
        elif choice == 2:
            assert self.partition.assembly is not None
            self.partition.assembly.flush()
        elif choice == 3 and self.running:
            self.settle(self.running.pop(self.rng.randrange(len(self.running))))
        else:
            self.take()

    def admit(self) -> None:
        count = self.rng.randrange(1, 20)
        records = [
            Record("orders", 0, self.next + n, 0, self.rng.choice([b"a", b"b", b"c", b"d", None]), b"v")
            for n in range(count)
        ]
        self.next += count
        self.queue.admit({TP: records})

    def take(self) -> None:
        batch = self.queue.take()
        if batch is None:
            return
        assert isinstance(batch, InFlightBatch)
        offsets = [record.offset for record in batch.record]
        assert offsets == sorted(offsets)
        assert 0 < len(offsets) <= self.most
        busy = {chain_of(self.order, record) for other in self.running + self.put_off for record in other.record}
        assert busy.isdisjoint(chain_of(self.order, record) for record in batch.record)
        self.running.append(batch)

    def settle(self, batch: InFlightBatch) -> None:
        how = self.rng.randrange(3)
        if how == 0:
            self.done += batch.record
            self.queue.release(batch)
            self.queue.complete(batch)
        elif how == 1:
            self.queue.put_off(batch)
            self.put_off.append(batch)
        else:
            chains = sorted({str(chain_of(self.order, record)) for record in batch.record})
            ended = set(self.rng.sample(chains, self.rng.randrange(len(chains))))
            part = self.queue.part_off(
                batch, [record for record in batch.record if str(chain_of(self.order, record)) in ended]
            )
            self.done += part.record
            self.queue.complete(part)
            self.queue.put_off(batch)
            self.put_off.append(batch)

    def finish(self) -> None:
        assert self.partition.assembly is not None
        while self.queue.in_flight:
            self.partition.assembly.flush()
            while self.put_off:
                self.queue.put_back(self.put_off.pop())
            self.take()
            for batch in self.running:
                self.done += batch.record
                self.queue.release(batch)
                self.queue.complete(batch)
            self.running.clear()


@pytest.mark.parametrize("order", list(Order))
async def test_batches_hold_every_record_once_in_the_order_of_its_chain(order: Order) -> None:
    for seed in range(150):
        history = History(order, random.Random(seed))
        for _ in range(250):
            history.step()
        history.finish()
        assert sorted(record.offset for record in history.done) == list(range(history.next))
        for chain in {chain_of(order, record) for record in history.done}:
            offsets = [record.offset for record in history.done if chain_of(order, record) == chain]
            assert offsets == sorted(offsets)
        assert history.partition.bytes == history.partition.running == history.partition.in_flight == 0
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_nothing_is_lost_repeated_or_overtaken_while_workers_come_and_go(
    kafka_broker: Broker, seed: int, delivery: str
) -> None:
    rng = random.Random(seed)
    for partition in (0, 1):
        await fill(kafka_broker, *(f"k{n % 5}:{partition}-{n % 5}-{n}" for n in range(60)), partition=partition)
    finished: list[str] = []
    repeated: list[str] = []

    async def handle(batch: list[str], context: Context) -> None:
        repeated.extend(value for value in batch if value in finished)
        for _ in range(rng.randrange(15)):
            await anyio.lowlevel.checkpoint()
        if rng.random() < 0.2:
            raise ValueError("now and then")
        # A whole key fails, as a handler does that stops at its first failure.
        failed = rng.choice([None, None, rng.choice(batch).rpartition("-")[0]])
        finished.extend(value for value in batch if value.rpartition("-")[0] != failed)
        if failed is not None:
            raise BatchError(
                {n: ValueError("x") for n, value in enumerate(batch) if value.rpartition("-")[0] == failed}
            )

    async def live() -> None:
        """Run a worker until some records have finished; stop it without waiting for the others."""
        worker = new_worker(
            kafka_broker,
            shutdown_timeout_ms=0,
            revoke_timeout_ms=0,
            retry=RetryPolicy(attempts=99, backoff=0),
            delivery=delivery,
        )
        worker.add_handler(handle, "orders", max_records=rng.randrange(1, 9), max_wait=rng.choice([0, 0.001]))
        goal = min(120, len(finished) + rng.randrange(1, 40))
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
