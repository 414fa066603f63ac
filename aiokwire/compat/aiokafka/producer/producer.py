"""`AIOKafkaProducer`: aiokafka's producer on `aiokwire.Producer`.

`send` of a started producer is compiled (`_send.pyx`); the one here waits for what a record needs.
Everything else is translation: options (`options.py`), errors (`errors.py`, `results.py`), and
transactions in single calls.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from aiokwire import errors
from aiokwire.compat.aiokafka.client import AIOKafkaClient, partitions_of
from aiokwire.compat.aiokafka.errors import (
    IllegalOperation,
    KafkaConnectionError,
    ProducerClosed,
    translating,
)
from aiokwire.compat.aiokafka.options import UNSET, producer_options, warn_of_deprecated
from aiokwire.compat.aiokafka.partitioner import DefaultPartitioner, Partitioner, is_default
from aiokwire.compat.aiokafka.producer._send import Send, settle, settle_without_answer
from aiokwire.compat.aiokafka.producer.message_accumulator import BatchBuilder
from aiokwire.compat.aiokafka.producer.results import refusal, settle_together
from aiokwire.compat.aiokafka.structs import OffsetAndMetadata, RecordMetadata
from aiokwire.compat.aiokafka.unclosed import warn_unclosed
from aiokwire.compat.aiokafka.util import Offsets, commit_structure_validate
from aiokwire.producer import Producer, Transaction
from aiokwire.types import OffsetAndMetadata as OurOffset
from aiokwire.types import TopicPartition

__all__ = ["AIOKafkaProducer"]

_missing: Final = UNSET
_DEFAULT_PARTITIONER: Final = DefaultPartitioner()

Future = asyncio.Future[Any]
Headers = Sequence[tuple[str, bytes | None]]


class AIOKafkaProducer:
    """Sends records; `send` returns a future of the acknowledgement. Options and defaults are
    aiokafka's."""

    _numbers: ClassVar[itertools.count[int]] = itertools.count(1)
    _closed: bool | None = None  # until the constructor has ended

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | list[str] = "localhost",
        client_id: str | None = None,
        metadata_max_age_ms: int = 300000,
        request_timeout_ms: int = 40000,
        api_version: str | None = None,
        acks: Any = _missing,
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
        compression_type: str | None = None,
        max_batch_size: int = 16384,
        partitioner: Partitioner = _DEFAULT_PARTITIONER,
        max_request_size: int = 1048576,
        linger_ms: int = 0,
        retry_backoff_ms: int = 100,
        security_protocol: str = "PLAINTEXT",
        ssl_context: Any = None,
        connections_max_idle_ms: int | None = 540000,
        enable_idempotence: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: Any = None,
    ) -> None:
        """Take aiokafka's options. No event loop needs to run yet.

        Raises: ValueError: an option is out of its range, or contradicts another.
        """
        number = next(self._numbers)
        client_id = f"aiokafka-producer-{number}" if client_id is None else client_id
        options = producer_options(locals())
        warn_of_deprecated(loop, api_version)
        chosen = None if is_default(partitioner) else AdaptedPartitioner(partitioner)
        self._producer: Producer[bytes, bytes] = Producer(**options, partitioner=chosen or "default")
        if chosen is not None:
            chosen.producer = self._producer
        self._partitioner = _DEFAULT_PARTITIONER if chosen is None else partitioner
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._max_batch_size = max_batch_size
        self._transactional_id = transactional_id
        self._transaction: Transaction | None = None
        self._settle = settle_without_answer if options["acks"] == 0 else settle
        self._compiled: Send | None = None  # from `start` on
        self._known: dict[str, set[int]] = {}
        producer = self._producer
        self.client: AIOKafkaClient = AIOKafkaClient.of(lambda: producer.client)
        self._closed = False

    def __del__(self, _warnings: Any = warnings) -> None:
        if self._closed is False:
            warn_unclosed(self, "producer", _warnings)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to the cluster.

        Raises: KafkaConnectionError: no bootstrap server responds.
        """
        with translating(KafkaConnectionError):
            await self._producer.start()
        self._compiled = self._compiled_send()
        if type(self).send is _SEND:  # else a subclass or a tool has its own
            setattr(self, "send", self._compiled)  # noqa: B010 - mypy refuses to assign to a method

    def _compiled_send(self) -> Send:
        answers = self._settle is settle
        serializers = self._key_serializer, self._value_serializer
        running = asyncio.get_running_loop()
        submit = self._producer.submit
        send = Send(submit, weakref.ref(self), type(self), self._known, *serializers, running, answers)
        send.ready = self._transactional_id is None
        return _described(send)

    async def flush(self) -> None:
        """Wait until all records accepted so far are acknowledged, or have failed."""
        with translating():
            await self._producer.flush()

    async def stop(self) -> None:
        """Deliver the accepted records, then disconnect."""
        if self._closed:
            return
        self._closed = True
        await self._producer.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic, waiting for them up to the request timeout.

        Raises: UnknownTopicOrPartitionError: it does not exist.
        """
        self._check_open()
        return await partitions_of(self._producer.client, topic)

    # --- records ------------------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Future:
        """Accept a record, waiting for room in the buffer; return a future of its `RecordMetadata`.

        Cancelling the future does not stop the record.

        Raises: KafkaTimeoutError: no room within the request timeout; MessageSizeTooLargeError;
        TypeError: key or value is not bytes; IllegalOperation: outside of a transaction;
        ProducerClosed.
        """
        if value is None and key is None:
            raise AssertionError("a record needs a value or a key")
        known = self._known.get(topic)
        if known is None or (partition is not None and partition not in known):
            await self._know(topic, partition)
        if self._transactional_id is not None:
            self._check_in_transaction()
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        try:
            delivery = await self._producer.submit(
                topic, value, key, partition=partition, timestamp=timestamp_ms, headers=headers
            )
        except errors.KafkaError as error:
            raise refusal(error, key, value) from error
        assert self._compiled is not None  # started: otherwise `submit` rejected the record
        return self._compiled.future(delivery)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata | None:
        """Send a record and wait for its acknowledgement; None with `acks=0`.

        Raises: as `send`, and the error of the delivery.
        """
        future = await self.send(topic, value, key, partition, timestamp_ms, headers)
        metadata: RecordMetadata | None = await future
        return metadata

    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int | None:
        """Return where a record will be sent, for tools that report it; None if that is chosen with
        its batch."""
        known = self.client.cluster.partitions_for_topic(topic) or set()
        if partition is not None:
            _check_exists(topic, partition, known)
            return partition
        if serialized_key is None and self._partitioner is _DEFAULT_PARTITIONER:
            return None
        available = self.client.cluster.available_partitions_for_topic(topic) or set()
        return self._partitioner(serialized_key, sorted(known), sorted(available))

    async def _know(self, topic: str, partition: int | None) -> None:
        """Wait for a topic's partitions."""
        self._check_open()
        self._known[topic] = known = await partitions_of(self._producer.client, topic)
        if partition is not None:
            _check_exists(topic, partition, known)

    def _check_open(self) -> None:
        if self._closed:
            raise ProducerClosed("this producer was stopped; create a new one")

    # --- batches ------------------------------------------------------------------------------------------------------

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch, to be filled and passed to `send_batch`."""
        return BatchBuilder(
            self._max_batch_size, key_serializer=self._key_serializer, value_serializer=self._value_serializer
        )

    async def send_batch(self, batch: BatchBuilder, topic: str, *, partition: int) -> Future:
        """Send the records of a batch to a partition; return a future of the first one's metadata,
        which is done when all are acknowledged.

        The batch is closed. Other records for the partition may be stored in the same batch.

        Raises: as `send`.
        """
        await self._know(topic, partition)
        if self._transactional_id is not None:
            self._check_in_transaction()
        batch.close()
        future = asyncio.get_running_loop().create_future()
        deliveries = []
        for record in batch.records:
            try:
                deliveries.append(
                    await self._producer.submit(
                        topic,
                        record.value,
                        record.key,
                        partition=partition,
                        timestamp=record.timestamp,
                        headers=record.headers,
                    )
                )
            except errors.KafkaError as error:
                raise refusal(error, record.key, record.value) from error
        if deliveries:
            settle_together(deliveries, self._settle, future)
        else:
            future.set_result(None)
        return future

    # --- transactions -------------------------------------------------------------------------------------------------

    async def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises: IllegalOperation: `transactional_id` is not set; AssertionError: one is open.
        """
        self._check_transactional()
        if self._transaction is not None:
            raise AssertionError("a transaction is open: commit or abort it first")
        transaction = self._producer.transaction()
        with translating():
            await transaction.__aenter__()
        self._use(transaction)

    async def commit_transaction(self) -> None:
        """Deliver the records of the transaction, then commit it.

        Raises: the error of a record that was not delivered: abort the transaction, then repeat it;
        ProducerFenced: a newer producer has taken over.
        """
        transaction = self._open_transaction()
        with translating():
            await transaction.__aexit__(None, None, None)
        self._use(None)

    async def abort_transaction(self) -> None:
        """Abort the transaction.

        Raises: ProducerFenced: a newer producer has taken over.
        """
        transaction = self._open_transaction()
        self._use(None)
        with translating():
            await transaction.abort()

    def transaction(self) -> TransactionContext:
        """Return a context that begins a transaction, and commits it at its end or aborts it after
        an error."""
        return TransactionContext(self)

    async def send_offsets_to_transaction(self, offsets: Offsets, group_id: str) -> None:
        """Commit a group's offsets with the transaction.

        Raises: IllegalOperation: no transaction is open; ValueError: no group id, or no offsets;
        TypeError: a key is not a TopicPartition.
        """
        self._check_transactional()
        self._check_in_transaction("no transaction is open")
        assert self._transaction is not None
        if not group_id or not isinstance(group_id, str):
            raise ValueError(f"group_id must be a str that is not empty, not {group_id!r}")
        checked = commit_structure_validate(offsets)
        with translating():
            await self._transaction.send_offsets(_our_offsets(checked), group_id)

    def _use(self, transaction: Transaction | None) -> None:
        self._transaction = transaction
        if self._compiled is not None:
            self._compiled.ready = transaction is not None

    def _check_transactional(self) -> None:
        if self._transactional_id is None:
            raise IllegalOperation("transactions need a transactional_id")

    def _check_in_transaction(
        self, problem: str = "a transactional producer sends records in transactions only"
    ) -> None:
        if self._transaction is None:
            raise IllegalOperation(f"{problem}: await begin_transaction()")

    def _open_transaction(self) -> Transaction:
        self._check_transactional()
        if self._transaction is None:
            raise AssertionError("no transaction is open: await begin_transaction()")
        return self._transaction


