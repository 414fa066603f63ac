"""Sends sealed batches of partitions that one broker leads, in several Produce requests at a time.

`pump` sends what needs no wait (the connection is ready, nothing is to be compressed) in the same
turn of the loop. The sender's task does the rest: connecting, compressing in a thread, waiting for
a paused socket. `responses.py` decides what a response means, `batch_results.py` acts on it.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import anyio

from aiokwire.clock import clock_of
from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, UnsupportedVersion
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import Connection
from aiokwire.producer import planning
from aiokwire.producer._delivery import Batch
from aiokwire.producer.config import MAX_REQUEST_BYTES, ProducerConfig
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import produce
from aiokwire.threads import run_in_thread
from aiokwire.types import Acks, Compression

if TYPE_CHECKING:
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.batch_results import BatchResults
    from aiokwire.producer.hooks import ProducerHooks
    from aiokwire.producer.idempotence import Idempotence
    from aiokwire.producer.metrics import ProducerCounts
    from aiokwire.producer.scheduler import BatchScheduler
    from aiokwire.producer.topics import Hints, Topics

logger: FieldLogger = get_logger("aiokwire.producer")

FIRST_VERSION_WITH_IDS = produce.ProduceRequest.FIRST_VERSION_WITH["topic_id"]  # and without names (KIP-516)
# The first version with zstd.
FIRST_VERSION_WITH_ZSTD = 7
# Work for more partitions than this is divided into slices, one per turn of the loop.
AT_ONCE: Final = 50
# The partitions of one slice.
SLICE: Final = 100
# The batches of one request, and the most that are sent in one turn after a request larger than `AT_ONCE`.
MOST_BATCHES: Final = 250

Load = list[tuple["Partition", Batch]]
Entries = dict[tuple[str | bytes, int], produce.PartitionProduceResponse]


def _entries(answer: produce.ProduceResponse) -> Entries:
    """Return the entries of a Produce response by topic (its name or id) and partition."""
    return {
        (topic.name or topic.topic_id, entry.index): entry
        for topic in answer.responses
        for entry in topic.partition_responses
    }


class Slices:
    """Jobs for many partitions: a step of the oldest in each loop turn, so other callbacks run."""

    def __init__(self) -> None:
        self._jobs: collections.deque[Iterator[None]] = collections.deque()
        self._scheduled = False

    def add(self, job: Iterator[None]) -> None:
        """Run the first step at once, unless another step ran in this turn."""
        self._jobs.append(job)
        if not self._scheduled:
            self._step()

    def _step(self) -> None:
        self._scheduled = bool(self._jobs)
        if not self._jobs:
            return
        asyncio.get_running_loop().call_soon(self._step)
        try:
            next(self._jobs[0])
        except StopIteration:
            self._jobs.popleft()
        except Exception:
            self._jobs.popleft()
            raise


class Sending:
    """A Produce request in flight, used like a future: it handles the response in the turn of the
    loop in which it arrives, so that the batches that wait for it are sent in the same turn."""

    __slots__ = ("_load", "_sender")

    def __init__(self, sender: Sender, load: Load) -> None:
        self._sender = sender
        self._load = load

    def done(self) -> bool:
        """Return False: a response or a loss is expected."""
        return False

    def set_result(self, answer: produce.ProduceResponse) -> None:
        """Handle the response."""
        try:
            self._sender.on_response(self._load, answer)
        except Exception as error:  # must not reach the connection, which calls this
            context = {"message": "the response to a Produce request cannot be handled", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def set_exception(self, error: BaseException) -> None:
        """Handle the request's loss a turn later: the connection that calls this is closing."""
        asyncio.get_running_loop().call_soon(self._sender.on_loss, self._load, error)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SenderParts:
    """The collaborators of all senders of a producer; callbacks run on the loop."""

    config: ProducerConfig
    topics: Topics
    results: BatchResults
    idempotence: Idempotence
    slices: Slices
    hooks: ProducerHooks | None
    counts: ProducerCounts
    rng: random.Random
    scheduler: BatchScheduler
    max_produce_version: Callable[[], int | None]
    """The newest version of Produce that is allowed; None: any."""
    want_producer_id: Callable[[], None]
    on_encoded: Callable[[Batch], None]
    """A batch has its final bytes."""
    on_response: Callable[[], None]
    """The batches of a request were handled: there is room in the buffer and for another request."""
    on_throttled: Callable[[int, float, float], None]
    """(node id, until, now): a broker's quota holds batches back."""


