"""The task that keeps partitions fetchable: follows metadata, looks up positions, validates them.

metadata -> assignment, leaders -> ListOffsets, OffsetForLeaderEpoch (validation) -> wake the lanes
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import anyio
import anyio.abc

from aiokwire.cluster import Client, Cluster, ask_leader
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_handler import FetchHandler
from aiokwire.consumer.fetcher import Fetcher, OverdueTimer
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.offset_reset import begin, error_without_policy, report, settle
from aiokwire.consumer.positions import FetchState, PartitionState, expire_replicas
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.reset_policy import time_of
from aiokwire.consumer.subscription import NO_ID, Subscription
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ClosedError, ConnectionFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.group import GroupOffsets
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import Connection
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import offset_for_leader_epoch as messages
from aiokwire.types import OffsetReset, TopicPartition

logger: FieldLogger = get_logger(__name__)

# While partitions have no leader, the metadata is refreshed after this time (seconds).
LEADERLESS_PAUSE: Final = 1.0
# Earlier versions of OffsetForLeaderEpoch need a broker's permissions (KIP-320).
FIRST_VERSION_FOR_CONSUMERS: Final = 3
CONSUMER_REPLICA: Final = -1


@contextlib.contextmanager
def _request_for(states: Sequence[PartitionState]) -> Iterator[Callable[[], list[PartitionState]]]:
    """End the attempts of `states` after the block; yields a function that returns those whose
    position has not moved since, to which a response or failure applies."""
    generations = [(state, state.attempt.generation) for state in states]

    def current() -> list[PartitionState]:
        return [state for state, generation in generations if state.attempt.generation == generation]

    try:
        yield current
    finally:
        for state in current():
            state.attempt.end()


class PositionUpdater:
    """Owns the consumer's background task group."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        subscription: Subscription,
        reader: Reader,
        fetcher: Fetcher,
        handler: FetchHandler,
        offsets: GroupOffsets | None,
        hooks: ConsumerHooks,
    ) -> None:
        self._client = client
        self._config = config
        self._subscription = subscription
        self._reader = reader
        self._fetcher = fetcher
        self._handler = handler
        self._offsets = offsets  # start positions; None: the reset policy
        self._hooks = hooks
        self._woken = anyio.Event()
        self._followed = -1  # version of the snapshot that was applied last
        self._regroup = True  # leaders or partitions changed since the last `Fetcher.regroup`

    def wake(self) -> None:
        """Start what is due: a position must be looked up, or the assignment changed."""
        self._woken.set()

    def regroup(self) -> None:
        """Match the lanes to the nodes to fetch from, one of which changed."""
        self._regroup = True
        self.wake()

    def on_metadata(self, cluster: Cluster) -> None:
        """Apply a new metadata snapshot in the task."""
        self.wake()

    def follow(self) -> None:
        """Find partitions and leaders in the current snapshot after a change of the assignment."""
        self._followed = -1
        self._regroup = True
        self._follow(self._client.cluster)
        self.wake()

    async def run(self) -> None:
        """Run until cancelled."""
        self._client.metadata.add_listener(self.on_metadata)
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._woken = anyio.Event()
                    self._follow(self._client.cluster)
                    now = asyncio.get_running_loop().time()
                    expired, until = expire_replicas(self._subscription.states.values(), now)
                    if self._regroup or expired:
                        self._regroup = False
                        self._fetcher.regroup(tasks)
                    until = min(until, self._look_up(tasks))
                    with anyio.CancelScope(deadline=until):
                        await self._woken.wait()
        except Exception as error:
            self._reader.end(KafkaError(f"the consumer's background task failed: {error!r}"))
            raise
        finally:
            self._client.metadata.remove_listener(self.on_metadata)
            self._reader.end(ClosedError("the consumer's client ended: one of its background tasks failed"))

    # --- metadata -----------------------------------------------------------------------------------------------------

    def _follow(self, cluster: Cluster) -> None:
        """Apply a new snapshot: partitions and leaders."""
        if cluster.version == self._followed:
            return
        self._followed = cluster.version
        changes = self._subscription.follow(cluster)
        for state in changes.removed:
            self.forget(state)
        self._regroup = self._regroup or bool(changes.added or changes.removed)
        for state in self._subscription.states.values():
            known = cluster.partition(state.tp)
            leader = cluster.leader(state.tp)
            self._notice_loss(state, cluster, lost=known is None)
            if leader != state.source.leader:
                self._on_new_leader(state, leader)
            if known is None or known.leader_epoch <= state.source.leader_epoch:
                continue
            if state.needs_validation(known.leader_epoch):
                state.attempt.interrupt()
                state.cursor.require_validation()
            state.source.follow_epoch(known.leader_epoch)

    def _on_new_leader(self, state: PartitionState, leader: int | None) -> None:
        """Fetch from a new leader without waiting for requests to the old one, which may be
        unresponsive: their completion would not wake the new leader's lanes."""
        state.source.follow_leader(leader)
        if state.state is not FetchState.INITIALIZING:  # the request to the coordinator remains valid
            state.attempt.interrupt()
        self._regroup = True

    def _notice_loss(self, state: PartitionState, cluster: Cluster, *, lost: bool) -> None:
        """Fail a partition, once, that is gone or may no longer be read. With a group it does not
        fail if its topic was recreated with fewer partitions: the group revokes it."""
        topic = cluster.topics.get(state.tp.topic)
        if not lost or (topic is not None and not topic.error_code and self._subscription.shared):
            if state.lost:
                state.clear_error()  # the partition is back, or its topic
            state.set_lost(lost)
        elif topic is not None and not state.lost:
            code = topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            never_seen = state.source.leader is None and state.topic_id in NO_ID
            if never_seen and self._subscription.shared and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return  # the coordinator knows a new topic earlier than this client's metadata
            name, partition = state.tp
            state.set_lost(True)
            error = error_for(code, f"the cluster has no partition {state.tp}", topic=name, partition=partition)
            self._reader.buffer.fail(state, error)

    def forget(self, state: PartitionState) -> None:
        """Drop a partition no longer assigned: its buffered and later records are not delivered."""
        state.attempt.interrupt()
        state.clear_error()
        state.source.forget_leader()
        self._reader.buffer.drop(state)

    # --- lookups and validation ---------------------------------------------------------------------------------------

    def _look_up(self, tasks: anyio.abc.TaskGroup) -> float:
        """Start the requests that are due; return when the next ones are."""
        now = asyncio.get_running_loop().time()
        until = math.inf
        resets: dict[int, list[PartitionState]] = {}
        checks: dict[int, list[PartitionState]] = {}
        starts: list[PartitionState] = []
        leaderless = False
        for state in self._subscription.states.values():
            leader = state.source.leader
            if leader is None:
                leaderless = True
            if state.attempt.in_flight or state.error is not None:
                continue
            if state.state is FetchState.AWAIT_RESET and state.cursor.reset_to is OffsetReset.NONE:
                self._reader.buffer.fail(state, error_without_policy(state))
                continue
            kinds = {FetchState.AWAIT_RESET: resets, FetchState.AWAIT_VALIDATION: checks}.get(state.state)
            if state.state is not FetchState.INITIALIZING and (kinds is None or leader is None):
                continue
            if state.attempt.retry_at > now:
                until = min(until, state.attempt.retry_at)
                continue
            state.attempt.start()
            (starts if kinds is None or leader is None else kinds.setdefault(leader, [])).append(state)
        if starts:
            tasks.start_soon(self._fetch_committed, starts, name="fetch committed offsets")
        for leader, states in resets.items():
            tasks.start_soon(self._reset, leader, states, name=f"reset positions at {leader}")
        for leader, states in checks.items():
            tasks.start_soon(self._validate, leader, states, name=f"validate positions at {leader}")
        if leaderless:
            self._client.metadata.request_update("a partition has no leader")
            until = min(until, now + LEADERLESS_PAUSE)
        return until

    async def _reset(self, leader: int, states: Sequence[PartitionState]) -> None:
        """Look up positions at one leader."""
        times = {state.tp: time_of(state.cursor.reset_to) or 0 for state in states}
        epochs = {state.tp: state.source.leader_epoch for state in states}
        timeout = self._config.request_timeout
        isolation = self._config.isolation
        try:
            with _request_for(states) as current, OverdueTimer(0.0, lambda: self._doubt(leader)):
                connection = await self._client.connection(leader)
                answers = await ask_leader(connection, times, isolation=isolation, epochs=epochs, timeout=timeout)
        except KafkaError as error:
            self._on_failure(current(), error)
            return
        for state in current():
            if state.tp in answers.found:
                settle(state, answers.found[state.tp], self._hooks)
            else:
                self._on_error(state, answers.again.get(state.tp) or answers.refused[state.tp])
        self._done()

    async def _fetch_committed(self, states: Sequence[PartitionState]) -> None:
        """Start partitions at committed offsets once no transaction can change them (KIP-447)."""
        assert self._offsets is not None  # without a group every partition starts with a reset
        timeout = self._config.default_api_timeout
        try:
            with _request_for(states) as current:
                partitions = [state.tp for state in states]
                found = await self._offsets.fetch(partitions, stable=True, timeout=timeout, whole=False)
        except BrokerError as error:
            for state in current():
                self._on_error(state, error)
        except KafkaError as error:
            self._on_failure(current(), error)
        else:
            for state in current():
                if state.tp in found:
                    begin(state, found[state.tp], self._subscription.first_reset(state.tp, self._config.reset))
                else:
                    self._client.metadata.request_update(f"{state.tp}: the coordinator does not know it")
                    self._handler.back_off(state, "the group's offset is not available yet")
        self._done()

    async def _validate(self, leader: int, states: Sequence[PartitionState]) -> None:
        """Ask a new leader whether its log contains the positions (KIP-320)."""
        timeout = self._config.request_timeout
        try:
            with _request_for(states) as current, OverdueTimer(0.0, lambda: self._doubt(leader)):
                connection = await self._client.connection(leader)
                verdicts = await check_epochs(connection, states, timeout=timeout)
        except KafkaError as error:
            self._on_failure(current(), error)
            return
        for state in current():
            self._on_validated(state, verdicts[state.tp])
        self._done()

    def _doubt(self, leader: int) -> None:
        self._client.metadata.request_update(f"node {leader} does not respond to a lookup: it may lead no longer")

    def _on_validated(self, state: PartitionState, verdict: int | BrokerError) -> None:
        """Apply a verdict: where the position's epoch ends in the new leader's log, or an error."""
        if isinstance(verdict, BrokerError):
            self._on_error(state, verdict)
        elif verdict < 0 or verdict >= state.cursor.fetch_offset:
            state.attempt.succeed()
            state.cursor.validated()
        else:
            self._on_truncation(state, verdict)

    def _on_truncation(self, state: PartitionState, end: int) -> None:
        """Move to `end` of the new leader's log: later records were lost with the old leader."""
        self._reader.buffer.drop(state)
        before = state.cursor.fetch_offset
        if self._config.reset is OffsetReset.NONE:
            state.cursor.validated()
            self._reader.buffer.fail(state, error_without_policy(state))
            return
        reason = f"epoch {state.cursor.fetch_epoch} ends there in the new leader's log"
        after = min(before, end)
        state.move_to(after)
        if after < before:
            report(state, before, after, reason, self._hooks)

    def _on_failure(self, states: Sequence[PartitionState], error: KafkaError) -> None:
        if isinstance(error, (ConnectionFailed, RequestTimedOut)):
            self._client.metadata.request_update(f"looking up positions: {error}")
            for state in states:
                self._handler.back_off(state, error)
            together = max((state.attempt.retry_at for state in states), default=0.0)
            for state in states:
                state.attempt.postpone(together)  # one request for all of them
        else:
            for state in states:
                self._reader.buffer.fail(state, error)
        self.wake()

    def _on_error(self, state: PartitionState, error: BrokerError) -> None:
        if error.retriable or error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self._client.metadata.request_update(str(error))
            self._handler.back_off(state, error)
        else:
            self._reader.buffer.fail(state, error)

    def _done(self) -> None:
        self._fetcher.wake_all()
        self._reader.buffer.notify()
        self.wake()


