"""The public consumer: subscriptions, and the ways to receive records.

Parts: `Subscription` (assigned partitions), `PositionUpdater` (positions and leaders), `Fetcher`
(fetches), `Reader` and `Streams` (delivery), `StallMonitor` (stalled partitions); in a group
`RebalanceHandler`, `Commits`. The mixin `OffsetMethods` has methods for positions and offsets.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, Self, Unpack, overload

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client, Owner, Unclosed, push_metrics
from aiokwire.config import config_of, documents_options
from aiokwire.consumer._consumer_offsets import OffsetMethods
from aiokwire.consumer.arguments import checked_partitions, checked_topics
from aiokwire.consumer.batches import ConsumerRecord
from aiokwire.consumer.commits import Commits
from aiokwire.consumer.config import ConsumerConfig, ConsumerOptions
from aiokwire.consumer.deserialization import Deserializer
from aiokwire.consumer.events import WITHOUT_ENDS, ConsumerEvent
from aiokwire.consumer.health import ConsumerHealth, why_unassigned
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.listener import RebalanceListener, checked_listener
from aiokwire.consumer.metrics import METRICS, labels_of, samples_of
from aiokwire.consumer.parts import make_parts
from aiokwire.consumer.reader import BatchIterator, Groups
from aiokwire.consumer.rebalance_handler import RebalanceHandler, checked_pattern
from aiokwire.consumer.stall_monitor import StallMonitor
from aiokwire.consumer.streams import RecordStream, Streams
from aiokwire.errors import ClosedError, InvalidArgument, KafkaError, RequestTimedOut, StaleMetadataError
from aiokwire.events import LIMIT, Events, EventStream
from aiokwire.group import MEMBER_METRICS, GroupOffsets, MemberStatus, member_samples
from aiokwire.hooks import Hooks, hooks_for
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.metrics import DURATION, Metric, Sample
from aiokwire.records import columns_to_arrow, need_arrow
from aiokwire.types import BrokerPattern, K, TopicPartition, V

if TYPE_CHECKING:
    import pyarrow

    from aiokwire.cluster import MetricsPush

logger: FieldLogger = get_logger(__name__)

# How long (seconds) a start waits for a topic that does not exist: a broker that has just started may not know it yet.
TOPIC_WAIT: Final = 1.0
# The default timeout of `close` (seconds).
CLOSE_TIMEOUT: Final = 5.0
# The part of it for leaving the group; in the rest the tasks end, so that none outlives `close`.
LEAVE_SHARE: Final = 0.9


@documents_options(ConsumerConfig)
class Consumer(OffsetMethods, Owner, Generic[K, V]):
    """Reads topics, or single partitions.

        async with Consumer("orders", bootstrap_servers="localhost:9092") as consumer:
            async for record in consumer: ...

    With a `group_id` the topics are shared with the group's other members. Reading starts at the
    group's committed offsets; partitions without one use `auto_offset_reset`. Finished records are
    committed automatically: those received before the record, list or batch that the application
    processes, and those passed to `ack`. So the last record, list or batch before `close` is
    delivered again, unless it was acked or committed. With `partitions` instead of topics the
    consumer is not a member; it also starts at the group's offsets, but commits only on request.

    A partition's records are delivered in order; partitions take turns. `async for`, `batches`,
    `getone` and `getmany` share positions and may be mixed. An unreadable partition (no permission,
    corrupt data, a position out of range with `auto_offset_reset="none"`) raises its error at the
    next await, after all records before it; its position stays, and later reads retry it.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = (DURATION, *METRICS, *MEMBER_METRICS, *Client.METRICS)

    def __init__(
        self,
        *topics: str | re.Pattern[str] | BrokerPattern,
        bootstrap_servers: str | Sequence[str] | None = None,
        config: ConsumerConfig[K, V] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        listener: RebalanceListener | None = None,
        key_deserializer: Deserializer[K] | None = None,
        value_deserializer: Deserializer[V] | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """Create a consumer of `topics` as for `subscribe`, or `partitions`. Needs no running loop.

        Options are those of `ConsumerConfig`, or one `config`.

        Raises: ConfigurationError: an unknown or invalid option; InvalidArgument: topics together
        with partitions.
        """
        if topics and partitions is not None:
            raise InvalidArgument("pass topics or partitions, not both")
        checked: ConsumerConfig[Any, Any] = config_of(
            ConsumerConfig,
            config,
            {
                "bootstrap_servers": bootstrap_servers,
                "key_deserializer": key_deserializer,
                "value_deserializer": value_deserializer,
                **options,
            },
        )
        hooks = hooks_for(hooks, checked.client_id, checked.group_id)
        self._unclosed = Unclosed()
        client = Client(checked, hooks=hooks, rng=rng, unclosed=self._unclosed)
        offsets = None if checked.group_id is None else GroupOffsets(client, checked.group_id)
        self._events = Events[ConsumerEvent]()
        self._hooks = ConsumerHooks(hooks, self._events)
        parts = make_parts(client, checked, offsets, self._hooks)
        commits: Commits | None = None
        self._rebalance_handler: RebalanceHandler | None = None
        if offsets is not None:
            commits = Commits(
                client, checked, offsets, parts.subscription, parts.reader.processed, parts.membership, self._hooks
            )
            status = MemberStatus(offsets.group_id, self._events.publish)
            self._rebalance_handler = RebalanceHandler(parts, commits, status)
        super().__init__(parts, offsets, commits)
        self._parts = parts
        self._streams = Streams(parts.subscription, parts.reader, self._redeliver, self._hooks)
        self._stall_monitor = StallMonitor(parts, self._rebalance_handler, self._events)
        self._starting = anyio.Lock()
        self._push: MetricsPush | None = None  # while it runs, if a broker takes metrics
        self._started = False
        if topics:
            self._choose(topics, None, listener)
        elif partitions is not None:
            self._subscription.assign(checked_partitions(partitions))

    @classmethod
    def from_dict(
        cls, options: Mapping[str, Any], *topics: str | re.Pattern[str] | BrokerPattern, hooks: Hooks | None = None
    ) -> Consumer[Any, Any]:
        """Create one from options named as in Java or librdkafka: `ConsumerConfig.from_dict`.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        return cls(*topics, config=ConsumerConfig.from_dict(options), hooks=hooks)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, find the topics, and start to fetch.

        Retries for `bootstrap_timeout_ms` while no broker responds. Topics that do not exist yet
        are logged, and read once they exist. A failed start may be repeated.

        Raises: ConnectionFailed: no broker could be reached; AuthorizationError,
        InvalidRequestError: a topic is forbidden, or its name is invalid.
        """
        async with self._starting:  # a concurrent call waits for the outcome
            if self._closed:
                raise ClosedError("this consumer was closed; create a new one")
            if not self._started:
                await self._start()

    async def _start(self) -> None:
        self._reader.start(self._client.spawn)
        self._client.metadata.pin(self._subscription.wanted_topics)  # so that the first response contains them
        try:
            await self._client.start()
            await self._find_topics(self._subscription.wanted_topics)
            self._updater.follow()
            self._client.spawn(self._updater.run, name="consumer positions")
            self._client.spawn(self._stall_monitor.run, name="consumer stall monitor")
            self._join()
            self._push = push_metrics(self._client, "consumer", self.metrics, self._resource)
            self._started = True
            self._unclosed.watch(self, self.config.client_id)
        finally:
            if not self._started:
                with anyio.CancelScope(shield=True):
                    await self._client.reset(timeout=1.0)

    async def close(self, timeout: float | None = None) -> None:
        """Stop; waiting readers end. A member first commits finished records and leaves its group.

        Takes at most `timeout` seconds (default: 5). May be called from any task, and repeatedly.

        Raises: InvalidArgument: a rebalance listener awaits it.
        """
        if self._rebalance_handler is not None:
            self._rebalance_handler.check_outside_listener("close()")
        deadline = Deadline(CLOSE_TIMEOUT if timeout is None else timeout, "closing the consumer")
        self._unclosed.forget()
        handler = self._rebalance_handler
        if handler is not None and self._started and not self._client.closed and not self._client.forked:
            self._client.check_place()
            handler.settle()
            self._reader.close()
            await handler.stop(deadline.remaining * LEAVE_SHARE, reason="the consumer was closed")
        self._closed = True
        self._reader.close()
        if self._push is not None:
            await self._push.terminate(deadline.remaining)
        await self._client.close(timeout=deadline.remaining)
        self._events.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self._started else "new"
        return f"<Consumer {state}, {len(self._subscription.states)} partitions>"

    # --- what to read -------------------------------------------------------------------------------------------------

    async def subscribe(
        self,
        *topics: str | re.Pattern[str] | BrokerPattern,
        exclude: re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read only `topics`: all partitions, or with a `group_id` those that the group assigns.
        Partitions that stay keep their positions.

        A compiled pattern selects all topics whose whole name matches it, and not `exclude`; it
        needs a `group_id`. Topics and partitions added later are found and read from their start. A
        `BrokerPattern` is matched by the coordinator, with `group_protocol="consumer"`.

        Raises: BrokerError: a topic is forbidden, or its name is invalid; InvalidArgument: a
        pattern without a group, or with names; a listener without a group.
        """
        self._check_open_if_started()
        if self._started and not any(isinstance(topic, (re.Pattern, BrokerPattern)) for topic in topics):
            await self._find_topics(checked_topics(topics))
        self._choose(topics, exclude, listener)
        if not self._started:
            return
        if self._rebalance_handler is None:
            self._on_assignment()
        elif not self._rebalance_handler.is_member:
            if isinstance(topics[0], re.Pattern):
                await self._client.metadata.update(self._timeout(None))
            self._join()

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions by hand, and read only these.

        Partitions that stay keep their positions. A member leaves its group.

        Raises: BrokerError: a topic is forbidden or invalid; InvalidArgument: a listener awaits it.
        """
        wanted = checked_partitions(partitions)
        if self._rebalance_handler is not None:
            self._rebalance_handler.check_outside_listener("assign()")
        if self._started:
            await self._find_topics({tp.topic for tp in wanted})
            if self._rebalance_handler is not None:
                await self._rebalance_handler.stop(self._timeout(None), reason="partitions were assigned by hand")
        self._give_out(wanted)

    def _give_out(self, wanted: Iterable[TopicPartition]) -> None:
        _, removed = self._subscription.assign(wanted)
        for state in removed:
            self._updater.forget(state)
        self._on_assignment()

    def subscribe_nowait(
        self,
        *topics: str | re.Pattern[str],
        exclude: re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        internal: bool = False,
    ) -> None:
        """Subscribe without waiting for metadata: a forbidden or missing topic is reported by the
        next read, or in the log. `internal`: a pattern also matches internal topics of brokers.

        Raises: InvalidArgument: a pattern without a group, or with names; a listener without one.
        """
        self._check_open_if_started()
        self._choose(topics, exclude, listener, internal=internal)
        if not self._started:
            return
        if self._rebalance_handler is None:
            self._on_assignment()
        elif not self._rebalance_handler.is_member:
            self._join()
            if isinstance(topics[0], re.Pattern):
                self._client.metadata.request_update("a subscription by pattern")

    def assign_nowait(self, partitions: Iterable[TopicPartition]) -> None:
        """As `assign`, without a wait for metadata.

        Raises: InvalidArgument: the consumer is a member of its group: await `unsubscribe` first.
        """
        self._check_open_if_started()
        wanted = checked_partitions(partitions)
        if self._rebalance_handler is not None and self._rebalance_handler.is_member:
            raise InvalidArgument("this consumer is a member of its group: await unsubscribe() first, or assign()")
        self._give_out(wanted)

    async def unsubscribe(self) -> None:
        """Give up all topics, patterns and partitions. A member commits its finished records and
        leaves its group. `subscribe` and `assign` may be called afterwards.

        Raises: ClosedError: the consumer is closed.
        """
        self._check_open_if_started()
        await self.assign(())

    def _choose(
        self,
        topics: tuple[str | re.Pattern[str] | BrokerPattern, ...],
        exclude: re.Pattern[str] | None,
        listener: RebalanceListener | None,
        *,
        internal: bool = False,
    ) -> None:
        """Check and apply a subscription."""
        listener = checked_listener(listener)
        pattern = checked_pattern(topics, exclude, internal=internal)
        rebalance_handler = self._rebalance_handler
        if rebalance_handler is None:
            if pattern is not None or listener is not None:
                what = "a pattern" if pattern is not None else "a rebalance listener"
                raise InvalidArgument(f"{what} is for members of a group: pass group_id=")
            for state in self._subscription.subscribe(checked_topics(topics)):
                self._updater.forget(state)
        elif pattern is not None:
            rebalance_handler.subscribe_pattern(pattern, listener)
        elif len(topics) == 1 and isinstance(topics[0], BrokerPattern):
            rebalance_handler.subscribe_broker_pattern(topics[0], listener)
        else:
            rebalance_handler.subscribe(checked_topics(topics), listener)

    def _join(self) -> None:
        """Join the group if the topics are shared."""
        if self._rebalance_handler is not None and self._subscription.shared:
            self._rebalance_handler.start()

    def rejoin(self, reason: str = "the application asked for it") -> None:
        """Request a rebalance (KIP-568), for an assignor that would assign differently now."""
        self._check_open()
        if self._rebalance_handler is not None:
            self._rebalance_handler.rejoin(reason)

    def _on_assignment(self) -> None:
        if self._started:
            self._client.metadata.pin(self._subscription.wanted_topics)
            self._updater.follow()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._subscription.states)

    async def assigned(self, timeout: float | None = None) -> frozenset[TopicPartition]:
        """Wait until at least one partition is assigned, by the group or by hand; return them all.

        Waits at most `timeout` seconds (default: `default_api_timeout_ms`). A member without a
        partition, because the group has more members than partitions, waits until that changes.

        Raises: RequestTimedOut: none was assigned; names the cause (no coordinator, a rebalance, a
        missing topic, more members than partitions). And the error that stops the consumer.
        """
        self._check_open()
        limit = self._timeout(timeout)
        if self._rebalance_handler is not None:
            self._rebalance_handler.polled()
        with anyio.move_on_after(limit):
            await self._reader.until_assigned(self._subscription.states)
            return self.assignment
        raise RequestTimedOut(f"no partition was assigned within {limit:.1f} s: {self._why_unassigned()}")

    async def joined(self, timeout: float | None = None) -> None:
        """Wait until the group has assigned partitions, perhaps none, since this member joined.

        Waits at most `timeout` seconds (default: `default_api_timeout_ms`). Returns at once for a
        consumer that does not join a group.

        Raises: RequestTimedOut: names the cause. And the error that stops the consumer.
        """
        self._check_open()
        handler = self._rebalance_handler
        if handler is None or not handler.is_member:
            return
        limit = self._timeout(timeout)
        with anyio.move_on_after(limit):
            await self._reader.until(lambda: handler.has_assigned)
            return
        raise RequestTimedOut(f"the group assigned nothing within {limit:.1f} s: {self._why_unassigned()}")

    def _why_unassigned(self) -> str:
        rebalance_handler = self._rebalance_handler
        is_subscribed = bool(self.subscription) if rebalance_handler is None else rebalance_handler.is_subscribed
        return why_unassigned(self.subscription, self._client.cluster, self.health().group, is_subscribed=is_subscribed)

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics; empty if partitions were assigned by hand."""
        return self._subscription.topics

    async def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> frozenset[int]:
        """Return the partition numbers of a topic.

        Raises: InvalidArgument: an invalid name; BrokerError: the topic is missing or forbidden.
        """
        self._check_open()
        cluster = await self._client.metadata.wait_for_topics(checked_topics([topic]), self._timeout(timeout))
        return frozenset(partition.partition for partition in cluster.topics[topic].partitions)

    # --- records ------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate over records until the consumer is closed. Gives other tasks turns periodically.

        A record counts as delivered when its iteration of the loop starts.
        """
        self._check_open()
        return self._hooks.iterated(self._reader.feed)

    def convert_errors(self, function: Callable[[KafkaError], BaseException]) -> None:
        """Make `async for` raise `function(error)` in place of an error, for other libraries."""
        self._reader.convert_errors(function)

    def batches(self) -> BatchIterator[K, V]:
        """Iterate over batches, which are decoded on demand, until the consumer is closed."""
        self._check_open()
        return BatchIterator(self._reader)

    async def getone(self, timeout: float | None = None) -> ConsumerRecord[K, V]:
        """Return the next record. A call that is cancelled takes none.

        Raises: RequestTimedOut: no record arrived within `timeout` seconds; ClosedError: the
        consumer is closed; and the error of a partition that cannot be read.
        """
        self._check_open()
        record: ConsumerRecord[K, V] = await self._reader.one(timeout)
        return record

    @overload
    async def getmany(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        partitions: Collection[TopicPartition] | None = None,
        *,
        by_partition: Literal[False] = ...,
    ) -> list[ConsumerRecord[K, V]]: ...

    @overload
    async def getmany(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        partitions: Collection[TopicPartition] | None = None,
        *,
        by_partition: Literal[True],
    ) -> dict[TopicPartition, list[ConsumerRecord[K, V]]]: ...

    async def getmany(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        partitions: Collection[TopicPartition] | None = None,
        *,
        by_partition: bool = False,
    ) -> list[ConsumerRecord[K, V]] | dict[TopicPartition, list[ConsumerRecord[K, V]]]:
        """Return up to `max_records` records (default: `max_poll_records`), in order by partition.

        Returns ready records at once, whatever the timeout; else waits up to `timeout` seconds
        (None: no limit) for the first, and returns nothing if none arrives. Very long lists take
        several calls, to keep the event loop free. `partitions`: only of these. `by_partition`: a
        dictionary of lists, for partitions with records. A cancelled call takes none.

        Raises: ClosedError: the consumer is closed; InvalidArgument: `max_records` is not positive,
        or a partition is not assigned; and the error of a partition that cannot be read.
        """
        self._check_open()
        if max_records is None:
            limit = self.config.max_poll_records
        else:
            limit = max_records if type(max_records) is int and max_records > 0 else self._limit(max_records)
        only = None if partitions is None else self._only(partitions)
        if not by_partition:
            return await self._reader.many(limit, timeout, only)
        groups: Groups = {}
        await self._reader.many(limit, timeout, only, groups)
        return groups

    async def getarrow(
        self,
        max_records: int = 32_768,
        timeout: float | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> pyarrow.RecordBatch:
        """Return one Arrow record batch, columns as `Batch.to_arrow`: the fastest way to read.

        As `getmany`, but by whole batches: up to `max_records`, or one larger batch; none is added
        to 8 MiB of keys, values and headers. Needs the extra `arrow`; applies no deserializers.

        Raises: as `getmany`; ConfigurationError: without pyarrow.
        """
        self._check_open()
        limit = self._limit(max_records)
        need_arrow()
        only = None if partitions is None else self._only(partitions)
        return columns_to_arrow(await self._reader.columns(limit, timeout, only))

    def streams(self, count: int) -> list[RecordStream[K, V]]:
        """Open `count` streams of records, one per task. Each partition belongs to exactly one
        stream; partitions are redistributed when the assignment changes or a stream is closed or
        dropped. A record is finished when its stream asks for the next.

        Raises: InvalidArgument: `count` is less than 1, or the consumer has open streams.
        """
        self._check_open()
        return self._streams.open(count)

    # --- monitoring ---------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client of the cluster that this consumer uses: its metadata, and any request."""
        return self._client

    def health(self) -> ConsumerHealth:
        """Return the state: what partitions wait for and since when, the group, and the event loop.

        Sends no request. May be called before start and after close, on the consumer's loop.
        """
        return self._stall_monitor.health()

    def metrics(self) -> list[Sample]:
        """Return all metrics now, those of the connections included; docs/metrics.md lists them.

        Sends no request. May be called from any thread, before start and after close.
        """
        parts = self._parts
        found = samples_of(parts, self._stall_monitor.stalled) + parts.client.metrics()
        if self._commits is not None:
            found += self._commits.counts.samples(labels_of(parts))
        if self._rebalance_handler is not None:
            found += member_samples(self._rebalance_handler.status, labels_of(parts), parts.client.elapsed_since)
        return found

    @property
    def client_instance_id(self) -> str | None:
        """The id that a broker assigned for the metrics that are pushed (KIP-714), if one did."""
        return None if self._push is None else self._push.client_instance_id

    def _resource(self) -> dict[str, str | None]:
        """Return the labels of all metrics that are pushed, named as in KIP-714."""
        config, member = self.config, self._parts.membership.member
        return {
            "client_rack": config.client_rack,
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
            "group_member_id": None if member is None else member.metadata.member_id,
        }

    def events(self, *, ends: bool = False, limit: int = LIMIT) -> EventStream[ConsumerEvent]:
        """Return a stream of later events: stalled and resumed partitions, resets, rebalances,
        coordinators lost and found, throttling, a blocked loop; with `ends`, reached ends.

        Keeps up to `limit` events for a slow listener; the oldest are dropped and counted.
        """
        stream = self._events.listen(limit=limit, without=() if ends else WITHOUT_ENDS)
        if ends:
            self._hooks.report_ends()
            for state in self._subscription.states.values():
                self._hooks.progress(state)
        return stream

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _limit(self, max_records: int) -> int:
        if isinstance(max_records, tuple) and hasattr(max_records, "partition"):
            raise InvalidArgument(f"max_records is a number; to read only from {max_records}, pass partitions=[...]")
        if isinstance(max_records, bool) or not isinstance(max_records, int) or max_records < 1:
            raise InvalidArgument(f"max_records must be an int of at least 1, not {max_records!r}")
        return max_records

    def _only(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        if isinstance(partitions, (str, TopicPartition)) or not isinstance(partitions, Iterable):
            raise InvalidArgument(f"partitions must be a collection of TopicPartition, not {partitions!r}")
        return frozenset(self._state(tp).tp for tp in partitions)

    async def _find_topics(self, topics: Collection[str]) -> None:
        """Wait for the metadata of `topics`. Missing topics are looked for in the background.

        Raises: AuthorizationError; InvalidRequestError: a topic's name is invalid; RequestTimedOut.
        """
        metadata = self._client.metadata
        try:
            if topics:
                await metadata.wait_for_topics(topics, self._timeout(None), unknown_timeout=TOPIC_WAIT)
        except StaleMetadataError:
            known = metadata.cluster.topics
            missing = sorted(name for name in topics if name not in known or not known[name].partitions)
            if missing:
                self._subscription.expect(missing)
                what = metadata.explain_unknown(missing[0]) + (
                    f"; {len(missing) - 1} more like it" * (len(missing) > 1)
                )
                logger.warning("%s; reading it as soon as it exists", what)

    def _check_open_if_started(self) -> None:
        if self._started or self._closed:
            self._check_open()
