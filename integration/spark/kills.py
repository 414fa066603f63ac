"""SIGKILL of driver and workers before and after each request of the exactly-once sink: each row is there once.

`python -m integration.spark.kills --kills 200` runs it against an embedded broker in this process, which holds the
request until the process is dead, and lets it take place afterwards: late requests come true as well. With `--servers`
the kills come at random moments instead, on whatever Kafka is there.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from typing import Any, Final

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from aiokwire import Admin, Consumer
from aiokwire.broker import Broker
from aiokwire.protocol import ApiKey
from aiokwire.types import TopicPartition
from integration.kafka import real_kafka
from integration.spark.job import FAILED, Job

DRIVER: Final = "driver"
WORKER: Final = "worker"
# The requests of a batch, in order, and who sends them. AddPartitionsToTxn and AddOffsetsToTxn belong to brokers
# without KIP-890.
STEPS: Final = (
    (ApiKey.INIT_PRODUCER_ID, DRIVER),
    (ApiKey.OFFSET_FETCH, DRIVER),
    (ApiKey.PRODUCE, WORKER),
    (ApiKey.PRODUCE, DRIVER),
    (ApiKey.TXN_OFFSET_COMMIT, DRIVER),
    (ApiKey.END_TXN, DRIVER),
)
TASKS: Final = 2
ROWS: Final = 20
_PATIENCE: Final = 120.0


class NotExactlyOnce(AssertionError):
    """A row is missing, there twice, or its batch is torn."""


@dataclasses.dataclass(frozen=True)
class Kill:
    """Where: at which request, before or after it took place, of whom."""

    api: ApiKey
    whom: str
    after: bool
    nth: int = 1
    """Of the requests of this kind: in the first batch or the second."""

    def __str__(self) -> str:
        return f"{self.whom} {'after' if self.after else 'before'} {self.api.name} {self.nth}"


def kills(count: int) -> list[Kill]:
    """Each place in turn."""
    places = [Kill(api, whom, after, nth) for nth in (1, 2) for api, whom in STEPS for after in (False, True)]
    return [places[number % len(places)] for number in range(count)]


class Query:
    """A running job."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self.process = process
        self.workers: list[int] = []

    async def follow(self) -> None:
        """Note who the workers are, until it ends."""
        assert self.process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(self.process.stdout):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                kind, *numbers = line.split()
                if kind == "workers":
                    self.workers = [int(number) for number in numbers]

    def kill(self, whom: str, rng: random.Random) -> None:
        """SIGKILL; whoever is gone already stays so."""
        pid = self.process.pid if whom == DRIVER or not self.workers else rng.choice(self.workers)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.asynccontextmanager
async def running(job: Job) -> AsyncIterator[Query]:
    command = [sys.executable, "-m", "integration.spark.job", json.dumps(dataclasses.asdict(job))]
    async with (
        await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None) as process,
        anyio.create_task_group() as group,
    ):
        query = Query(process)
        group.start_soon(query.follow)
        try:
            yield query
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


async def until_done(job: Job, interrupt: Callable[[Query], Any]) -> int:
    """Start the job again and again until it has noted all batches; how often it was started."""
    starts = 0
    with anyio.fail_after(_PATIENCE):
        while True:
            starts += 1
            async with running(job) as query, anyio.create_task_group() as group:
                group.start_soon(interrupt, query)
                status = await query.process.wait()
                group.cancel_scope.cancel()
            if status == 0:
                return starts
            if status not in (FAILED, -signal.SIGKILL):
                raise NotExactlyOnce(f"the job ended with status {status}")


