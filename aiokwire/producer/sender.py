"""One sender per broker: sealed batches of the partitions led there into Produce requests, several at a time.

What can be done at once (connection ready, nothing to compress) is done by `pump` without a turn of the loop; the
rest (connecting, compressing in a thread, a paused socket) by the sender's task. `responses.py` decides what a response
means, `batch_results.py` carries it out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import anyio

from aiokwire.backoff import Backoff
from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, UnsupportedVersion
from aiokwire.net import Connection
from aiokwire.producer import planning
from aiokwire.producer._delivery import Batch
from aiokwire.producer.config import MAX_REQUEST_BYTES, ProducerConfig
from aiokwire.producer.slices import AT_ONCE, MOST_BATCHES, SLICE, Slices
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import produce
from aiokwire.threads import run_in_thread
from aiokwire.types import Acks, Compression

if TYPE_CHECKING:
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.batch_results import BatchResults
    from aiokwire.producer.hooks import ProducerHooks
    from aiokwire.producer.idempotence import Idempotence
    from aiokwire.producer.topics import Topics

logger = logging.getLogger("aiokwire.producer")

FIRST_VERSION_WITH_IDS = produce.ProduceRequest.FIRST_VERSION_WITH["topic_id"]  # and without names (KIP-516)
# The first that carries zstd.
FIRST_VERSION_WITH_ZSTD = 7

Load = list[tuple["Partition", Batch]]
Entries = dict[tuple[str | bytes, int], produce.PartitionProduceResponse]


def _entries(answer: produce.ProduceResponse) -> Entries:
    """An answer's entries by topic (its name or id) and partition."""
    return {
        (topic.name or topic.topic_id, entry.index): entry
        for topic in answer.responses
        for entry in topic.partition_responses
    }


