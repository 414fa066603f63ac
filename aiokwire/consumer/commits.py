"""Commits offsets: on request, automatically, when partitions are revoked, and at the end."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import anyio

from aiokwire.backoff import Deadline
from aiokwire.clock import loop_time
from aiokwire.cluster import Client, failure_level
from aiokwire.consumer.config import ACKED, ConsumerConfig
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.metrics import CommitCounts
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.processed import ProcessedTracker
from aiokwire.consumer.subscription import Subscription
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ClosedError, CommitFailed, KafkaError
from aiokwire.group import CurrentMembership, GroupOffsets, Membership
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.metrics import type_of
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

# The coordinator refuses commits of a member that is no longer in its generation with these.
GONE: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})

logger: FieldLogger = get_logger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Claim(NamedTuple):
    """The member and its partitions at a commit's call; it may be sent in a later generation."""

    group: GroupMetadata
    states: Mapping[TopicPartition, PartitionState | None]

    def is_held(self, tp: TopicPartition, state: PartitionState, now: GroupMetadata) -> bool:
        """Return whether no other member can have had the partition since: it was not given up, or
        was assigned again in the next generation."""
        before = self.group
        return self.states[tp] is state or (
            before.member_id == now.member_id and 0 <= now.generation - before.generation <= 1
        )


