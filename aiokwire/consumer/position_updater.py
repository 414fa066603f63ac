"""The task that keeps partitions fetchable: it follows the metadata, looks positions up, and checks them.

metadata -> assignment and leaders -> look-ups (ListOffsets) and checks (OffsetForLeaderEpoch) -> wake the lanes
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.abc

from aiokwire.cluster import Client, Cluster, ask_leader
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_handler import FetchHandler
from aiokwire.consumer.fetcher import Fetcher, OverdueTimer
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.offset_reset import begin, error_without_policy, report, settle
from aiokwire.consumer.positions import FetchState, PartitionState
from aiokwire.consumer.preferred_replica import expire
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.reset_policy import time_of
from aiokwire.consumer.subscription import NO_ID, Subscription
from aiokwire.consumer.truncation import check_epochs
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ClosedError, ConnectionFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.group import GroupOffsets
from aiokwire.types import OffsetReset, TopicPartition

logger = logging.getLogger(__name__)

# Longer than this the task never sleeps without a look at leaderless partitions.
LEADERLESS_LOOK: Final = 1.0


class _Asked:
    """Partitions about which somebody is asked within the block; an answer is for those not moved meanwhile."""

    def __init__(self, states: Sequence[PartitionState]) -> None:
        self._asked = [(state, state.attempt.generation) for state in states]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [state.tp for state, _ in self._asked]

    @property
    def current(self) -> list[PartitionState]:
        """Those that the answer, or its failure, is for."""
        return [state for state, generation in self._asked if state.attempt.generation == generation]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for state in self.current:
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
        self._offsets = offsets  # where partitions begin; None: by the reset policy
        self._hooks = hooks
        self._woken = anyio.Event()
        self._followed = -1  # version of the snapshot that is in force here
        self._regroup = True  # leaders or partitions changed since the lanes were told

    def wake(self) -> None:
        """A position has to be looked up, or the assignment changed."""
        self._woken.set()

    def regroup(self) -> None:
        """A partition is to be fetched from another node."""
        self._regroup = True
        self.wake()

    def on_metadata(self, cluster: Cluster) -> None:
        """The metadata's listener."""
        self.wake()

    def follow(self) -> None:
        """The assignment was changed by its user: find partitions and leaders in what is known of the cluster."""
        self._followed = -1
        self._regroup = True
        self._follow(self._client.cluster)
        self.wake()

    async def run(self) -> None:
        """Until cancelled."""
        self._client.metadata.add_listener(self.on_metadata)
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._woken = anyio.Event()
                    self._follow(self._client.cluster)
                    now = asyncio.get_running_loop().time()
                    expired, until = expire(self._subscription.states.values(), now)
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
        """Take over a new snapshot: partitions and leaders."""
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
        """What is in flight to the old one is not waited for: it may be silent, and nobody would tell the new one's
        lanes when it ends."""
        state.source.follow_leader(leader)
        if state.state is not FetchState.INITIALIZING:  # what is asked of the group goes on
            state.attempt.interrupt()
        self._regroup = True

    def _notice_loss(self, state: PartitionState, cluster: Cluster, *, lost: bool) -> None:
        """Tell the reader, once, that a partition is gone or may not be read any more. What a topic that was made anew
        has no longer is taken away by the group that shares it out: nobody is told."""
        topic = cluster.topics.get(state.tp.topic)
        if not lost or (topic is not None and not topic.error_code and self._subscription.shared):
            if state.lost:
                state.clear_error()  # the partition is back, or its topic
            state.set_lost(lost)
        elif topic is not None and not state.lost:
            code = topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            never_seen = state.source.leader is None and state.topic_id in NO_ID
            if never_seen and self._subscription.shared and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return  # the group's coordinator knows a new topic sooner than the metadata here
            name, partition = state.tp
            state.set_lost(True)
            state.fail(error_for(code, f"the cluster has no {state.tp} to read", topic=name, partition=partition))
            self._reader.buffer.report(state)

    def forget(self, state: PartitionState) -> None:
        """A partition is not ours any more: nothing that is held or comes for it is handed over."""
        state.attempt.interrupt()
        state.clear_error()
        state.source.forget_leader()
        self._reader.buffer.drop(state)

    # --- look-ups and checks ------------------------------------------------------------------------------------------

    def _look_up(self, tasks: anyio.abc.TaskGroup) -> float:
        """Start what is due; returns when to look again."""
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
                state.fail(error_without_policy(state))
                self._reader.buffer.report(state)
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
            tasks.start_soon(self._ask_group, starts, name="find out where the group stands")
        for leader, states in resets.items():
            tasks.start_soon(self._reset, leader, states, name=f"reset positions at {leader}")
        for leader, states in checks.items():
            tasks.start_soon(self._check, leader, states, name=f"check positions at {leader}")
        if leaderless:
            self._client.metadata.request_update("a partition has no leader")
            until = min(until, now + LEADERLESS_LOOK)
        return until

    async def _reset(self, leader: int, states: Sequence[PartitionState]) -> None:
        """Look positions up at one leader."""
        times = {state.tp: time_of(state.cursor.reset_to) or 0 for state in states}
        epochs = {state.tp: state.source.leader_epoch for state in states}
        timeout = self._config.request_timeout
        isolation = self._config.isolation
        try:
            with _Asked(states) as asked, OverdueTimer(0.0, lambda: self._doubt(leader)):
                connection = await self._client.connection(leader)
                answers = await ask_leader(connection, times, isolation=isolation, epochs=epochs, timeout=timeout)
        except KafkaError as error:
            self._on_failure(asked.current, error)
            return
        for state in asked.current:
            if state.tp in answers.found:
                settle(state, answers.found[state.tp], self._hooks)
            else:
                self._on_error(state, answers.again.get(state.tp) or answers.refused[state.tp])
        self._done()

    async def _ask_group(self, states: Sequence[PartitionState]) -> None:
        """Have partitions begin where the group stands, which no open transaction may change any more (KIP-447)."""
        assert self._offsets is not None  # without a group every partition begins with a reset
        timeout = self._config.default_api_timeout
        try:
            with _Asked(states) as asked:
                found = await self._offsets.fetch(asked.partitions, stable=True, timeout=timeout, whole=False)
        except BrokerError as error:
            for state in asked.current:
                self._on_error(state, error)
        except KafkaError as error:
            self._on_failure(asked.current, error)
        else:
            for state in asked.current:
                if state.tp in found:
                    begin(state, found[state.tp], self._subscription.first_reset(state.tp, self._config.reset))
                else:
                    self._client.metadata.request_update(f"{state.tp}: the coordinator does not know it")
                    self._handler.back_off(state, "the group's offset is not to be had now")
        self._done()

    async def _check(self, leader: int, states: Sequence[PartitionState]) -> None:
        """Ask a new leader whether its log still holds our positions (KIP-320)."""
        timeout = self._config.request_timeout
        try:
            with _Asked(states) as asked, OverdueTimer(0.0, lambda: self._doubt(leader)):
                connection = await self._client.connection(leader)
                verdicts = await check_epochs(connection, states, timeout=timeout)
        except KafkaError as error:
            self._on_failure(asked.current, error)
            return
        for state in asked.current:
            self._on_checked(state, verdicts[state.tp])
        self._done()

    def _doubt(self, leader: int) -> None:
        self._client.metadata.request_update(f"node {leader} is silent: does it still lead what it is asked about?")

    def _on_checked(self, state: PartitionState, verdict: int | BrokerError) -> None:
        """`verdict` is where the new leader's log of our epoch ends, or an error."""
        if isinstance(verdict, BrokerError):
            self._on_error(state, verdict)
        elif verdict < 0 or verdict >= state.cursor.fetch_offset:
            state.attempt.succeed()
            state.cursor.validated()
        else:
            self._on_truncation(state, verdict)

    def _on_truncation(self, state: PartitionState, end: int) -> None:
        """The new leader's log ends before our position: what came after `end` was lost with the old leader."""
        self._reader.buffer.drop(state)
        before = state.cursor.fetch_offset
        if self._config.reset is OffsetReset.NONE:
            state.cursor.validated()
            state.fail(error_without_policy(state))
            self._reader.buffer.report(state)
            return
        reason = f"the new leader's log of epoch {state.cursor.fetch_epoch} ends there"
        after = min(before, end)
        state.move_to(after)
        if after < before:
            report(state, before, after, reason, self._hooks)

    def _on_failure(self, states: Sequence[PartitionState], error: KafkaError) -> None:
        if isinstance(error, (ConnectionFailed, RequestTimedOut)):
            self._client.metadata.request_update(f"looking up positions: {error}")
            for state in states:
                self._handler.back_off(state, str(error))
            together = max((state.attempt.retry_at for state in states), default=0.0)
            for state in states:
                state.attempt.postpone(together)  # one question for all of them again
        else:
            for state in states:
                state.fail(error)
                self._reader.buffer.report(state)
        self.wake()

    def _on_error(self, state: PartitionState, error: BrokerError) -> None:
        if error.retriable or error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self._client.metadata.request_update(str(error))
            self._handler.back_off(state, str(error))
        else:
            state.fail(error)
            self._reader.buffer.report(state)

    def _done(self) -> None:
        self._fetcher.wake_all()
        self._reader.buffer.notify()
        self.wake()
