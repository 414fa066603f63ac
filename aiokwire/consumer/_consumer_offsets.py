"""The methods of `Consumer` for positions, committed offsets and the ends of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import EARLIEST, LATEST, list_offsets
from aiokwire.consumer.arguments import (
    Moment,
    Processed,
    checked_offsets,
    checked_partitions,
    checked_positions,
    milliseconds,
)
from aiokwire.consumer.batches import ConsumerRecord
from aiokwire.consumer.commits import Commits
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.processed import Held
from aiokwire.errors import ClosedError, ConfigurationError, InvalidArgument, RequestTimedOut
from aiokwire.types import (
    GroupMetadata,
    IsolationLevel,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetReset,
    TopicPartition,
    Watermarks,
)

if TYPE_CHECKING:
    from aiokwire.group import GroupOffsets

NO_GROUP: Final = "offsets are kept for a group: give the consumer a group_id"


class OffsetMethods:
    """Positions, committed offsets and log ends: the base of `Consumer`.

    It has its own constructor and uses only what that sets. A base instead of a collaborator, because delegation would
    need each of its 21 documented public methods twice.
    """

    def __init__(self, parts: ConsumerParts, offsets: GroupOffsets | None, commits: Commits | None) -> None:
        """`offsets` and `commits` are None without a group."""
        self.config = parts.config
        self._client = parts.client
        self._subscription = parts.subscription
        self._reader = parts.reader
        self._fetcher = parts.fetcher
        self._updater = parts.updater
        self._offsets = offsets
        self._commits = commits
        self._closed = False

    # --- positions ----------------------------------------------------------------------------------------------------

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at `offset`. What was fetched from elsewhere is never handed over.

        Raises: InvalidArgument: the partition is not assigned, or the offset is negative.
        """
        if not isinstance(offset, int) or offset < 0:
            raise InvalidArgument(f"an offset is a number from 0, not {offset!r}")
        state = self._state(partition)
        self._leave_position(state)
        state.move_to(offset)
        self._fetcher.wake(state)
        self._reader.buffer.notify()

    async def seek_to_beginning(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Go on at the first record there is, looked up now; without arguments in all partitions.

        Raises: RequestTimedOut: a leader did not answer in time; and what keeps a partition from going on.
        """
        await self._seek_to(OffsetReset.EARLIEST, partitions, timeout)

    async def seek_to_end(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Go on with what is written from now on; without arguments in all partitions.

        Raises: RequestTimedOut: a leader did not answer in time; and what keeps a partition from going on.
        """
        await self._seek_to(OffsetReset.LATEST, partitions, timeout)

    async def _seek_to(self, where: OffsetReset, partitions: tuple[TopicPartition, ...], timeout: float | None) -> None:
        self._check_open()
        states = self._states(partitions)
        for state in states:
            self._leave_position(state)
            state.cursor.forget()
            state.request_reset(where, "sought")
        self._updater.wake()
        # "The end" is where the log ends when this returns, so that nothing written after it is missed.
        for state in states:
            await self.position(state.tp, timeout=timeout)

    async def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """The offset of the next record that will be handed over; waits while it is being looked up.

        Raises: NoOffset: there is none, and `auto_offset_reset` is "none"; RequestTimedOut; InvalidArgument: the
        partition is not assigned.
        """
        self._check_open()
        state = self._state(partition)
        with anyio.move_on_after(self._timeout(timeout)):
            return await self._reader.position(state)
        raise RequestTimedOut(f"the position of {partition} was not found in time: {state!r}")

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets from the position to the end as the last fetch told it; None before the first fetch."""
        return self._state(partition).lag

    @property
    def memory_in_use(self) -> int:
        """Bytes that are held and not handed over, and those that the fetches in flight may bring: what `fetch_memory`
        bounds."""
        return self._fetcher.in_use

    def pause(self, *partitions: TopicPartition) -> None:
        """Neither hand over nor fetch; without arguments all partitions. Positions and what is held stay."""
        for state in self._states(partitions):
            state.pause()
            self._reader.buffer.set_aside(state)

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause; without arguments of all partitions."""
        for state in self._states(partitions):
            state.resume()
            self._fetcher.wake(state)
        self._reader.buffer.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(tp for tp, state in self._subscription.states.items() if state.paused)

    # --- the group's offsets ------------------------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Of each assigned partition the offset after the last record that was handed over; None while its first
        position is being looked up. A snapshot, for `rewind` and `commit`."""
        return {tp: state.committable for tp, state in self._subscription.states.items()}

    def rewind(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata | None]) -> None:
        """Go back to a snapshot of `positions()`, so that the same records are handed over again.

        None means where the partition began. Partitions that are not assigned any more are left out; one that stands
        where it should keeps what it has fetched.

        Raises: InvalidArgument: an offset is none.
        """
        for tp, where in checked_offsets(positions).items():
            state = self._subscription.states.get(tp)
            target = where if where is not None or state is None else state.cursor.began
            if state is None or target is None or state.position == target.offset:
                continue
            self._leave_position(state)
            state.move_to(target.offset, target.leader_epoch)
            self._fetcher.wake(state)
        self._reader.buffer.notify()

    def _read_again(self, held: Held) -> None:
        """A stream ended with a record in hand."""
        if self._commits is None or not self._commits.covers(held.state.tp, held.position.offset):
            self.rewind({held.state.tp: held.position})

    def resume_from_committed(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata | None]) -> None:
        """Go on where the group stands, once no open transaction can change that; where it has committed nothing, go
        back as `rewind` does.

        For the time after a transaction whose end is not known: what it did is not done again, and nothing is skipped.

        Raises: InvalidArgument: an offset is none; ConfigurationError: there is no `group_id`.
        """
        self._group()
        for tp, where in checked_offsets(positions).items():
            state = self._subscription.states.get(tp)
            if state is not None:
                self._leave_position(state)
                state.request_committed(where if where is not None else state.cursor.began)
        self._updater.wake()
        self._reader.buffer.notify()

    async def committed(
        self, *partitions: TopicPartition, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, asked now; None where that is nothing. Without arguments of all partitions.

        With `read_committed` it waits for transactions that may yet change it.

        Raises: ConfigurationError: there is no `group_id`; BrokerError: the coordinator refuses; RequestTimedOut.
        """
        self._check_open()
        wanted = checked_partitions(partitions) if partitions else list(self._subscription.states)
        stable = self.config.isolation is IsolationLevel.READ_COMMITTED
        return await self._group().fetch(wanted, stable=stable, timeout=self._timeout(timeout))

    async def commit(self, offsets: Processed | None = None, *, timeout: float | None = None) -> None:
        """Commit positions to the group's coordinator and wait until it has stored them.

        `offsets` is a record, several records of any partitions (of each partition the last one counts), or a mapping
        of partitions to offsets, each that of the next record to read. A record commits the offset after it, with its
        leader epoch (KIP-320). None commits the positions after the last records that were handed over.

        Raises: CommitFailed: a member does not own one of the partitions any more; ConfigurationError: there is no
        `group_id`; InvalidArgument: `offsets` has something else; BrokerError: the coordinator refuses;
        RequestTimedOut.
        """
        self._check_open()
        await self._committer().commit(self._to_commit(offsets), timeout=self._timeout(timeout))

    def commit_nowait(self, offsets: Processed | None = None) -> None:
        """Commit in the background; a failure is logged. `offsets` is as for `commit`. Of calls made while a commit
        is in flight, the last one counts for each partition.

        Raises: ConfigurationError: there is no `group_id`; InvalidArgument: `offsets` has something else.
        """
        self._check_open()
        self._committer().commit_soon(self._to_commit(offsets))

    def ack(self, record: ConsumerRecord[Any, Any]) -> None:
        """`record`, and all before it in its partition, are done: the automatic commit may cover them. Of a partition
        that was given up meanwhile nothing is kept.

        Raises: ConfigurationError: there is no `group_id`.
        """
        tp = TopicPartition(record.topic, record.partition)
        self._committer().ack(tp, record.offset, record.leader_epoch)

    def group_metadata(self) -> GroupMetadata:
        """Who commits, for transactions: the group; the member and its generation when it is one.

        From now on nothing is committed automatically: what a transaction does not take is not done.

        Raises: ConfigurationError: there is no `group_id`.
        """
        return self._committer().for_transactions()

    def _to_commit(self, offsets: Processed | None) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is not None:
            return checked_positions(offsets)
        return {tp: position for tp, position in self.positions().items() if position is not None}

    def _group(self) -> GroupOffsets:
        if self._offsets is None:
            raise ConfigurationError(NO_GROUP)
        return self._offsets

    def _committer(self) -> Commits:
        if self._commits is None:
            raise ConfigurationError(NO_GROUP)
        return self._commits

    # --- offsets of the log -------------------------------------------------------------------------------------------

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition.

        Raises: BrokerError: a partition does not exist or is forbidden; RequestTimedOut.
        """
        found = await self._list_offsets(dict.fromkeys(partitions, EARLIEST), timeout)
        return {tp: offset.offset for tp, offset in found.items()}

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition will get; with `read_committed`, where open transactions
        begin.

        Raises: BrokerError: a partition does not exist or is forbidden; RequestTimedOut.
        """
        found = await self._list_offsets(dict.fromkeys(partitions, LATEST), timeout)
        return {tp: offset.offset for tp, offset in found.items()}

    async def watermarks(
        self, partition: TopicPartition, *, cached: bool = False, timeout: float | None = None
    ) -> Watermarks:
        """Return the low and the high watermark of a partition, whatever the isolation level.

        `cached` returns those of the last fetch response where the partition is assigned and was fetched, without a
        request; of a paused partition they may be old. Otherwise the partition's leader is asked, within `timeout`
        seconds (default: `default_api_timeout_ms`).

        Raises: BrokerError: the partition does not exist or is forbidden; RequestTimedOut.
        """
        self._check_open()
        (tp,) = checked_partitions([partition])
        state = self._subscription.states.get(tp)
        if cached and state is not None and min(state.ends.log_start_offset, state.ends.high_watermark) >= 0:
            return Watermarks(state.ends.log_start_offset, state.ends.high_watermark)
        deadline = Deadline(self._timeout(timeout), f"looking up the watermarks of {tp}")
        low, high = [
            await list_offsets(
                self._client, {tp: end}, isolation=IsolationLevel.READ_UNCOMMITTED, timeout=deadline.remaining
            )
            for end in (EARLIEST, LATEST)
        ]
        return Watermarks(low[tp].offset, high[tp].offset)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, Moment], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after its time (milliseconds since the epoch, or an aware datetime);
        None when no record is that late.

        Raises: BrokerError: a partition does not exist or is forbidden, or the broker is too old; RequestTimedOut.
        """
        found = await self._list_offsets({tp: milliseconds(time) for tp, time in times.items()}, timeout)
        return {tp: offset if offset.offset >= 0 else None for tp, offset in found.items()}

    # --- helpers ------------------------------------------------------------------------------------------------------

    async def _list_offsets(
        self, times: dict[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        self._check_open()
        return await list_offsets(self._client, times, isolation=self.config.isolation, timeout=self._timeout(timeout))

    def _leave_position(self, state: PartitionState) -> None:
        """The position is about to be moved on purpose."""
        self._reader.buffer.drop(state)
        self._reader.processed.forget(state)
        if self._commits is not None:
            self._commits.moved(state.tp)

    def _timeout(self, timeout: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this consumer was closed; make a new one")
        self._client.check()

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._subscription.states.get(partition)
        if state is None:
            raise InvalidArgument(f"{partition!r} is not assigned to this consumer")
        return state

    def _states(self, partitions: tuple[TopicPartition, ...]) -> list[PartitionState]:
        if not partitions:
            return list(self._subscription.states.values())
        return [self._state(partition) for partition in partitions]
