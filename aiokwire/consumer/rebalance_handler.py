"""A consumer's side of its group: what becomes of partitions that come and go, and who is told.

subscription --> membership (joins) --> assign, revoke, lose --> partitions, commits, the user's listener
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable

import anyio

from aiokwire.cluster import Client, Cluster
from aiokwire.consumer.commits import Commits
from aiokwire.consumer.config import ConsumerConfig, new_strategy
from aiokwire.consumer.listener import RebalanceListener, call_listener
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import ConfigurationError, InvalidArgument, KafkaError
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
from aiokwire.types import BrokerPattern, GroupMetadata, GroupProtocol, TopicPartition

logger = logging.getLogger(__name__)


class Pattern:
    """A subscription by pattern: all topics whose whole name matches, but for the internal ones."""

    def __init__(self, wanted: re.Pattern[str], unwanted: re.Pattern[str] | None) -> None:
        self._wanted = wanted
        self._unwanted = unwanted

    def topics(self, cluster: Cluster) -> frozenset[str]:
        return frozenset(
            name
            for name, topic in cluster.topics.items()
            if topic.partitions
            and not topic.is_internal
            and self._wanted.fullmatch(name)
            and not (self._unwanted is not None and self._unwanted.fullmatch(name))
        )


def checked_pattern(
    topics: tuple[str | re.Pattern[str] | BrokerPattern, ...], exclude: re.Pattern[str] | None
) -> Pattern | None:
    """The pattern that was given instead of names; None for names.

    Raises: InvalidArgument: one beside names, or of bytes; something to exclude without one.
    """
    given = [topic for topic in topics if isinstance(topic, re.Pattern)]
    if exclude is not None and not isinstance(exclude, re.Pattern):
        raise InvalidArgument(f"exclude must be a compiled pattern, not {exclude!r}")
    if not given:
        if exclude is not None:
            raise InvalidArgument("exclude goes with a pattern: name only the topics that are wanted")
        return None
    if len(topics) > 1:
        raise InvalidArgument("subscribe to names, or to one pattern (join several with '|')")
    if any(isinstance(each.pattern, bytes) for each in (*given, *([] if exclude is None else [exclude]))):
        raise InvalidArgument("a pattern for topics is one of str, not of bytes")
    return Pattern(given[0], exclude)


def member_options(config: ConsumerConfig) -> MemberOptions:
    """What a member of a group needs to know."""
    if config.group_id is None:
        raise ConfigurationError("a member of a group needs a group_id")
    return MemberOptions(
        group_id=config.group_id,
        strategy=new_strategy(config.partition_assignment_strategy),
        instance_id=config.group_instance_id,
        rack_id=config.client_rack or None,
        session_timeout=config.session_timeout_ms / 1000,
        heartbeat_interval=config.heartbeat_interval_ms / 1000,
        max_poll_interval=config.max_poll_interval_ms / 1000,
        remote_assignor=config.group_remote_assignor,
    )


def new_member(client: Client, config: ConsumerConfig, host: Host, status: MemberStatus) -> Membership:
    """By the protocol that was asked for."""
    kinds: dict[GroupProtocol, Callable[[Client, MemberOptions, Host, MemberStatus], Membership]] = {
        GroupProtocol.CLASSIC: ClassicMember,
        GroupProtocol.CONSUMER: ConsumerProtocolMember,
        GroupProtocol.AUTO: AutoMember,
    }
    return kinds[config.protocol](client, member_options(config), host, status)


class RebalanceHandler:
    """The `Host` of a membership, which it makes when there is something to subscribe to."""

    def __init__(self, parts: ConsumerParts, commits: Commits, status: MemberStatus) -> None:
        self.status = status  # of the present membership, and of those before
        self._client = parts.client
        self._config = parts.config
        self._subscription = parts.subscription
        self._reader = parts.reader
        self._fetcher = parts.fetcher
        self._updater = parts.updater
        self._commits = commits
        self._listener: RebalanceListener | None = None
        self._pattern: Pattern | None = None
        self._patterned = anyio.Event()  # set while there is a pattern
        self._broker_pattern: str | None = None
        self._membership: Membership | None = None
        self._is_committing = False  # the automatic commit's task runs
        self._listening: int | None = None  # the task that runs the listener now

    # --- told by the consumer -----------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> None:
        """Share these topics with the group."""
        self._listener = listener
        self._look_for(None)
        self._choose(frozenset(topics))

    def subscribe_broker_pattern(self, pattern: BrokerPattern, listener: RebalanceListener | None) -> None:
        """Share what the coordinator finds to match.

        Raises: InvalidArgument: the protocol has no such patterns.
        """
        if self._config.protocol is not GroupProtocol.CONSUMER:
            raise InvalidArgument('a BrokerPattern needs group_protocol="consumer"; a compiled pattern works with all')
        if not pattern.pattern:
            raise InvalidArgument("an empty BrokerPattern matches no topic")
        self._listener = listener
        self._look_for(None)
        self._choose(frozenset(), broker_pattern=pattern.pattern)

    def subscribe_pattern(self, pattern: Pattern, listener: RebalanceListener | None) -> None:
        """Share what matches now, and what will."""
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
        """Join, in the background. The client has started, and knows the topics."""
        if self._pattern is not None:
            self._choose(self._pattern.topics(self._client.cluster))
        membership = new_member(self._client, self._config, self, self.status)
        self._membership = membership
        self._commits.start_membership(membership)
        self._reader.processed.report_reads(membership.record_poll)
        self._subscribe(membership)
        self._client.spawn(self._run, membership, name=f"member of group {self._config.group_id}")
        if not self._is_committing:
            self._is_committing = True
            self._client.spawn(self._commits.run, name=f"commits of group {self._config.group_id}")
            self._client.spawn(self._look_around, name=f"topics of group {self._config.group_id}")

    @property
    def is_member(self) -> bool:
        return self._membership is not None

    @property
    def metadata(self) -> GroupMetadata | None:
        """The member and its generation; None without a membership."""
        return None if self._membership is None else self._membership.metadata

    def rejoin(self, reason: str) -> None:
        """Have the group rebalanced."""
        if self._membership is not None:
            self._membership.rejoin(reason)

    def polled(self) -> None:
        """The application waits for partitions: a member that is out of the group joins again."""
        if self._membership is not None:
            self._membership.record_poll()

    @property
    def is_subscribed(self) -> bool:
        """Whether the group is asked for partitions: of topics, or of those that match a pattern."""
        return bool(self._subscription.topics) or self._pattern is not None or self._broker_pattern is not None

    def check_outside_listener(self, call: str) -> None:
        """Refuse a `call` that ends the membership, which waits for the listener, which would wait for the call.

        Raises: InvalidArgument: the rebalance listener makes it.
        """
        if self._listening == anyio.get_current_task().id:
            raise InvalidArgument(
                f"{call} cannot be awaited in a rebalance listener: it waits until the listener has returned; call it "
                "from another task (start one, or set an event that the task which reads waits for); subscribe, pause, "
                "resume, seek, position and commit work here"
            )

    def settle(self) -> None:
        """The consumer is being closed: what is finished now is what is committed."""
        self._commits.settle(self._subscription.states)

    async def stop(self, timeout: float, *, reason: str) -> None:
        """Give up what is owned and leave, within `timeout` seconds."""
        membership, self._membership = self._membership, None
        self._look_for(None)
        if membership is not None:
            self.settle()
            await membership.leave(timeout, reason=reason)
            self._reader.processed.report_reads(None)
            self._commits.end_membership()

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
        left = max(0.0, deadline - anyio.current_time())
        await self._commits.commit_last(partitions, timeout=min(left / 2, self._config.default_api_timeout))
        await self._tell("revoked", partitions, max(0.0, deadline - anyio.current_time()))
        self._drop(partitions)

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """See `Host`."""
        logger.warning("group %r: lost %s", self._config.group_id, ", ".join(map(str, sorted(partitions))))
        self._hold_back(partitions)
        await self._tell("lost", partitions)
        self._drop(partitions)

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """See `Host`."""
        taken = self._subscription.take(sorted(partitions), self._client.cluster)
        logger.info(
            "group %r: reads %d partition(s), new: %s",
            self._config.group_id,
            len(self._subscription.states),
            ", ".join(str(state.tp) for state in taken) or "none",
        )
        self._client.metadata.pin(self._subscription.wanted_topics)
        if not taken:
            return
        for state in taken:
            if self._listener is not None:
                state.hold_back()
        self._updater.follow()
        await self._tell("assigned", partitions)
        for state in taken:
            state.release()
            self._fetcher.wake(state)

    def fail(self, error: KafkaError, *, final: bool) -> None:
        """See `Host`."""
        if final:
            self._reader.end(error)
        else:
            self._reader.tell(error)

    def progressed_at(self, now: float) -> float:
        """See `Host`."""
        return self._reader.processed.progressed_at(now, waiting=self._reader.buffer.is_awaited)

    def _states(self, partitions: Collection[TopicPartition]) -> list[PartitionState]:
        states = self._subscription.states
        return [states[tp] for tp in partitions if tp in states]

    def _hold_back(self, partitions: Collection[TopicPartition]) -> None:
        """From now on nothing of them is handed over."""
        for state in self._states(partitions):
            state.hold_back()
            state.attempt.interrupt()
            self._reader.buffer.drop(state)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        for state in self._subscription.give_up(partitions):
            self._updater.forget(state)
        self._commits.forget(partitions)
        self._updater.follow()

    async def _tell(self, method: str, partitions: Collection[TopicPartition], limit: float | None = None) -> None:
        """Call the user's listener; what it fails with, the reader is told."""
        if self._listener is None or not partitions:
            return
        timeout = self._config.rebalance_listener_timeout_ms / 1000
        call: Callable[[frozenset[TopicPartition]], Awaitable[object]] = getattr(self._listener, method)
        self._listening = anyio.get_current_task().id
        try:
            error = await call_listener(call, frozenset(partitions), timeout if limit is None else min(timeout, limit))
        finally:
            self._listening = None
        if error is not None:
            self._reader.tell(error)

    # --- topics -------------------------------------------------------------------------------------------------------

    def _on_metadata(self, cluster: Cluster) -> None:
        """Topics may match now that did not exist before."""
        if self._pattern is None or self._membership is None:
            return
        topics = self._pattern.topics(cluster)
        before = self._subscription.topics
        if topics != before:
            self._choose(topics, later=topics - before)

    async def _look_around(self) -> None:
        while True:
            await self._patterned.wait()
            await anyio.sleep(metadata_refresh_interval(len(self._client.cluster.topics)))
            if self._pattern is not None:
                self._client.metadata.request_update("a subscription by pattern looks for topics")