class Commits:
    """Commits offsets of a consumer with a group id, a member or with partitions assigned by hand.

    Commits take turns, including their retries: they take effect in the order of their calls.
    """

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        offsets: GroupOffsets,
        subscription: Subscription,
        processed: ProcessedTracker,
        membership: CurrentMembership,
        hooks: ConsumerHooks,
    ) -> None:
        self._client = client
        self._config = config
        self._log = logger.bound(client_id=config.client_id, group_id=config.group_id)
        self._offsets = offsets
        self._subscription = subscription
        self._processed = processed
        self._membership = membership
        self._hooks = hooks
        self._automatic = bool(config.enable_auto_commit)
        self._acked: dict[TopicPartition, OffsetAndMetadata] = {}
        self._known: dict[TopicPartition, int] = {}  # committed last; the automatic commit never goes back
        self._under_way: list[Offsets] = []  # being committed; nor behind these
        self._turn = anyio.Lock()  # fair
        self._given_up: set[TopicPartition] = set()  # assigned to this member at some time, and given up
        self._automatic_commit: anyio.CancelScope | None = None  # around the last one
        self._settled: dict[TopicPartition, OffsetAndMetadata | None] = {}  # finished positions at a revocation
        self._soon: dict[TopicPartition, OffsetAndMetadata] = {}  # for the background task
        self._is_busy = False  # the background task runs
        self.counts: CommitCounts = CommitCounts()

    # --- by the application -------------------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets, *, timeout: float) -> None:
        """See `Consumer.commit`."""
        for tp in offsets:
            self._soon.pop(tp, None)  # older
        await self._commit(offsets, timeout, is_automatic=False)

    def commit_soon(self, offsets: Offsets) -> None:
        """See `Consumer.commit_nowait`."""
        self._soon.update(offsets)
        if not self._is_busy and self._soon:
            self._is_busy = True
            self._client.spawn(self._commit_soon, name="commit")

    def ack(self, tp: TopicPartition, offset: int, leader_epoch: int) -> None:
        """See `Consumer.ack`; `leader_epoch` is the record's, -1 if unknown."""
        state = self._subscription.states.get(tp)
        if state is None or state.cursor.began is None or offset < state.cursor.began.offset:
            return  # of an earlier assignment: another member may have committed more since
        before = self._acked.get(tp)
        if before is None or before.offset <= offset:
            self._acked[tp] = OffsetAndMetadata(offset + 1, leader_epoch=leader_epoch)

    def is_covered(self, tp: TopicPartition, offset: int) -> bool:
        """Return whether the record at an offset was acked or committed."""
        acked = self._acked.get(tp)
        return (acked is not None and acked.offset > offset) or self._known.get(tp, -1) > offset

    def moved(self, tp: TopicPartition) -> None:
        """Allow later commits before the last one: the position was moved on purpose."""
        self._known.pop(tp, None)
        self._acked.pop(tp, None)

    def for_transactions(self) -> GroupMetadata:
        """See `Consumer.group_metadata`."""
        member = self._membership.member
        if self._automatic and member is not None:
            self._log.info("group %r: automatic commit is off: transactions commit the offsets", self._offsets.group_id)
        self._automatic = False
        if self._automatic_commit is not None:
            self._automatic_commit.cancel()  # a retry could overwrite the transaction's offsets
        return GroupMetadata(self._offsets.group_id) if member is None else member.metadata

    # --- automatically ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Commit finished records periodically until cancelled."""
        while True:
            await anyio.sleep(self._config.auto_commit_interval)
            with anyio.CancelScope() as self._automatic_commit:
                await self._commit_quietly(self.finished(self._subscription.states), self._config.default_api_timeout)

    def finished(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that an automatic commit would commit now."""
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
        """Return the offset that is committed or being committed; -1 without one."""
        under_way = (offsets[tp].offset for offsets in self._under_way if tp in offsets)
        return max(self._known.get(tp, -1), *under_way, -1)

    def _done(self, state: PartitionState) -> OffsetAndMetadata | None:
        return None if self._config.enable_auto_commit == ACKED else self._processed.finished(state)

    def settle(self, partitions: Collection[TopicPartition]) -> None:
        """Fix the finished positions of partitions to be revoked: later reads no longer count."""
        for tp in partitions:
            state = self._subscription.states.get(tp)
            if state is not None and tp not in self._settled:
                self._settled[tp] = self._done(state)

    async def commit_last(self, partitions: Collection[TopicPartition], *, timeout: float) -> None:
        """Commit revoked partitions' finished records, and the offsets given to `commit_soon`."""
        chosen = self.finished(partitions)
        for tp in partitions:
            soon = self._soon.pop(tp, None)
            if soon is not None and (tp not in chosen or chosen[tp].offset < soon.offset):
                chosen[tp] = soon
        if chosen:
            await self._commit_quietly(chosen, timeout, is_last=True)
        elif self._under_way:  # by the background task: wait, so that the member does not leave before
            with anyio.move_on_after(timeout):
                async with self._turn:
                    pass

    async def _commit_quietly(self, offsets: Offsets, timeout: float, *, is_last: bool = False) -> None:
        cluster = self._client.cluster
        # Offsets of a deleted topic cannot be committed.
        ready = {tp: offset for tp, offset in offsets.items() if cluster.partition(tp) is not None}
        try:
            await self._commit(ready, timeout, is_automatic=True)
        except ClosedError:
            raise
        except KafkaError as error:
            level = logging.INFO if isinstance(error, CommitFailed) else logging.WARNING
            if not is_last:  # the next commit covers the same offsets
                level = failure_level(error, level)
            self._log.log(level, "automatic commit failed: %s", error)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the state of partitions that are no longer assigned."""
        self._given_up.update(partitions)
        for tp in partitions:
            self._acked.pop(tp, None)
            self._known.pop(tp, None)
            self._settled.pop(tp, None)
            self._soon.pop(tp, None)

    # --- one commit ---------------------------------------------------------------------------------------------------

    async def _commit(self, offsets: Offsets, timeout: float, *, is_automatic: bool) -> None:
        """Raises: CommitFailed: a partition is not assigned; BrokerError; RequestTimedOut."""
        if not offsets:
            return
        self._under_way.append(offsets)
        began = loop_time()
        try:
            with self._hooks.committing(self._offsets.group_id, offsets, is_automatic=is_automatic):
                await self._commit_in_turn(offsets, timeout)
            self.counts.ended(loop_time() - began)
        except KafkaError as error:
            self.counts.ended(loop_time() - began, type_of(error))
            raise
        finally:
            self._under_way.remove(offsets)

    async def _commit_in_turn(self, offsets: Offsets, timeout: float) -> None:
        membership = self._membership.member
        group = GroupMetadata(self._offsets.group_id) if membership is None else membership.metadata
        claim = Claim(group, {tp: self._subscription.states.get(tp) for tp in offsets})
        deadline = Deadline(timeout, f"committing offsets of group {self._offsets.group_id!r}")
        backoff = self._client.new_backoff()
        last_error = KafkaError("earlier commits have not finished")
        with anyio.CancelScope(deadline=deadline.at) as waiting:
            async with self._turn:
                if membership is None:
                    waiting.deadline = float("inf")  # the request has its own deadline, with better errors
                    await self._offsets.commit(offsets, group, timeout=deadline.remaining)
                    self._note_known(offsets)
                    return
                last_error = KafkaError("the group was still rebalancing")
                while True:
                    async with membership.commits.passing():
                        waiting.deadline = float("inf")
                        refusal = await self._commit_as_member(membership, offsets, claim, deadline)
                    if refusal is None:
                        self._note_known(offsets)
                        return
                    last_error = refusal
                    waiting.deadline = deadline.at
                    await self._client.pause(backoff.next())
        raise deadline.error(last_error)

    async def _commit_as_member(
        self, membership: Membership, offsets: Offsets, claim: Claim, deadline: Deadline
    ) -> BrokerError | None:
        """Commit in the current generation; return a refusal after which it may be retried."""
        group = membership.metadata
        self._check_owned(claim, group)
        try:
            await self._offsets.commit(offsets, group, timeout=deadline.remaining)
        except BrokerError as error:
            if membership.refused(error.code, group):
                return error
            if error.code in GONE:
                why = f"the group has removed this member ({error.code.name}), and another may read them already"
                raise self._not_committed(offsets, why) from error
            raise
        return None

    def _note_known(self, offsets: Offsets) -> None:
        self._known.update((tp, offset.offset) for tp, offset in offsets.items())

    def _check_owned(self, claim: Claim, group: GroupMetadata) -> None:
        """Raises: CommitFailed: a partition is not the member's, or was not since the call."""
        missing = list(claim.states)
        if group.generation >= 0:
            states = self._subscription.states
            missing = [
                tp
                for tp in claim.states
                if tp not in states or (tp in self._given_up and not claim.is_held(tp, states[tp], group))
            ]
        if missing:
            held = sorted(map(str, self._subscription.states))
            more = ", ..." if len(held) > 5 else ""
            raise self._not_committed(
                missing,
                f"not assigned to this member, which has {', '.join(held[:5]) or 'none'}{more}; "
                "only its new owner can commit a partition that was revoked",
            )

    def _not_committed(self, partitions: Collection[TopicPartition], why: str) -> CommitFailed:
        names = ", ".join(map(str, sorted(partitions)[:5]))
        return CommitFailed(
            f"group {self._offsets.group_id!r}: offsets of {names} were not committed: {why}", partitions=partitions
        )

    async def _commit_soon(self) -> None:
        try:
            while self._soon:
                offsets, self._soon = self._soon, {}
                await self._commit_quietly(offsets, self._config.default_api_timeout)
        finally:
            self._is_busy = False