_SEND: Final = AIOKafkaProducer.send


def _check_exists(topic: str, partition: int, known: set[int]) -> None:
    if partition not in known:
        raise AssertionError(f"topic {topic!r} has no partition {partition}")


def _described(send: Send) -> Send:
    """Set the attributes of a coroutine function that `inspect` reads."""
    update_wrapper(send, _SEND)
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        setattr(send, name, getattr(_SEND, name))
    signature = inspect.signature(_SEND)
    send.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    return send


class TransactionContext:
    """`async with producer.transaction():`."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self._producer.commit_transaction()
        elif self._producer._transaction is not None:
            await self._producer.abort_transaction()


class AdaptedPartitioner:
    """A partitioner of aiokafka's form as one of ours."""

    def __init__(self, partitioner: Partitioner) -> None:
        self._partitioner = partitioner
        self.producer: Producer[bytes, bytes] | None = None

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: Sequence[int]) -> int:
        """Return the partition, chosen from all of the topic and those that have a leader."""
        assert self.producer is not None
        found = self.producer.client.cluster.topics.get(topic)
        available = [each.partition for each in found.partitions if each.leader >= 0] if found is not None else []
        return self._partitioner(key, list(partitions), available)


def _our_offsets(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, OurOffset]:
    return {tp: OurOffset(offset, metadata) for tp, (offset, metadata) in offsets.items()}
