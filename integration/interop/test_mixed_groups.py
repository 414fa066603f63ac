"""Our members in one group with those of other clients, on the embedded broker and on Kafka: one owner of each
partition at all times, every record once. docs/scenarios.md says who can share a group with whom.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

import aiokwire
from aiokwire.consumer import RebalanceListener
from integration.conftest import broker_with
from integration.interop.default_members import (
    DefaultAiokafka,
    DefaultJava,
    DefaultKafkaPython,
    DefaultLibrdkafka,
    DefaultMember,
)
from integration.interop.ownership import Ownership
from integration.interop.test_groups import PARTITIONS, Member, fill
from integration.interop.verifiable import VerifiableConsumer, until
from integration.kafka import KafkaServer
from integration.kafka.metadata import create_by_asking

_SECONDS = 30.0
EMBEDDED, KAFKA = "embedded", "kafka-4.3.1"
SETTINGS: dict[str, object] = {
    "num_partitions": PARTITIONS,
    "offsets_topic_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_heartbeat_interval_ms": 200,
    "group_consumer_min_heartbeat_interval_ms": 200,
}


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A broker whose members of KIP-848 beat often."""
    with broker_with(request.config, request.param, SETTINGS) as started:
        yield started


@pytest.fixture
def place(server: KafkaServer) -> Place:
    return Place(server)


def on(*both: str, embedded: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Strategies on either broker, and those that on Kafka would show nothing more and cost time."""
    cases = [(EMBEDDED, each) for each in (*both, *embedded)] + [(KAFKA, each) for each in both]
    return pytest.mark.parametrize(("server", "strategy"), cases, indirect=["server"])


class Owner(Protocol):
    """What is looked at of any member."""

    owned: set[int]


class Place:
    """A topic and a group of its own on a broker, and who had what there."""

    def __init__(self, server: KafkaServer) -> None:
        name = f"mixed-{uuid.uuid4().hex[:10]}"
        self.bootstrap_servers = server.bootstrap_servers
        self.topic = self.group = name
        self.ownership = Ownership()
        create_by_asking(self.bootstrap_servers, name, PARTITIONS)

    def fill(self, count: int, start: int = 0) -> None:
        """Write so many numbers, one after the other in every partition."""
        fill(self, count, start, self.topic)

    def librdkafka(self, **options: str) -> Librdkafka:
        """A consumer of librdkafka."""
        return Librdkafka(self, **options)

    def java(self, *arguments: str) -> VerifiableConsumer:
        """One of Java's."""
        return VerifiableConsumer(self.bootstrap_servers, self.topic, self.group, *arguments)

    def check(self, *java: VerifiableConsumer) -> None:
        """One owner of each partition at all times."""
        for number, one in enumerate(java):
            one.look()
            for event in one.events:
                if event["name"] in ("partitions_assigned", "partitions_revoked"):
                    partitions = [int(each["partition"]) for each in event["partitions"]]
                    came = event["name"] == "partitions_assigned"
                    self.ownership.tell(f"Java {number}", partitions, came=came, at_ms=int(event["timestamp"]))
        self.ownership.check()


class Librdkafka(Member):
    """A consumer of librdkafka that tells what it has."""

    def __init__(self, place: Place, **options: str) -> None:
        self._place = place
        self.topic = place.topic
        super().__init__(place, place.group, **options)

    def callbacks(self) -> dict[str, Any]:
        return {"on_assign": self._told(True), "on_revoke": self._told(False), "on_lost": self._told(False)}

    def _told(self, came: bool) -> Callable[[Any, list[Any]], None]:
        def tell(_consumer: Any, partitions: list[Any]) -> None:
            numbers = [one.partition for one in partitions]
            self._place.ownership.tell(f"librdkafka {id(self)}", numbers, came=came)

        return tell


class Ours(RebalanceListener):
    """A consumer of ours in a thread of its own, which commits each record before the next."""

    def __init__(self, place: Place, **options: Any) -> None:
        self._options: dict[str, Any] = {
            "bootstrap_servers": place.bootstrap_servers,
            "group_id": place.group,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 300,
            **options,
        }
        self._place = place
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
        async with aiokwire.Consumer(self._place.topic, listener=self, **self._options) as consumer:
            while not self._stop.is_set():
                records = await consumer.getmany(timeout=0.05)
                self.owned = {partition for _, partition in consumer.assignment}
                self.values += [record.value or b"" for record in records]

    async def assigned(self, partitions: frozenset[aiokwire.TopicPartition]) -> None:
        self._tell(partitions, came=True)

    async def revoked(self, partitions: frozenset[aiokwire.TopicPartition]) -> None:
        self._tell(partitions, came=False)

    async def lost(self, partitions: frozenset[aiokwire.TopicPartition]) -> None:
        self._tell(partitions, came=False)

    def _tell(self, partitions: Collection[aiokwire.TopicPartition], *, came: bool) -> None:
        numbers = [tp.partition for tp in partitions]
        self._place.ownership.tell(f"ours {id(self)}", numbers, came=came)

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


class Aiokafka:
    """A consumer of aiokafka, alike."""

    def __init__(self, place: Place, assignor: str = "Range") -> None:
        self._place = place
        self._assignor = assignor
        self.values: list[bytes] = []
        self.owned: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))
        self._thread.start()

    async def _read(self) -> None:
        import aiokafka  # type: ignore[import-untyped]  # it has no types
        from aiokafka.coordinator.assignors import (  # type: ignore[import-untyped]  # as it
            range as by_range,
        )
        from aiokafka.coordinator.assignors import (
            roundrobin,
        )

        place, told = self._place, f"aiokafka {id(self)}"

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
            def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
                place.ownership.tell(told, [tp.partition for tp in assigned], came=True)

            def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                place.ownership.tell(told, [tp.partition for tp in revoked], came=False)

        assignors = {"Range": by_range.RangePartitionAssignor, "RoundRobin": roundrobin.RoundRobinPartitionAssignor}
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=place.bootstrap_servers,
            group_id=place.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[assignors[self._assignor]],
        )
        consumer.subscribe([place.topic], listener=Listener())
        async with consumer:
            while not self._stop.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.values += [record.value for record in records]
                    await consumer.commit()
                self.owned = {tp.partition for tp in consumer.assignment()}
            # its listener is not told when it closes
            place.ownership.tell(told, [tp.partition for tp in consumer.assignment()], came=False)

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


