"""What a handler receives besides its record: the attempt's number, the origin, `send`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from aiokwire.consumer import ConsumerRecord
from aiokwire.producer import Delivery
from aiokwire.types import Headers, RecordMetadata, TopicPartition
from aiokwire.worker.dead_letters import Origin


class Output(NamedTuple):
    """A record that a handler sends."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: Headers | None


class Outlet(Protocol):
    """The worker, as its contexts use it."""

    def origin_of(self, record: ConsumerRecord[bytes, bytes]) -> Origin:
        """Return where a record was first read."""

    @property
    def is_stopping(self) -> bool:
        """Whether the worker is being stopped."""

    @property
    def holds_outputs(self) -> bool:
        """Whether records are sent when the handler has returned, within a transaction."""

    async def send(self, output: Output) -> RecordMetadata:
        """Send a record and wait for its acknowledgement."""

    async def submit(self, output: Output) -> Delivery:
        """Accept a record."""


class Sender:
    """Sends records for a handler, and keeps the sent ones.

    handler: the handler's name.
    """

    __slots__ = ("_outlet", "deliveries", "handler", "held")

    def __init__(self, handler: str, outlet: Outlet) -> None:
        self.handler: str = handler
        self._outlet = outlet
        # For the worker; most handlers send nothing.
        self.held: list[Output] | None = None
        self.deliveries: list[Delivery] | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the worker is being stopped: a long handler should finish, or raise `Retry`."""
        return self._outlet.is_stopping

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata | None:
        """Send a record by the worker's producer and wait for its acknowledgement.

        With exactly-once it returns None at once: the record is sent after the handler has
        returned, in the transaction of the handled record's offset, and not at all if the handler
        raises.

        Raises: as `Producer.send`.
        """
        output = Output(topic, value, key, partition, timestamp, headers)
        if self._outlet.holds_outputs:
            self._hold(output)
            return None
        return await self._outlet.send(output)

    async def submit(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Send a record without waiting for its acknowledgement: waits for buffer room only.

        The handled record, or the run of a periodic handler, is completed once the sent record is
        acknowledged, and fails if it is not. With exactly-once as `send`.

        Raises: as `Producer.submit`.
        """
        output = Output(topic, value, key, partition, timestamp, headers)
        if self._outlet.holds_outputs:
            self._hold(output)
            return
        delivery = await self._outlet.submit(output)
        if self.deliveries is None:
            self.deliveries = []
        self.deliveries.append(delivery)

    def _hold(self, output: Output) -> None:
        if self.held is None:
            self.held = []
        self.held.append(output)


class Context(Sender):
    """One attempt to handle a record, passed to a handler's argument annotated `Context`.

    attempt: 1 for the first call of the handler with this record, 2 for the second, ...; attempts
    before a retry topic count, too.
    handler: the handler's name.
    record: the record; the first one of a batch.
    """

    __slots__ = ("attempt", "record")
    # For the worker: of the records of a batch that failed, the errors by offset.
    failures: Mapping[int, BaseException] | None = None

    def __init__(self, record: ConsumerRecord[bytes, bytes], attempt: int, handler: str, outlet: Outlet) -> None:
        self.record: ConsumerRecord[bytes, bytes] = record
        self.attempt: int = attempt
        self.handler = handler  # here, not in the base class: it runs for each record
        self._outlet = outlet
        self.held: list[Output] | None = None
        self.deliveries: list[Delivery] | None = None

    @property
    def records(self) -> Sequence[ConsumerRecord[bytes, bytes]]:
        """The records of this call: one, or those of a batch in the order of their offsets."""
        return (self.record,)

    @property
    def topic(self) -> str:
        """The record's topic."""
        return self.record.topic

    @property
    def partition(self) -> int:
        """The record's partition."""
        return self.record.partition

    @property
    def offset(self) -> int:
        """The record's offset."""
        return self.record.offset

    @property
    def topic_partition(self) -> TopicPartition:
        """The record's topic and partition."""
        return TopicPartition(self.record.topic, self.record.partition)

    @property
    def origin(self) -> Origin:
        """The original record's place: the same for each attempt, also after a retry topic."""
        return self._outlet.origin_of(self.record)

    def __repr__(self) -> str:
        return f"<Context {self.topic_partition} at offset {self.offset}, attempt {self.attempt} of {self.handler}>"


class BatchContext(Context):
    """One attempt to handle a batch. Its place is that of the first record."""

    __slots__ = ("_records", "failures")

    def __init__(
        self, records: Sequence[ConsumerRecord[bytes, bytes]], attempt: int, handler: str, outlet: Outlet
    ) -> None:
        super().__init__(records[0], attempt, handler, outlet)
        self._records = records
        self.failures: Mapping[int, BaseException] | None = None

    @property
    def records(self) -> Sequence[ConsumerRecord[bytes, bytes]]:
        """See `Context`."""
        return self._records

    def note_failures(self, failures: Mapping[int, BaseException]) -> None:
        """Note the errors of records, by offset. If all failed, what was sent does not count."""
        self.failures = failures
        if len(failures) == len(self._records):
            self.held: list[Output] | None = None
            self.deliveries: list[Delivery] | None = None
