"""The public producer: `send`, `submit`, `submit_nowait`, `send_many`, `flush`, `close`.

    producer -> accumulator (records into batches) -> scheduler (when) -> senders (one per broker)

A program creates one and shares it between its tasks, on one event loop.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, Unpack

import anyio

from aiokwire.cluster import Client, Owner, Unclosed, push_metrics
from aiokwire.config import config_of, documents_options
from aiokwire.errors import ClosedError, ConfigurationError, InvalidArgument, RequestTimedOut
from aiokwire.events import LIMIT, Events, EventStream
from aiokwire.hooks import Hooks, hooks_for
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.metrics import DURATION, Metric, Sample
from aiokwire.producer._accumulator import SEND, SUBMIT
from aiokwire.producer._delivery import Delivery
from aiokwire.producer.bulk import (
    ArrowDelivery,
    ProducerRecord,
    SendManyResult,
    chunks,
    send_rows,
    submit_rows,
    summary,
)
from aiokwire.producer.closing import LAST_SECONDS, REASON, Closing, Undelivered, seconds_to_deliver
from aiokwire.producer.config import ProducerConfig, ProducerOptions, Serializer
from aiokwire.producer.core import ProducerCore
from aiokwire.producer.events import ProducerEvent, ProducerHealth
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.metrics import METRICS
from aiokwire.producer.observed import observed
from aiokwire.producer.serialization import RecordSerializer
from aiokwire.producer.transactions.block import Positions, Transaction
from aiokwire.producer.transactions.driver import Transactions
from aiokwire.producer.transactions.shared import TransactionTicket
from aiokwire.types import Headers, K, RecordMetadata, TransactionalReader, V

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.cluster import MetricsPush

logger: FieldLogger = get_logger("aiokwire.producer")


@documents_options(ProducerConfig)
class Producer(Owner, Generic[K, V]):
    """Sends records to topics.

    Every record is accepted (`submit`, `submit_nowait`) or refused at once; an accepted record is
    acknowledged or fails within `delivery_timeout_ms`. Its `Delivery` returns the result; a failure
    that is not awaited is logged.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = (DURATION, *METRICS, *Client.METRICS)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: ProducerConfig[K, V] | None = None,
        key_serializer: Serializer[K] | None = None,
        value_serializer: Serializer[V] | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        joins: TransactionTicket | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """Options are those of `ProducerConfig`, or one `config`. No event loop needs to run yet.
        With `joins`, the producer writes to the transaction of `SharedTransactions.open`: leaving
        the block delivers its records, and does not end the transaction.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        self.config: ProducerConfig[Any, Any] = config_of(
            ProducerConfig,
            config,
            {
                "bootstrap_servers": bootstrap_servers,
                "key_serializer": key_serializer,
                "value_serializer": value_serializer,
                **options,
            },
        )
        if joins is not None:
            self.config = dataclasses.replace(self.config, transactional_id=joins.transactional_id)
        self._rng = rng if rng is not None else random.Random()
        self._hooks = hooks = hooks_for(hooks, self.config.client_id)
        self._joins = joins
        self._events = Events[ProducerEvent]()
        self._starting = anyio.Lock()
        self._start_scope: anyio.CancelScope | None = None  # of the `start` that runs now
        self._closing = Closing()
        self._push: MetricsPush | None = None  # while it runs, if a broker takes metrics
        self._started = False
        self._closed = False
        self._serializer = RecordSerializer(self.config, hooks)
        self._serializes = self._serializer.needed
        self._build()

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], *, hooks: Hooks | None = None) -> Producer[Any, Any]:
        """Create one from options named as in Java or librdkafka: see `ProducerConfig.from_dict`.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        return cls(config=ProducerConfig.from_dict(options), hooks=hooks)

    def _build(self) -> None:
        """Create the parts, again after a failed start: a closed client cannot be started."""
        self._unclosed = Unclosed()  # the client of an earlier start has its own
        self._client = Client(self.config, hooks=self._hooks, rng=self._rng, unclosed=self._unclosed)
        self._core = ProducerCore(
            self._client, self.config, ProducerHooks.per_batch(self._hooks), self._joins, self._events
        )
        self._accumulator = self._core.accumulator
        self._line = self._core.line
        self._transactions = self._core.transactions
        self._intake, self._join = observed(self._accumulator, self._line, self._serializer.hooks)
        if not self._serializes:
            self._use_compiled_methods()

    def _use_compiled_methods(self) -> None:
        """Replace methods that have nothing to do in Python by those of the accumulator."""
        for name in ("submit", "submit_nowait"):
            if getattr(type(self), name) is getattr(Producer, name):  # not overridden by a subclass
                setattr(self, name, getattr(self._accumulator, name))

    # --- start and close --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to the cluster; with a transactional id, also fence the previous instance.

        After an error it can be called again.

        Raises: ConnectionFailed: no bootstrap address responds; ClosedError: closed before or
        during the start; UnsupportedVersion, AuthorizationError: the brokers refuse transactions.
        """
        if self._started:
            self._client.check_place()
        async with self._starting:  # a second call waits for the first
            if self._closed:
                raise ClosedError(f"{REASON}: create a new one")
            if self._started:
                return
            with anyio.CancelScope() as self._start_scope:
                await self._start()
            if self._closed:
                raise ClosedError("this producer was closed while it was being started")

    async def _start(self) -> None:
        try:
            await self._client.start()
            self._core.start()
            if self._transactions is not None:
                await self._transactions.initialize()
            self._push = push_metrics(
                self._client, "producer", self.metrics, lambda: {"transactional_id": self.config.transactional_id}
            )
            self._started = True
            self._unclosed.watch(self, self.config.client_id)
        except BaseException:
            with anyio.CancelScope(shield=True):
                self._core.stop("this producer could not be started")
                self._core.end()
                await self._client.close(timeout=LAST_SECONDS)
            if not self._closed:
                self._build()
            raise
        finally:
            self._start_scope = None

    async def close(self, timeout: float | None = None) -> list[Undelivered]:
        """Deliver the accepted records, then disconnect; return those that could not be delivered.

        `timeout` in seconds bounds the delivery. None: `delivery_timeout_ms`; or 3 seconds in a
        cancelled task, so that a program ends within seconds of SIGINT, and `asyncio.timeout`
        holds. In a cancelled anyio scope it does not wait. Deliveries that are not done then fail
        with ClosedError; records that `async with` leaves undelivered are logged.

        Called during `start`, it cancels that. A second call waits for the first, for at most its
        own `timeout`, after which both end, and returns an empty list. In a forked process it does
        nothing: the records are the parent's.

        Raises: ClosedError: the producer was started on another event loop.
        """
        return await self._close(timeout, observed=True)

    async def _close(self, timeout: float | None, *, observed: bool) -> list[Undelivered]:
        if self._client.forked:
            return []
        if self._started:
            self._client.check_place()
        seconds = seconds_to_deliver(timeout, self.config)
        if self._closed:
            await self._closing.wait(seconds)
            return []
        self._closed = True
        self._unclosed.forget()
        try:
            if self._start_scope is not None:
                self._start_scope.cancel()
                with anyio.CancelScope(shield=True):
                    async with self._starting:
                        pass  # `start` has cleaned up
            if not self._started:
                self._accumulator.close(REASON)
                return []
            return await self._closing.run(self._client, self._core, seconds, push=self._push, observed=observed)
        finally:
            self._closing.end()
            self._events.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(None, observed=False)

    # --- one record -------------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its acknowledgement.

        Does not linger if the broker is idle. Cancelling the call ends the wait; a record that was
        accepted by then is still sent.

        Raises: InvalidArgument, RecordRejected: the record was refused; BufferFullError: no room
        within the delivery timeout; DeliveryFailed: not acknowledged in time; BrokerError: the
        broker refused it; ClosedError.
        """
        if self._serializes:
            ready = self._serializer.serialize(topic, value, key, partition, headers)
            value, key, headers = ready if isinstance(ready, tuple) else await ready
        taken = self._intake.append(topic, value, key, partition, timestamp, headers, SEND)
        if taken is None:
            taken = await self._join((topic, value, key, partition, timestamp, headers, SEND))
        return await taken

    def submit(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """Accept a record, waiting for buffer room only: `delivery = await producer.submit(...)`.

        The delivery can be awaited later for the record's metadata. Without room, the call itself
        queues the record: it is sent in this order also when the result is never awaited, or
        awaited in another task. A cancelled wait gives up its place, unless the record was
        accepted in the same turn: then it is sent, and a failure is logged. With an asynchronous
        serializer nothing happens before the result is awaited.

        Raises: InvalidArgument, RecordRejected: the record was refused; BufferFullError: no room
        within `delivery_timeout_ms`, or 10,000 records (or 16 MiB, or `buffer_memory` if that is
        more) of calls that are not awaited wait for room; ClosedError.
        """
        ready = self._serializer.serialize(topic, value, key, partition, headers)
        if not isinstance(ready, tuple):
            return self._submit_later(ready, topic, partition, timestamp)
        raw_value, raw_key, headers = ready
        return self._intake.submit(topic, raw_value, raw_key, partition=partition, timestamp=timestamp, headers=headers)

    async def _submit_later(
        self, pending: Awaitable[Any], topic: str, partition: int | None, timestamp: int | None
    ) -> Delivery:
        value, key, headers = await pending
        return await self._intake.submit(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

    def submit_nowait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """Accept a record without waiting.

        Raises: BufferFullError: the buffer is full; InvalidArgument, RecordRejected: the record
        was refused; ClosedError.
        """
        raw_value, raw_key, headers = self._serializer.serialize_nowait(topic, value, key, partition, headers)
        return self._intake.submit_nowait(
            topic, raw_value, raw_key, partition=partition, timestamp=timestamp, headers=headers
        )

    # --- many -------------------------------------------------------------------------------------------------------

    async def send_many(self, topic: str, records: Iterable[V | ProducerRecord | None]) -> SendManyResult:
        """Send records, values or `ProducerRecord`s, and wait until each is acknowledged or fails.

        A refused record (wrong type, too large) raises its error; the records before it are sent.

        Raises: InvalidArgument, RecordRejected, BufferFullError, ClosedError: a record was refused;
        the result has the errors of deliveries.
        """
        if isinstance(records, (str, bytes, bytearray, memoryview)) or not isinstance(records, Iterable):
            raise InvalidArgument(
                f"records must be an iterable of values or ProducerRecords, not {type(records).__name__}"
            )
        await self.partitions_for(topic)
        with self._serializer.sending_many(topic) as on_result:
            runs: list[tuple[Delivery, int]] = []
            try:
                for chunk in chunks(records):
                    await self._accept_all(topic, await self._serialized(topic, chunk), runs)
            finally:
                self._core.scheduler.seal_everything()
            await self._core.settle_runs(runs)
            result = summary(topic, runs)
            if on_result is not None:
                on_result(result)
        return result

    async def _accept_all(self, topic: str, records: list[Any], runs: list[tuple[Delivery, int]]) -> None:
        done = 0
        while True:
            done = self._accumulator.append_many(topic, records, done, runs)
            if done == len(records):
                return
            record = records[done]
            fields = record if isinstance(record, tuple) else (record, None, None, None, None)
            runs.append((await self._core.wait_for_room((topic, *fields, SUBMIT)), 1))
            done += 1

    async def _serialized(self, topic: str, chunk: list[Any]) -> list[Any]:
        for record in chunk:
            if isinstance(record, tuple) and not isinstance(record, ProducerRecord):
                raise InvalidArgument("records: a tuple is not a record: use ProducerRecord(value, key, ...)")
        if not self._serializes:
            return chunk
        prepared: list[Any] = []
        for given in chunk:
            record = given if isinstance(given, ProducerRecord) else ProducerRecord(given)
            ready = self._serializer.serialize(topic, record.value, record.key, record.partition, record.headers)
            value, key, headers = ready if isinstance(ready, tuple) else await ready
            prepared.append(record._replace(value=value, key=key, headers=headers))
        return prepared

    async def send_arrow(
        self, topic: str, data: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
    ) -> SendManyResult:
        """Send Arrow rows, without an object per row, and wait until each is acknowledged or fails.

        Columns by name, all optional: key and value (binary or text), headers (lists of structs of
        name and value), timestamp, partition; a null is the same as no column. Serializers and
        `on_send` work per record and are not called. A record batch with a row that cannot be sent
        is refused as a whole, with those after it.

        Raises: ConfigurationError: without pyarrow; InvalidArgument, RecordRejected: names column
        or row; BufferFullError, ClosedError. The result has delivery errors by row of all data.
        """
        self._check_open()
        return await send_rows(self._core, topic, data)

    async def submit_arrow(self, topic: str, batch: pa.RecordBatch) -> ArrowDelivery:
        """Accept the rows of a record batch as `send_arrow` does, waiting only for room in the
        buffer; await the returned delivery for the result.

        A call that is cancelled or fails while it waits for room has accepted the rows before that.

        Raises: as `send_arrow`.
        """
        self._check_open()
        return await submit_rows(self._core, topic, batch)

    # --- transactions -----------------------------------------------------------------------------------------------

    def transaction(
        self,
        reader: TransactionalReader | None = None,
        *,
        since: Positions | None = None,
    ) -> Transaction:
        """Return a transaction: `async with producer.transaction() as tx:` commits at its end, and
        aborts on an exception or a cancellation. Records accepted within it, from any task, are
        part of it.

        With a `reader` (a consumer with a `group_id`), its offsets are part of it, too. The records
        that it returns within the block, or since its positions were `since` (its `positions()`),
        are committed as its group's offsets; when the transaction aborts, the reader rewinds, and
        returns the same records again. When it is not known whether the coordinator committed
        (TransactionFailed, FencedError), the reader resumes from the committed offsets once that is
        known: at the latest when a new producer with the same transactional id has started.

        Raises: ConfigurationError: `transactional_id` is not set. Entering it:
        TransactionStateError: another one is open; ClosedError: not started, or closed. Leaving it:
        TransactionAborted: repeat its work in a new one; FencedError: a newer instance has taken
        over; TransactionFailed: the producer cannot continue.
        """
        transactions = self._transactions
        if transactions is None:
            raise ConfigurationError(
                "transactions need a transactional_id: Producer(..., transactional_id='my-service-1')"
            )

        def begin() -> Transactions:
            self._check_open()
            return transactions

        return Transaction(begin, reader, since)

    # --- all records ------------------------------------------------------------------------------------------------

    async def flush(self, timeout: float | None = None) -> None:
        """Send records accepted so far without a linger; wait until each is acknowledged or fails.

        `timeout` in seconds; None: the delivery timeout.

        Raises: RequestTimedOut: the timeout ended; the records are still being delivered.
        ClosedError: not started, or closed.
        """
        self._check_open()
        limit = self.config.delivery_timeout + LAST_SECONDS if timeout is None else timeout
        with anyio.move_on_after(limit) as scope:
            await self._core.flush()
        if scope.cancelled_caught:
            left = self._accumulator.live
            records = sum(batch.remaining for batch in left)
            last = next((f"; the last error: {batch.last_error}" for batch in left if batch.last_error), "")
            raise RequestTimedOut(
                f"flush: {records} record(s) in {len(left)} batch(es) not delivered after {limit:.3f} s{last}"
            )

    @property
    def client(self) -> Client:
        """The client of the cluster that this producer uses: its metadata, and any request.

        A start that fails replaces it.
        """
        return self._client

    @property
    def buffered(self) -> int:
        """The bytes of `buffer_memory` in use: open, sealed and in-flight batches."""
        return self._accumulator.used

    @property
    def waiting(self) -> int:
        """The number of records that wait for room in the buffer."""
        return len(self._line)

    def health(self) -> ProducerHealth:
        """Return the state: buffered and waiting records, their age, and the last error. Sends no
        request. May be called before start and after close, on the producer's loop."""
        return self._core.health(running=self._started and not self._closed and not self._client.closed)

    def metrics(self) -> list[Sample]:
        """Return all metrics now, those of the connections included; docs/metrics.md lists them.

        Costs no request. May be called from any thread, before the start and after the end.
        """
        return self._core.metrics()

    @property
    def client_instance_id(self) -> str | None:
        """The id that a broker assigned for the metrics that are pushed (KIP-714), if one did."""
        return None if self._push is None else self._push.client_instance_id

    def events(self, *, limit: int = LIMIT) -> EventStream[ProducerEvent]:
        """Stream the producer's events from now on: `async for event in producer.events()`.

        The events are batches that failed, a buffer that is full and free again, brokers that
        throttle, leaders that moved, another producer id or epoch, a transaction that has to be
        aborted, and the failure of the producer. The stream may be opened before `start()`, and
        ends when the producer is closed or has failed. `limit` events (default 1,000) are kept for
        a busy listener; then the oldest are dropped, and counted in `dropped`. There are no events
        per record, and none without a listener.
        """
        return self._events.listen(limit=limit)

    def purge(self) -> int:
        """Drop records that wait to be sent; return their number. Batches in flight are unaffected.

        They fail with DeliveryFailed, stage "purged", unlogged. Calls that wait for room resume.

        Raises: ClosedError: not started, or closed.
        """
        self._check_open()
        dropped = self._core.failures.purge()
        self._core.scheduler.soon()
        return dropped

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{REASON}: create a new one")
        if not self._started:
            raise ClosedError("this producer was not started: use `async with`, or await start()")
        self._client.check()

    async def partitions_for(self, topic: str) -> int:
        """Return the number of a topic's partitions, from the metadata.

        Raises: KafkaError: the topic does not exist, is not allowed, or has no metadata in time.
        """
        self._check_open()
        return await self._core.topics.partitions_for(topic)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self._started else "new"
        return f"<Producer {state}, {self._accumulator.used} of {self._accumulator.limit} bytes in use>"
