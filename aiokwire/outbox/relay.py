"""The relay: reads the rows of an outbox in order, and sends them until each is acknowledged."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import TracebackType
from typing import Any, ClassVar, Final, Self, Unpack

import anyio
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from aiokwire.clock import wall_ms
from aiokwire.cluster import Supervisor
from aiokwire.config import config_of, require_int, require_number
from aiokwire.errors import ClosedError
from aiokwire.metrics import CLIENT_ID, Metric, Sample
from aiokwire.outbox.health import METRICS, OutboxHealth, samples_of
from aiokwire.outbox.sending import RelayLoop
from aiokwire.outbox.table import Outbox
from aiokwire.producer import Producer, ProducerConfig, ProducerOptions

# A record of an outbox is retried until it is acknowledged: 24 days, the longest time.
NO_TIMEOUT_MS: Final = 2**31 - 1
# How long (seconds) what runs in the database may take after the end was asked for.
LAST_STEP_TIMEOUT: Final = 5.0


class OutboxRelay:
    """Sends the rows of an outbox to Kafka: at least once, those with the same key in order.

        relay = OutboxRelay(outbox, engine, "localhost:9092")
        services = Services(relay=relay)  # or: asyncio.run(relay.run())

    Of several relays of one table, in any processes, one sends; another one takes over when its
    connection to the database ends. A start needs neither the database nor Kafka: both are tried
    until they are reached.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = (*METRICS, *Producer.METRICS)

    def __init__(
        self,
        outbox: Outbox,
        database: AsyncEngine | str,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        batch_rows: int = 500,
        batch_bytes: int = 4 * 1024 * 1024,
        poll_interval_ms: float = 500,
        retention_ms: float = 0,
        stalled_after_ms: float = 30_000,
        producer: ProducerConfig[bytes, bytes] | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """Needs no running loop.

        Args:
            outbox: the table.
            database: an engine, which stays open, or a URL such as "postgresql+asyncpg://...".
            bootstrap_servers: brokers.
            batch_rows: the most rows that are read at once.
            batch_bytes: the most bytes of such rows; one row may be larger.
            poll_interval_ms: the interval at which the table is read while nothing wakes the relay.
            retention_ms: how long sent rows are kept; 0: they are deleted.
            stalled_after_ms: how long a row may wait before the relay is reported as not ready.
            producer: a config instead of options.
            options: those of `ProducerConfig`; `delivery_timeout_ms` is unlimited by default.

        Raises: ConfigurationError: an option is unknown or out of its range.
        """
        require_int("batch_rows", batch_rows, minimum=1, maximum=10_000)
        require_int("batch_bytes", batch_bytes, minimum=1)
        require_number("poll_interval_ms", poll_interval_ms, minimum=1)
        require_number("retention_ms", retention_ms, minimum=0)
        require_number("stalled_after_ms", stalled_after_ms, minimum=1)
        given: dict[str, Any] = {"bootstrap_servers": bootstrap_servers, **options}
        if producer is None:
            given = {"delivery_timeout_ms": NO_TIMEOUT_MS, **given}
        self._config: ProducerConfig[bytes, bytes] = config_of(ProducerConfig, producer, given)
        self._outbox = outbox
        self._own_engine = create_async_engine(database) if isinstance(database, str) else None
        engine = database if isinstance(database, AsyncEngine) else self._own_engine
        assert engine is not None
        self._loop = RelayLoop(
            outbox,
            engine,
            self._config,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            poll_interval=poll_interval_ms / 1000,
            retention_ms=int(retention_ms),
        )
        self._stalled_after = stalled_after_ms / 1000
        self._supervisor = Supervisor(f"relay of outbox {outbox.name!r}", self._on_end)
        self._state = "new"
        self._stop = anyio.Event()
        self.failure: BaseException | None = None

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to send, as soon as the database and Kafka are reached.

        Raises: ClosedError: it was started before.
        """
        if self._state != "new":
            raise ClosedError("this relay was already started; create a new one")
        self._state = "running"
        await self._supervisor.start()
        self._supervisor.spawn(self._run, name="outbox: relay")

    async def _run(self) -> None:
        await self._loop.run()
        self._supervisor.stop()

    async def close(self, timeout: float = LAST_STEP_TIMEOUT) -> None:
        """Stop: wait up to `timeout` seconds for the batch that is being sent. Rows that are not
        marked by then are sent again by the next relay."""
        if self._state == "new":
            self._state = "closed"
        if self._state == "running":
            self._state = "closed"
            self._loop.stop()
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(timeout):
                    await self._supervisor.wait()
                self._supervisor.stop()
                await self._supervisor.wait()
        if self._own_engine is not None:
            with anyio.CancelScope(shield=True):
                await self._own_engine.dispose()

    async def run(self) -> None:
        """Start, and send until SIGTERM or SIGINT: the main call of a process.

        Raises: what ended the relay.
        """
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with self, anyio.create_task_group() as group:

                async def wait(which: Any) -> None:
                    await which()
                    group.cancel_scope.cancel()

                group.start_soon(wait, signals.__anext__)
                group.start_soon(wait, self._supervisor.wait)
        if self.failure is not None:
            raise self.failure

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _on_end(self, failure: BaseException | None) -> None:
        self.failure = failure
        self._state = "closed"

    # --- monitoring ---------------------------------------------------------------------------------------------------

    def health(self) -> OutboxHealth:
        """Return the state as of the last measurement, which the relay that leads takes every two
        seconds. It sends no request."""
        loop = self._loop
        oldest = None if loop.oldest_ms is None else max(0.0, (wall_ms() - loop.oldest_ms) / 1000)
        return OutboxHealth(
            running=self._state == "running",
            is_leader=loop.is_leader,
            backlog=loop.backlog,
            oldest=oldest,
            rejected=loop.rejected,
            blocked=loop.blocked,
            database_error=loop.database_error,
            kafka_error=loop.kafka_error,
            producer=None if loop.producer is None else loop.producer.health(),
            stalled_after=self._stalled_after,
        )

    def metrics(self) -> list[Sample]:
        """Return all metrics now, those of the producer included."""
        labels = {CLIENT_ID: self._config.client_id}
        producer = self._loop.producer
        own = samples_of(self.health(), self._loop.sent, labels, self._outbox.name)
        return own + ([] if producer is None else producer.metrics())

    def __repr__(self) -> str:
        return f"<OutboxRelay {self._outbox.name!r} {self._state}, {self._loop.backlog} waiting>"
