"""Read-process-write in transactions while worker and broker are killed: each input counts once.

`python -m integration.chaos.transactions` runs at full size and prints the counts;
`test_transactions.py` is small.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import AsyncExitStack, closing
from typing import IO, Final

import anyio
import anyio.abc
import confluent_kafka
import uvloop
from anyio.streams.buffered import BufferedByteReceiveStream

from aiokwire import Admin, Consumer, Producer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.threads import run_in_thread
from integration.chaos.transactions_worker import FENCED, Job
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, real_kafka

KILL_WORKER: Final = "worker killed"
KILL_BROKER: Final = "broker killed"
OVERTAKE: Final = "worker overtaken"  # frozen, replaced by a new worker, then thawed
DONE: Final = "done"
ENDED: Final = "ended"  # without a signal
PARTITIONS: Final = 4

# The longest delay of a fault after its transaction, so that it may hit any activity.
_JITTER_SECONDS: Final = 0.05
_STARTING_SECONDS: Final = 0.5  # the shortest time from the start of a worker to the next fault
_PATIENCE: Final = 60.0  # seconds without a line from the worker


class ChaosFailed(AssertionError):
    """A guarantee was broken."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run and its faults, drawn from the seed."""

    transactions: int = 10_000
    worker_kills: int = 20
    overtakes: int = 5
    broker_kills: int = 5
    abort_rate: float = 0.1
    turn: int = 10
    seed: int = 1

    @property
    def inputs(self) -> int:
        """The number of inputs of each partition."""
        return self.transactions * self.turn // PARTITIONS

    def faults(self, rng: random.Random) -> list[tuple[int, str]]:
        """Return faults, each with the number of transactions before it."""
        kinds = [KILL_WORKER] * self.worker_kills + [OVERTAKE] * self.overtakes + [KILL_BROKER] * self.broker_kills
        rng.shuffle(kinds)
        part = self.transactions / (len(kinds) + 1)
        return [(int(part * (number + rng.uniform(0.5, 1.0))), kind) for number, kind in enumerate(kinds)]


class Instance:
    """The process of a worker."""

    def __init__(self, process: anyio.abc.Process, errors: IO[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._errors = errors
        self._lines = BufferedByteReceiveStream(process.stdout)
        self.since = time.perf_counter()

    @classmethod
    async def start(cls, job: Job) -> Instance:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        command = [sys.executable, "-m", "integration.chaos.transactions_worker", json.dumps(dataclasses.asdict(job))]
        return cls(await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=errors), errors)

    async def line(self) -> str | None:
        """Return the next line of its output; None at the end.

        Raises: ChaosFailed: there was no line in time.
        """
        with anyio.move_on_after(_PATIENCE):
            try:
                return (await self._lines.receive_until(b"\n", 100)).decode()
            except anyio.IncompleteRead:
                return None
        raise ChaosFailed(f"the worker wrote nothing for {_PATIENCE} s: {self._stderr()}")

    def send(self, what: signal.Signals) -> None:
        self._process.send_signal(what)

    async def status(self) -> int:
        """Return its exit status.

        Raises: ChaosFailed: it did not end in time.
        """
        with anyio.move_on_after(_PATIENCE):
            return await self._process.wait()
        raise ChaosFailed(f"the worker did not end within {_PATIENCE} s: {self._stderr()}")

    async def must_end(self, *statuses: int) -> None:
        """Wait for its end; raise ChaosFailed if it does not end, or with another status."""
        status = await self.status()
        if status not in statuses:
            raise ChaosFailed(f"the worker ended with status {status}: {self._stderr()}")

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                self._process.kill()
            await self._process.aclose()
        self._errors.close()

    def _stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-3000:].decode(errors="replace")


