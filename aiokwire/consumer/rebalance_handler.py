"""Applies a group's rebalances to the consumer: its partitions, commits, and the user's listener.

subscription --> membership (joins) --> assign, revoke, lose --> partitions, commits, listener
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable

import anyio

from aiokwire._text import printable
from aiokwire.clock import loop_time
from aiokwire.cluster import Client, Cluster
from aiokwire.consumer.commits import Commits
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.listener import RebalanceListener, call_listener
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.group import (
    AutoMember,
    ClassicMember,
    ConsumerProtocolMember,
    Host,
    MemberOptions,
    Membership,
    MemberStatus,
    metadata_refresh_interval,
)
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.types import BrokerPattern, GroupMetadata, GroupProtocol, TopicPartition

logger: FieldLogger = get_logger(__name__)


class Pattern:
    """A subscription by pattern: all topics whose whole name matches; internal ones on request."""

    def __init__(self, wanted: re.Pattern[str], unwanted: re.Pattern[str] | None, *, internal: bool = False) -> None:
        self._wanted = wanted
        self._unwanted = unwanted
        self._internal = internal

    def topics(self, cluster: Cluster) -> frozenset[str]:
        return frozenset(
            name
            for name, topic in cluster.topics.items()
            if topic.partitions
            and (self._internal or not topic.is_internal)
            and self._wanted.fullmatch(name)
            and not (self._unwanted is not None and self._unwanted.fullmatch(name))
        )


def checked_pattern(
    topics: tuple[str | re.Pattern[str] | BrokerPattern, ...],
    exclude: re.Pattern[str] | None,
    *,
    internal: bool = False,
) -> Pattern | None:
    """Return the pattern that was given instead of names; None for names.

    Raises: InvalidArgument: a pattern with names, or of bytes; `exclude` without a pattern.
    """
    given = [topic for topic in topics if isinstance(topic, re.Pattern)]
    if exclude is not None and not isinstance(exclude, re.Pattern):
        raise InvalidArgument(f"exclude must be a compiled pattern, not {exclude!r}")
    if not given:
        if exclude is not None:
            raise InvalidArgument("exclude needs a pattern; with topic names, leave out the unwanted ones")
        return None
    if len(topics) > 1:
        raise InvalidArgument("subscribe to names, or to one pattern (join several with '|')")
    if any(isinstance(each.pattern, bytes) for each in (*given, *([] if exclude is None else [exclude]))):
        raise InvalidArgument("a topic pattern must be a pattern of str, not of bytes")
    return Pattern(given[0], exclude, internal=internal)


def new_member(client: Client, config: ConsumerConfig, host: Host, status: MemberStatus) -> Membership:
    """Create a member of the configured protocol."""
    kinds: dict[GroupProtocol, Callable[[Client, MemberOptions, Host, MemberStatus], Membership]] = {
        GroupProtocol.CLASSIC: ClassicMember,
        GroupProtocol.CONSUMER: ConsumerProtocolMember,
        GroupProtocol.AUTO: AutoMember,
    }
    return kinds[config.protocol](client, config.new_member_options(), host, status)


class RebalanceHandler:
    """The `Host` of a membership, which it creates when the consumer has a subscription."""

    def __init__(self, parts: ConsumerParts, commits: Commits, status: MemberStatus) -> None:
        self.status = status  # of the current membership and its predecessors
        self._client = parts.client
        self._config = parts.config
        self._log = logger.bound(client_id=parts.config.client_id, group_id=parts.config.group_id)
        self._subscription = parts.subscription
        self._reader = parts.reader
        self._fetcher = parts.fetcher
        self._updater = parts.updater
        self._commits = commits
        self._listener: RebalanceListener | None = None
        self._pattern: Pattern | None = None
        self._patterned = anyio.Event()  # set while there is a pattern
        self._broker_pattern: str | None = None
        self._membership: Membership | None = None  # until it begins to leave
        self._current = parts.membership  # until it has left
        self._is_committing = False  # the automatic commit's task runs
        self._listening: int | None = None  # the task that runs the listener now
        self._has_revoked = False  # in the current rebalance
        self.has_assigned: bool = False  # the group has assigned partitions once, perhaps none

    # --- called by the consumer ---------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> None:
        """Share these topics with the group."""
        self._listener = listener
        self._look_for(None)
        self._choose(frozenset(topics))

    def subscribe_broker_pattern(self, pattern: BrokerPattern, listener: RebalanceListener | None) -> None:
        """Share the topics that the coordinator finds to match.

        Raises: InvalidArgument: the protocol does not support such patterns.
        """
        if self._config.protocol is not GroupProtocol.CONSUMER:
            raise InvalidArgument(
                'a BrokerPattern needs group_protocol="consumer"; a compiled pattern works with any protocol'
            )
        if not pattern.pattern:
            raise InvalidArgument("an empty BrokerPattern matches no topic")
        self._listener = listener
        self._look_for(None)
        self._choose(frozenset(), broker_pattern=pattern.pattern)

    def subscribe_pattern(self, pattern: Pattern, listener: RebalanceListener | None) -> None:
        """Share the topics that match now, and later ones that match."""
        self._listener = listener
        self._look_for(pattern)
        self._choose(pattern.topics(self._client.cluster))

    def _choose(self, topics: frozenset[str], *, later: Iterable[str] = (), broker_pattern: str | None = None) -> None:
        self._broker_pattern = broker_pattern
        for state in self._subscription.share(topics, later=later):
            self._updater.forget(state)
        if self._membership is not None:
            self._client.metadata.pin(self._subscription.wanted_topics)
            self._subscribe(self._membership)
            self._updater.follow()

    def _subscribe(self, membership: Membership) -> None:
        topics = self._subscription.topics
        if isinstance(membership, ConsumerProtocolMember):
            membership.subscribe(topics, self._broker_pattern)
        else:
            membership.subscribe(topics)

    def _look_for(self, pattern: Pattern | None) -> None:
        if pattern is not None and self._pattern is None:
            self._client.metadata.want_all()
            self._client.metadata.add_listener(self._on_metadata)
            self._patterned.set()
        elif pattern is None and self._pattern is not None:
            self._client.metadata.want_all(False)
            self._client.metadata.remove_listener(self._on_metadata)
            self._patterned = anyio.Event()
        self._pattern = pattern

    def start(self) -> None:
        """Join in the background. The client must have started and have the topics' metadata."""
        if self._pattern is not None:
            self._choose(self._pattern.topics(self._client.cluster))
        membership = new_member(self._client, self._config, self, self.status)
        self._membership = membership
        self.has_assigned = self._has_revoked = False
        self._current.begin(membership)
        self._subscribe(membership)
        self._client.spawn(self._run, membership, name=f"member of group {self._config.group_id}")
        if not self._is_committing:
            self._is_committing = True
            self._client.spawn(self._commits.run, name=f"commits of group {self._config.group_id}")
            self._client.spawn(self._refresh_topics, name=f"topics of group {self._config.group_id}")

    @property
    def label(self) -> str:
        """The group and this member, for the log."""
        member = "" if self.metadata is None else f", member {printable(self.metadata.member_id)}"
        return f"group {self._config.group_id!r}{member}"

    @property
    def is_member(self) -> bool:
        return self._membership is not None

    @property
    def metadata(self) -> GroupMetadata | None:
        """The member and its generation; None without a membership."""
        return None if self._membership is None else self._membership.metadata

    def rejoin(self, reason: str) -> None:
        """Request a rebalance."""
        if self._membership is not None:
            self._membership.rejoin(reason)

    def polled(self) -> None:
        """Record that the application waits for partitions: a member that has left rejoins."""
        if self._membership is not None:
            self._membership.record_poll()

    @property
    def is_subscribed(self) -> bool:
        """Whether there is a subscription, to topics or to a pattern."""
        return bool(self._subscription.topics) or self._pattern is not None or self._broker_pattern is not None

    def check_outside_listener(self, call: str) -> None:
        """Refuse a `call` by the listener that ends the membership: each would wait for the other.

        Raises: InvalidArgument: the call is made in the rebalance listener.
        """
        if self._listening == anyio.get_current_task().id:
            raise InvalidArgument(
                f"{call} cannot be awaited in a rebalance listener, because it waits until the listener has returned; "
                "call it from another task: start one, or set an event that the reading task waits for. subscribe, "
                "pause, resume, seek, position and commit work here"
            )

    def settle(self) -> None:
        """Fix the finished positions, as the consumer is closing: later reads no longer count."""
        self._commits.settle(self._subscription.states)

    async def stop(self, timeout: float, *, reason: str) -> None:
        """Revoke the partitions and leave, within `timeout` seconds."""
        membership, self._membership = self._membership, None
        self._look_for(None)
        if membership is not None:
            self.settle()
            await membership.leave(timeout, reason=reason)
            self._current.end()

    async def _run(self, membership: Membership) -> None:
        try:
            await membership.run()
        except Exception as error:
            self._reader.end(KafkaError(f"the consumer's membership failed: {error!r}"))
            raise

    # --- the host of the membership -----------------------------------------------------------------------------------

    def owned(self) -> frozenset[TopicPartition]:
        """See `Host`."""
        return frozenset(self._subscription.states)

    async def revoke(self, partitions: Collection[TopicPartition], deadline: float) -> None:
        """See `Host`."""
        self._commits.settle(partitions)
        self._hold_back(partitions)
        left = max(0.0, deadline - loop_time())
        await self._commits.commit_last(partitions, timeout=min(left / 2, self._config.default_api_timeout))
        self._has_revoked = True
        await self._call_listener("revoked", partitions, max(0.0, deadline - loop_time()))
        self._drop(partitions)

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """See `Host`."""
        self._log.warning("%s: lost %s", self.label, ", ".join(map(str, sorted(partitions))))
        self._hold_back(partitions)
        self._has_revoked = True
        await self._call_listener("lost", partitions)
        self._drop(partitions)

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """See `Host`."""
        taken = self._subscription.take(sorted(partitions), self._client.cluster)
        total, added = len(self._subscription.states), ", ".join(str(state.tp) for state in taken) or "none"
        self._log.info("%s: assigned %d partition(s), added: %s", self.label, total, added)
        self._client.metadata.pin(self._subscription.wanted_topics)
        try:
            await self._begin_with(taken, partitions)
        finally:
            self._has_revoked = False
            self.has_assigned = True
            self._reader.buffer.notify()

    async def _begin_with(self, taken: list[PartitionState], partitions: Collection[TopicPartition]) -> None:
        """Call the listener, then fetch the partitions that were taken."""
        for state in taken:
            if self._listener is not None:
                state.hold_back()
        if taken:
            self._updater.follow()
        if not self._has_revoked:
            await self._call_listener("revoked", ())
        await self._call_listener("assigned", partitions)
        for state in taken:
            state.release()
            self._fetcher.wake(state)

    def fail(self, error: KafkaError, *, final: bool) -> None:
        """See `Host`."""
        if final:
            self._reader.end(error)
        else:
            self._reader.raise_once(error)

    def progressed_at(self, now: float) -> float:
        """See `Host`."""
        return self._reader.processed.progressed_at(now, waiting=self._reader.buffer.is_awaited)

    def _hold_back(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver no more records of these partitions."""
        states = self._subscription.states
        for state in (states[tp] for tp in partitions if tp in states):
            state.hold_back()
            state.attempt.interrupt()
            self._reader.buffer.drop(state)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        for state in self._subscription.give_up(partitions):
            self._updater.forget(state)
        self._commits.forget(partitions)
        self._updater.follow()

    async def _call_listener(
        self, method: str, partitions: Collection[TopicPartition], limit: float | None = None
    ) -> None:
        """Call the user's listener; the reader raises its failure."""
        if self._listener is None or not (partitions or self._listener.every_rebalance):
            return
        timeout = self._config.rebalance_listener_timeout
        call: Callable[[frozenset[TopicPartition]], Awaitable[object]] = getattr(self._listener, method)
        self._listening = anyio.get_current_task().id
        try:
            error = await call_listener(call, frozenset(partitions), timeout if limit is None else min(timeout, limit))
        finally:
            self._listening = None
        if error is not None:
            self._reader.raise_once(error)

    # --- topics -------------------------------------------------------------------------------------------------------

    def _on_metadata(self, cluster: Cluster) -> None:
        """Subscribe to topics that match the pattern now."""
        if self._pattern is None or self._membership is None:
            return
        topics = self._pattern.topics(cluster)
        before = self._subscription.topics
        if topics != before:
            self._choose(topics, later=topics - before)

    async def _refresh_topics(self) -> None:
        """Refresh the metadata of all topics periodically while there is a pattern."""
        while True:
            await self._patterned.wait()
            await anyio.sleep(metadata_refresh_interval(len(self._client.cluster.topics)))
            if self._pattern is not None:
                self._client.metadata.request_update("a subscription by pattern looks for new topics")
