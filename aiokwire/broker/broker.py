"""The embedded broker: its configs and lifecycle. `async with Broker() as broker` is all you need.

One supervisor task owns the task group, so that different tasks may call `start` and `close`. It
opens the log, listens, serves until `close` is called, and closes the log last.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self, Unpack

import anyio

from aiokwire import otlp
from aiokwire.broker.adoption import INTERNAL
from aiokwire.broker.client_metrics import ClientInstance
from aiokwire.broker.configs import BrokerConfigs, check_topic_configs, static_configs
from aiokwire.broker.faults import Faults, Interceptor, Journal, Serving
from aiokwire.broker.log import DiskStorage, MemoryStorage, Storage
from aiokwire.broker.maintenance import Maintenance
from aiokwire.broker.metrics import METRICS, samples_of
from aiokwire.broker.nodes import Endpoint, parse_endpoint
from aiokwire.broker.options import BrokerOptions
from aiokwire.broker.security.listeners import Listener, check_names, listeners_of
from aiokwire.broker.server import Listeners
from aiokwire.broker.state import BrokerState
from aiokwire.broker.topics import Partition, Topic, name_fault
from aiokwire.config import require_bool, require_int
from aiokwire.errors import BrokerClosed, ConfigurationError, InvalidArgument, RequestTimedOut
from aiokwire.metrics import Metric, Sample
from aiokwire.records import Record, read_batches, select_visible
from aiokwire.security import Secret
from aiokwire.threads import run_in_thread

logger: logging.Logger = logging.getLogger(__name__)

READ_AT_ONCE = 1 << 20  # bytes
WAIT_INTERVAL: Final = 0.005  # seconds between two checks of a topic that a test waits for

ANY_PORT: Final = "127.0.0.1:0"
MAX_NODES = 100
MAX_PARTITIONS = 10_000  # of one topic: each is a directory with open files


class Broker:
    """A Kafka broker in this process.

    `data_dir` keeps its data across runs in Kafka's format; without it all is in memory. Further
    keyword options are Kafka's broker configs in snake_case (`log_segment_bytes`, ...).
    """

    METRICS: ClassVar[tuple[Metric, ...]] = METRICS

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        listen: str = ANY_PORT,
        advertised: str | None = None,
        topics: Mapping[str, int] | None = None,
        auto_create_topics: bool = True,
        num_partitions: int = 4,
        node_id: int = 1,
        nodes: int = 1,
        journal: int = 0,
        cluster_id: str | None = None,
        apply_retention: bool = False,
        storage: Storage | None = None,
        rng: random.Random | None = None,
        users: Mapping[str, str | Secret] | None = None,
        data_dir_mode: int = 0o700,
        client_metrics: bool = False,
        **configs: Unpack[BrokerOptions],
    ) -> None:
        """`advertised` is the address that clients receive if it differs from `listen`; `storage`
        replaces `data_dir`. `nodes` brokers with ids from `node_id` on serve the same topics, each
        at its own port. The last `journal` requests are kept for tests. `apply_retention` ends the
        hold on adopted topics whose configs were not found. `users` are the passwords of users who
        may log in, besides stored ones. `listeners`, a list of `Listener` or Kafka's text, replaces
        `listen`. `data_dir_mode`: permissions of new directories and (without execution) files.
        `client_metrics`: receive the metrics that clients push (KIP-714; extra `telemetry`).

        Raises: ConfigurationError: an unknown option, with the nearest valid name, or a bad value.
        """
        if data_dir is not None and storage is not None:
            raise ConfigurationError("give data_dir or storage, not both")
        require_bool("auto_create_topics", auto_create_topics)
        require_bool("apply_retention", apply_retention)
        require_bool("client_metrics", client_metrics)
        self._receives_metrics = client_metrics
        require_int("num_partitions", num_partitions, minimum=1, maximum=MAX_PARTITIONS)
        require_int("node_id", node_id, minimum=0, maximum=2**31 - 1)
        require_int("nodes", nodes, minimum=1, maximum=MAX_NODES)
        require_int("journal", journal, minimum=0)
        for option, address in (("listen", listen), ("advertised", advertised)):
            if address is not None:
                parse_endpoint(address, option)
        self._wanted = dict(topics or {})
        for name, partitions in self._wanted.items():
            _check_new_topic(name, partitions)
        if storage is None:
            storage = DiskStorage(data_dir, mode=data_dir_mode) if data_dir is not None else MemoryStorage()
        self._storage = storage
        defaults: dict[str, object] = {
            "node_id": node_id,
            "auto_create_topics_enable": auto_create_topics,
            "num_partitions": num_partitions,
        }
        if data_dir is not None:
            defaults["log_dirs"] = str(data_dir)
        self._listeners = _pop_listeners(configs)
        self._static = static_configs({**defaults, **configs})
        if not self._listeners:
            self._listeners = _listeners(self._static, listen, advertised)
        elif listen != ANY_PORT or advertised is not None:
            raise ConfigurationError("give listeners, or listen and advertised, not both")
        self._users = {name: Secret(password) for name, password in (users or {}).items()}
        self._node_id = node_id
        self._node_ids = range(node_id, node_id + nodes)
        self._cluster_id = cluster_id
        self._apply_retention = apply_retention
        self._rng = rng if rng is not None else random.Random()
        self._serving: Serving | None = None  # between `start` and `close`
        self._interceptor = Interceptor(Journal(journal) if journal else None, self._use_interceptor)
        self._faults = Faults(self._interceptor, lambda: self._serving)
        self._supervisor: asyncio.Task[None] | None = None
        self._closing: anyio.Event | None = None

    # --- lifecycle ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the log, listen, serve. Any task may call it.

        Raises: StorageError: another broker has the data directory, or it cannot be used.
        ConnectionFailed: the address cannot be bound. BrokerClosed: it was started before.
        ConfigurationError: `client_metrics` without the extra `telemetry`.
        """
        if self._supervisor is not None:
            raise BrokerClosed("this Broker was started before; create a new one")
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        self._closing = anyio.Event()
        # The one task without a group: it holds the group, so that start and close may come from different tasks.
        self._supervisor = loop.create_task(self._supervise(started), name="aiokwire broker")
        try:
            await started
        except BaseException:
            self._closing.set()
            self._supervisor.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._supervisor], timeout=10)
            raise

    async def close(self) -> None:
        """Stop serving, flush and release the data directory. Any task may call it repeatedly."""
        if self._supervisor is None or self._closing is None:
            return
        self._closing.set()
        await asyncio.wait([self._supervisor])
        if not self._supervisor.cancelled():
            self._supervisor.result()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _supervise(self, started: asyncio.Future[None]) -> None:
        try:
            state = await self._open()
            try:
                await self._serve(state, started)
            finally:
                self._serving = None
                state.groups.close()
                with anyio.CancelScope(shield=True):
                    await run_in_thread(state.close)
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _open(self) -> BrokerState:
        configs = BrokerConfigs(self._static, node_id=self._node_id)
        state = BrokerState(
            self._storage,
            configs,
            self._rng,
            cluster_id=self._cluster_id,
            node_ids=self._node_ids,
            receives_metrics=self._receives_metrics,
        )
        if self._receives_metrics:
            await run_in_thread(otlp.check_installed)
        # Recovery reads whole segments: in a thread, so that a program that embeds a broker stays responsive.
        if isinstance(self._storage, MemoryStorage):
            state.open()
        else:
            await run_in_thread(state.open)
        return state

    async def _serve(self, state: BrokerState, started: asyncio.Future[None]) -> None:
        assert self._closing is not None
        for name, partitions in self._wanted.items():
            if state.topics.get(name) is None:
                await state.topics.create_in_thread(name, partitions, {})
        if self._apply_retention:
            state.topics.apply_retention()
        await state.topics.save()
        listeners = Listeners(state)
        try:
            await state.users.give(self._users)
            await listeners.listen(self._listeners)
            listeners.advertise()
            self._describe_listeners(state, listeners)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Maintenance(state, listeners).run)
                self._serving = Serving(state, listeners)
                self._use_interceptor()
                state.groups.start()
                await listeners.serve(tasks)
                if not started.cancelled():
                    started.set_result(None)
                await self._closing.wait()
                await listeners.close()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await listeners.close()

    def _describe_listeners(self, state: BrokerState, listeners: Listeners) -> None:
        """Set the configs that clients may read."""
        static, names = state.configs.static, [one.name for one in self._listeners]
        static["listeners"] = ",".join(f"{name}://{listeners.bound(name)}" for name in names)
        static["advertised.listeners"] = ",".join(f"{name}://{state.nodes.first.endpoint_at(name)}" for name in names)
        static["listener.security.protocol.map"] = ",".join(f"{one.name}:{one.protocol}" for one in self._listeners)

    # --- for programs -------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The nodes' addresses for clients of this machine, `host:port`, at the first listener.

        Raises: BrokerClosed: the broker is not running.
        """
        return ",".join(str(_local(node.endpoint)) for node in self.state.nodes)

    @property
    def port(self) -> int:
        """The port that clients connect to, the first node's."""
        return self.state.nodes.first.endpoint.port

    @property
    def node_id(self) -> int:
        return self._node_id

    @property
    def cluster_id(self) -> str:
        """The cluster id, kept in the data directory."""
        return self.state.cluster_id

    @property
    def state(self) -> BrokerState:
        """Topics, logs and configs of the running broker.

        Raises: BrokerClosed: the broker is not running.
        """
        if self._serving is None:
            raise BrokerClosed("this Broker is not running: start it first, or use `async with`")
        return self._serving.state

    def metrics(self) -> list[Sample]:
        """Return the metrics of all nodes now, from any thread; none while it does not serve."""
        serving = self._serving
        return [] if serving is None else samples_of(serving.state)

    def client_metrics(self) -> list[ClientInstance]:
        """Return the clients that have pushed metrics (KIP-714), with their last values.

        Raises: InvalidArgument: the broker does not receive metrics.
        """
        receiver = self.state.client_metrics
        if receiver is None:
            raise InvalidArgument("this Broker receives no metrics: create it with Broker(client_metrics=True)")
        return [one for one in receiver.instances() if one.received_ms]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all nodes."""
        return self.state.nodes.ids

    def address(self, node: int) -> str:
        """Return the address of one node, `host:port`.

        Raises: InvalidArgument: the node does not exist.
        """
        return str(self.state.nodes.get(node).endpoint)

    def address_of(self, listener: str) -> str:
        """Return the addresses of all nodes at a listener, for clients of this machine.

        Raises: InvalidArgument: the broker has no listener of that name.
        """
        nodes = self.state.nodes
        if listener not in nodes.first.endpoints:
            raise InvalidArgument(f"the broker has no listener {listener!r}; it has {', '.join(nodes.first.endpoints)}")
        return ",".join(str(_local(node.endpoints[listener])) for node in nodes)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners, as they were given."""
        return tuple(self._listeners)

    async def reload_tls(self) -> None:
        """Read changed certificates now instead of within 30 seconds; new connections use them.

        A file that cannot be used is logged, and the previous certificate stays in use.

        Raises: BrokerClosed: the broker is not running.
        """
        if self._serving is None:
            raise BrokerClosed("this Broker is not running: start it first, or use `async with`")
        await self._serving.listeners.reload_tls()

    async def create_topic(
        self, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic without a request.

        Raises: ConfigurationError: a bad name, number or config. BrokerError: the topic exists.
        StorageError: the topic cannot be stored.
        """
        state = self.state
        count = state.configs.integer("num.partitions") if partitions is None else partitions
        _check_new_topic(name, count)
        check_topic_configs(configs or {})
        await state.topics.create_in_thread(name, count, configs or {})
        await state.topics.save()

    async def delete_topic(self, name: str) -> None:
        """Delete a topic without a request.

        Raises: BrokerError: the topic does not exist.
        """
        topic: Topic = self.state.topics.require(name)
        await self.state.delete_topic(topic)

    # --- for tests ----------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """Faults on demand: rules for requests; leaders, coordinators, groups; stops of nodes."""
        return self._faults

    def _use_interceptor(self) -> None:
        """Pass requests through the interceptor only while it has rules or a journal."""
        if self._serving is not None:
            self._serving.state.interceptor = self._interceptor if self._interceptor.in_use else None

    @property
    def journal(self) -> Journal:
        """The last requests received, oldest first.

        Raises: InvalidArgument: the broker keeps no journal.
        """
        if self._interceptor.journal is None:
            raise InvalidArgument("this Broker keeps no journal: create it with Broker(journal=1000)")
        return self._interceptor.journal

    def records(self, topic: str, partition: int | None = None, *, committed: bool = False) -> list[Record]:
        """Return the records of a small topic, or of one of its partitions, without a client.

        `committed` leaves out those of transactions that are open or were aborted.

        Raises: BrokerError: the topic or partition does not exist.
        """
        if partition is not None:
            partitions = [self.state.partition(topic, partition)]
        else:
            partitions = self.state.topics.require(topic).partitions
        return [record for one in partitions for record in self._records_of(topic, one, committed=committed)]

    def _records_of(self, topic: str, partition: Partition, *, committed: bool) -> Iterator[Record]:
        log = partition.log
        offset, end = log.log_start_offset, log.last_stable_offset if committed else log.end_offset
        while offset < end:
            batches = read_batches(log.read(offset, READ_AT_ONCE, min_one=True, upto=end).data, topic, partition.index)
            aborted = [one[:2] for one in log.aborted_transactions(offset, end)] if committed else None
            visible = select_visible(batches, offset, aborted)
            for batch, _ in visible.batches:
                yield from batch.records(offset)
            offset = visible.end

    async def wait_for_records(self, topic: str, count: int, *, timeout: float = 10.0) -> list[Record]:
        """Wait until a topic (it need not exist yet) has at least `count` records; return them.

        Raises: RequestTimedOut: not within `timeout` seconds; the message names the record count.
        """
        found: list[Record] = []
        with anyio.move_on_after(timeout):
            while True:
                if self._size_of(topic) >= count:  # at most: control batches and compaction leave fewer
                    found = self.records(topic)
                    if len(found) >= count:
                        return found
                await anyio.sleep(WAIT_INTERVAL)
        have = len(found) or self._size_of(topic)
        raise RequestTimedOut(f"topic {topic!r} has {have} of {count} record(s) after {timeout} s")

    def _size_of(self, topic: str) -> int:
        known = self.state.topics.get(topic)
        partitions = known.partitions if known is not None else ()
        return sum(each.log.end_offset - each.log.log_start_offset for each in partitions)

    def __repr__(self) -> str:
        where = f"on {self.bootstrap_servers}" if self._serving is not None else "not serving"
        return f"<Broker {self._node_id} {where}, {self._storage!r}>"


def _pop_listeners(configs: BrokerOptions) -> list[Listener]:
    """Remove listeners that are given as objects; empty if they are Kafka's text, or not given."""
    given = configs.get("listeners")
    if given is None or isinstance(given, str) or not any(isinstance(one, Listener) for one in given):
        return []
    del configs["listeners"]
    listeners = [one for one in given if isinstance(one, Listener)]
    if len(listeners) != len(given):
        raise ConfigurationError("listeners must be a list of Listener objects, or text such as SASL_SSL://host:port")
    check_names(listeners)
    return listeners


def _listeners(static: Mapping[str, str], listen: str, advertised: str | None) -> list[Listener]:
    """Return the listeners of Kafka's configs, or the one of `listen`."""
    if "listeners" not in static:
        return [Listener(address=listen, advertised=advertised)]
    if listen != ANY_PORT or advertised is not None:
        raise ConfigurationError("give listeners and advertised_listeners, or listen and advertised, not both")
    return listeners_of(static)


def _local(endpoint: Endpoint) -> Endpoint:
    host, port = endpoint
    return Endpoint("127.0.0.1" if host == "0.0.0.0" else "::1" if host == "::" else host, port)


def _check_new_topic(name: str, partitions: int) -> None:
    require_int(f"partitions of topic {name!r}", partitions, minimum=1, maximum=MAX_PARTITIONS)
    fault = name_fault(name) or (f"{name} is an internal topic" if name in INTERNAL else None)
    if fault is not None:
        raise ConfigurationError(fault)
