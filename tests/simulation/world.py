"""Parts of a simulated history: a broker that dies and restarts, and its clients' journals.

`judge` compares the journals with the log at the end.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import anyio

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.errors import StorageError
from aiokwire.records import read_batches
from aiokwire.types import TopicPartition
from tests.simulation.loop import SimLoop
from tests.simulation.network import HERE, Network

BROKER_IP = "10.0.0.1"
BROKER_NAME = "kafka.test"
BOOTSTRAP = f"{BROKER_NAME}:9092"
TOPIC = "t"


@contextlib.contextmanager
def at_host(ip: str) -> Iterator[None]:
    """Run tasks started within the block on that host."""
    token = HERE.set(ip)
    try:
        yield
    finally:
        HERE.reset(token)


class BrokerHost:
    """A machine with a disk and, most of the time, a running broker."""

    def __init__(self, loop: SimLoop, network: Network, *, partitions: int, configs: dict[str, Any]) -> None:
        self._loop = loop
        self._network = network
        self._partitions = partitions
        self._configs = configs
        self._rng = random.Random(f"broker {loop.seed}")
        self._broker: Broker | None = None
        self.storage = MemoryStorage()
        network.names[BROKER_NAME] = BROKER_IP

    async def start(self) -> None:
        """Boot the broker."""
        self._loop.note("broker starts")
        with at_host(BROKER_IP):
            broker = Broker(
                listen=f"{BROKER_IP}:9092",
                advertised=BOOTSTRAP,
                topics={TOPIC: self._partitions},
                storage=self.storage,
                rng=random.Random(self._rng.random()),
                **self._configs,
            )
            await broker.start()
        self._broker = broker

    async def stop(self) -> None:
        """Shut down in an orderly way."""
        self._loop.note("broker stops")
        assert self._broker is not None
        broker, self._broker = self._broker, None
        with contextlib.suppress(StorageError):  # the disk is full: the next start recovers
            await broker.close()

    async def die(self, *, power: bool) -> None:
        """End the process (kill -9), or the power of the whole machine.

        The dead process's objects get a private copy of the disk, so that they can be closed.
        """
        self._loop.note("broker dies", "power" if power else "kill")
        assert self._broker is not None
        seen_by_the_next = copy.deepcopy(self.storage)
        self._network.kill(BROKER_IP, silent=power)
        if power:
            seen_by_the_next.crash(self._rng)
        else:
            seen_by_the_next.unlock()
        self.storage = seen_by_the_next
        broker, self._broker = self._broker, None
        with contextlib.suppress(StorageError):
            await broker.close()

    async def revive(self) -> None:
        """Boot after a stop or a death, as soon as there is room on the disk."""
        self._network.power_on(BROKER_IP)
        while self._broker is None:
            try:
                await self.start()
            except StorageError as error:
                if self.storage.capacity is None:
                    raise
                self._loop.note("broker does not start", error)
                await anyio.sleep(0.5)

    @property
    def broker(self) -> Broker:
        """Return the running broker."""
        assert self._broker is not None
        return self._broker

    @property
    def up(self) -> bool:
        return self._broker is not None

    def log(self) -> dict[int, dict[int, bytes]]:
        """Return the log: value by offset by partition."""
        assert self._broker is not None
        found: dict[int, dict[int, bytes]] = {}
        for tp, log in self._broker.state.logs.logs.items():
            if tp.topic != TOPIC:
                continue
            values = found[tp.partition] = {}
            at = log.log_start_offset
            while at < log.end_offset:
                for batch in read_batches(log.read(at, 1 << 20).data, TOPIC, tp.partition):
                    for record in batch.records():
                        assert record.value is not None
                        assert record.offset not in values, f"{tp} has offset {record.offset} twice"
                        values[record.offset] = record.value
                    at = batch.next_offset
        return found

    def ends(self) -> dict[TopicPartition, int]:
        """Return the current ends of the partitions."""
        assert self._broker is not None
        return {tp: log.end_offset for tp, log in self._broker.state.logs.logs.items() if tp.topic == TOPIC}


class Sent(NamedTuple):
    """One record in a producer's journal."""

    number: int
    partition: int | None  # as given by the application
    offset: tuple[int, int] | None  # partition and offset, when it was acknowledged
    error: str | None  # None and no offset: the result is unknown


class ProducerJournal:
    """The records given to a producer, and the result of each."""

    def __init__(self, name: str, *, idempotent: bool, acks: int) -> None:
        self.name = name
        self.idempotent = idempotent
        self.acks = acks
        self.asked = 0
        self.sent: list[Sent] = []
        self.refused: set[int] = set()  # never accepted: must not be in the log

    def value(self, number: int, size: int) -> bytes:
        return f"{self.name}:{number}:".encode() + b"x" * size


