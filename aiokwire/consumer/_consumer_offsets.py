"""A mixin of `Consumer`: the methods for positions, committed offsets and the ends of the log."""

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
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.processed import Held
from aiokwire.errors import ClosedError, ConfigurationError, InvalidArgument, RequestTimedOut
from aiokwire.types import (
    GroupMetadata,
    IsolationLevel,
    LogEnds,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetReset,
    TopicPartition,
    Watermarks,
)

if TYPE_CHECKING:
    from aiokwire.group import GroupOffsets

NO_GROUP: Final = "offsets are committed for a group: give the consumer a group_id"


class OffsetMethods:
    """A mixin with the positions, committed offsets and log ends of `Consumer`.

    Uses only the attributes that its own constructor sets. A mixin instead of a collaborator,
    because delegation would need each of its 21 documented public methods twice.
    """

    def __init__(self, parts: ConsumerParts, offsets: GroupOffsets | None, commits: Commits | None) -> None:
        """`offsets` and `commits` are None without a group."""
        self.config: ConsumerConfig[Any, Any] = parts.config
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
        """Continue at `offset`. Records that were fetched from the old position are not delivered.

        Raises: InvalidArgument: the partition is not assigned, or the offset is negative.
        """
        if not isinstance(offset, int) or offset < 0:
            raise InvalidArgument(f"an offset must be an int of at least 0, not {offset!r}")
        state = self._state(partition)
        self._leave_position(state)
        state.move_to(offset)
        self._fetcher.wake(state)
        self._reader.buffer.notify()

    async def seek_to_beginning(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Continue at the first available record, looked up now; by default in all partitions.

        Raises: RequestTimedOut: a leader did not respond; and the error of an unreadable partition.
        """
        await self._seek_to(OffsetReset.EARLIEST, partitions, timeout)

    async def seek_to_end(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Continue with records that are written from now on; without arguments in all partitions.

        Raises: RequestTimedOut: a leader did not respond; and the error of an unreadable partition.
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
        # The end is known when this returns, so that no record written later is missed.
        for state in states:
            await self.position(state.tp, timeout=timeout)

    async def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Return the offset of the next record to deliver; waits while it is being looked up.

        Raises: NoOffset: it has none, and `auto_offset_reset` is "none"; RequestTimedOut;
        InvalidArgument: the partition is not assigned.
        """
        self._check_open()
        state = self._state(partition)
        with anyio.move_on_after(self._timeout(timeout)):
            return await self._reader.position(state)
        raise RequestTimedOut(f"the position of {partition} was not found in time: {state!r}")

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the last known end; None: unknown."""
        return self._state(partition).lag

    def log_ends(self, partition: TopicPartition) -> LogEnds:
        """Return the offsets of an assigned partition's log in the last fetch response, else -1.

        Raises: InvalidArgument: the partition is not assigned.
        """
        ends = self._state(partition).ends
        return LogEnds(ends.log_start_offset, ends.high_watermark, ends.last_stable_offset, ends.fetched_at)

    @property
    def memory_in_use(self) -> int:
        """Bytes that were fetched and not delivered, and those that fetches in flight may return;
        `fetch_memory` bounds their sum."""
        return self._fetcher.in_use

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause the delivery and the fetches of `partitions` (default: all). Positions and buffered
        records are kept."""
        for state in self._states(partitions):
            state.pause()
            self._reader.buffer.set_aside(state)

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume paused partitions (default: all)."""
        for state in self._states(partitions):
            state.resume()
            self._fetcher.wake(state)
        self._reader.buffer.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """Return the paused partitions."""
        return frozenset(tp for tp, state in self._subscription.states.items() if state.paused)

    # --- the group's offsets ------------------------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return for each assigned partition the offset after the last delivered record; None while
        its first position is being looked up. A snapshot, for `rewind` and `commit`."""
        return {tp: state.committable for tp, state in self._subscription.states.items()}

    def rewind(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata | None]) -> None:
        """Go back to a snapshot of `positions()`, so that the same records are delivered again.

        None means the partition's first position. Partitions that are no longer assigned are left
        out; one that is already at its offset keeps its fetched records.

        Raises: InvalidArgument: a value is not an offset.
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

    def _redeliver(self, held: Held) -> None:
        """Deliver a record again whose stream ended, unless it was acked or committed."""
        if self._commits is None or not self._commits.is_covered(held.state.tp, held.position.offset):
            self.rewind({held.state.tp: held.position})

    def resume_from_committed(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata | None]) -> None:
        """Continue at committed offsets once no transaction can change them; if none, as `rewind`.

        After a transaction with an unknown outcome: no record is processed twice, none is skipped.

        Raises: InvalidArgument: a value is not an offset; ConfigurationError: no `group_id`.
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
        """Fetch the group's committed offsets, None where it has none; default: of all partitions.

        With `read_committed` it waits for open transactions that may change them.

        Raises: ConfigurationError: no `group_id`; BrokerError: a refused request; RequestTimedOut.
        """
        self._check_open()
        wanted = checked_partitions(partitions) if partitions else list(self._subscription.states)
        stable = self.config.isolation is IsolationLevel.READ_COMMITTED
        return await self._group().fetch(wanted, stable=stable, timeout=self._timeout(timeout))

    async def commit(self, offsets: Processed | None = None, *, timeout: float | None = None) -> None:
        """Commit positions to the group's coordinator and wait until it has stored them.

        `offsets` is a record, several records (the last of each partition counts), or a mapping of
        partitions to the next offsets to read. A record commits the offset after it, with its
        leader epoch (KIP-320). None commits the positions after the last delivered records.

        Raises: CommitFailed: a partition is no longer assigned; ConfigurationError: no `group_id`;
        InvalidArgument: other `offsets`; BrokerError: a refused request; RequestTimedOut.
        """
        self._check_open()
        await self._committer().commit(self._to_commit(offsets), timeout=self._timeout(timeout))

    def commit_nowait(self, offsets: Processed | None = None) -> None:
        """Commit in the background; a failure is logged. `offsets` is as for `commit`. Of calls
        made while a commit is in flight, the last one counts for each partition.

        Raises: ConfigurationError: no `group_id`; InvalidArgument: `offsets` is something else.
        """
        self._check_open()
        self._committer().commit_soon(self._to_commit(offsets))

    def ack(self, record: ConsumerRecord[Any, Any]) -> None:
        """Mark `record`, and all records before it in its partition, as processed: the automatic
        commit may cover them. Has no effect if the partition was revoked since.

        Raises: ConfigurationError: `group_id` is not set; InvalidArgument: it is not a record.
        """
        try:
            place = TopicPartition(record.topic, record.partition), record.offset, record.leader_epoch
        except AttributeError:
            raise InvalidArgument(f"ack takes a record, not {record!r}") from None
        self._committer().ack(*place)

    def group_metadata(self) -> GroupMetadata:
        """Return the group, and the member and generation, if any, for a transaction's offsets.

        Ends automatic commits: only records that a transaction commits count as processed.

        Raises: ConfigurationError: `group_id` is not set.
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
        """Look up the offset of the first record of each partition.

        Raises: BrokerError: a partition does not exist or is forbidden; RequestTimedOut.
        """
        found = await self._list_offsets(dict.fromkeys(partitions, EARLIEST), timeout)
        return {tp: offset.offset for tp, offset in found.items()}

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Look up the offset of the next record to be written to each partition; with
        `read_committed`, the last stable offset.

        Raises: BrokerError: a partition does not exist or is forbidden; RequestTimedOut.
        """
        found = await self._list_offsets(dict.fromkeys(partitions, LATEST), timeout)
        return {tp: offset.offset for tp, offset in found.items()}

    async def watermarks(
        self, partition: TopicPartition, *, cached: bool = False, timeout: float | None = None
    ) -> Watermarks:
        """Return the low and the high watermark of a partition, whatever the isolation level.

        `cached` returns those of the last fetch response, without a request, if the partition is
        assigned and was fetched; those of a paused partition may be old. Otherwise they are looked
        up at the leader, within `timeout` seconds (default: `default_api_timeout_ms`).

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
        """Look up the first record of each partition at or after its time (milliseconds since the
        epoch, or an aware datetime); None if all records are older.

        Raises: BrokerError: a partition does not exist or is forbidden, or the broker is too old;
        RequestTimedOut.
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
        """Drop the state that refers to a position that the application is about to move."""
        self._reader.buffer.drop(state)
        self._reader.processed.forget(state)
        if self._commits is not None:
            self._commits.moved(state.tp)

    def _timeout(self, timeout: float | None) -> float:
        return self.config.default_api_timeout if timeout is None else timeout

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this consumer was closed; create a new one")
        self._client.check()

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._subscription.states.get(partition)
        if state is None:
            name = str(partition) if isinstance(partition, TopicPartition) else repr(partition)
            raise InvalidArgument(f"{name} is not assigned to this consumer")
        return state

    def _states(self, partitions: tuple[TopicPartition, ...]) -> list[PartitionState]:
        if not partitions:
            return list(self._subscription.states.values())
        return [self._state(partition) for partition in partitions]
