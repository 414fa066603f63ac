"""One random history: a plan drawn from a seed, played on a simulated loop, checked at its end.

storm (faults, work) -> calm (everything must arrive) -> close (nothing may be left)
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable
from typing import Any

import anyio

from aiokwire.consumer import Consumer
from aiokwire.errors import BufferFullError, KafkaError
from aiokwire.producer import Delivery, Producer, ProducerRecord
from aiokwire.types import RecordMetadata, TopicPartition
from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network, Weather
from tests.simulation.world import (
    BOOTSTRAP,
    BROKER_IP,
    TOPIC,
    BrokerHost,
    ConsumerJournal,
    ProducerJournal,
    Sent,
    at_host,
    judge,
    until,
)

STORM = (1.0, 6.0)  # seconds
MOST_RECORDS = 400  # per producer
CALM = 120.0  # seconds within which everything must have arrived
DELIVERY_TIMEOUT = 90.0  # longer than any storm: a record that still fails is a fault of aiokwire
TURNS_PER_EVENT = 4  # turns of the loop that one event of the network may cause
TURNS_PER_SECOND = 500  # besides, per client; a spinning client causes many thousands


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault: when, which kind, for how long."""

    at: float
    kind: str
    duration: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """All choices of a history that are made before it begins."""

    seed: int
    partitions: int
    storm: float
    durable: bool  # responses wait for the disk, and power failures are among the faults
    broker: dict[str, Any]
    producers: list[dict[str, Any]]
    consumers: list[dict[str, Any]]
    faults: list[Fault]
    cut: float
    cut_after: int


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"plan {seed}")
    storm = rng.uniform(*STORM)
    durable = rng.random() < 0.3
    kinds = ["kill", "restart", "break", "partition", "slow", "full"] + ["power"] * 2 * durable
    faults = [
        Fault(rng.uniform(0.0, storm), rng.choice(kinds), rng.choice((0.05, 0.5, rng.uniform(0.1, 5.0))))
        for _ in range(rng.randint(0, 6))
    ]
    broker: dict[str, Any] = {"log_segment_bytes": rng.choice((30_000, 200_000, 1 << 30))}
    if durable:
        broker["log_flush_interval_messages"] = 1
    producers = [_draw_producer(rng) for _ in range(rng.randint(1, 3))]
    consumers = [_draw_consumer(rng) for _ in range(rng.randint(1, 3))]
    if any(fault.kind == "power" for fault in faults):
        # A consumer that resumes at an offset alone cannot detect that its record was replaced.
        for consumer in consumers:
            consumer["reopens"] = False
    return Plan(
        seed=seed,
        partitions=rng.randint(1, 4),
        storm=storm,
        durable=durable,
        broker=broker,
        producers=producers,
        consumers=consumers,
        faults=sorted(faults, key=lambda fault: fault.at),
        cut=rng.choice((0.0, 0.1, 0.5)),
        # Not sooner on average: if the first four connections break, the client takes the broker for one before 0.10.
        cut_after=rng.choice((3_000, 10_000, 100_000)),
    )


def _draw_producer(rng: random.Random) -> dict[str, Any]:
    acks = rng.choice(("all", "all", "all", "all", 1, 0))
    return {
        "acks": acks,
        "style": rng.choice(("send", "send", "submit", "nowait", "many")),
        "pause": rng.choice((0.01, 0.05, 0.2)),
        "size": rng.choice((0, 100, 2_000)),
        "chosen": rng.random() < 0.5,  # whether records name their partition
        "impatient": rng.random() < 0.3,  # whether some sends are cancelled
        "options": {
            "acks": acks,
            "linger_ms": rng.choice((0, 1, 5, 100)),
            "batch_size": rng.choice((0, 500, 16_384, 1 << 20)),
            "max_request_size": 20_000,
            "buffer_memory": rng.choice((22_000, 100_000, 1 << 25)),
            "compression_type": rng.choice(("none", "none", "gzip", "lz4", "zstd", "snappy")),
            "max_in_flight_requests_per_connection": rng.choice((1, 2, 5, 5)),
            "delivery_timeout_ms": DELIVERY_TIMEOUT * 1000,
            "request_timeout_ms": rng.choice((500, 3_000, 30_000)),
            "connections_max_idle_ms": rng.choice((700, 240_000)),
            "metadata_max_age_ms": rng.choice((1_000, 300_000)),
        },
    }


