"""A member of the group under test, which reports its records to a sink."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import anyio
import anyio.abc

from aiokwire import Consumer, RebalanceListener, TopicPartition
from aiokwire.errors import KafkaError
from integration.chaos.feed import read_value
from integration.chaos.moment import Moment, now

_POLL_SECONDS = 0.1


class Sink(Protocol):
    """Receives the records of a member (`Account`)."""

    def assigned(self, member: object, partitions: Collection[int]) -> None:
        """The member starts to read these partitions at the committed offsets."""

    def received(self, member: object, partition: int, number: int, *, sent_at: Moment, now: Moment) -> None:
        """The member received a record that was sent at `sent_at`."""


class Member(RebalanceListener):
    """One run of a member.

    It processes its records before it polls again, so that none is pending at a revocation.
    """

    def __init__(self, name: str, topic: str, sink: Sink, **options: Any) -> None:
        self._name = name
        self._sink = sink
        self._consumer: Consumer[bytes, bytes] = Consumer(topic, listener=self, **options)
        self._stopping = anyio.Event()
        self._stopped = anyio.Event()
        self.errors: list[str] = []  # exceptions of its consumer
        self.lost_partitions = 0

    def __str__(self) -> str:
        return self._name

    @property
    def owned(self) -> frozenset[int]:
        """The assigned partitions."""
        return frozenset(tp.partition for tp in self._consumer.assignment)

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        self._sink.assigned(self, [tp.partition for tp in partitions])

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        self.lost_partitions += len(partitions)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Read until stopped, then commit and leave."""
        try:
            async with self._consumer as consumer:
                task_status.started()
                while not self._stopping.is_set():
                    await self._read()
                try:
                    await consumer.commit()
                except KafkaError as error:
                    self.errors.append(repr(error))
        finally:
            self._stopped.set()

    async def _read(self) -> None:
        try:
            records = await self._consumer.getmany(timeout=_POLL_SECONDS)
        except KafkaError as error:
            self.errors.append(repr(error))
            return
        here = now()
        for record in records:
            number, sent_at = read_value(record.value)
            self._sink.received(self, record.partition, number, sent_at=sent_at, now=here)

    async def stop(self) -> None:
        """Stop reading; return when the member has left."""
        self._stopping.set()
        await self._stopped.wait()