class Sender:
    """Sends batches of partitions that one broker leads, partly in its own task; on the loop."""

    def __init__(self, node_id: int, parts: SenderParts) -> None:
        config = parts.config
        self.node_id = node_id
        self.ready: dict[Partition, None] = {}  # with sealed batches for this broker; in the order of their turns
        self.in_flight: int = 0
        self._in_slices_now = 0  # responses that are being handled in slices
        self._parts = parts
        self._results = parts.results
        self._topics = parts.topics
        self._idempotence = parts.idempotence
        self._hooks = parts.hooks
        self._counts = parts.counts
        self._scheduler = parts.scheduler
        self._now = clock_of(parts.scheduler.loop)
        self._config = config
        self._codec = config.codec
        self._compresses = config.codec is not Compression.NONE
        self._acks = config.acknowledgements
        self._expects_response = config.acknowledgements is not Acks.NONE
        self._max_in_flight = config.max_in_flight_requests_per_connection
        self._transactional_id = config.transactional_id
        self._timeout = config.request_timeout
        self._connection: Connection | None = None
        self._wake = anyio.Event()
        self._busy = False  # the task sends, not `pump`
        self._load: Load = []  # planned, waiting for the task to compress it
        self._backoff = config.new_backoff(parts.rng)

    @property
    def is_free(self) -> bool:
        """Whether it can send another request."""
        return not self._busy and self.in_flight < self._max_in_flight

    # --- at once ----------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what can be sent without a wait; wake the task for the rest."""
        if self._busy or not self.ready:
            return
        connection = self._connection
        if connection is None or not connection.ready or self._must_drain(connection):
            if self._may_leave(self._now(), most=1):
                self._hand_over()
            return
        while self.ready and self.in_flight < self._max_in_flight:
            load = self._plan(connection)
            if not load:
                return
            if self._compresses and any(self._wants_thread(batch) for _, batch in load):
                self._load = load
                self._hand_over()
                return
            self._seal_and_send(connection, load)
            if self._must_drain(connection) or not connection.ready:
                self._hand_over()
                return
            if len(load) > AT_ONCE:
                self._scheduler.end_turn()
                return

    def _hand_over(self) -> None:
        self._busy = True
        self._wake.set()

    def _must_drain(self, connection: Connection) -> bool:
        # Responses bound what is in flight; with acks=0 the socket's buffer does.
        return not self._expects_response and connection.write_paused

    def _may_leave(self, now: float, *, most: int) -> list[Partition]:
        return planning.plan_request(
            self.ready,
            now,
            idempotent=self._idempotence.enabled,
            max_in_flight=self._max_in_flight,
            max_bytes=MAX_REQUEST_BYTES,
            most=most,
        )

    def _plan(self, connection: Connection) -> Load:
        """The batches of the next request; from here on they are in flight."""
        now = self._now()
        if connection.throttled_until > now:
            self._scheduler.wake_at(connection.throttled_until)
            self._parts.on_throttled(self.node_id, connection.throttled_until, now)
            return []
        idempotence = self._idempotence
        for partition in [p for p in self.ready if not p.queue or p.leader != self.node_id]:
            del self.ready[partition]
        load: Load = []
        for partition in self._may_leave(now, most=MOST_BATCHES):
            if idempotence.enabled and not idempotence.can_stamp(partition):
                self._parts.want_producer_id()
                continue
            batch = partition.take_next()
            if batch.attempts == 1:
                self._counts.left(batch, now)
            load.append((partition, batch))
            del self.ready[partition]
            if partition.queue:  # its next turn is after those of all others
                self.ready[partition] = None
        return load

    def _wants_thread(self, batch: Batch) -> bool:
        return self._compresses and batch.data is None and batch.size >= planning.COMPRESS_IN_THREAD

    def _seal_and_send(self, connection: Connection, load: Load) -> None:
        sound = self._prepare(connection, load)
        self._send(connection, [item for item in sound if self._sealed(*item)])

    def _sealed(self, partition: Partition, batch: Batch) -> bool:
        """Whether the batch has its final bytes; a batch that cannot be encoded fails."""
        if batch.data is None:
            try:
                batch.seal(self._codec, self._config.compression_level, self._transactional_id is not None)
            except Exception as error:
                self._cannot_encode(partition, batch, error)
                return False
            self._parts.on_encoded(batch)
        return True

    async def _sealed_in_thread(self, partition: Partition, batch: Batch) -> bool:
        try:
            transactional = self._transactional_id is not None
            await run_in_thread(batch.seal, self._codec, self._config.compression_level, transactional)
        except Exception as error:
            self._cannot_encode(partition, batch, error)
            return False
        self._parts.on_encoded(batch)
        return True

    def _cannot_encode(self, partition: Partition, batch: Batch, error: Exception) -> None:
        place = {"client_id": self._config.client_id, "topic": batch.topic, "partition": batch.partition}
        logger.error("a batch for %s cannot be encoded", batch.place, exc_info=error, extra=place)
        failed = KafkaError(f"{batch.count} record(s) for {batch.place} cannot be encoded: {error!r}")
        self._results.give_up(partition, batch, failed)

    def _prepare(self, connection: Connection, load: Load) -> Load:
        """Convert batches to this broker's format and number them; those it cannot take fail."""
        version = connection.versions.pick(produce.ProduceRequest)
        magic = planning.format_of(version)
        idempotence = self._idempotence
        sound: Load = []
        for partition, batch in load:
            try:
                if self._codec is Compression.ZSTD and version < FIRST_VERSION_WITH_ZSTD:
                    raise UnsupportedVersion(
                        f"node {self.node_id} supports Produce up to version {version}, but zstd needs "
                        f"version {FIRST_VERSION_WITH_ZSTD}: choose another compression_type",
                        request="Produce",
                    )
                if batch.magic != magic:
                    self._results.rebuild(partition, batch, magic)
            except KafkaError as error:
                self._results.give_up(partition, batch, error)
                continue
            if idempotence.enabled:
                idempotence.stamp(partition, batch)
            sound.append((partition, batch))
        return sound

    # --- the request ------------------------------------------------------------------------------------------------

    def _send(self, connection: Connection, load: Load) -> None:
        if not load:
            return
        try:
            version, request = self._request(connection, load)
            if self._expects_response:
                connection.send_for(Sending(self, load), request, version=version, timeout=self._timeout)
            else:
                written = connection.send(request, version=version, timeout=self._timeout, expect_response=False)
                written.add_done_callback(functools.partial(self._on_written, load))
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
        ids: dict[str, bytes] = {}
        for partition, _ in load:
            if partition.topic not in ids:
                ids[partition.topic] = self._topics.topic_id(partition.topic)
        if version >= FIRST_VERSION_WITH_IDS and ZERO_UUID in ids.values():
            version = connection.versions.pick(produce.ProduceRequest, FIRST_VERSION_WITH_IDS - 1)
        topics: dict[str, produce.TopicProduceData] = {}
        for partition, batch in load:
            topic = topics.get(partition.topic)
            if topic is None:
                by_id = version >= FIRST_VERSION_WITH_IDS
                topic = topics[partition.topic] = produce.TopicProduceData(
                    name="" if by_id else partition.topic, topic_id=ids[partition.topic] if by_id else ZERO_UUID
                )
            topic.partition_data.append(produce.PartitionProduceData(index=partition.index, records=batch.data))
        return version, produce.ProduceRequest(
            transactional_id=self._transactional_id,
            acks=int(self._acks),
            timeout_ms=int(self._config.request_timeout_ms),
            topic_data=list(topics.values()),
        )

    def on_response(self, load: Load, answer: produce.ProduceResponse) -> None:
        """Handle the broker's response for each batch."""
        self._handle(load, answer)

    def on_loss(self, load: Load, error: BaseException) -> None:
        """Handle a lost request or response: whether the broker has the batches is not known."""
        self._handle(load, error if isinstance(error, Exception) else ConnectionFailed(str(error), stage="ready"))

    def _handle(self, load: Load, outcome: produce.ProduceResponse | Exception) -> None:
        """Handle it at once, unless it has many batches or the broker's earlier responses wait."""
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
        hints: Hints = []
        try:
            entries = {} if isinstance(outcome, Exception) else _entries(outcome)
            for start in range(0, len(load), SLICE):
                if start:
                    yield
                if isinstance(outcome, Exception):
                    self._lose(load[start : start + SLICE], outcome)
                else:
                    with self._topics.gather(hints):
                        self._read(load[start : start + SLICE], entries)
        except GeneratorExit:  # the loop has ended
            return
        except Exception:
            self._end_slices()
            raise
        for partition, hint in hints:
            self._topics.on_leader(partition, hint)
        self._end_slices()

    def _end_slices(self) -> None:
        self._in_slices_now -= 1
        self.in_flight -= 1
        self._parts.on_response()

    def _on_written(self, load: Load, _: asyncio.Future[produce.ProduceResponse]) -> None:
        """Deliver batches that were written with acks=0, which get no response."""
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
                missing = ProtocolViolation(f"the Produce response of node {self.node_id} lacks {batch.place}")
                self._results.retry(partition, batch, missing, refresh=True)
            else:
                self._results.handle(self.node_id, partition, batch, entry)

    def _lose(self, load: Load, error: Exception) -> None:
        for partition, batch in load:
            self._results.retry(partition, batch, error, refresh=True)

    # --- the task ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send what `pump` leaves to the task, until the client's task group ends."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            self._busy = True
            try:
                await self._work()
            finally:
                self._busy = False
            self._scheduler.pump()

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
        while self.in_flight < self._max_in_flight:
            load, self._load = self._load or self._plan(connection), []
            if not load:
                return
            sound = []
            for item in self._prepare(connection, load):
                if self._wants_thread(item[1]):
                    sealed = await self._sealed_in_thread(*item)
                else:
                    sealed = self._sealed(*item)
                if sealed:
                    sound.append(item)
            self._send(connection, sound)
            if len(load) > AT_ONCE:
                self._scheduler.end_turn()
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
        """Set each waiting batch's error, request newer metadata, and pause: no connection."""
        load, self._load = self._load, []
        self._lose(load, error)
        for partition in list(self.ready):
            for batch in (*partition.queue, *([] if partition.open is None else [partition.open])):
                batch.set_last_error(error)
            self._topics.refresh(partition.topic, f"node {self.node_id} cannot be reached: {error}")
        await anyio.sleep(self._backoff.next())