class Run:
    """One run against one broker."""

    def __init__(self, server: KafkaServer, plan: Plan) -> None:
        self._server = server
        self._plan = plan
        self._rng = random.Random(plan.seed)
        name = uuid.uuid4().hex[:8]
        self.source, self.target = f"in-{name}", f"out-{name}"
        self._name = f"copier-{name}"
        self._faults = plan.faults(self._rng)
        self.counts: collections.Counter[str] = collections.Counter()
        self.seconds = 0.0

    @property
    def expected(self) -> list[list[bytes]]:
        """The values that a reader of the output must see, by partition."""
        return [[b"%d-%d" % (place, number) for number in range(self._plan.inputs)] for place in range(PARTITIONS)]

    async def prepare(self) -> None:
        """Create the topics and produce the inputs."""
        async with Admin(self._server.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic(self.source, PARTITIONS), NewTopic(self.target, PARTITIONS)])
        async with Producer(self._server.bootstrap_servers) as producer:
            for place, values in enumerate(self.expected):
                for value in values:
                    await producer.submit(self.source, value, partition=place)
            await producer.flush()

    async def copy(self) -> None:
        """Run workers, one after the other, until one reports that all is done.

        Raises: ChaosFailed: a worker ended, or stopped writing, unexpectedly.
        """
        began = time.perf_counter()
        async with AsyncExitStack() as workers:
            frozen: Instance | None = None
            while True:
                worker = await self._start(workers)
                if frozen is not None:
                    await self._thaw(frozen, worker)
                    frozen = None
                ended = await self._follow(worker)
                if ended == DONE:
                    await worker.must_end(0)
                    break
                if ended == KILL_WORKER:
                    worker.send(signal.SIGKILL)
                    await worker.must_end(-signal.SIGKILL)
                elif ended == OVERTAKE:
                    worker.send(signal.SIGSTOP)
                    frozen = worker
                else:  # a thawed worker took over before it was fenced: the last to initialize wins
                    await worker.must_end(FENCED)
        self.seconds = time.perf_counter() - began

    async def _start(self, workers: AsyncExitStack) -> Instance:
        self.counts["workers"] += 1
        job = Job(
            bootstrap_servers=self._server.bootstrap_servers,
            source=self.source,
            target=self.target,
            partitions=PARTITIONS,
            inputs=self._plan.inputs,
            group=self._name,
            transactional_id=self._name,
            turn=self._plan.turn,
            abort_rate=self._plan.abort_rate,
            seed=self._rng.randrange(1 << 30),
        )
        worker = await Instance.start(job)
        workers.push_async_callback(worker.close)
        return worker

    async def _thaw(self, frozen: Instance, worker: Instance) -> None:
        """Thaw the older worker once the newer one has started; it must be fenced."""
        line = await worker.line()
        if line != "started":
            raise ChaosFailed(f"the first line of a worker is {line!r}")
        frozen.send(signal.SIGCONT)
        await frozen.must_end(FENCED)

    async def _follow(self, worker: Instance) -> str:
        """Count its transactions and inflict due faults, until it ends or must be ended.

        Return the reason.
        """
        while True:
            line = await worker.line()
            if line is None or line == DONE:
                return line or ENDED
            self.counts[line] += 1
            due = self._faults and self.counts["committed"] >= self._faults[0][0]
            if due and time.perf_counter() - worker.since >= _STARTING_SECONDS:
                _, fault = self._faults.pop(0)
                self.counts[fault] += 1
                await anyio.sleep(self._rng.uniform(0, _JITTER_SECONDS))
                if fault != KILL_BROKER:
                    return fault
                await run_in_thread(self._server.kill)
                await run_in_thread(self._server.restart)

    # --- checks -------------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Raise ChaosFailed unless our consumer sees each committed input once and in order."""
        places = [TopicPartition(self.target, number) for number in range(PARTITIONS)]
        found: list[list[bytes]] = [[] for _ in places]
        reader: Consumer[bytes, bytes] = Consumer(
            partitions=places, bootstrap_servers=self._server.bootstrap_servers, auto_offset_reset="earliest"
        )
        async with reader:
            ends = await reader.end_offsets(places)
            with anyio.move_on_after(_PATIENCE):
                while any([await reader.position(place) < ends[place] for place in places]):
                    for record in await reader.getmany(10_000, timeout=1.0):
                        found[record.partition].append(record.value or b"")
        self._judge(found, "our reader")

    async def check_with_librdkafka(self) -> None:
        """Check the same with librdkafka."""
        found = await run_in_thread(read_with_librdkafka, self._server.bootstrap_servers, self.target)
        self._judge(found, "librdkafka")

    def _judge(self, found: list[list[bytes]], who: str) -> None:
        for place, (expected, values) in enumerate(zip(self.expected, found, strict=True)):
            if values == expected:
                continue
            counts = collections.Counter(values)
            first = next((n for n, pair in enumerate(zip(expected, values, strict=False)) if pair[0] != pair[1]), -1)
            raise ChaosFailed(
                f"{who}, partition {place}: {len(values)} records instead of {len(expected)}; "
                f"{sum(1 for value in expected if not counts[value])} missing, "
                f"{sum(1 for count in counts.values() if count > 1)} more than once; the first difference: {first}"
            )

    def __str__(self) -> str:
        what = ", ".join(f"{name} {count:,}" for name, count in sorted(self.counts.items()))
        return f"{PARTITIONS * self._plan.inputs:,} inputs in {self.seconds:.1f} s: {what}"


def read_with_librdkafka(bootstrap_servers: str, topic: str) -> list[list[bytes]]:
    """Return what librdkafka's read_committed consumer reads, by partition."""
    options = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": f"reader-{uuid.uuid4().hex[:8]}",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    with closing(confluent_kafka.Consumer(options)) as reader:
        reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        while len(ended) < PARTITIONS:
            message = reader.poll(_PATIENCE)
            if message is None:
                raise ChaosFailed(f"librdkafka read no further record after {sum(map(len, found))} records")
            partition = message.partition() or 0
            if message.error() is None:
                found[partition].append(message.value() or b"")
            else:
                ended.add(partition)
    return found


async def run(server: KafkaServer, plan: Plan) -> Run:
    """Copy all inputs and check the result with both clients.

    Raises: ChaosFailed: a guarantee was broken.
    """
    chaos = Run(server, plan)
    await chaos.prepare()
    await chaos.copy()
    await chaos.check()
    await chaos.check_with_librdkafka()
    return chaos


def main() -> None:
    """Run at full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.transactions", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    for field in dataclasses.fields(Plan):
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    name = given.pop("broker")
    server: KafkaServer = EmbeddedProcess() if name == "embedded" else real_kafka(name)
    plan = Plan(**given)
    print(f"{name}: {plan}", flush=True)
    server.start()
    try:
        print(uvloop.run(run(server, plan)))
        print("each input counts once, in order, for the read_committed consumers of aiokwire and librdkafka")
    finally:
        server.close()


if __name__ == "__main__":
    main()
