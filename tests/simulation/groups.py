"""Random histories of a group, drawn from a seed, played on simulated time and checked throughout.

Members join, leave, die, are cut off and change their subscriptions while brokers restart and
coordinators move. A partition has one owner in a generation; no record is skipped; no committed
offset decreases; in the end all records are read and committed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Collection
from typing import Any

import anyio

from aiokwire.broker import Broker
from aiokwire.broker.offsets import OFFSETS_TOPIC
from aiokwire.broker.offsets.records import decode_key, decode_value
from aiokwire.consumer import Consumer, ConsumerRecord, RebalanceListener
from aiokwire.errors import KafkaError
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition
from tests.simulation.history import Outcome, _inner, started
from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network, Weather
from tests.simulation.world import BOOTSTRAP, BROKER_IP, TOPIC, BrokerHost, at_host, until

GROUP = "g"
OTHER = "u"
SESSION_MS = 6_000
CALM = 90.0  # seconds within which everything must have been read and committed
STRATEGIES: tuple[Any, ...] = (
    "cooperative-sticky",
    "range",
    "roundrobin",
    "sticky",
    ["cooperative-sticky", "range"],
)

# Each member has its own strategy, as members of different clients have.
MIXED = "mixed"
OF_CLIENTS: tuple[Any, ...] = (
    "auto",
    "range",  # older librdkafkas
    ["range", "roundrobin"],  # librdkafka, kafka-python
    ["range", "cooperative-sticky"],  # Java
)
PEACEFUL = ("join", "leave", "subscribe")
DRAWN = 20  # members from this number on have a drawn strategy


@dataclasses.dataclass(frozen=True)
class Event:
    """An event: when, which kind, to which member, for how long."""

    at: float
    kind: str
    number: int
    duration: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """All choices of a history that are made before it begins."""

    seed: int
    protocol: str
    strategy: Any
    nodes: int
    partitions: int
    storm: float
    automatic: bool
    statics: bool
    events: tuple[Event, ...]
    cut: float
    slow_listeners: bool
    by_hand: bool  # the application commits too, besides the automatic commits
    grows: tuple[float, ...]  # times when the topic gets another partition
    peaceful: bool = False  # no member loses partitions: each has one owner at every moment


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"group {seed}")
    storm = rng.uniform(10, 60)
    kinds = ["join", "join", "leave", "kill", "cut off", "subscribe", "move", "restart", "crash", "evict", "slow"]
    events = [Event(0.0, "join", number, 0.0) for number in range(rng.randint(1, 4))]
    for number in range(rng.randint(3, 14)):
        kind = rng.choice(kinds)
        events.append(Event(rng.uniform(0, storm), kind, 10 + number, rng.choice((0.1, 1.0, 4.0, 15.0))))
    return Plan(
        seed=seed,
        protocol=rng.choice(("classic", "classic", "consumer", "consumer", "auto")),
        strategy=rng.choice(STRATEGIES),
        nodes=rng.choice((1, 3)),
        partitions=rng.randint(1, 9),
        storm=storm,
        automatic=rng.random() < 0.4,
        statics=rng.random() < 0.3,
        events=tuple(sorted(events, key=lambda event: event.at)),
        cut=rng.choice((0.0, 0.0, 0.02)),
        slow_listeners=rng.random() < 0.5,
        by_hand=rng.random() < 0.5,
        grows=tuple(sorted(rng.uniform(0, storm) for _ in range(rng.choice((0, 0, 1, 2))))),
    )


def draw_mixed(seed: int) -> Plan:
    """Return the plan of a seed with members of several clients.

    They join and leave all the time, beside members with the default strategy. Even seeds are
    peaceful.
    """
    rng = random.Random(f"mixed {seed}")
    plan = dataclasses.replace(draw(seed), protocol="classic", strategy=MIXED, storm=rng.uniform(10, 25), grows=())
    events = [Event(0.0, "join", number, 0.0) for number in range(rng.randint(1, 3))]
    for number in range(rng.randint(4, 12)):
        kind = rng.choice(("join", "leave"))
        events.append(Event(rng.uniform(2, plan.storm), kind, DRAWN + number, 0.0))
    if seed % 2:
        events += [event for event in plan.events if event.at < plan.storm and event.kind not in PEACEFUL]
    else:
        plan = dataclasses.replace(plan, cut=0.0, statics=False, peaceful=True)
    return dataclasses.replace(plan, events=tuple(sorted(events, key=lambda event: event.at)))


class Ledger:
    """The records and partitions of all members, checked against the guarantees."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.wrong: list[str] = []
        self.read: dict[TopicPartition, int] = {}  # a member received every record before it
        self.committed: dict[TopicPartition, int] = {}
        self._owners: dict[tuple[int, TopicPartition], str] = {}
        self._holders: dict[TopicPartition, str] = {}  # current owners

    def complain(self, what: str) -> None:
        self._loop.note("WRONG", what)
        self.wrong.append(f"{self._loop.elapsed:.3f}: {what}")

    def owns(self, name: str, generation: int, tp: TopicPartition) -> None:
        owner = self._owners.setdefault((generation, tp), name)
        if owner != name:
            self.complain(f"{tp} belongs to {owner} and to {name} in generation {generation}")

    def takes(self, name: str, partitions: Collection[TopicPartition]) -> None:
        """Record that a member owns these partitions from now on."""
        for tp in sorted(partitions):
            holder = self._holders.setdefault(tp, name)
            if holder != name:
                self.complain(f"{name} takes {tp} before {holder} released it")
                self._holders[tp] = name

    def releases(self, name: str, partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            if self._holders.get(tp) == name:
                del self._holders[tp]

    def received(self, name: str, tp: TopicPartition, offset: int) -> None:
        expected = self.read.get(tp, 0)
        if offset > expected:
            self.complain(f"{name} received {tp} at {offset}, and no member received {expected}")
        self.read[tp] = max(expected, offset + 1)

    def check_now(self, broker: Broker) -> None:
        """Check the current committed offsets."""
        for tp, offset in broker.state.offsets.of_group(GROUP).items():
            before = self.committed.get(tp, 0)
            if offset.offset < before:
                self.complain(f"the committed offset of {tp} decreased from {before} to {offset.offset}")
            if offset.offset > self.read.get(tp, 0):
                self.complain(f"{tp} is committed up to {offset.offset} and read up to {self.read.get(tp, 0)}")
            self.committed[tp] = offset.offset

    def check_all(self, broker: Broker) -> None:
        """Check all commits of the history, in the order in which they took effect."""
        before: dict[TopicPartition, int] = {}
        _, partition = broker.state.offsets.partition_of(GROUP)
        for record in broker.records(OFFSETS_TOPIC, partition):
            key = decode_key(record.key)
            if key is None or key.group_id != GROUP or record.value is None:
                continue
            offset = decode_value(key, record.value).offset
            if offset < before.get(key.tp, 0):
                self.complain(f"a commit of {key.tp} at {offset} followed one at {before[key.tp]}")
            before[key.tp] = offset


class Member(RebalanceListener):
    """An application that reads, works, and commits."""

    def __init__(self, loop: SimLoop, ledger: Ledger, plan: Plan, number: int) -> None:
        self.name = f"m{number}"
        self.host = f"10.0.2.{number}"
        self.scope = anyio.CancelScope()
        self.topics: list[tuple[str, ...]] = []  # subscriptions to change to
        self._due = False  # there are offsets to commit
        self.work = 0.0  # seconds of work on the records received last
        self._loop = loop
        self._ledger = ledger
        self._plan = plan
        self._rng = random.Random(f"{self.name} {loop.seed}")
        self._consumer: Consumer[bytes, bytes] | None = None
        strategy = plan.strategy
        if strategy == MIXED:
            strategy = self._rng.choice(OF_CLIENTS) if number >= DRAWN else "auto"
        self._options: dict[str, Any] = {
            "group_id": GROUP,
            "group_protocol": plan.protocol,
            "partition_assignment_strategy": strategy,
            "group_instance_id": f"i{number}" if plan.statics else None,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 1_000,
            "max_poll_interval_ms": 10_000,
            "request_timeout_ms": 5_000,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": plan.automatic,
            "auto_commit_interval_ms": 700,
            "metadata_max_age_ms": 5_000,
        }

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._loop.note(self.name, "assigned", *sorted(partitions))
        if self._plan.peaceful:
            self._ledger.takes(self.name, partitions)
        self._owns(partitions)
        await self._delay_listener()

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._loop.note(self.name, "revoked", *sorted(partitions))
        self._owns(partitions)
        await self._delay_listener()
        self._ledger.releases(self.name, partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._loop.note(self.name, "lost", *sorted(partitions))
        self._ledger.releases(self.name, partitions)
        await self._delay_listener()

    def _owns(self, partitions: Collection[TopicPartition]) -> None:
        """Record the owner, unless commits are automatic: `group_metadata()` would end those."""
        if not self._plan.automatic and self._consumer is not None:
            generation = self._consumer.group_metadata().generation
            for tp in sorted(partitions):
                self._ledger.owns(self.name, generation, tp)

    async def _delay_listener(self) -> None:
        if self._plan.slow_listeners and self._rng.random() < 0.3:
            await anyio.sleep(self._rng.uniform(0, 2))

    async def run(self, topics: tuple[str, ...]) -> None:
        """Run until the scope is cancelled."""
        with at_host(self.host), self.scope:
            consumer = self._consumer = await started(
                lambda: Consumer(
                    *topics,
                    listener=self,
                    bootstrap_servers=BOOTSTRAP,
                    rng=random.Random(self._rng.random()),
                    **self._options,
                )
            )
            try:
                while True:
                    await self._step(consumer)
            finally:
                with anyio.CancelScope(shield=True), anyio.fail_after(20):
                    await consumer.close(timeout=3)
                self._loop.note(self.name, "is closed")

    async def _step(self, consumer: Consumer[bytes, bytes]) -> None:
        try:
            if self.topics:
                await consumer.subscribe(*self.topics.pop(), listener=self)
            records = await consumer.getmany(self._rng.randint(1, 40), timeout=self._rng.uniform(0.0, 1.0))
            for record in records:
                self._ledger.received(self.name, TopicPartition(record.topic, record.partition), record.offset)
            self._owns({TopicPartition(record.topic, record.partition) for record in records})
            self._loop.note(self.name, "has", len(records))
            work, self.work = self.work or self._rng.expovariate(20), 0.0
            await anyio.sleep(work)
            self._due = self._due or bool(records)
            if not self._plan.automatic and self._due and self._rng.random() < 0.8:
                await consumer.commit(timeout=5)
                self._due = False
            elif self._plan.automatic and self._plan.by_hand and self._rng.random() < 0.3:
                await self._commit_between(consumer, records)
        except KafkaError as error:
            self._loop.note(self.name, "error", type(error).__name__, error)
            await anyio.sleep(0.1)

    async def _commit_between(
        self, consumer: Consumer[bytes, bytes], records: Collection[ConsumerRecord[bytes, bytes]]
    ) -> None:
        """Commit before the automatic commit does: up to some of the records, then everything."""
        for record in records:
            if self._rng.random() < 0.3:
                consumer.commit_nowait({TopicPartition(record.topic, record.partition): record.offset})
        if self._rng.random() < 0.7:
            await consumer.commit(timeout=5)


class GroupHistory:
    """A history: the player of a plan."""

    def __init__(self, loop: SimLoop, plan: Plan) -> None:
        self.plan = plan
        self.ledger = Ledger(loop)
        self.asked = 0  # records sent
        self._partitions = plan.partitions  # current number of the topic
        self._loop = loop
        self._network = Network(loop)
        self._rng = random.Random(f"events {plan.seed}")
        self._host = BrokerHost(
            loop,
            self._network,
            partitions=plan.partitions,
            configs={
                "nodes": plan.nodes,
                "auto_create_topics": False,
                "group_initial_rebalance_delay_ms": self._rng.choice((0, 500)),
                "group_min_session_timeout_ms": 100,
                "group_consumer_session_timeout_ms": SESSION_MS,
                "group_consumer_min_session_timeout_ms": SESSION_MS,
                "group_consumer_heartbeat_interval_ms": 1_000,
                "group_consumer_min_heartbeat_interval_ms": 1_000,
            },
        )
        self._lock = anyio.Lock()  # one event of the broker's life at a time
        self._members: list[Member] = []  # the live ones

    async def play(self) -> list[str]:
        """Play from the first boot to the last close; return the violations."""
        await self._host.start()
        await self._host.broker.create_topic(OTHER, 3)
        self._network.weather = Weather(cut=self.plan.cut)
        async with anyio.create_task_group() as members:
            async with anyio.create_task_group() as storm:
                storm.start_soon(self._write)
                storm.start_soon(self._watch_commits, self.plan.storm)
                for event in self.plan.events:
                    storm.start_soon(self._play_event, event, members)
                for at in self.plan.grows:
                    storm.start_soon(self._grow, at)
            await self._calm()
            if not self._members:
                self._join(members, 99)
            for member in self._members:
                member.topics.append((TOPIC, OTHER))
            ends = self._host.ends()
            await until(lambda: self._is_done(ends), within=CALM, what=f"everything up to {ends} is read and committed")
            members.cancel_scope.cancel()
        self.ledger.check_all(self._host.broker)
        await self._host.stop()
        await anyio.sleep(5)  # until closed connections are gone
        left = [f"timer left: {handle!r}" for handle in self._loop.pending_timers()]
        left += [f"connection left: {one!r}" for one in self._network.transports.values()]
        return self.ledger.wrong + left + [f"reported to the loop: {fault}" for fault in self._loop.faults]

    def _is_done(self, ends: dict[TopicPartition, int]) -> bool:
        self.ledger.check_now(self._host.broker)
        ledger = self.ledger
        return all(ledger.read.get(tp, 0) >= end and ledger.committed.get(tp, 0) >= end for tp, end in ends.items())

    async def _write(self) -> None:
        """Produce records for the length of the storm."""
        with at_host("10.0.1.1"):
            producer: Producer[bytes, bytes] = await started(
                lambda: Producer(
                    BOOTSTRAP,
                    rng=random.Random(self._rng.random()),
                    delivery_timeout_ms=90_000,
                    metadata_max_age_ms=2_000,
                )
            )
            while self._loop.elapsed < self.plan.storm:
                partitions = await producer.partitions_for(TOPIC)
                for _ in range(self._rng.randint(1, 20)):
                    self.asked += 1
                    await producer.submit(TOPIC, b"w:%d:" % self.asked, partition=self._rng.randrange(partitions))
                await anyio.sleep(self._rng.expovariate(3))
            await producer.flush(timeout=90)
            await producer.close(timeout=5)

    async def _watch_commits(self, seconds: float) -> None:
        until_time = anyio.current_time() + seconds
        while anyio.current_time() < until_time:
            await anyio.sleep(0.05)
            if self._host.up:
                self.ledger.check_now(self._host.broker)

    # --- events -------------------------------------------------------------------------------------------------------

    async def _play_event(self, event: Event, members: Any) -> None:
        await anyio.sleep(event.at)
        self._loop.note("event", event.kind, event.number, event.duration)
        if event.kind == "join":
            self._join(members, event.number)
        elif event.kind in ("restart", "crash"):
            await self._down(event)
        elif event.kind == "move":
            async with self._lock:
                if self._host.up:
                    self._host.broker.faults.move_coordinator(GROUP, self._rng.choice(self._host.broker.nodes))
        elif self._members:
            await self._affect(event, self._rng.choice(self._members))

    def _join(self, members: Any, number: int) -> None:
        member = Member(self._loop, self.ledger, self.plan, number)
        self._members.append(member)
        topics = (TOPIC,) if self._rng.random() < 0.7 else (TOPIC, OTHER)
        members.start_soon(member.run, topics)

    async def _grow(self, at: float) -> None:
        """Add a partition, which must be read from its start."""
        await anyio.sleep(at)
        async with self._lock:
            if self._host.up:
                topics = self._host.broker.state.topics
                topics.add_partitions(topics.require(TOPIC), self._partitions + 1)
                await topics.save()
                self._partitions += 1
                self._loop.note("event", "grow", self._partitions)

    async def _down(self, event: Event) -> None:
        async with self._lock:
            if self._host.up:
                await (self._host.stop() if event.kind == "restart" else self._host.die(power=False))
                await anyio.sleep(min(event.duration, 4.0))
                await self._host.revive()

    async def _affect(self, event: Event, member: Member) -> None:
        if event.kind == "leave":
            self._members.remove(member)
            member.scope.cancel()
        elif event.kind == "kill":  # without notice: the requests of its close do not arrive either
            self._members.remove(member)
            self._network.separate(member.host, BROKER_IP)
            member.scope.cancel()
        elif event.kind == "cut off":
            self._network.separate(member.host, BROKER_IP)
            await anyio.sleep(event.duration)
            self._network.join()
        elif event.kind == "subscribe":
            member.topics.append(self._rng.choice(((TOPIC,), (TOPIC, OTHER))))
        elif event.kind == "slow":
            member.work = event.duration
        elif self._host.up:
            with contextlib.suppress(KafkaError):
                names: Collection[str] = self._host.broker.faults.group(GROUP).members
                if names:
                    self._host.broker.faults.evict(GROUP, self._rng.choice(sorted(names)))

    async def _calm(self) -> None:
        self._loop.note("calm")
        self._network.join()
        self._network.weather = Weather()
        async with self._lock:
            await self._host.revive()


def play(seed: int, make: Callable[[int], Plan] = draw) -> Outcome:
    """Draw, play and check the history of a seed."""
    loop = SimLoop(seed)
    history = GroupHistory(loop, make(seed))
    try:
        wrong = run(loop, history.play())
    except (Exception, BaseExceptionGroup) as error:
        wrong = [*history.ledger.wrong, _inner(error)]
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        wrong = [*history.ledger.wrong, repr(error)]
    return Outcome(seed, wrong, loop.trace_hash, loop.turns, loop.elapsed, history.asked, list(loop.lines))
