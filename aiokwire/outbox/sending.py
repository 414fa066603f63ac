"""The loop of a relay: take the lead, read a batch, send it, mark what was acknowledged, repeat."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Final

import anyio
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time, wall_ms
from aiokwire.errors import ClosedError, InvalidArgument, KafkaError, RecordRejected
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.outbox.leadership import RENEWAL, Leadership, leadership_for
from aiokwire.outbox.store import OutboxRow, OutboxStore
from aiokwire.outbox.table import Outbox
from aiokwire.producer import Delivery, Producer, ProducerConfig

logger: FieldLogger = get_logger(__name__)

# The time between two measurements of the backlog, and between two looks at rows whose retention ended (seconds).
MEASURING: Final = 2.0
PRUNING: Final = 30.0
# How long (seconds) a topic that cannot be sent to is left out.
BLOCKED: Final = 5.0
# Bounds of a step that runs although the relay was cancelled (seconds).
LAST_STEP: Final = 3.0
# What a driver raises when the database is not reached.
DATABASE_ERRORS: Final = (SQLAlchemyError, OSError)


@contextlib.contextmanager
def _driver_errors() -> Iterator[None]:
    """Raise what a driver raises as ConnectionError; SQLAlchemy wraps only errors of statements."""
    try:
        yield
    except DATABASE_ERRORS:
        raise
    except Exception as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from error


def _summary(error: Exception) -> str:
    """Return an error in one line, without the statement that SQLAlchemy appends."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}".splitlines()[0]