class ConsumerJournal:
    """The records that a consumer received, per partition, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start: dict[int, int] = {}
        self.seen: dict[int, list[tuple[int, bytes]]] = {}
        self.errors: list[str] = []

    def received(self, partition: int, offset: int, value: bytes | None) -> None:
        assert value is not None
        self.seen.setdefault(partition, []).append((offset, value))

    def next_offset(self, partition: int) -> int:
        seen = self.seen.get(partition)
        return seen[-1][0] + 1 if seen else self.start.get(partition, 0)


def author_of(value: bytes) -> tuple[str, int]:
    """Return the producer of a record, and its number there."""
    name, number, _ = value.split(b":", 2)
    return name.decode(), int(number)


def judge(
    log: dict[int, dict[int, bytes]],
    producers: list[ProducerJournal],
    consumers: list[ConsumerJournal],
    *,
    unflushed_lost: bool,
) -> list[str]:
    """Return the violations of a history.

    `unflushed_lost`: the machine lost power, so a consumer may have read records that were lost.
    """
    wrong: list[str] = []
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for partition, values in log.items():
        if sorted(values) != list(range(len(values))):
            wrong.append(f"log of {partition}: offsets have gaps")
        for offset, value in sorted(values.items()):
            places.setdefault(author_of(value), []).append((partition, offset))
    for journal in producers:
        wrong += _judge_producer(journal, places)
    for reader in consumers:
        wrong += _judge_consumer(reader, log, producers, unflushed_lost=unflushed_lost)
    return wrong


def _judge_producer(journal: ProducerJournal, places: dict[tuple[str, int], list[tuple[int, int]]]) -> list[str]:
    wrong: list[str] = []
    for sent in journal.sent:
        found = places.get((journal.name, sent.number), [])
        who = f"{journal.name}:{sent.number}"
        if sent.offset is not None and journal.acks != 0 and sent.offset not in found:
            wrong.append(f"{who} was acknowledged at {sent.offset}, the log has it at {found}")
        if sent.partition is not None and any(partition != sent.partition for partition, _ in found):
            wrong.append(f"{who} was for partition {sent.partition}, the log has it at {found}")
    mine = {number: found for (name, number), found in places.items() if name == journal.name}
    for number, found in mine.items():
        if number in journal.refused:
            wrong.append(f"{journal.name}:{number} was refused but is in the log at {found}")
        if number >= journal.asked:
            wrong.append(f"{journal.name}:{number} was never sent")
    return wrong + (_judge_idempotence(journal.name, mine) if journal.idempotent else [])


def _judge_idempotence(name: str, mine: dict[int, list[tuple[int, int]]]) -> list[str]:
    """Check that each record is stored once, and per partition in the order of sending."""
    wrong = [f"{name}:{number} is in the log at {found}" for number, found in mine.items() if len(found) > 1]
    in_log: dict[int, list[tuple[int, int]]] = {}
    for number, found in mine.items():
        for partition, offset in found:
            in_log.setdefault(partition, []).append((offset, number))
    for partition, entries in in_log.items():
        numbers = [number for _, number in sorted(entries)]
        for before, after in itertools.pairwise(numbers):
            if before > after:
                wrong.append(f"{name}: {before} stands before {after} in partition {partition}")
    return wrong


def _judge_consumer(
    reader: ConsumerJournal,
    log: dict[int, dict[int, bytes]],
    producers: list[ProducerJournal],
    *,
    unflushed_lost: bool,
) -> list[str]:
    wrong: list[str] = []
    for partition, values in log.items():
        seen = reader.seen.get(partition, [])
        start = reader.start.get(partition, 0)
        expected = [(offset, values[offset]) for offset in range(start, len(values))]
        if unflushed_lost:
            missing = set(expected) - set(seen)
            if missing:
                wrong.append(f"{reader.name} never saw {sorted(missing)[:3]} of partition {partition}")
        elif seen != expected:
            at = next((i for i, pair in enumerate(zip(seen, expected, strict=False)) if pair[0] != pair[1]), -1)
            wrong.append(
                f"{reader.name}, partition {partition}: saw {len(seen)} of {len(expected)} records from {start}; "
                f"first difference at {at}: {seen[at] if at >= 0 else seen[-1:]} against "
                f"{expected[at] if at >= 0 else expected[len(seen) :][:1]}"
            )
    return wrong


async def until(condition: Any, *, within: float, what: str) -> None:
    """Wait in simulated time until `condition` is true."""
    with anyio.move_on_after(within):
        while not condition():  # noqa: ASYNC110 - no event reports it, and polling costs only simulated time
            await anyio.sleep(0.05)
        return
    raise AssertionError(f"not within {within} s: {what}")
