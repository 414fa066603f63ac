"""Our members in one group with those of other clients, on the embedded broker and on Kafka.

Each partition has at most one owner at all times, and every record is read once. docs/scenarios.md
lists the clients that can share a group.
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
    """A broker with a short heartbeat interval for members of KIP-848."""
    with broker_with(request.config, request.param, SETTINGS) as started:
        yield started


@pytest.fixture
def place(server: KafkaServer) -> Place:
    return Place(server)


def on(*both: str, embedded: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Parametrize with the strategies `both` on both brokers, `embedded` on the embedded one."""
    cases = [(EMBEDDED, each) for each in (*both, *embedded)] + [(KAFKA, each) for each in both]
    return pytest.mark.parametrize(("server", "strategy"), cases, indirect=["server"])


class Owner(Protocol):
    """The assignment of a member of any client."""

    owned: set[int]


class Place:
    """A new topic and group on a broker, with the owners of its partitions."""

    def __init__(self, server: KafkaServer) -> None:
        name = f"mixed-{uuid.uuid4().hex[:10]}"
        self.bootstrap_servers = server.bootstrap_servers
        self.topic = self.group = name
        self.ownership = Ownership()
        create_by_asking(self.bootstrap_servers, name, PARTITIONS)

    def fill(self, count: int, start: int = 0) -> None:
        """Write `count` consecutive numbers, round robin to the partitions."""
        fill(self, count, start, self.topic)

    def librdkafka(self, **options: str) -> Librdkafka:
        """Start a consumer of librdkafka."""
        return Librdkafka(self, **options)

    def java(self, *arguments: str) -> VerifiableConsumer:
        """Start a Java consumer."""
        return VerifiableConsumer(self.bootstrap_servers, self.topic, self.group, *arguments)

    def check(self, *java: VerifiableConsumer) -> None:
        """Check that each partition had one owner at all times."""
        for number, one in enumerate(java):
            one.look()
            for event in one.events:
                if event["name"] in ("partitions_assigned", "partitions_revoked"):
                    partitions = [int(each["partition"]) for each in event["partitions"]]
                    assigned = event["name"] == "partitions_assigned"
                    self.ownership.record(
                        f"Java {number}", partitions, assigned=assigned, at_ms=int(event["timestamp"])
                    )
        self.ownership.check()


class Librdkafka(Member):
    """A consumer of librdkafka that records its assignments."""

    def __init__(self, place: Place, **options: str) -> None:
        self._place = place
        self.topic = place.topic
        super().__init__(place, place.group, **options)

    def callbacks(self) -> dict[str, Any]:
        return {"on_assign": self._recorder(True), "on_revoke": self._recorder(False), "on_lost": self._recorder(False)}

    def _recorder(self, assigned: bool) -> Callable[[Any, list[Any]], None]:
        def record(_consumer: Any, partitions: list[Any]) -> None:
            numbers = [one.partition for one in partitions]
            self._place.ownership.record(f"librdkafka {id(self)}", numbers, assigned=assigned)

        return record


class Ours(RebalanceListener):
    """Our consumer in its own thread; it commits each record before it reads the next."""

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
        self._record(partitions, assigned=True)

    async def revoked(self, partitions: frozenset[aiokwire.TopicPartition]) -> None:
        self._record(partitions, assigned=False)

    async def lost(self, partitions: frozenset[aiokwire.TopicPartition]) -> None:
        self._record(partitions, assigned=False)

    def _record(self, partitions: Collection[aiokwire.TopicPartition], *, assigned: bool) -> None:
        numbers = [tp.partition for tp in partitions]
        self._place.ownership.record(f"ours {id(self)}", numbers, assigned=assigned)

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


class Aiokafka:
    """A consumer of aiokafka in its own thread."""

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

        place, name = self._place, f"aiokafka {id(self)}"

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
            def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
                place.ownership.record(name, [tp.partition for tp in assigned], assigned=True)

            def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                place.ownership.record(name, [tp.partition for tp in revoked], assigned=False)

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
            # a close does not call its listener
            place.ownership.record(name, [tp.partition for tp in consumer.assignment()], assigned=False)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