def epoch_request(states: Sequence[PartitionState]) -> messages.OffsetForLeaderEpochRequest:
    """Ask for the end of the epoch under which each position was read."""
    topics: dict[str, messages.OffsetForLeaderTopic] = {}
    for state in states:
        name, partition = state.tp
        topic = topics.setdefault(name, messages.OffsetForLeaderTopic(topic=name))
        topic.partitions.append(
            messages.OffsetForLeaderPartition(
                partition=partition,
                current_leader_epoch=state.source.leader_epoch,
                leader_epoch=state.cursor.fetch_epoch,
            )
        )
    return messages.OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA, topics=list(topics.values()))


def read_epochs(
    response: messages.OffsetForLeaderEpochResponse, states: Sequence[PartitionState], who: str
) -> dict[TopicPartition, int | BrokerError]:
    """Return each partition's end of the epoch, negative if the leader knows none, or its error."""
    ends: dict[TopicPartition, int | BrokerError] = {}
    for topic in response.topics:
        for data in topic.partitions:
            tp = TopicPartition(topic.topic, data.partition)
            ends[tp] = data.end_offset if not data.error_code else _error(tp, data.error_code, who)
    for state in states:
        if state.tp not in ends:
            ends[state.tp] = _error(state.tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, who)
    return ends


def _error(tp: TopicPartition, code: int, who: str) -> BrokerError:
    context = f"{who} could not return the end of an epoch of {tp}"
    return error_for(code, context, topic=tp.topic, partition=tp.partition, request="OffsetForLeaderEpoch")


async def check_epochs(
    connection: Connection, states: Sequence[PartitionState], *, timeout: float
) -> dict[TopicPartition, int | BrokerError]:
    """Ask the leader of `states`. Brokers that lack this for consumers count as knowing no epoch.

    Raises: ConnectionFailed, RequestTimedOut: there was no response.
    """
    offered = connection.versions.range(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    if offered is None or offered.max < FIRST_VERSION_FOR_CONSUMERS:
        return {state.tp: -1 for state in states}
    response = await connection.request(epoch_request(states), timeout=timeout)
    return read_epochs(response, states, connection.who)