async def values_of(job: Job) -> list[str]:
    """What a read_committed reader sees."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(job.topic, bootstrap_servers=job.servers, **options) as consumer:
        places = [TopicPartition(job.topic, number) for number in range(job.tasks)]
        ends = await consumer.end_offsets(places)
        found: list[str] = []
        while [place for place in places if await consumer.position(place) < ends[place]]:
            found += [(record.value or b"").decode() for record in await consumer.getmany(timeout=0.05)]
        return found


def judge(job: Job, values: list[str]) -> None:
    """Raises: NotExactlyOnce: naming the first row at fault."""
    counts: collections.Counter[tuple[int, int, int]] = collections.Counter()
    attempts: dict[int, set[str]] = collections.defaultdict(set)
    for value in values:
        *place, attempt = value.split()
        batch_id, task, number = map(int, place)
        counts[batch_id, task, number] += 1
        attempts[batch_id].add(attempt)
    for batch_id in range(job.batches):
        for task in range(job.tasks):
            for number in range(job.rows):
                if (times := counts.pop((batch_id, task, number), 0)) != 1:
                    raise NotExactlyOnce(f"row {number} of task {task} in batch {batch_id} is there {times} times")
        if len(attempts[batch_id]) != 1:
            raise NotExactlyOnce(f"batch {batch_id} is torn: it has rows of {len(attempts[batch_id])} attempts")
    if counts:
        raise NotExactlyOnce(f"{len(counts)} rows that nobody wrote")


async def one_kill(broker: Broker, kill: Kill, rng: random.Random) -> int:
    """A job of two batches that is killed once; how often it was started."""
    topic = f"out-{uuid.uuid4().hex[:10]}"
    await broker.create_topic(topic, TASKS)
    with tempfile.TemporaryDirectory() as checkpoint:
        job = Job(broker.bootstrap_servers, topic, topic, checkpoint, 2, TASKS, ROWS)
        on = broker.on(kill.api, nth=kill.nth)
        hold = on.hold(handled=kill.after)
        killed = False

        async def interrupt(query: Query) -> None:
            nonlocal killed
            if killed:
                return
            await hold.arrived(timeout=_PATIENCE)
            killed = True
            query.kill(kill.whom, rng)
            hold.release()  # whoever is alive goes on, and a request of the dead comes true late

        starts = await until_done(job, interrupt)
        broker.clear_rules()
        judge(job, await values_of(job))
        return starts


async def on_embedded(count: int, seed: int, skip: int = 0) -> None:
    """All kills but the first ones, on a broker in this process."""
    rng = random.Random(seed)
    tally: collections.Counter[str] = collections.Counter()
    async with Broker() as broker:
        for kill in kills(count)[skip:]:
            starts = await one_kill(broker, kill, rng)
            tally[str(kill)] += 1
            print(f"{kill}: started {starts} times, each row once", flush=True)
    print(f"{sum(tally.values())} kills at {len(tally)} places: nothing lost, nothing doubled")


async def at_random(servers: str, count: int, seed: int) -> None:
    """One job, killed at random moments, on any Kafka."""
    rng, done = random.Random(seed), 0
    topic = f"out-{uuid.uuid4().hex[:10]}"
    async with Admin(servers) as admin:
        await admin.create_topic(topic, TASKS, replication_factor=1)
    with tempfile.TemporaryDirectory() as checkpoint:
        job = Job(servers, topic, topic, checkpoint, max(2, count), TASKS, ROWS)

        async def interrupt(query: Query) -> None:
            nonlocal done
            while done < count:
                await anyio.sleep(rng.uniform(0.3, 2.0))
                query.kill(rng.choice((DRIVER, WORKER)), rng)
                done += 1

        starts = await until_done(job, interrupt)
        judge(job, await values_of(job))
    print(
        f"{done} kills at random moments, started {starts} times, {job.batches} batches: nothing lost, nothing doubled"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", help="a Kafka that is there; then kills come at random moments")
    parser.add_argument("--kafka", help="a release of Kafka to be started for that, such as 4.3.1")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first ones")
    options = parser.parse_args()
    if options.servers:
        anyio.run(at_random, options.servers, options.kills, options.seed)
    elif options.kafka:
        with closing(real_kafka(options.kafka)) as server:
            server.start()
            anyio.run(at_random, server.bootstrap_servers, options.kills, options.seed)
    else:
        anyio.run(on_embedded, options.kills, options.seed, options.skip)


if __name__ == "__main__":
    main()