@on("range", "cooperative-sticky", embedded=("roundrobin",))
def test_ours_and_librdkafkas_share_a_group_and_lead_it_in_turn(place: Place, strategy: str) -> None:
    with ExitStack() as stack:
        other = place.librdkafka(partition_assignment_strategy=strategy)
        stack.callback(other.stop)
        until(lambda: len(other.owned) == PARTITIONS, "alone")
        ours = [Ours(place, partition_assignment_strategy=strategy) for _ in range(2)]
        for one in ours:
            stack.callback(one.stop)
        until(shared(other, *ours), "librdkafka leads")
        place.fill(120)
        until(lambda: read_by(other, *ours) >= 120, "read")
        other.stop()
        until(shared(*ours), "ours lead")
        again = place.librdkafka(partition_assignment_strategy=strategy)
        stack.callback(again.stop)
        until(shared(again, *ours), "librdkafka follows")
        place.fill(120, 120)
        until(lambda: read_by(other, again, *ours) >= 240, "read on")
    check_values(240, other, again, *ours)
    place.check()
    assert not [fault for one in ours for fault in one.faults]
    assert not other.faults + again.faults


NAMES = {"Range": "range", "RoundRobin": "roundrobin", "Sticky": "sticky", "CooperativeSticky": "cooperative-sticky"}


@on("CooperativeSticky", "Sticky", embedded=("Range", "RoundRobin"))
def test_ours_and_javas_share_a_group_and_lead_it_in_turn(place: Place, strategy: str) -> None:
    assignor = f"org.apache.kafka.clients.consumer.{strategy}Assignor"
    with ExitStack() as stack:
        ours = Ours(place, partition_assignment_strategy=NAMES[strategy])
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "alone")
        java = place.java("--assignment-strategy", assignor)
        stack.callback(java.kill)
        until(shared(ours, java), "ours lead", java)
        place.fill(120)
        until(lambda: len(ours.values) + java.consumed >= 120, "read", java)
        ours.stop()
        until(lambda: len(java.owned) == PARTITIONS, "Java alone", java)
        again = Ours(place, partition_assignment_strategy=NAMES[strategy])
        stack.callback(again.stop)
        until(shared(again, java), "Java leads", java)
        place.fill(120, 120)
        until(lambda: len(ours.values) + len(again.values) + java.consumed >= 240, "read on", java)
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "alone again")
    assert len(ours.values) + len(again.values) + java.consumed == 240
    place.check(java)
    assert not ours.faults + again.faults