class Sending:
    """A Produce request in flight, in place of a future: it handles the response in the turn of the loop in which that
    comes, so that what it makes room for leaves in the same turn."""

    __slots__ = ("_load", "_sender")

    def __init__(self, sender: Sender, load: Load) -> None:
        self._sender = sender
        self._load = load

    def done(self) -> bool:
        """Return False: a response or loss is expected."""
        return False

    def set_result(self, answer: produce.ProduceResponse) -> None:
        """The answer came."""
        try:
            self._sender.on_response(self._load, answer)
        except Exception as error:  # must not reach the connection, which calls this
            context = {"message": "the answer to a Produce request cannot be handled", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def set_exception(self, error: BaseException) -> None:
        """It was lost. Handled a turn later, as the connection that calls this is about to end."""
        asyncio.get_running_loop().call_soon(self._sender.on_loss, self._load, error)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SenderParts:
    """What the senders of one producer share: collaborators, and callbacks on the loop."""

    config: ProducerConfig
    topics: Topics
    results: BatchResults
    idempotence: Idempotence
    slices: Slices
    hooks: ProducerHooks | None
    rng: random.Random
    now: Callable[[], float]
    """The loop's clock."""
    pump: Callable[[], None]
    """Look at all senders."""
    wake_at: Callable[[float], None]
    """Look at all senders at this time at the latest."""
    end_turn: Callable[[], None]
    """Let no sender send before the loop's next turn."""
    max_produce_version: Callable[[], int | None]
    """The newest version of Produce that may be used; None: any."""
    want_producer_id: Callable[[], None]
    on_encoded: Callable[[Batch], None]
    """A batch has its final bytes."""
    on_response: Callable[[], None]
    """The batches of a request were handled: there is room in the buffer, and for another request."""
    on_throttled: Callable[[int, float, float], None]
    """(node id, until, now): a broker's quota holds batches back."""


class Sender:
    """Sends the batches of the partitions that one broker leads. Has a task of its own; everything runs on the loop."""

    def __init__(self, node_id: int, parts: SenderParts) -> None:
        config = parts.config
        self.node_id = node_id
        self.ready: dict[Partition, None] = {}  # led here, with sealed batches; in the order of their turns
        self.in_flight = 0
        self._in_slices_now = 0  # responses for many partitions, and those after them, that are handled in slices
        self._parts = parts
        self._results = parts.results
        self._topics = parts.topics
        self._idempotence = parts.idempotence
        self._hooks = parts.hooks
        self._now = parts.now
        self._config = config
        self._codec = config.codec
        self._acks = config.acknowledgements
        self._transactional_id = config.transactional_id
        self._timeout = config.request_timeout_ms / 1000
        self._connection: Connection | None = None
        self._wake = anyio.Event()
        self._busy = False  # the task sends, not `pump`
        self._load: Load = []  # planned, waiting for the task to compress it
        self._backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, rng=parts.rng)

    @property
    def is_free(self) -> bool:
        """Whether another request may be sent, as soon as there is a batch for it."""
        return not self._busy and self.in_flight < self._config.max_in_flight_requests_per_connection

    # --- at once ----------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what may leave now; what cannot be done at once wakes the task."""
        if self._busy or not self.ready:
            return
        connection = self._connection
        if connection is None or not connection.ready or self._must_drain(connection):
            if self._plan_is_worth_it():
                self._hand_over()
            return
        while self.in_flight < self._config.max_in_flight_requests_per_connection:
            load = self._plan(connection)
            if not load:
                return
            if any(self._wants_thread(batch) for _, batch in load):
                self._load = load
                self._hand_over()
                return
            self._seal_and_send(connection, load)
            if self._must_drain(connection) or not connection.ready:
                self._hand_over()
                return
            if len(load) > AT_ONCE:
                self._parts.end_turn()
                return

    def _hand_over(self) -> None:
        self._busy = True
        self._wake.set()

    def _must_drain(self, connection: Connection) -> bool:
        # Answers bound what is on its way; without answers the socket's buffer has to.
        return self._acks is Acks.NONE and connection.write_paused

    def _plan_is_worth_it(self) -> bool:
        now = self._now()
        return any(self._may_leave(partition, now) for partition in self.ready)

    def _may_leave(self, partition: Partition, now: float) -> bool:
        idempotent = self._idempotence.enabled
        limit = self._config.max_in_flight_requests_per_connection
        return planning.may_leave(partition, now, idempotent=idempotent, max_in_flight=limit)

    def _plan(self, connection: Connection) -> Load:
        """The next request's batches; they count as in flight from here on."""
        now = self._now()
        if connection.throttled_until > now:
            self._parts.wake_at(connection.throttled_until)
            self._parts.on_throttled(self.node_id, connection.throttled_until, now)
            return []
        idempotence = self._idempotence
        for partition in [p for p in self.ready if not p.queue or p.leader != self.node_id]:
            del self.ready[partition]
        planned = planning.plan_request(
            self.ready,
            now,
            idempotent=idempotence.enabled,
            max_in_flight=self._config.max_in_flight_requests_per_connection,
            max_bytes=MAX_REQUEST_BYTES,
            most=MOST_BATCHES,
        )
        load: Load = []
        for partition in planned:
            if not idempotence.ready or (idempotence.enabled and not idempotence.can_stamp(partition)):
                self._parts.want_producer_id()
                continue
            load.append((partition, partition.take_next()))
            del self.ready[partition]
            if partition.queue:  # its next turn comes after all others'
                self.ready[partition] = None
        return load

    def _wants_thread(self, batch: Batch) -> bool:
        return self._codec is not Compression.NONE and batch.data is None and batch.size >= planning.COMPRESS_IN_THREAD

    def _seal_and_send(self, connection: Connection, load: Load) -> None:
        fine = self._prepare(connection, load)
        self._send(connection, [item for item in fine if self._sealed(*item)])

    def _sealed(self, partition: Partition, batch: Batch) -> bool:
        """Whether the batch has its final bytes; one that cannot be encoded fails here."""
        if batch.data is None:
            try:
                batch.seal(self._codec, self._config.compression_level, self._transactional_id is not None)
            except Exception as error:
                self._cannot_encode(partition, batch, error)
                return False
            self._parts.on_encoded(batch)
        return True

    async def _sealed_in_thread(self, partition: Partition, batch: Batch) -> bool:
        """The same, off the loop."""
        try:
            transactional = self._transactional_id is not None
            await run_in_thread(batch.seal, self._codec, self._config.compression_level, transactional)
        except Exception as error:
            self._cannot_encode(partition, batch, error)
            return False
        self._parts.on_encoded(batch)
        return True

    def _cannot_encode(self, partition: Partition, batch: Batch, error: Exception) -> None:
        logger.error("a batch for %s[%d] cannot be encoded", batch.topic, batch.partition, exc_info=error)
        failed = KafkaError(
            f"{batch.count} record(s) for {batch.topic}[{batch.partition}] cannot be encoded: {error!r}"
        )
        self._results.give_up(partition, batch, failed)

    def _prepare(self, connection: Connection, load: Load) -> Load:
        """Batches in the format that this broker takes, stamped; those that it cannot take fail here."""
        version = connection.versions.pick(produce.ProduceRequest)
        magic = planning.format_of(version)
        idempotence = self._idempotence
        fine: Load = []
        for partition, batch in load:
            try:
                if self._codec is Compression.ZSTD and version < FIRST_VERSION_WITH_ZSTD:
                    raise UnsupportedVersion(
                        f"node {self.node_id} serves Produce up to version {version}, zstd needs "
                        f"{FIRST_VERSION_WITH_ZSTD}: choose another compression_type",
                        request="Produce",
                    )
                if batch.magic != magic:
                    self._results.rebuild(partition, batch, magic)
            except KafkaError as error:
                self._results.give_up(partition, batch, error)
                continue
            if idempotence.enabled:
                idempotence.stamp(partition, batch)
            fine.append((partition, batch))
        return fine

    # --- the request ------------------------------------------------------------------------------------------------

    def _send(self, connection: Connection, load: Load) -> None:
        if not load:
            return
        try:
            version, request = self._request(connection, load)
            if self._acks is Acks.NONE:
                written = connection.send(request, version=version, timeout=self._timeout, expect_response=False)
                written.add_done_callback(functools.partial(self._on_written, load))
            else:
                connection.send_for(Sending(self, load), request, version=version, timeout=self._timeout)
        except UnsupportedVersion as error:
            for partition, batch in load:
                self._results.give_up(partition, batch, error)
            return
        except KafkaError as error:
            self._lose(load, error)
            return
        self.in_flight += 1
        if self._hooks is not None:
            self._hooks.request(self.node_id, [batch for _, batch in load])

    def _request(self, connection: Connection, load: Load) -> tuple[int, produce.ProduceRequest]:
        version = connection.versions.pick(produce.ProduceRequest, self._parts.max_produce_version())
        topics: dict[str, produce.TopicProduceData] = {}
        for partition, batch in load:
            data = topics.get(partition.topic)
            if data is None:
                topic_id = self._topics.topic_id(partition.topic)
                if topic_id == ZERO_UUID and version >= FIRST_VERSION_WITH_IDS:
                    version = connection.versions.pick(produce.ProduceRequest, FIRST_VERSION_WITH_IDS - 1)
                data = topics[partition.topic] = produce.TopicProduceData(name=partition.topic, topic_id=topic_id)
            data.partition_data.append(produce.PartitionProduceData(index=partition.index, records=batch.data))
        for data in topics.values():
            if version >= FIRST_VERSION_WITH_IDS:
                data.name = ""
            else:
                data.topic_id = ZERO_UUID
        return version, produce.ProduceRequest(
            transactional_id=self._transactional_id,
            acks=int(self._acks),
            timeout_ms=int(self._config.request_timeout_ms),
            topic_data=list(topics.values()),
        )

    def on_response(self, load: Load, answer: produce.ProduceResponse) -> None:
        """Handle what the broker says about each batch."""
        self._handle(load, answer)

    def on_loss(self, load: Load, error: BaseException) -> None:
        """The request or its answer was lost: whether the broker has the batches is unknown."""
        self._handle(load, error if isinstance(error, Exception) else ConnectionFailed(str(error), stage="ready"))

    def _handle(self, load: Load, outcome: produce.ProduceResponse | Exception) -> None:
        """Handle it at once, unless there are many batches, or others of this broker come first."""
        if len(load) > AT_ONCE or self._in_slices_now:
            self._in_slices_now += 1
            self._parts.slices.add(self._in_slices(load, outcome))
            return
        self.in_flight -= 1
        try:
            if isinstance(outcome, Exception):
                self._lose(load, outcome)
            else:
                self._read(load, _entries(outcome))
        finally:
            self._parts.on_response()

    def _in_slices(self, load: Load, outcome: produce.ProduceResponse | Exception) -> Iterator[None]:
        """Handle it in slices; the request counts as in flight until its last batch is handled."""
        hints = self._topics.gather_hints()
        try:
            entries = {} if isinstance(outcome, Exception) else _entries(outcome)
            for start in range(0, len(load), SLICE):
                if start:
                    yield
                if isinstance(outcome, Exception):
                    self._lose(load[start : start + SLICE], outcome)
                else:
                    with hints:
                        self._read(load[start : start + SLICE], entries)
        except GeneratorExit:  # the loop has ended: nothing can be sent any more
            return
        except Exception:
            self._end_slices()
            raise
        hints.apply()
        self._end_slices()

    def _end_slices(self) -> None:
        self._in_slices_now -= 1
        self.in_flight -= 1
        self._parts.on_response()

    def _on_written(self, load: Load, _: asyncio.Future[produce.ProduceResponse]) -> None:
        """With acks=0 there is no response: the batches are delivered."""
        self.in_flight -= 1
        for partition, batch in load:
            self._results.deliver(partition, batch, -1, -1)
        self._parts.on_response()

    def _read(self, load: Load, by_partition: Entries) -> None:
        for partition, batch in load:
            entry = by_partition.get((partition.topic, partition.index))
            if entry is None:
                entry = by_partition.get((self._topics.topic_id(partition.topic), partition.index))
            if entry is None:
                missing = ProtocolViolation(
                    f"node {self.node_id} answered Produce without {partition.topic}[{partition.index}]"
                )
                self._results.retry(partition, batch, missing, refresh=True)
            else:
                self._results.handle(self.node_id, partition, batch, entry)

    def _lose(self, load: Load, error: Exception) -> None:
        for partition, batch in load:
            self._results.retry(partition, batch, error, refresh=True)

    # --- the task ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The sender's life; ends with the client's task group."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            self._busy = True
            try:
                await self._work()
            finally:
                self._busy = False
            self._parts.pump()

    async def _work(self) -> None:
        try:
            connection = await self._connected()
        except KafkaError as error:
            self._connection = None
            await self._on_unreachable(error)
            return
        if self._must_drain(connection):
            await self._drained(connection)
            return
        while self.in_flight < self._config.max_in_flight_requests_per_connection:
            load, self._load = self._load or self._plan(connection), []
            if not load:
                return
            fine = []
            for item in self._prepare(connection, load):
                if self._wants_thread(item[1]):
                    sealed = await self._sealed_in_thread(*item)
                else:
                    sealed = self._sealed(*item)
                if sealed:
                    fine.append(item)
            self._send(connection, fine)
            if len(load) > AT_ONCE:
                self._parts.end_turn()
                return

    async def _connected(self) -> Connection:
        connection = self._connection
        if connection is None or not connection.ready:
            connection = await self._topics.connect(self.node_id)
            self._connection = connection
            self._backoff.reset()
        return connection

    async def _drained(self, connection: Connection) -> None:
        with anyio.move_on_after(self._timeout):
            try:
                await connection.drained()
            except ConnectionFailed:
                self._connection = None

    async def _on_unreachable(self, error: KafkaError) -> None:
        """No connection: note why for each batch that waits, ask for newer metadata, pause."""
        load, self._load = self._load, []
        self._lose(load, error)
        for partition in list(self.ready):
            for batch in (*partition.queue, *([] if partition.open is None else [partition.open])):
                batch.last_error = error.with_traceback(None)
            self._topics.refresh(partition.topic, f"node {self.node_id} cannot be reached: {error}")
        await anyio.sleep(self._backoff.next())
