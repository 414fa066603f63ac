"""Group members with the default options of their clients, behind one interface."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Collection
from typing import Any, Protocol

from integration.interop.ownership import Ownership
from integration.kafka import JavaTools

_SECONDS = 30.0


class Place(Protocol):
    """A topic and a group on a broker."""

    bootstrap_servers: str
    topic: str
    group: str
    ownership: Ownership


class DefaultMember(Protocol):
    """A member that keeps its values and errors."""

    values: list[bytes]
    faults: list[str]

    def stop(self) -> None:
        """Leave the group."""


class _Threaded:
    """Reads in a thread until it is stopped."""

    def __init__(self, place: Place) -> None:
        self.values: list[bytes] = []
        self.faults: list[str] = []
        self._place = place
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:  # checked by the test
            self.faults.append(repr(error))

    def _read(self) -> None:
        raise NotImplementedError

    def _record(self, partitions: Collection[Any], *, assigned: bool) -> None:
        numbers = [tp.partition for tp in partitions]
        self._place.ownership.record(f"{type(self).__name__} {id(self)}", numbers, assigned=assigned)

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()


class DefaultAiokafka(_Threaded):
    """aiokafka: round robin."""

    def _read(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        import aiokafka  # type: ignore[import-untyped]  # it has no types

        member = self

        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
            def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
                member._record(assigned, assigned=True)

            def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                member._record(revoked, assigned=False)

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._place.bootstrap_servers,
            group_id=self._place.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
        )
        consumer.subscribe([self._place.topic], listener=Listener())
        async with consumer:
            while not self._stop.is_set():
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.values += [record.value for record in records]
                    await consumer.commit()
            self._record(consumer.assignment(), assigned=False)  # a close does not call its listener


class DefaultKafkaPython(_Threaded):
    """kafka-python: range, round robin."""

    def _read(self) -> None:
        import kafka  # type: ignore[import-untyped]  # it has no types

        member = self

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
            def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
                member._record(assigned, assigned=True)

            def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
                member._record(revoked, assigned=False)

        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._place.bootstrap_servers,
            group_id=self._place.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
        )
        consumer.subscribe([self._place.topic], listener=Listener())
        try:
            while not self._stop.is_set():
                for records in consumer.poll(timeout_ms=50).values():
                    self.values += [record.value for record in records]
                    consumer.commit()
        finally:
            self._record(consumer.assignment(), assigned=False)
            consumer.close()


class DefaultLibrdkafka(_Threaded):
    """confluent-kafka: range, round robin."""

    def _read(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._place.bootstrap_servers,
                "group.id": self._place.group,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 300,
                "log_level": 0,
            }
        )
        consumer.subscribe(
            [self._place.topic],
            on_assign=lambda _consumer, partitions: self._record(partitions, assigned=True),
            on_revoke=lambda _consumer, partitions: self._record(partitions, assigned=False),
        )
        while not self._stop.is_set():
            message = consumer.poll(0.05)
            if message is None:
                continue
            if message.error() is not None:
                self.faults.append(str(message.error()))
                continue
            self.values.append(message.value() or b"")
            consumer.commit(message=message, asynchronous=False)
        consumer.close()


class DefaultJava:
    """Java's console consumer: range, cooperative-sticky.

    It prints records, but not its assignment.
    """

    def __init__(self, place: Place) -> None:
        self.values: list[bytes] = []
        self.faults: list[str] = []
        fixed = ("--bootstrap-server", place.bootstrap_servers, "--topic", place.topic, "--group", place.group)
        options = [
            word
            for option in ("auto.offset.reset=earliest", "heartbeat.interval.ms=300", "auto.commit.interval.ms=100")
            for word in ("--command-property", option)
        ]
        self._process = subprocess.Popen(
            JavaTools(place.bootstrap_servers).command(
                "org.apache.kafka.tools.consumer.ConsoleConsumer", *fixed, *options
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.strip()
            if text.isdigit():
                self.values.append(text)
            elif b"ERROR" in text or b"Exception" in text:
                self.faults.append(text.decode())

    def stop(self) -> None:
        """Leave the group."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_SECONDS)
        self._reader.join(_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