def _draw_consumer(rng: random.Random) -> dict[str, Any]:
    return {
        "style": rng.choice(("iterate", "many", "one", "batches", "mixed")),
        "pauses": rng.random() < 0.3,
        "reopens": rng.random() < 0.3,
        "options": {
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": rng.choice((40, 500)),
            # With more than a partition may return, each fetch would wait `fetch_max_wait_ms`, as in Kafka.
            "fetch_min_bytes": rng.choice((1, 1, 250)),
            "max_partition_fetch_bytes": rng.choice((300, 10_000, 1 << 20)),
            "fetch_memory": rng.choice((30_000, 100_000, 64 << 20)),
            "request_timeout_ms": rng.choice((1_000, 30_000)),
            "connections_max_idle_ms": rng.choice((700, 240_000)),
            "metadata_max_age_ms": rng.choice((1_000, 300_000)),
            "isolation_level": rng.choice(("read_committed", "read_uncommitted")),
        },
    }


# --- producing --------------------------------------------------------------------------------------------------------


class ProducerActor:
    """A producer that sends during the storm and records the results."""

    def __init__(self, loop: SimLoop, name: str, plan: dict[str, Any], partitions: int) -> None:
        self.journal = ProducerJournal(name, idempotent=plan["acks"] == "all", acks=-1 if plan["acks"] == "all" else 1)
        if plan["acks"] == 0:
            self.journal.acks = 0
        self._loop = loop
        self._plan = plan
        self._partitions = partitions
        self._rng = random.Random(f"{name} {loop.seed}")
        self._pending: list[tuple[int, int | None, Delivery]] = []
        self.complaints: list[str] = []

    async def run(self, host: str, until_time: float, calm: anyio.Event) -> None:
        """Produce from start to close."""
        with at_host(host):
            producer: Producer[bytes, bytes] = await started(
                lambda: Producer(BOOTSTRAP, rng=random.Random(self._rng.random()), **self._plan["options"])
            )
            work: Callable[[Any], Any] = getattr(self, f"_{self._plan['style']}")
            while anyio.current_time() < until_time and self.journal.asked < MOST_RECORDS:
                await work(producer)
                await anyio.sleep(self._rng.expovariate(1 / self._plan["pause"]))
            await calm.wait()
            await self._finish(producer)

    async def _finish(self, producer: Producer[bytes, bytes]) -> None:
        with anyio.fail_after(CALM):
            await producer.flush(timeout=CALM - 1)
        for number, partition, delivery in self._pending:
            if not delivery.done():
                self.complaints.append(f"{self.journal.name}:{number} is not done after flush")
                continue
            error = delivery.exception()
            self._note(number, partition, None if error is not None else delivery.result(), error)
        if "0 of" not in repr(producer):
            self.complaints.append(f"{self.journal.name} holds memory after flush: {producer!r}")
        began = anyio.current_time()
        left = await producer.close(timeout=5)
        if left or anyio.current_time() - began > 5 + 1.5:
            self.complaints.append(
                f"{self.journal.name}: close took {anyio.current_time() - began:.3f} s and left {len(left)}"
            )

    def _next(self) -> tuple[int, int | None, bytes]:
        number = self.journal.asked
        self.journal.asked += 1
        partition = self._rng.randrange(self._partitions) if self._plan["chosen"] else None
        size = self._rng.randint(0, self._plan["size"])
        return number, partition, self.journal.value(number, size)

    def _note(
        self, number: int, partition: int | None, meta: RecordMetadata | None, error: BaseException | None
    ) -> None:
        place = None if meta is None else (meta.partition, meta.offset)
        self._loop.note(self.journal.name, number, place, type(error).__name__)
        self.journal.sent.append(Sent(number, partition, place, None if error is None else repr(error)))
        if error is not None and self.journal.acks != 0:
            self.complaints.append(f"{self.journal.name}:{number} failed: {error!r}")

    async def _send(self, producer: Producer[bytes, bytes]) -> None:
        number, partition, value = self._next()
        patience = self._rng.uniform(0, 0.05) if self._plan["impatient"] else None
        with anyio.move_on_after(patience):
            try:
                meta = await producer.send(TOPIC, value, partition=partition)
            except KafkaError as error:
                self._note(number, partition, None, error)
            else:
                self._note(number, partition, meta, None)

    async def _submit(self, producer: Producer[bytes, bytes]) -> None:
        for _ in range(self._rng.randint(1, 12)):
            number, partition, value = self._next()
            patience = self._rng.uniform(0, 0.05) if self._plan["impatient"] else None
            with anyio.move_on_after(patience) as scope:
                delivery = await producer.submit(TOPIC, value, partition=partition)
                self._pending.append((number, partition, delivery))
            if scope.cancelled_caught:
                self.journal.refused.add(number)

    async def _nowait(self, producer: Producer[bytes, bytes]) -> None:
        for _ in range(self._rng.randint(1, 12)):
            number, partition, value = self._next()
            try:
                self._pending.append((number, partition, producer.submit_nowait(TOPIC, value, partition=partition)))
            except BufferFullError:
                self.journal.refused.add(number)
                return

    async def _many(self, producer: Producer[bytes, bytes]) -> None:
        taken = [self._next() for _ in range(self._rng.randint(1, 30))]
        records = [ProducerRecord(value, partition=partition) for _, partition, value in taken]
        result = await producer.send_many(TOPIC, records)
        self._loop.note(self.journal.name, "many", result.delivered, len(taken))
        if result.delivered != len(taken) and self.journal.acks != 0:
            self.complaints.append(f"{self.journal.name}: send_many: {result!r}")


