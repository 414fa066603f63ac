"""What a consumer commits, and when: told to, on its own, when partitions go, at the end."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.consumer.config import ACKED, ConsumerConfig
from aiokwire.consumer.in_hand import InHand
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.subscription import Subscription
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ClosedError, CommitFailed, KafkaError
from aiokwire.group import GroupOffsets, Membership
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

# What a commit is refused with whose member is not in its generation any more.
GONE: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Commits:
    """The committing half of a consumer with a group id. `membership` is None while it has partitions of its own."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        offsets: GroupOffsets,
        subscription: Subscription,
        in_hand: InHand,
    ) -> None:
        self._client = client
        self._config = config
        self._offsets = offsets
        self._subscription = subscription
        self._in_hand = in_hand
        self.membership: Membership | None = None
        self._automatic = bool(config.enable_auto_commit)
        self._acked: dict[TopicPartition, OffsetAndMetadata] = {}
        self._known: dict[TopicPartition, int] = {}  # committed last: the automatic commit adds to it
        self._under_way: list[Offsets] = []  # being committed: nor does the automatic commit take these back
        self._settled: dict[TopicPartition, OffsetAndMetadata | None] = {}  # finished, of what is being given up
        self._soon: dict[TopicPartition, OffsetAndMetadata] = {}  # for the background task
        self._is_busy = False  # the background task runs

    # --- by the application -------------------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets, *, timeout: float) -> None:
        """See `Navigation.commit`."""
        if not offsets:
            return
        membership = self.membership
        self._under_way.append(offsets)
        try:
            if membership is None:
                await self._offsets.commit(offsets, GroupMetadata(self._offsets.group_id), timeout=timeout)
            else:
                await self._commit_as_member(membership, offsets, timeout)
            self._known.update((tp, offset.offset) for tp, offset in offsets.items())
        finally:
            self._under_way.remove(offsets)

    def commit_soon(self, offsets: Offsets) -> None:
        """See `Navigation.commit_nowait`."""
        self._soon.update(offsets)
        if not self._is_busy and self._soon:
            self._is_busy = True
            self._client.spawn(self._commit_soon, name="commit")

    def ack(self, tp: TopicPartition, offset: int) -> None:
        """See `Navigation.ack`."""
        state = self._subscription.states.get(tp)
        if state is None or state.began is None or offset < state.began.offset:
            return  # of an earlier assignment: others may have come further since
        before = self._acked.get(tp)
        if before is None or before.offset <= offset:
            self._acked[tp] = OffsetAndMetadata(offset + 1)

    def covers(self, tp: TopicPartition, offset: int) -> bool:
        """Whether what lies at an offset was acked or committed."""
        acked = self._acked.get(tp)
        return (acked is not None and acked.offset > offset) or self._known.get(tp, -1) > offset

    def moved(self, tp: TopicPartition) -> None:
        """The position was moved on purpose: what is committed from now on may lie before what was."""
        self._known.pop(tp, None)
        self._acked.pop(tp, None)

    def for_transactions(self) -> GroupMetadata:
        """See `Navigation.group_metadata`."""
        if self._automatic and self.membership is not None:
            logger.info("group %r: the automatic commit is off, for transactions", self._offsets.group_id)
        self._automatic = False
        if self.membership is None:
            return GroupMetadata(self._offsets.group_id)
        return self.membership.metadata

    # --- automatically ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Commit what is finished, now and then, until cancelled."""
        while True:
            await anyio.sleep(self._config.auto_commit_interval_ms / 1000)
            await self.commit_finished(self._subscription.states, timeout=self._config.default_api_timeout)

    def finished(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the automatic commit would commit now, and has not yet."""
        if not self._automatic:
            return {}
        ready: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp in partitions:
            state = self._subscription.states.get(tp)
            if state is None:
                continue
            done = self._settled[tp] if tp in self._settled else self._done(state)
            acked = self._acked.get(tp)
            if acked is not None and (done is None or acked.offset > done.offset):
                done = acked
            if done is not None and done.offset > self._reached(tp):
                ready[tp] = done
        return ready

    def _reached(self, tp: TopicPartition) -> int:
        """What is committed, or will be in a moment."""
        under_way = (offsets[tp].offset for offsets in self._under_way if tp in offsets)
        return max(self._known.get(tp, -1), *under_way, -1)

    def _done(self, state: PartitionState) -> OffsetAndMetadata | None:
        return None if self._config.enable_auto_commit == ACKED else self._in_hand.finished(state)

    def settle(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are about to be given up: what is finished of them now is what is committed, whatever becomes of
        the reader meanwhile."""
        for tp in partitions:
            state = self._subscription.states.get(tp)
            if state is not None and tp not in self._settled:
                self._settled[tp] = self._done(state)

    async def commit_last(self, partitions: Collection[TopicPartition], *, timeout: float) -> None:
        """Commit what is finished of partitions that are given up, and what `commit_soon` was told of them."""
        chosen = self.finished(partitions)
        for tp in partitions:
            told = self._soon.pop(tp, None)
            if told is not None and (tp not in chosen or chosen[tp].offset < told.offset):
                chosen[tp] = told
        await self.commit_finished((), timeout=timeout, offsets=chosen)

    async def commit_finished(
        self, partitions: Collection[TopicPartition], *, timeout: float, offsets: Offsets | None = None
    ) -> None:
        """Commit what is finished of `partitions`, or was when `offsets` were looked at; a failure is logged."""
        cluster = self._client.cluster
        chosen = self.finished(list(partitions)) if offsets is None else offsets
        # a topic that was deleted is no place to commit to
        ready = {tp: offset for tp, offset in chosen.items() if cluster.partition(tp) is not None}
        try:
            await self.commit(ready, timeout=timeout)
        except ClosedError:
            raise
        except KafkaError as error:
            level = logging.INFO if isinstance(error, CommitFailed) else logging.WARNING
            logger.log(level, "an automatic commit failed: %s", error)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are not ours any more."""
        for tp in partitions:
            self._acked.pop(tp, None)
            self._known.pop(tp, None)
            self._settled.pop(tp, None)
            self._soon.pop(tp, None)

    # --- the work -----------------------------------------------------------------------------------------------------

    async def _commit_as_member(self, membership: Membership, offsets: Offsets, timeout: float) -> None:
        """Commit in the generation that is in force when the commit is sent.

        Raises: CommitFailed: it has not all of the partitions; BrokerError; RequestTimedOut.
        """
        deadline = Deadline(timeout, f"committing offsets of group {self._offsets.group_id!r}")
        backoff = self._client.new_backoff()
        last: KafkaError | None = None
        with anyio.CancelScope(deadline=deadline.at) as waiting:
            while True:
                async with membership.commits.passing():
                    waiting.deadline = float("inf")  # the request has a deadline of its own, with better errors
                    group = membership.metadata
                    self._check_owned(offsets, group, last)
                    try:
                        await self._offsets.commit(offsets, group, timeout=deadline.remaining)
                        return
                    except BrokerError as error:
                        if not membership.refused(error.code, group):
                            if error.code in GONE:
                                raise self._lost(offsets, error) from error
                            raise
                        last = error
                waiting.deadline = deadline.at
                await self._client.pause(backoff.next())
        raise deadline.error(last or KafkaError("the group went on rebalancing"))

    def _check_owned(self, offsets: Offsets, group: GroupMetadata, cause: KafkaError | None) -> None:
        missing = [tp for tp in offsets if tp not in self._subscription.states]
        if group.generation < 0:
            missing = list(offsets)
        if missing:
            raise self._lost(missing, cause)

    def _lost(self, partitions: Collection[TopicPartition], cause: KafkaError | None) -> CommitFailed:
        error = CommitFailed(
            f"group {self._offsets.group_id!r}: offsets of {', '.join(map(str, sorted(partitions)[:5]))} were not "
            "committed: this member does not have them any more, and another may read them already",
            partitions=partitions,
        )
        error.__cause__ = cause
        return error

    async def _commit_soon(self) -> None:
        try:
            while self._soon:
                offsets, self._soon = self._soon, {}
                await self.commit_finished((), timeout=self._config.default_api_timeout, offsets=offsets)
        finally:
            self._is_busy = False