@on("Range", embedded=("RoundRobin",))
def test_ours_and_aiokafkas_share_a_group(place: Place, strategy: str) -> None:
    with ExitStack() as stack:
        first = Aiokafka(place, strategy)
        stack.callback(first.stop)
        until(lambda: len(first.owned) == PARTITIONS, "alone")
        ours = Ours(place, partition_assignment_strategy=strategy.lower())
        stack.callback(ours.stop)
        until(shared(first, ours), "aiokafka leads")
        place.fill(60)
        until(lambda: len(first.values) + len(ours.values) >= 60, "read")
        first.stop()
        until(lambda: len(ours.owned) == PARTITIONS, "ours alone")
        second = Aiokafka(place, strategy)
        stack.callback(second.stop)
        until(shared(second, ours), "ours lead")
        place.fill(60, 60)
        until(lambda: read_by(first, second, ours) >= 120, "read on")
    check_values(120, first, second, ours)
    place.check()
    assert not ours.faults


CLIENTS: dict[str, Callable[[Place], DefaultMember]] = {
    "aiokafka": DefaultAiokafka,
    "confluent-kafka": DefaultLibrdkafka,
    "kafka-python": DefaultKafkaPython,
    "Java": DefaultJava,
}


@pytest.mark.parametrize("server", [EMBEDDED, KAFKA], indirect=True)
def test_with_default_options_ours_share_a_group_with_any_client_that_comes_first_or_second(
    server: KafkaServer,
) -> None:
    """All clients side by side, each in a group of its own with ours."""
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        played = {name: pool.submit(_play_defaults, Place(server), make) for name, make in CLIENTS.items()}
    faults = {name: fault for name, future in played.items() if (fault := future.exception()) is not None}
    assert not faults, faults


def _play_defaults(place: Place, make: Callable[[Place], DefaultMember]) -> None:
    with ExitStack() as stack:
        ours = Ours(place)
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "ours alone")
        other = make(place)
        stack.callback(other.stop)
        until(lambda: 0 < len(ours.owned) < PARTITIONS, "the other came second")
        place.fill(60)
        until(lambda: read_by(ours, other) >= 60, "shared")
        assert ours.values
        assert other.values
        ours.stop()
        alone = len(other.values)
        place.fill(60, 60)
        until(lambda: len(other.values) == alone + 60, "the other alone")
        again = Ours(place)
        stack.callback(again.stop)
        until(lambda: 0 < len(again.owned) < PARTITIONS, "ours came second")
        place.fill(60, 120)
        until(lambda: read_by(ours, other, again) >= 180, "shared again")
        assert again.values
        other.stop()
        until(lambda: len(again.owned) == PARTITIONS, "ours alone again")
    check_values(180, ours, other, again)
    place.check()
    assert not [*ours.faults, *again.faults, *other.faults]


@pytest.mark.parametrize("server", [EMBEDDED, KAFKA], indirect=True)
def test_ours_javas_and_librdkafkas_share_a_group_that_the_coordinator_leads(place: Place) -> None:
    """KIP-848. Members come in one after the other, and leave in the same order."""
    with ExitStack() as stack:
        ours = Ours(place, group_protocol="consumer")
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "alone")
        other = place.librdkafka(group_protocol="consumer")
        stack.callback(other.stop)
        until(shared(ours, other), "with librdkafka")
        java = place.java("--group-protocol", "consumer")
        stack.callback(java.kill)
        until(shared(ours, other, java), "with Java", java)
        place.fill(120)
        until(lambda: len(ours.values) + len(other.values) + java.consumed >= 120, "read", java)
        ours.stop()
        until(shared(other, java), "without ours", java)
        again = Ours(place, group_protocol="auto")
        stack.callback(again.stop)
        until(shared(again, other, java), "with ours again", java)
        other.stop()
        until(shared(again, java), "without librdkafka", java)
        place.fill(120, 120)
        until(lambda: sum(len(one.values) for one in (ours, again, other)) + java.consumed >= 240, "read on", java)
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "ours alone")
    assert sum(len(one.values) for one in (ours, again, other)) + java.consumed == 240
    place.check(java)
    assert not ours.faults + again.faults
    assert not other.faults