class RelayLoop:
    """The one task of a relay, and what is known of the outbox."""

    def __init__(
        self,
        outbox: Outbox,
        engine: AsyncEngine,
        config: ProducerConfig[bytes, bytes],
        *,
        batch_rows: int,
        batch_bytes: int,
        poll_interval: float,
        retention_ms: int,
    ) -> None:
        self.is_leader: bool = False
        self.backlog: int = 0
        self.rejected: int = 0
        self.sent: int = 0
        self.oldest_ms: int | None = None
        self.blocked: dict[str, str] = {}  # topics, and why they cannot be sent to
        self.database_error: str = ""
        self.kafka_error: str = ""
        self.producer: Producer[bytes, bytes] | None = None
        self._name = outbox.name
        self._engine = engine
        self._config = config
        self._store = OutboxStore(outbox.table)
        self._leadership: Leadership = leadership_for(engine.dialect.name, outbox.table)
        self._batch_rows, self._batch_bytes = batch_rows, batch_bytes
        self._poll_interval = poll_interval
        self._retention_ms = retention_ms
        self._blocked_until: dict[str, float] = {}
        self._acknowledged: list[int] = []  # rows that were sent, and are not marked yet
        self._refused: dict[int, str] = {}  # rows that Kafka rejected, not marked yet
        self._measure_at = self._prune_at = 0.0
        self._is_stopping = False
        self._wake = anyio.Event()

    def stop(self) -> None:
        """End after the batch that is being sent."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Relay until stopped."""
        await self._repeat(self._with_producer, KafkaError, self._on_kafka_error)

    async def _repeat(
        self,
        step: Callable[[], Awaitable[None]],
        errors: type[Exception] | tuple[type[Exception], ...],
        note: Callable[[str], bool],
    ) -> None:
        """Repeat a step until stopped; after errors with growing pauses."""
        backoff = Backoff(0.1, 5.0, rng=random.Random())
        while not self._is_stopping:
            began = loop_time()
            try:
                await step()
            except errors as error:
                if loop_time() - began > MEASURING:
                    backoff.reset()
                text = _summary(error)
                if note(text):
                    logger.warning("outbox %r: %s; keeping its rows and retrying", self._name, text)
                await self._pause(backoff.next())

    def _on_kafka_error(self, error: str) -> bool:
        is_first, self.kafka_error = not self.kafka_error, error
        return is_first

    def _on_database_error(self, error: str) -> bool:
        is_first, self.database_error = not self.database_error, error
        return is_first

    async def _pause(self, seconds: float) -> None:
        """Wait until woken by NOTIFY or `stop`, at most for some seconds."""
        if not self._is_stopping:
            with anyio.move_on_after(seconds):
                await self._wake.wait()
        if not self._is_stopping:
            self._wake = anyio.Event()

    # --- Kafka and the database ---------------------------------------------------------------------------------------

    async def _with_producer(self) -> None:
        async with Producer(config=self._config) as self.producer:
            self.kafka_error = ""
            await self._repeat(self._with_connection, DATABASE_ERRORS, self._on_database_error)

    async def _with_connection(self) -> None:
        async with self._connected() as connection, self._listening(connection):
            while not self._is_stopping:
                is_leader = await self._leadership.acquire(connection)
                self._note_database(is_leader=is_leader)
                if not is_leader or not await self._relay(connection):
                    await self._pause(self._poll_interval)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        """Connect; at the end let another relay lead, also when this one is cancelled."""
        with _driver_errors():
            connection = await self._engine.connect()
        try:
            connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection
        finally:
            self.is_leader = False
            with anyio.move_on_after(LAST_STEP, shield=True), contextlib.suppress(*DATABASE_ERRORS):
                await self._leadership.release(connection)
            with anyio.move_on_after(LAST_STEP, shield=True), contextlib.suppress(*DATABASE_ERRORS):
                await connection.close()

    @contextlib.asynccontextmanager
    async def _listening(self, connection: AsyncConnection) -> AsyncIterator[None]:
        """Be woken by NOTIFY, if the driver is asyncpg."""
        if connection.dialect.driver == "asyncpg":
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            with _driver_errors():
                await driver.add_listener(self._name, lambda *_: self._wake.set())
        yield

    def _note_database(self, *, is_leader: bool) -> None:
        if self.database_error:
            logger.info("outbox %r: reconnected to the database", self._name)
            self.database_error = ""
        if is_leader != self.is_leader:
            logger.info("outbox %r: %s", self._name, "this relay sends" if is_leader else "another relay sends")
        if not is_leader:
            self.backlog, self.oldest_ms = 0, None
        self.is_leader = is_leader

    # --- a batch ------------------------------------------------------------------------------------------------------

    async def _relay(self, connection: AsyncConnection) -> bool:
        """Send one batch; return whether there was one."""
        await self._mark(connection)  # what an earlier connection could not
        await self._keep_house(connection)
        self._unblock()
        rows = await self._store.read(connection, self._batch_rows, self._batch_bytes, list(self.blocked))
        if not self.blocked:  # else older rows may be among those that were left out
            self.oldest_ms = rows[0].created_ms if rows else None
            self.backlog = max(self.backlog, len(rows)) if rows else 0
        if not rows:
            return False
        await self._await(connection, await self._submit(rows))
        await self._mark(connection)
        return True

    async def _submit(self, rows: list[OutboxRow]) -> list[tuple[OutboxRow, Delivery]]:
        assert self.producer is not None
        found = []
        for row in rows:
            if row.topic in self.blocked:
                continue
            headers = row.all_headers()
            try:
                delivery = await self.producer.submit(
                    row.topic, row.value, row.key, partition=row.partition, timestamp=row.created_ms, headers=headers
                )
            except KafkaError as error:
                self._on_failure(row, error)
            else:
                found.append((row, delivery))
        return found

    async def _await(self, connection: AsyncConnection, sent: list[tuple[OutboxRow, Delivery]]) -> None:
        """Wait until every row is acknowledged or refused, however long that takes."""
        renew_at = loop_time() + RENEWAL
        for row, delivery in sent:
            while not delivery.done():
                with anyio.CancelScope(deadline=renew_at), contextlib.suppress(KafkaError):
                    await delivery
                if loop_time() >= renew_at:
                    renew_at = loop_time() + RENEWAL
                    with contextlib.suppress(*DATABASE_ERRORS):  # the rows are marked by a later connection
                        await self._leadership.acquire(connection)
            error = delivery.exception()
            if error is None:
                self._acknowledged.append(row.id)
            else:
                self._on_failure(row, error)

    def _on_failure(self, row: OutboxRow, error: KafkaError) -> None:
        """Note a row that Kafka rejected, or a topic that cannot be sent to at present.

        Raises: ClosedError: the producer has ended.
        """
        if isinstance(error, ClosedError):
            raise error
        if isinstance(error, (RecordRejected, InvalidArgument)):
            self._refused[row.id] = f"{type(error).__name__}: {error}"
            logger.error(
                "outbox %r: row %d for topic %r was rejected: %s. The row stays in the table with this error; correct "
                "it and set its error to NULL, or delete it",
                self._name, row.id, row.topic, error,
            )  # fmt: skip
            return
        if row.topic not in self._blocked_until:
            logger.warning("outbox %r: cannot send to topic %r: %s; retrying", self._name, row.topic, error)
        self.blocked[row.topic] = str(error)
        self._blocked_until[row.topic] = loop_time() + BLOCKED

    def _unblock(self) -> None:
        """Try topics again whose pause is over."""
        now = loop_time()
        self.blocked = {topic: error for topic, error in self.blocked.items() if self._blocked_until[topic] > now}

    async def _mark(self, connection: AsyncConnection) -> None:
        """Mark what was acknowledged or refused; the next connection repeats what fails here."""
        if self._acknowledged:
            sent_ms = wall_ms() if self._retention_ms else None
            await self._store.finish(connection, self._acknowledged, sent_ms)
            self.sent += len(self._acknowledged)
            self._acknowledged = []
        for row_id, error in list(self._refused.items()):
            await self._store.reject(connection, row_id, error)
            del self._refused[row_id]

    async def _keep_house(self, connection: AsyncConnection) -> None:
        """Measure the backlog, and delete rows whose retention has ended, from time to time."""
        now = loop_time()
        if now >= self._measure_at:
            self._measure_at = now + MEASURING
            self.backlog, self.oldest_ms, self.rejected = await self._store.backlog(connection)
        if self._retention_ms and now >= self._prune_at:
            pruned = await self._store.prune(connection, wall_ms() - self._retention_ms)
            self._prune_at = now if pruned else now + PRUNING
