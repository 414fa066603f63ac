"""Groups of other Python clients on the embedded broker: every record once."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, Producer

from integration.embedded import EmbeddedProcess
from integration.interop.peers import unclosed_sockets_ignored
from integration.interop.verifiable import VerifiableConsumer, until
from integration.kafka.metadata import create_by_asking

TOPIC, PARTITIONS = "in", 6
_SECONDS = 30.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """A broker with a topic of six partitions."""
    settings: dict[str, object] = {
        "num_partitions": PARTITIONS,
        "offsets_topic_num_partitions": 2,
        "group_consumer_heartbeat_interval_ms": 200,
        "group_consumer_min_heartbeat_interval_ms": 200,
    }
    with closing(EmbeddedProcess(tmp_path / "data", settings=settings)) as started:
        (tmp_path / "data").mkdir()
        started.start()
        create_by_asking(started.bootstrap_servers, TOPIC, PARTITIONS)
        yield started


class Place(Protocol):
    """A broker."""

    @property
    def bootstrap_servers(self) -> str:
        """The address of its listener."""


def fill(server: Place, count: int, start: int = 0, topic: str = TOPIC) -> None:
    """Write `count` consecutive numbers, round robin to the partitions."""
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    for number in range(start, start + count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(_SECONDS) == 0


class Member:
    """A consumer of librdkafka that polls in its own thread."""

    topic = TOPIC

    def __init__(self, server: Place, group: str, **options: str) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in options.items()},
        }
        if options.get("group_protocol") != "consumer":
            settings.setdefault("session.timeout.ms", 6000)
            settings.setdefault("heartbeat.interval.ms", 500)
        self._consumer = Consumer(settings)
        self._consumer.subscribe([self.topic], **self.callbacks())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.values: list[bytes] = []
        self.owned: set[int] = set()
        self.rebalances = 0
        self.faults: list[str] = []
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.05)
            owned = {one.partition for one in self._consumer.assignment()}
            self.rebalances += owned != self.owned
            self.owned = owned
            if message is None:
                continue
            if message.error() is not None:
                self.faults.append(str(message.error()))
                continue
            self.values.append(message.value() or b"")
            self._consumer.commit(message=message, asynchronous=False)
        self._consumer.close()

    def callbacks(self) -> dict[str, Any]:
        """Return the callbacks of its subscription."""
        return {}

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


def shared(*members: Member) -> Callable[[], bool]:
    """Return a check that the members share all partitions evenly."""

    def check() -> bool:
        owned = [set(one.owned) for one in members]
        return Counter(number for one in owned for number in one) == Counter(range(PARTITIONS)) and {
            len(one) for one in owned
        } == {PARTITIONS // len(members)}

    return check


@pytest.mark.parametrize(
    "options",
    [
        {"partition_assignment_strategy": "range"},
        {"partition_assignment_strategy": "cooperative-sticky"},
        {"group_protocol": "consumer"},
        {"group_protocol": "consumer", "group_remote_assignor": "range"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_members_of_librdkafka_join_and_leave(server: EmbeddedProcess, options: dict[str, str]) -> None:
    with ExitStack() as stack:
        first, second = Member(server, "g", **options), Member(server, "g", **options)
        for one in (first, second):
            stack.callback(one.stop)
        until(shared(first, second), "two")
        fill(server, 120)
        until(lambda: len(first.values) + len(second.values) == 120, "what was written is read")
        third = Member(server, "g", **options)
        stack.callback(third.stop)
        until(shared(first, second, third), "three")
        fill(server, 120, 120)
        until(lambda: sum(len(one.values) for one in (first, second, third)) >= 240, "all is read")
        third.stop()
        until(shared(first, second), "two again")
        fill(server, 120, 240)
        every = (first, second, third)
        until(lambda: sum(len(one.values) for one in every) >= 360, "all is read")
    counts = Counter(value for one in every for value in one.values)
    assert set(counts) == {b"%d" % number for number in range(360)}
    assert set(counts.values()) == {1}, "a record was committed before its partition moved"
    assert not [fault for one in every for fault in one.faults]


@pytest.mark.parametrize("options", [{}, {"group_protocol": "consumer"}], ids=["classic", "consumer"])
def test_static_members_of_librdkafka_rejoin_without_a_rebalance(
    server: EmbeddedProcess, options: dict[str, str]
) -> None:
    with ExitStack() as stack:
        members = [Member(server, "g", group_instance_id=f"i{place}", **options) for place in range(2)]
        for one in members:
            stack.callback(one.stop)
        until(shared(*members), "two")
        before, owned = members[0].rebalances, set(members[1].owned)
        members[1].stop()
        again = Member(server, "g", group_instance_id="i1", **options)
        stack.callback(again.stop)
        until(lambda: again.owned == owned, "back")
        assert members[0].rebalances == before


def test_a_group_of_librdkafka_resumes_after_the_broker_is_killed(server: EmbeddedProcess) -> None:
    with ExitStack() as stack:
        members = [Member(server, "g"), Member(server, "g", group_instance_id="i")]
        for one in members:
            stack.callback(one.stop)
        until(shared(*members), "two")
        fill(server, 60)
        until(lambda: sum(len(one.values) for one in members) == 60, "read")
        server.kill()
        server.start()
        fill(server, 60, 60)
        until(lambda: sum(len(one.values) for one in members) >= 120, "read on")
        until(shared(*members), "still two")
    assert {value for one in members for value in one.values} == {b"%d" % number for number in range(120)}


def test_java_and_librdkafka_share_a_group(server: EmbeddedProcess) -> None:
    for protocol, options in (("classic", {"partition_assignment_strategy": "range"}), ("consumer", {})):
        with ExitStack() as stack:
            java = VerifiableConsumer(
                server.bootstrap_servers, TOPIC, protocol, "--group-protocol", protocol, "--group-instance-id", "j"
            )
            stack.callback(java.kill)
            until(lambda one=java: len(one.owned) == PARTITIONS, "alone", java)  # type: ignore[misc]  # bound now
            other = Member(server, protocol, group_protocol=protocol, **options)
            stack.callback(other.stop)

            def evenly(one: VerifiableConsumer = java, two: Member = other) -> bool:
                return len(one.owned) == 3 and one.owned | two.owned == set(range(PARTITIONS)) and len(two.owned) == 3

            until(evenly, "two", java)


async def _read(consumer: Any, count: int, values: list[bytes]) -> None:
    while len(values) < count:
        for records in (await consumer.getmany(timeout_ms=200)).values():
            values += [record.value for record in records]


def test_members_of_aiokafka_share_partitions_and_commit(server: EmbeddedProcess) -> None:
    from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # it has no types

    def consumer() -> Any:
        return AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=server.bootstrap_servers,
            group_id="aio",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
        )

    async def run() -> None:
        values: list[bytes] = []
        async with asyncio.timeout(_SECONDS), consumer() as first:
            await _read(first, 60, values)
            await first.commit()
            async with consumer() as second:
                while len(first.assignment()) != 3 or len(second.assignment()) != 3:
                    await first.getmany(timeout_ms=50)
                    await second.getmany(timeout_ms=50)
                fill(server, 60, 60)
                async with asyncio.TaskGroup() as tasks:
                    for one in (first, second):
                        tasks.create_task(_read(one, 120, values))
                await first.commit()
                await second.commit()
        assert sorted(map(int, values)) == list(range(120))
        async with asyncio.timeout(_SECONDS), consumer() as later:
            fill(server, 6, 120)
            more: list[bytes] = []
            await _read(later, 6, more)
            assert sorted(map(int, more)) == list(range(120, 126))

    fill(server, 60)
    asyncio.run(run())


@unclosed_sockets_ignored()
def test_members_of_kafka_python_share_partitions_and_commit(server: EmbeddedProcess) -> None:
    from kafka import KafkaConsumer  # type: ignore[import-untyped]  # it has no types

    def consumer() -> Any:
        return KafkaConsumer(
            TOPIC,
            bootstrap_servers=server.bootstrap_servers,
            group_id="kp",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
        )

    fill(server, 60)
    values: list[int] = []

    def poll(*consumers: Any) -> None:
        for one in consumers:
            for records in one.poll(timeout_ms=200).values():
                values.extend(int(record.value) for record in records)
            one.commit()

    with closing(consumer()) as first:
        until(lambda: poll(first) or len(values) == 60, "alone")  # type: ignore[func-returns-value]  # polls, then looks
        with closing(consumer()) as second:

            def evenly() -> bool:
                poll(first, second)
                return len(first.assignment()) == len(second.assignment()) == 3

            until(evenly, "two")
            fill(server, 60, 60)
            until(lambda: poll(first, second) or len(values) >= 120, "all")  # type: ignore[func-returns-value]  # likewise
    assert sorted(values) == list(range(120))