# --- consuming --------------------------------------------------------------------------------------------------------


class ConsumerActor:
    """A consumer that reads all partitions from start to end."""

    def __init__(self, loop: SimLoop, name: str, plan: dict[str, Any], partitions: int) -> None:
        self.journal = ConsumerJournal(name)
        self._loop = loop
        self._plan = plan
        self._partitions = [TopicPartition(TOPIC, index) for index in range(partitions)]
        self._rng = random.Random(f"{name} {loop.seed}")
        self.goal: dict[TopicPartition, int] | None = None

    @property
    def arrived(self) -> bool:
        return self.goal is not None and all(
            self.journal.next_offset(tp.partition) >= end for tp, end in self.goal.items()
        )

    async def run(self, host: str) -> None:
        """Read until cancelled."""
        with at_host(host):
            while True:
                consumer: Consumer[bytes, bytes] = await started(
                    lambda: Consumer(
                        partitions=self._partitions,
                        bootstrap_servers=BOOTSTRAP,
                        rng=random.Random(self._rng.random()),
                        **self._plan["options"],
                    )
                )
                for tp in self._partitions:
                    if (offset := self.journal.next_offset(tp.partition)) > 0:
                        consumer.seek(tp, offset)
                try:
                    await self._read(consumer)
                finally:
                    with anyio.CancelScope(shield=True), anyio.fail_after(10):
                        await consumer.close(timeout=2)

    async def _read(self, consumer: Consumer[bytes, bytes]) -> None:
        """Read until cancelled, or until it is time to reopen."""
        styles = ("iterate", "many", "one", "batches")
        while True:
            style = self._rng.choice(styles) if self._plan["style"] == "mixed" else self._plan["style"]
            patience = self._rng.uniform(0.0, 2.0)
            with anyio.move_on_after(patience):
                await getattr(self, f"_{style}")(consumer)
            if self._plan["pauses"] and self._rng.random() < 0.3:
                some = self._rng.sample(self._partitions, self._rng.randint(1, len(self._partitions)))
                consumer.pause(*some)
                with anyio.move_on_after(self._rng.uniform(0.0, 1.0)):
                    while True:
                        for record in await consumer.getmany(timeout=5):
                            assert record.topic_partition not in some if hasattr(record, "topic_partition") else True
                            self._received(record)
                consumer.resume(*some)
            if self._plan["reopens"] and self._rng.random() < 0.1:
                return

    def _received(self, record: Any) -> None:
        self._loop.note(self.journal.name, record.partition, record.offset)
        self.journal.received(record.partition, record.offset, record.value)

    async def _iterate(self, consumer: Consumer[bytes, bytes]) -> None:
        async for record in consumer:
            self._received(record)

    async def _many(self, consumer: Consumer[bytes, bytes]) -> None:
        while True:
            for record in await consumer.getmany(self._rng.randint(1, 100), timeout=self._rng.uniform(0.0, 3.0)):
                self._received(record)

    async def _one(self, consumer: Consumer[bytes, bytes]) -> None:
        while True:
            self._received(await consumer.getone())

    async def _batches(self, consumer: Consumer[bytes, bytes]) -> None:
        async for batch in consumer.batches():
            for record in batch.records():
                self._received(record)


