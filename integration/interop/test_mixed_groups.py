"""Our members in one group with those of other clients: one owner of each partition, every record once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

import aiokwire
from integration.embedded import EmbeddedProcess
from integration.interop.test_groups import PARTITIONS, TOPIC, Member, fill, server
from integration.interop.verifiable import VerifiableConsumer, until

__all__ = ["server"]

_SECONDS = 30.0


class Owner(Protocol):
    """What is looked at of any member."""

    owned: set[int]


class Ours:
    """A consumer of ours in a thread of its own, which commits each record before the next."""

    def __init__(self, server: EmbeddedProcess, group: str, **options: Any) -> None:
        self._options: dict[str, Any] = {
            "bootstrap_servers": server.bootstrap_servers,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 300,
            **options,
        }
        self.values: list[bytes] = []
        self.owned: set[int] = set()
        self.faults: list[BaseException] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except BaseException as error:
            self.faults.append(error)

    async def _read(self) -> None:
        async with aiokwire.Consumer(TOPIC, **self._options) as consumer:
            while not self._stop.is_set():
                records = await consumer.getmany(timeout=0.05)
                self.owned = {partition for _, partition in consumer.assignment}
                self.values += [record.value or b"" for record in records]

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


class Aiokafka:
    """A consumer of aiokafka, alike."""

    def __init__(self, server: EmbeddedProcess, group: str) -> None:
        self._servers, self._group = server.bootstrap_servers, group
        self.values: list[bytes] = []
        self.owned: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))
        self._thread.start()

    async def _read(self) -> None:
        from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # it has no types
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]  # as it

        async with AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self._servers,
            group_id=self._group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[RangePartitionAssignor],
        ) as consumer:
            while not self._stop.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.values += [record.value for record in records]
                    await consumer.commit()
                self.owned = {tp.partition for tp in consumer.assignment()}

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


def shared(*members: Owner) -> Callable[[], bool]:
    """Whether the members share all partitions, each of them some."""

    def check() -> bool:
        owned = [set(one.owned) for one in members]
        return all(owned) and Counter(number for one in owned for number in one) == Counter(range(PARTITIONS))

    return check


def read_by(*readers: Any) -> int:
    """How many records these were handed."""
    return sum(len(one.values) for one in readers)


def check_values(count: int, *readers: Any) -> None:
    counts = Counter(value for one in readers for value in one.values)
    assert set(counts) == {b"%d" % number for number in range(count)}
    assert set(counts.values()) == {1}, "each was committed before its partition moved"


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_ours_and_librdkafkas_share_a_group_and_lead_it_in_turn(server: EmbeddedProcess, strategy: str) -> None:
    with ExitStack() as stack:
        other = Member(server, "g", partition_assignment_strategy=strategy)
        stack.callback(other.stop)
        until(lambda: len(other.owned) == PARTITIONS, "alone")
        ours = [Ours(server, "g", partition_assignment_strategy=strategy) for _ in range(2)]
        for one in ours:
            stack.callback(one.stop)
        until(shared(other, *ours), "librdkafka leads")
        fill(server, 120)
        until(lambda: read_by(other, *ours) >= 120, "read")
        other.stop()
        until(shared(*ours), "ours lead")
        again = Member(server, "g", partition_assignment_strategy=strategy)
        stack.callback(again.stop)
        until(shared(again, *ours), "librdkafka follows")
        fill(server, 120, 120)
        until(lambda: read_by(other, again, *ours) >= 240, "read on")
    check_values(240, other, again, *ours)
    assert not [fault for one in ours for fault in one.faults]
    assert not other.faults + again.faults


NAMES = {"Range": "range", "RoundRobin": "roundrobin", "Sticky": "sticky", "CooperativeSticky": "cooperative-sticky"}


@pytest.mark.parametrize("strategy", NAMES)
def test_ours_and_javas_share_a_group_and_lead_it_in_turn(server: EmbeddedProcess, strategy: str) -> None:
    assignor = f"org.apache.kafka.clients.consumer.{strategy}Assignor"
    with ExitStack() as stack:
        ours = Ours(server, "g", partition_assignment_strategy=NAMES[strategy])
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "alone")
        java = VerifiableConsumer(server.bootstrap_servers, TOPIC, "g", "--assignment-strategy", assignor)
        stack.callback(java.kill)
        until(shared(ours, java), "ours lead", java)
        fill(server, 120)
        until(lambda: len(ours.values) + java.consumed >= 120, "read", java)
        ours.stop()
        until(lambda: len(java.owned) == PARTITIONS, "Java alone", java)
        again = Ours(server, "g", partition_assignment_strategy=NAMES[strategy])
        stack.callback(again.stop)
        until(shared(again, java), "Java leads", java)
        fill(server, 120, 120)
        until(lambda: len(ours.values) + len(again.values) + java.consumed >= 240, "read on", java)
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "alone again")
    assert len(ours.values) + len(again.values) + java.consumed == 240
    assert not ours.faults + again.faults


def test_ours_and_aiokafkas_share_a_group(server: EmbeddedProcess) -> None:
    with ExitStack() as stack:
        first = Aiokafka(server, "g")
        stack.callback(first.stop)
        until(lambda: len(first.owned) == PARTITIONS, "alone")
        ours = Ours(server, "g", partition_assignment_strategy="range")
        stack.callback(ours.stop)
        until(shared(first, ours), "aiokafka leads")
        fill(server, 60)
        until(lambda: len(first.values) + len(ours.values) >= 60, "read")
        first.stop()
        until(lambda: len(ours.owned) == PARTITIONS, "ours alone")
        second = Aiokafka(server, "g")
        stack.callback(second.stop)
        until(shared(second, ours), "ours lead")
        fill(server, 60, 60)
        until(lambda: read_by(first, second, ours) >= 120, "read on")
    check_values(120, first, second, ours)
    assert not ours.faults


def test_ours_javas_and_librdkafkas_share_a_group_that_the_coordinator_leads(server: EmbeddedProcess) -> None:
    """KIP-848. Members come in one after the other, and leave in the same order."""
    with ExitStack() as stack:
        ours = Ours(server, "g", group_protocol="consumer")
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "alone")
        other = Member(server, "g", group_protocol="consumer")
        stack.callback(other.stop)
        until(shared(ours, other), "with librdkafka")
        java = VerifiableConsumer(server.bootstrap_servers, TOPIC, "g", "--group-protocol", "consumer")
        stack.callback(java.kill)
        until(shared(ours, other, java), "with Java", java)
        fill(server, 120)
        until(lambda: len(ours.values) + len(other.values) + java.consumed >= 120, "read", java)
        ours.stop()
        until(shared(other, java), "without ours", java)
        again = Ours(server, "g", group_protocol="auto")
        stack.callback(again.stop)
        until(shared(again, other, java), "with ours again", java)
        other.stop()
        until(shared(again, java), "without librdkafka", java)
        fill(server, 120, 120)
        until(lambda: sum(len(one.values) for one in (ours, again, other)) + java.consumed >= 240, "read on", java)
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "ours alone")
    assert sum(len(one.values) for one in (ours, again, other)) + java.consumed == 240
    assert not ours.faults + again.faults
    assert not other.faults
