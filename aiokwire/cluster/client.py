"""The client of one cluster, which producer, consumer and admin client share.

request() -> route (any, node, leader, coordinator, controller) -> connection of a lane -> response,
                                                                        retried until the deadline
metadata ----> snapshots of the cluster, refreshed in the background
supervisor --> the task group of all background tasks
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, TypeVarTuple, Unpack, overload

import anyio

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time
from aiokwire.cluster.bootstrap import STAGGER, Bootstrap, Search, ask_metadata, asks_to_rebootstrap, same_broker
from aiokwire.cluster.config import REBOOTSTRAP, ClientConfig, ClientOptions
from aiokwire.cluster.coordinators import Coordinators
from aiokwire.cluster.fetch import DEFAULT_MAX_BYTES, DEFAULT_MAX_WAIT, Fetched, Terms, fetch
from aiokwire.cluster.list_offsets import list_offsets
from aiokwire.cluster.metadata import Metadata
from aiokwire.cluster.metrics import METRICS, samples_of
from aiokwire.cluster.nodes import MAIN, Nodes, failure_level
from aiokwire.cluster.router import Router, Version, most_severe
from aiokwire.cluster.snapshot import Cluster
from aiokwire.cluster.supervisor import Supervisor
from aiokwire.cluster.targets import ANY, Target
from aiokwire.cluster.unclosed import Owner, Unclosed
from aiokwire.config import config_of, documents_options
from aiokwire.errors import ClosedError, ConnectionFailed, KafkaError
from aiokwire.hooks import Hooks
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.metrics import Metric, Sample
from aiokwire.net import Address, ApiVersions, Connection, Race
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import metadata
from aiokwire.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from aiokwire.security import ClientSecurity

ResponseT = TypeVar("ResponseT", bound=Response)
AnswerT = TypeVar("AnswerT")
Args = TypeVarTuple("Args")

logger: FieldLogger = get_logger(__name__)

# The default timeout of `close` (seconds), in which sockets write the bytes that they still hold.
CLOSE_TIMEOUT: Final = 5.0


@documents_options(ClientConfig)
class Client(Owner):
    """A client of one cluster, which can send any request of the protocol.

    Creating it needs no event loop; it belongs to the loop on which it is started.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = METRICS

    @overload
    def __init__(
        self,
        config: ClientConfig,
        /,
        *,
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        unclosed: Unclosed | None = ...,
    ) -> None: ...

    @overload
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = ...,
        *,
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        **options: Unpack[ClientOptions],
    ) -> None: ...

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | ClientConfig | None = None,
        *,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        unclosed: Unclosed | None = None,
        **options: Any,
    ) -> None:
        """Create a client from the options of `ClientConfig`, or from one config.
        `unclosed`: of its owner, which is to be closed instead.

        Raises: ConfigurationError: an option is unknown or invalid.
        """
        given = bootstrap_servers if isinstance(bootstrap_servers, ClientConfig) else None
        if given is None:
            options["bootstrap_servers"] = bootstrap_servers
        config = config_of(ClientConfig, given, options)
        self.config: ClientConfig = config
        self.rng: random.Random = rng if rng is not None else random.Random()
        self._is_owned = unclosed is not None
        self._unclosed = Unclosed() if unclosed is None else unclosed
        self._hooks = hooks if type(hooks) is not Hooks else None
        self._security = _new_security(config)
        self.nodes: Nodes = Nodes(config, spawn=self.spawn, rng=self.rng, hooks=self._hooks, security=self._security)
        self.metadata: Metadata = Metadata(
            config, ask=self._ask_metadata, backoff=self.new_backoff(), hooks=self._hooks
        )
        self.coordinators: Coordinators = Coordinators(
            self, spawn=self.spawn, learn=self.nodes.learn, new_backoff=self.new_backoff
        )
        self.metadata.add_listener(lambda cluster: self.nodes.follow(cluster.brokers))
        self._router = Router(self)
        self._supervisor: Supervisor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._ready = False  # the first metadata was received
        self._closed = False
        self._starting = anyio.Lock()
        self._starts = 0  # attempts to start that failed
        self._refusal: Exception | None = None  # why the last one failed
        self._start_scope: anyio.CancelScope | None = None  # around the bootstrap: `close` ends it
        self._is_resetting = False  # the client may be started again
        self._failure: BaseException | None = None  # what ended the client, unless `close` did
        self._ending = anyio.Event()
        self._closing: list[Connection] = []

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self, timeout: float | None = None) -> None:
        """Connect; retry for `timeout` seconds (default: `bootstrap_timeout_ms`) without response.

        A start that fails or is cancelled leaves nothing open and may be repeated. A second caller
        waits for the outcome of the first.

        Raises: ConnectionFailed: no broker could be reached, with each address, its IPs and stage;
        KafkaError: at once, if a retry does not help (TLS or SASL refused the client, the port does
        not speak Kafka, a version is missing, the response is implausible); ClosedError: the client
        was closed.
        """
        if self._supervisor is not None:
            self.check()  # also that this is the client's loop
        failed = self._starts
        async with self._starting:
            if self._supervisor is None:
                if self._starts != failed and self._refusal is not None:
                    raise self._refusal  # of the attempt that this caller waited for
                await self._start(self.config.bootstrap_timeout if timeout is None else timeout)
            self.check()

    async def _start(self, timeout: float) -> None:
        if self._closed:
            raise ClosedError("this client was closed; create a new one")
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._supervisor = Supervisor(f"aiokwire client {self.config.client_id!r}", self._on_end)
        try:
            await self._supervisor.start()
            with anyio.CancelScope() as self._start_scope:
                if self._security is not None:
                    await self._security.prepare()
                await self._find_cluster(timeout)
            self.check()
            self.spawn(self.metadata.run, name="metadata")
            self.spawn(self.nodes.reap, name="reaper")
            self._ready = True
            if not self._is_owned:
                self._unclosed.watch(self, self.config.client_id)
        except BaseException as error:
            self._starts += 1
            self._refusal = error if isinstance(error, Exception) else None
            with anyio.CancelScope(shield=True):
                await self.reset(timeout=1.0)
            raise
        finally:
            self._start_scope = None

    async def _find_cluster(self, timeout: float) -> None:
        search = Search(
            self._new_bootstrap, backoff=self.new_backoff(), pause=self.pause, client_id=self.config.client_id
        )
        connection, answer = await search.run(self.metadata.interest(), timeout)
        self._keep(connection, answer)  # first: from now on it is closed with the client
        await self.metadata.accept_first(answer)

    async def reset(self, timeout: float | None = None) -> None:
        """Undo `start`: close everything, so it can be called again. A closed client stays closed.

        Takes at most `timeout` seconds (default: 5).
        """
        supervisor = self._supervisor
        if supervisor is None or self.forked:
            return
        self._is_resetting = True
        try:
            await self._shut_down(supervisor, timeout)
        finally:
            self._is_resetting = False
        if self._closed or not self._ending.is_set():
            self._closed = True
            return
        self._supervisor = self._loop = None
        self._ready = False
        self._ending = anyio.Event()
        self.metadata.revive()

    async def close(self, timeout: float | None = None) -> None:
        """Stop everything; waiters get ClosedError or ConnectionFailed. Repeatable, from any task.

        Takes at most `timeout` seconds (default: 5).

        Raises: ClosedError: it runs on another event loop.
        """
        supervisor = self._supervisor
        if self.forked:
            return
        if supervisor is not None and not self._ending.is_set() and asyncio.get_running_loop() is not self._loop:
            raise ClosedError("this client was started on another event loop: close it there")
        self._closed = True
        self._unclosed.forget()
        if self._start_scope is not None:
            self._start_scope.cancel()
        if supervisor is not None:
            await self._shut_down(supervisor, timeout)

    async def _shut_down(self, supervisor: Supervisor, timeout: float | None) -> None:
        supervisor.stop()
        try:
            with anyio.move_on_after(CLOSE_TIMEOUT if timeout is None else timeout):
                await supervisor.wait()
                if self._security is not None:
                    await self._security.close()
                for connection in self._closing:
                    await connection.wait_closed()
        finally:
            for connection in self._closing:
                connection.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed or has failed."""
        return self._closed or self._failure is not None

    def check(self) -> None:
        """Check that the client can be used here.

        Raises: ClosedError: not started, closed, failed, forked, or used from another event loop.
        """
        if self._loop is None:
            raise ClosedError("this client was not started: use `async with`, or await start()")
        self.check_place()
        if self._failure is not None:
            raise ClosedError(f"this client ended when a background task failed: {self._failure!r}") from self._failure
        if self._closed:
            raise ClosedError("this client was closed; create a new one")

    @property
    def forked(self) -> bool:
        """Whether this is a copy in a forked process: the sockets and tasks are the parent's."""
        return self._loop is not None and self._pid != os.getpid()

    def check_place(self) -> None:
        """Check that this is the process, thread and event loop that started it.

        Raises: ClosedError: this is another one.
        """
        if self.forked:
            raise ClosedError(
                f"this client was started in process {self._pid} and is used in its fork {os.getpid()}: "
                "create clients after the fork"
            )
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._loop:
            raise ClosedError(
                "this client was started on another event loop: use it there, or create one for each loop"
            )

    def spawn(
        self, func: Callable[[*Args], Coroutine[Any, Any, object]], *args: *Args, name: str | None = None
    ) -> None:
        """Run a background task until it or the client ends; its exception ends the client.

        Raises: ClosedError: the client runs no tasks.
        """
        self.check()
        assert self._supervisor is not None
        self._supervisor.spawn(func, *args, name=name)

    def _on_end(self, failure: BaseException | None) -> None:
        """Called when the task group has ended, by `close` or by a failure."""
        self._failure = failure
        self._closing = self.nodes.close()
        reason = ClosedError(
            "the client was closed" if failure is None else f"the client ended when a task failed: {failure!r}"
        )
        self._closed = self._closed or not self._is_resetting
        self.metadata.fail(reason)
        self.coordinators.fail(reason)
        self._ending.set()
        if failure is not None:
            self._unclosed.forget()
        elif not self._is_resetting:
            self._unclosed.warn(self)  # last, because a warning may be an error

    def __repr__(self) -> str:
        state = "closed" if self.closed else "ready" if self._ready else "new"
        return f"<Client {self.config.client_id} {state}, {len(self.cluster.brokers)} brokers>"

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The newest snapshot."""
        return self.metadata.cluster

    def throttled_until(self, node_id: int) -> float:
        """Return the loop time until which a broker throttles this client; past if none does."""
        return self.nodes.throttled_until(node_id)

    def metrics(self) -> list[Sample]:
        """Return all metrics now; docs/metrics.md lists them.

        Costs no request. May be called from any thread, before the start and after the end.
        """
        return samples_of(self)

    def elapsed_since(self, at: float | None) -> float | None:
        """Return the seconds since a time of the loop's clock, from any thread; None: unknown."""
        return None if at is None or self._loop is None else max(0.0, self._loop.time() - at)

    def new_backoff(self) -> Backoff:
        """Return a backoff with the configured pauses between retries."""
        return self.config.new_backoff(self.rng)

    async def pause(self, seconds: float) -> None:
        """Sleep, at most until the client ends."""
        with anyio.move_on_after(seconds):
            await self._ending.wait()

    # --- connections and requests ------------------------------------------------------------------------------------

    def connection_nowait(self, node_id: int, lane: str = MAIN) -> Connection | None:
        """Return the ready connection of a lane, if any."""
        return self.nodes.ready(node_id, lane)

    async def connection(self, node_id: int, lane: str = MAIN, timeout: float | None = None) -> Connection:
        """Return the ready connection of a lane. Connects on demand, after the reconnect backoff.

        Raises: ConnectionFailed: the attempt failed or took longer than `timeout` (seconds,
        default: request_timeout_ms); ClosedError: the client cannot be used.
        """
        self.check()
        return await self.nodes.connection(node_id, lane, self.config.request_timeout if timeout is None else timeout)

    async def request(
        self,
        request: Request[ResponseT],
        *,
        to: Target = ANY,
        timeout: float | None = None,
        version: Version = None,
    ) -> ResponseT:
        """Send any request of the protocol to its target, and retry it until a deadline.

        `timeout` in seconds (default: default_api_timeout_ms); `version` may be a function of the
        node's versions. Retries after lost connections, timeouts of single attempts and retriable
        error codes of coordinators and the controller, but does not repeat a Produce that may have
        been written. The caller checks other error codes.

        Raises: RequestTimedOut: the deadline passed; names the attempts and the last error;
        UnsupportedVersion: the broker cannot do it; ProtocolViolation: the response is unreadable;
        BrokerError: the target cannot be found; ClosedError: the client cannot be used.
        """
        self.check()
        return await self._router.request(request, to, timeout, version)

    async def ask_any(self, build: Callable[[ApiVersions], tuple[Request[ResponseT], int]]) -> ResponseT:
        """Send a request for any node, built for the node's versions; try each node at most once.

        Raises: ConnectionFailed, RequestTimedOut: no response; BrokerError: as node versions allow.
        """
        self.check()

        async def ask(node_id: int) -> ResponseT:
            connection = await self.nodes.connection(node_id, MAIN, self.config.request_timeout)
            request, version = build(connection.versions)
            return await connection.request(request, version=version)

        return await self.race_nodes(ask)

    async def race_nodes(self, ask: Callable[[int], Awaitable[AnswerT]], avoid: Collection[int] = ()) -> AnswerT:
        """Ask the least busy node, and another each `STAGGER` seconds until the first response.

        Nodes in `avoid` and those in backoff are left out while there are others; nodes that missed
        a deadline come last. `ask` must be safe to repeat.

        Raises: KafkaError: no node responded.
        """
        nodes = self.nodes.by_load(avoid)
        if not nodes:
            node_id = self.nodes.least_loaded(avoid)
            if node_id is None:
                self.metadata.request_update("no broker is known")
                raise ConnectionFailed("the metadata contains no broker to send the request to", stage="resolve")
            nodes = [node_id]
        race = self._new_race(nodes, ask)
        answer = await race.run()
        if answer is None:
            raise most_severe(race.errors.values())
        return answer

    def _new_race(self, nodes: Sequence[int], ask: Callable[[int], Awaitable[AnswerT]]) -> Race[AnswerT]:
        return Race(
            [lambda node=node: ask(node) for node in nodes],  # type: ignore[misc]  # mypy cannot type a lambda's default
            delay=STAGGER,
            expected=KafkaError,
        )

    # --- for tools that keep their own state -------------------------------------------------------------------------

    async def fetch(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        min_bytes: int = 1,
        max_wait: float = DEFAULT_MAX_WAIT,
        isolation_level: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, Fetched]:
        """Fetch once from each partition's leader at the given offset; keep no position or session.

        A broker waits up to `max_wait` seconds for `min_bytes`. `max_bytes` is per partition; the
        first batch is whole even if larger. Retriable errors are retried for `timeout` seconds.

        Raises: OffsetOutOfRange: a partition no longer has its offset; CorruptRecord: a
        batch is corrupt; BrokerError: a broker refuses a partition; RequestTimedOut: the timeout
        expired, with the last error.
        """
        self.check()
        isolation = IsolationLevel.parse(isolation_level)
        terms = Terms(max_bytes=max_bytes, min_bytes=min_bytes, max_wait=max_wait, isolation=isolation)
        return await fetch(self, offsets, terms, timeout=self._timeout_of(timeout))

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return for each partition the offset at a time, in milliseconds since the epoch.

        In place of a time: `EARLIEST`, `LATEST`, `MAX_TIMESTAMP`, `EARLIEST_LOCAL`, `LATEST_TIERED`
        of `aiokwire.cluster`. The offset is -1 if every record is older.

        Raises: BrokerError: a broker refuses a partition, or is too old; RequestTimedOut: the
        deadline passed.
        """
        self.check()
        isolation = IsolationLevel.parse(isolation_level)
        return await list_offsets(self, times, isolation=isolation, timeout=self._timeout_of(timeout))

    def _timeout_of(self, timeout: float | None) -> float:
        return self.config.default_api_timeout if timeout is None else timeout

    # --- metadata ----------------------------------------------------------------------------------------------------

    async def _ask_metadata(self, topics: Collection[str] | None) -> metadata.MetadataResponse:
        """Ask a known broker; bootstrap again if none responds or refreshes fail for too long."""
        failure: KafkaError | None = None
        if not self._overdue():
            nodes = self.nodes.by_load()
            race = self._new_race(nodes, lambda node_id: self._ask_node(node_id, topics))
            answer = await race.run() if nodes else None
            if answer is not None:
                return answer
            errors = [error for error in race.errors.values() if isinstance(error, KafkaError)]
            failure = errors[-1] if errors else ConnectionFailed("every known broker is backing off", stage="connect")
            if self.config.metadata_recovery_strategy != REBOOTSTRAP and not any(map(asks_to_rebootstrap, errors)):
                raise failure
        connection, answer = await self._new_bootstrap().run(topics)
        level = logging.INFO if failure is None else failure_level(failure)
        logger.log(level, "re-bootstrapped through %s (previous error: %s)", connection.who, failure)
        self._keep(connection, answer)
        return answer

    def _overdue(self) -> bool:
        """Whether refreshes have failed beyond `metadata_recovery_rebootstrap_trigger_ms`."""
        updated = self.metadata.updated_at
        limit = self.config.metadata_recovery_rebootstrap_trigger
        failing = self.metadata.last_error is not None and self.config.metadata_recovery_strategy == REBOOTSTRAP
        return failing and updated is not None and loop_time() - updated >= limit

    async def _ask_node(self, node_id: int, topics: Collection[str] | None) -> metadata.MetadataResponse:
        connection = await self.nodes.connection(node_id, MAIN, self.config.request_timeout)
        return await ask_metadata(
            connection,
            topics,
            auto_create=self.config.allow_auto_create_topics,
            timeout=self.config.request_timeout,
        )

    def _new_bootstrap(self) -> Bootstrap:
        return Bootstrap(
            self.config.addresses,
            new_connection=lambda address: self.nodes.new_connection(address, None),
            rng=self.rng,
            auto_create=self.config.allow_auto_create_topics,
            timeout=self.config.request_timeout,
        )

    def _keep(self, connection: Connection, answer: metadata.MetadataResponse) -> None:
        """Adopt a bootstrap connection if its node advertises the same address; else close it."""
        broker = same_broker(connection, answer)
        if broker is None:
            connection.close()
        else:
            self.nodes.adopt(broker.node_id, Address(broker.host, broker.port), connection)


def _new_security(config: ClientConfig) -> ClientSecurity | None:
    """Return the TLS and SASL of a client; None with security_protocol="PLAINTEXT"."""
    if config.security_protocol == "PLAINTEXT":
        return None
    from aiokwire.security import ClientSecurity  # loaded late: it imports ssl, hmac and more

    return ClientSecurity(config)