async def started(make: Callable[[], Any]) -> Any:
    """Start a client while the cluster may be down, with a new client for each attempt."""
    last: KafkaError | None = None
    for _ in range(200):
        client = make()
        try:
            with anyio.fail_after(70):
                await client.start()
        except KafkaError as error:
            last = error
            await anyio.sleep(0.5)
        else:
            return client
    raise AssertionError(f"no client starts: {last!r}")


# --- the history ------------------------------------------------------------------------------------------------------


class History:
    """A history: the player of a plan."""

    def __init__(self, loop: SimLoop, plan: Plan) -> None:
        self.plan = plan
        self._loop = loop
        self._network = Network(loop)
        self._host = BrokerHost(loop, self._network, partitions=plan.partitions, configs=plan.broker)
        self._lock = anyio.Lock()  # one event of the broker's life at a time
        self.producers = [
            ProducerActor(loop, f"p{index}", one, plan.partitions) for index, one in enumerate(plan.producers)
        ]
        self.consumers = [
            ConsumerActor(loop, f"c{index}", one, plan.partitions) for index, one in enumerate(plan.consumers)
        ]
        self.clients = [f"10.0.1.{index}" for index in range(len(self.producers) + len(self.consumers))]

    async def play(self) -> list[str]:
        """Play from the first boot to the last close; return the violations."""
        await self._host.start()
        self._network.weather = Weather(cut=self.plan.cut, cut_after=self.plan.cut_after, refuse=0.05, unresolved=0.02)
        calm = anyio.Event()
        storm_ends = anyio.current_time() + self.plan.storm
        hosts = iter(self.clients)
        async with anyio.create_task_group() as readers:
            async with anyio.create_task_group() as writers:
                for producer in self.producers:
                    writers.start_soon(producer.run, next(hosts), storm_ends, calm)
                for consumer in self.consumers:
                    readers.start_soon(consumer.run, next(hosts))
                async with anyio.create_task_group() as faults:
                    for fault in self.plan.faults:
                        faults.start_soon(self._fault, fault)
                    await anyio.sleep(self.plan.storm)
                await self._calm()
                calm.set()
            await anyio.sleep(1)  # until records sent with acks=0 arrive
            goal = self._host.ends()
            for consumer in self.consumers:
                consumer.goal = goal
            for consumer in self.consumers:
                await until(lambda one=consumer: one.arrived, within=CALM, what=self._progress(consumer, goal))
            readers.cancel_scope.cancel()
        found = self._verdict()
        await self._host.stop()
        return found + await self._left_over()

    def _progress(self, consumer: ConsumerActor, goal: dict[TopicPartition, int]) -> str:
        at = {tp.partition: consumer.journal.next_offset(tp.partition) for tp in goal}
        return f"{consumer.journal.name} at {at} reaches {goal}"

    def _verdict(self) -> list[str]:
        found = [complaint for one in self.producers for complaint in one.complaints]
        found += judge(
            self._host.log(),
            [one.journal for one in self.producers],
            [one.journal for one in self.consumers],
            unflushed_lost=any(fault.kind == "power" for fault in self.plan.faults),
        )
        turns = self._loop.turns - TURNS_PER_EVENT * self._network.events
        if turns > TURNS_PER_SECOND * self._loop.elapsed * len(self.clients):
            found.append(f"{turns / self._loop.elapsed:.0f} turns of the loop a second without cause")
        return found

    async def _left_over(self) -> list[str]:
        await anyio.sleep(5)  # until closed connections are gone
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        found = [f"task left: {task!r}" for task in tasks]
        found += [f"timer left: {handle!r}" for handle in self._loop.pending_timers()]
        found += [f"connection left: {one!r}" for one in self._network.transports.values()]
        return found + [f"reported to the loop: {fault}" for fault in self._loop.faults]

    # --- faults -------------------------------------------------------------------------------------------------------

    async def _fault(self, fault: Fault) -> None:
        await anyio.sleep(fault.at)
        self._loop.note("fault", fault.kind, f"{fault.duration:.3f}")
        await getattr(self, f"_fault_{fault.kind}")(fault.duration)

    async def _down(self, duration: float, how: Callable[[], Any]) -> None:
        async with self._lock:
            if self._host.up:
                await how()
                await anyio.sleep(duration)
                await self._host.revive()

    async def _fault_kill(self, duration: float) -> None:
        await self._down(duration, lambda: self._host.die(power=False))

    async def _fault_power(self, duration: float) -> None:
        await self._down(duration, lambda: self._host.die(power=True))

    async def _fault_restart(self, duration: float) -> None:
        await self._down(duration, self._host.stop)

    async def _fault_break(self, duration: float) -> None:
        self._network.break_some(0.7)

    async def _fault_partition(self, duration: float) -> None:
        for host in self.clients:
            if self._loop.rng.random() < 0.6:
                self._network.separate(host, BROKER_IP)
        await anyio.sleep(duration)
        self._network.join()

    async def _fault_slow(self, duration: float) -> None:
        weather = self._network.weather
        self._network.weather = dataclasses.replace(
            weather, latency=(0.05, 0.4), bandwidth=200_000, segment=(1, 1_500), window=4_000
        )
        await anyio.sleep(duration)
        self._network.weather = dataclasses.replace(
            self._network.weather, latency=(0.0001, 0.002), bandwidth=1e9, segment=(1, 60_000), window=65_536
        )

    async def _fault_full(self, duration: float) -> None:
        storage = self._host.storage
        storage.capacity = sum(len(file.data) for file in storage.files.values()) + self._loop.rng.randint(0, 3_000)
        await anyio.sleep(duration)
        self._host.storage.capacity = storage.capacity = None

    async def _calm(self) -> None:
        self._loop.note("calm")
        self._network.join()
        self._network.weather = Weather()
        self._host.storage.capacity = None
        async with self._lock:
            await self._host.revive()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a history ended."""

    seed: int
    wrong: list[str]
    trace_hash: str
    turns: int
    elapsed: float
    records: int
    lines: list[str]


def play(seed: int) -> Outcome:
    """Draw, play and check the history of a seed."""
    loop = SimLoop(seed)
    history = History(loop, draw(seed))
    try:
        wrong = run(loop, history.play())
    except (Exception, BaseExceptionGroup) as error:
        wrong = [_inner(error)]
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        wrong = [repr(error)]
    records = sum(one.journal.asked for one in history.producers)
    return Outcome(seed, wrong, loop.trace_hash, loop.turns, loop.elapsed, records, list(loop.lines))


def _inner(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else ""
    return f"{error!r}{where}"