def shared(*members: Owner) -> Callable[[], bool]:
    """Return a check that the members share all partitions, each with at least one."""

    def check() -> bool:
        owned = [set(one.owned) for one in members]
        return all(owned) and Counter(number for one in owned for number in one) == Counter(range(PARTITIONS))

    return check


def read_by(*readers: Any) -> int:
    """Return the number of records that the readers received."""
    return sum(len(one.values) for one in readers)


def check_values(count: int, *readers: Any) -> None:
    counts = Counter(value for one in readers for value in one.values)
    assert set(counts) == {b"%d" % number for number in range(count)}
    assert set(counts.values()) == {1}, "a record was committed before its partition moved"


@on("range", "cooperative-sticky", embedded=("roundrobin",))
def test_aiokwire_and_librdkafka_share_a_group_and_lead_it_in_turn(place: Place, strategy: str) -> None:
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
        until(lambda: read_by(other, again, *ours) >= 240, "read the rest")
    check_values(240, other, again, *ours)
    place.check()
    assert not [fault for one in ours for fault in one.faults]
    assert not other.faults + again.faults


NAMES = {"Range": "range", "RoundRobin": "roundrobin", "Sticky": "sticky", "CooperativeSticky": "cooperative-sticky"}


@on("CooperativeSticky", "Sticky", embedded=("Range", "RoundRobin"))
def test_aiokwire_and_java_share_a_group_and_lead_it_in_turn(place: Place, strategy: str) -> None:
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
        until(lambda: len(ours.values) + len(again.values) + java.consumed >= 240, "read the rest", java)
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "alone again")
    assert len(ours.values) + len(again.values) + java.consumed == 240
    place.check(java)
    assert not ours.faults + again.faults


@on("Range", embedded=("RoundRobin",))
def test_aiokwire_and_aiokafka_share_a_group(place: Place, strategy: str) -> None:
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
        until(lambda: read_by(first, second, ours) >= 120, "read the rest")
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
def test_aiokwire_shares_a_group_with_each_client_by_default_options_in_any_join_order(
    server: KafkaServer,
) -> None:
    """Runs all clients in parallel, each in its own group with ours."""
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        runs = {name: pool.submit(_share_with_defaults, Place(server), make) for name, make in CLIENTS.items()}
    faults = {name: fault for name, future in runs.items() if (fault := future.exception()) is not None}
    assert not faults, faults


def _share_with_defaults(place: Place, make: Callable[[Place], DefaultMember]) -> None:
    with ExitStack() as stack:
        ours = Ours(place)
        stack.callback(ours.stop)
        until(lambda: len(ours.owned) == PARTITIONS, "ours alone")
        other = make(place)
        stack.callback(other.stop)
        until(lambda: 0 < len(ours.owned) < PARTITIONS, "the other joins second")
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
        until(lambda: 0 < len(again.owned) < PARTITIONS, "ours joins second")
        place.fill(60, 120)
        until(lambda: read_by(ours, other, again) >= 180, "shared again")
        assert again.values
        other.stop()
        until(lambda: len(again.owned) == PARTITIONS, "ours alone again")
    check_values(180, ours, other, again)
    place.check()
    assert not [*ours.faults, *again.faults, *other.faults]


@pytest.mark.parametrize("server", [EMBEDDED, KAFKA], indirect=True)
def test_aiokwire_java_and_librdkafka_share_a_group_of_the_consumer_protocol(place: Place) -> None:
    """KIP-848: members join one at a time, and leave in the same order."""
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
        until(
            lambda: sum(len(one.values) for one in (ours, again, other)) + java.consumed >= 240, "read the rest", java
        )
        java.stop()
        until(lambda: len(again.owned) == PARTITIONS, "ours alone")
    assert sum(len(one.values) for one in (ours, again, other)) + java.consumed == 240
    place.check(java)
    assert not ours.faults + again.faults
    assert not other.faults
