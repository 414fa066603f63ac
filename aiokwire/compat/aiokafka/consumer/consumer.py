"""`AIOKafkaConsumer`: aiokafka's consumer on `aiokwire.Consumer`.

Records pass through unchanged. aiokafka's `subscribe`, `assign` and `unsubscribe` do not wait, so
that leaving a group happens in the background: later calls wait for it (`Steps`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import anyio

from aiokwire import errors
from aiokwire.compat.aiokafka._version import CLIENT_ID
from aiokwire.compat.aiokafka.abc import ConsumerRebalanceListener
from aiokwire.compat.aiokafka.client import AIOKafkaClient, partitions_of
from aiokwire.compat.aiokafka.consumer.listener import AdaptedListener, commit_delivered
from aiokwire.compat.aiokafka.consumer.patterns import TopicWatch, whole_names
from aiokwire.compat.aiokafka.consumer.steps import Steps
from aiokwire.compat.aiokafka.coordinator.adapted import assignors_of
from aiokwire.compat.aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokwire.compat.aiokafka.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    KafkaConnectionError,
    translated,
    translating,
)
from aiokwire.compat.aiokafka.options import consumer_options, deserializer_of, warn_of_deprecated
from aiokwire.compat.aiokafka.structs import ConsumerRecord, OffsetAndTimestamp
from aiokwire.compat.aiokafka.unclosed import warn_unclosed
from aiokwire.compat.aiokafka.util import Offsets, commit_structure_validate
from aiokwire.consumer import Consumer
from aiokwire.types import OffsetAndMetadata as OurOffset
from aiokwire.types import TopicPartition

__all__ = ["AIOKafkaConsumer"]

log: logging.Logger = logging.getLogger("aiokwire.compat.aiokafka")

# As many records as are buffered; our consumer returns very long lists in parts.
NO_LIMIT: Final = 2**31 - 1
# How long (seconds) a start waits for the group's first assignment: aiokafka waits without a limit.
FOREVER: Final = 86_400.0 * 365
# How long (seconds) a start also waits for the ends of the assigned partitions, with "latest".
ENDS_SECONDS: Final = 1.0

Record = ConsumerRecord[Any, Any]


class AIOKafkaConsumer:
    """Reads records, alone or as a member of a group. Options and defaults are aiokafka's."""

    _closed: bool | None = None  # until the constructor has ended

    def __init__(
        self,
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | list[str] = "localhost",
        client_id: str = CLIENT_ID,
        group_id: str | None = None,
        group_instance_id: str | None = None,
        key_deserializer: Callable[[Any], Any] | None = None,
        value_deserializer: Callable[[Any], Any] | None = None,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52428800,
        fetch_min_bytes: int = 1,
        max_partition_fetch_bytes: int = 1 * 1024 * 1024,
        request_timeout_ms: int = 40 * 1000,
        retry_backoff_ms: int = 100,
        auto_offset_reset: str = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5000,
        check_crcs: bool = True,
        metadata_max_age_ms: int = 5 * 60 * 1000,
        partition_assignment_strategy: Sequence[Any] = (RoundRobinPartitionAssignor,),
        max_poll_interval_ms: int = 300000,
        rebalance_timeout_ms: int | None = None,
        session_timeout_ms: int = 10000,
        heartbeat_interval_ms: int = 3000,
        consumer_timeout_ms: int = 200,
        max_poll_records: int | None = None,
        ssl_context: Any = None,
        security_protocol: str = "PLAINTEXT",
        api_version: str | None = None,
        exclude_internal_topics: bool = True,
        connections_max_idle_ms: int | None = 540000,
        isolation_level: str = "read_uncommitted",
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: Any = None,
        client_rack: str | None = None,
    ) -> None:
        """Take aiokafka's options. No event loop needs to run yet.

        Raises: ValueError: an option is out of its range, or contradicts another.
        """
        options = consumer_options(locals())
        warn_of_deprecated(loop, api_version)
        holder: list[Consumer[Any, Any]] = []
        self._client = AIOKafkaClient.of(lambda: holder[0].client)
        self._consumer: Consumer[Any, Any] = Consumer(
            **options,
            partition_assignment_strategy=assignors_of(partition_assignment_strategy, self._client),
            key_deserializer=deserializer_of(key_deserializer),
            value_deserializer=deserializer_of(value_deserializer),
        )
        holder.append(self._consumer)
        self._consumer.convert_errors(_converted)
        self._group_id = group_id
        self._auto_commit = bool(enable_auto_commit) and group_id is not None
        self._request_timeout = request_timeout_ms / 1000
        self._limit = NO_LIMIT if max_poll_records is None else max_poll_records
        self._exclude_internal_topics = exclude_internal_topics
        self._starts_at_end = auto_offset_reset == "latest"
        self._is_transactional = options["isolation_level"] == "read_committed"
        self._listener: AdaptedListener | None = None
        self._watch: TopicWatch | None = None  # of a pattern without a group
        self._mode: str | None = None  # "topics", "pattern" or "partitions"
        self._started = False
        self._is_member = False
        self._steps = Steps()
        self._closed = False
        if topics:
            self._subscribe(_checked_topics(topics), None)

    def __del__(self, _warnings: Any = warnings) -> None:
        if self._closed is False:
            warn_unclosed(self, "consumer", _warnings)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, find the topics, and join the group, if there is one, until it has assigned
        partitions.

        Raises: KafkaConnectionError: no bootstrap server responds; UnknownTopicOrPartitionError: a
        topic does not exist, and is not created; the error that keeps the member out of its group.
        """
        if self._started:
            raise AssertionError("this consumer was started before")
        with translating(KafkaConnectionError):
            await self._consumer.start()
        for topic in self._consumer.subscription:
            await partitions_of(self._consumer.client, topic)
        self._started = True
        if self._watch is not None:
            await self._watch.start()
        elif self._mode != "partitions":
            self._is_member = self._group_id is not None
            with translating(ConsumerStoppedError):
                await self._consumer.joined(FOREVER)
            if self._starts_at_end:
                await self._find_ends()

    async def _find_ends(self) -> None:
        """Look up the positions, so that records written after the start are read.

        What fails here, or takes long, is repeated and raised where records are read.
        """
        with anyio.move_on_after(ENDS_SECONDS), contextlib.suppress(errors.KafkaError):
            for tp in self._consumer.assignment:
                await self._consumer.position(tp)

    async def stop(self) -> None:
        """Commit the offsets after the last delivered records, if automatic commits are on; leave
        the group, and disconnect."""
        if self._closed:
            return
        self._closed = True
        if self._listener is not None:
            self._listener.is_leaving = True
        if self._started and self._auto_commit:
            await commit_delivered(self._consumer, self._consumer.assignment)
        await self._consumer.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # --- subscriptions ------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Collection[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics by their names, or all whose names begin with a match of a pattern.

        Raises: TypeError: not exactly one of `topics` and `pattern`, or another kind of listener;
        ValueError: the pattern is invalid; IllegalStateError: partitions were assigned by hand.
        """
        if bool(topics) == bool(pattern):
            raise TypeError("subscribe takes either topics or a pattern")
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise TypeError(f"listener must be a ConsumerRebalanceListener, not {listener!r}")
        if pattern is None:
            self._subscribe(_checked_topics(topics), listener)
        else:
            self._subscribe_pattern(whole_names(pattern), listener)

    def _subscribe(self, topics: set[str], listener: ConsumerRebalanceListener | None) -> None:
        self._enter("topics")
        self._end_watch()
        self._apply(lambda: self._subscribe_now(*sorted(topics), listener=listener))

    def _subscribe_now(self, *topics: str | re.Pattern[str], listener: ConsumerRebalanceListener | None) -> None:
        """Subscribe; a member rejoins its group even for the same topics, as aiokafka's does."""
        self._consumer.subscribe_nowait(
            *topics, listener=self._adapted(listener), internal=not self._exclude_internal_topics
        )
        if self._is_member:
            self._consumer.rejoin("the application subscribed again")
        self._is_member = self._started and self._group_id is not None

    def _subscribe_pattern(self, pattern: re.Pattern[str], listener: ConsumerRebalanceListener | None) -> None:
        self._enter("pattern")
        self._end_watch()
        if self._group_id is not None:
            self._apply(lambda: self._subscribe_now(pattern, listener=listener))
            return
        self._watch = TopicWatch(self._consumer, pattern, internal=not self._exclude_internal_topics)
        if self._started:
            self._apply(self._watch.begin)

    def _adapted(self, listener: ConsumerRebalanceListener | None) -> AdaptedListener | None:
        if self._group_id is None:
            return None
        self._listener = AdaptedListener(self._consumer, listener, commits=self._auto_commit)
        return self._listener

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without the group's assignment.

        Raises: IllegalStateError: topics are subscribed.
        """
        wanted = list(partitions)
        self._enter("partitions")
        self._apply(lambda: self._consumer.assign_nowait(wanted))

    def unsubscribe(self) -> None:
        """Give up all topics and partitions; a member leaves its group in the background."""
        self._end_watch()
        before, self._mode = self._mode, None
        if self._listener is not None:
            self._listener.is_leaving = True
        if self._started and self._group_id is not None and before != "partitions":
            self._steps.later(self._consumer.client, self._leave)
        else:
            self._apply(lambda: self._consumer.assign_nowait(()))

    async def _leave(self) -> None:
        if self._auto_commit:
            await commit_delivered(self._consumer, self._consumer.assignment)
        await self._consumer.unsubscribe()
        self._is_member = False

    def _enter(self, mode: str) -> None:
        by_hand = mode == "partitions"
        if self._mode is not None and by_hand != (self._mode == "partitions"):
            raise IllegalStateError("subscribe() and assign() exclude each other: call unsubscribe() in between")
        self._mode = mode

    def _apply(self, change: Callable[[], None]) -> None:
        """Change the subscription now, or after the member has left its group."""
        with translating(ConsumerStoppedError):
            self._steps.now_or_later(self._consumer.client if self._started else None, change)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.end()
            self._watch = None

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set() if self._mode is None else set(self._consumer.assignment)

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics; of a pattern, those that match now."""
        if self._mode == "partitions":
            return frozenset(tp.topic for tp in self._consumer.assignment)
        return frozenset() if self._mode is None else self._consumer.subscription

    # --- records ------------------------------------------------------------------------------------------------------

    async def getone(self, *partitions: TopicPartition) -> Record:
        """Return the next record, of any partition or of the given ones.

        Raises: ConsumerStoppedError: the consumer was stopped; the error of a partition that cannot
        be read, or of the group.
        """
        if self._closed or self._steps.are_left or partitions:
            return await self._getone_of(partitions)
        try:
            return await self._consumer.getone()  # type: ignore[return-value]  # a virtual subclass
        except errors.KafkaError as error:
            raise _converted(error) from error.__cause__

    async def _getone_of(self, partitions: tuple[TopicPartition, ...]) -> Record:
        while True:
            found = await self.getmany(*partitions, timeout_ms=FOREVER * 1000, max_records=1)
            for records in found.values():
                return records[0]
            self._check_open()

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """Return buffered records by partition; without any, wait up to `timeout_ms` for the first.

        Raises: ValueError: `max_records` is not positive; otherwise as `getone`.
        """
        if max_records is not None and (not isinstance(max_records, int) or max_records < 1):
            raise ValueError(f"max_records must be a positive int or None, not {max_records!r}")
        await self._ready()
        only = _checked_partitions(partitions) or None
        try:
            return await self._consumer.getmany(  # type: ignore[return-value]  # a virtual subclass
                max_records or self._limit, timeout_ms / 1000, only, by_partition=True
            )
        except errors.KafkaError as error:
            if self._closed and isinstance(error, errors.ClosedError):
                return {}  # it was stopped during the call
            raise _converted(error) from error.__cause__

    def __aiter__(self) -> AsyncIterator[Record]:
        """Iterate over records until the consumer is stopped.

        Raises: ConsumerStoppedError: it was.
        """
        self._check_open()
        return self._consumer.__aiter__()  # type: ignore[return-value]  # a virtual subclass

    async def __anext__(self) -> Record:
        try:
            return await self.getone()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    async def _ready(self) -> None:
        self._check_open()
        if self._steps.are_left:
            await self._steps.wait()

    def _check_open(self) -> None:
        if self._closed:
            raise ConsumerStoppedError("this consumer was stopped")

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`.

        Raises: IllegalStateError: one is not assigned; TypeError: one is not a TopicPartition.
        """
        for tp in self._assigned(partitions):
            self._consumer.pause(tp)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return set(self._consumer.paused())

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause. Raises: as `pause`."""
        for tp in self._assigned(partitions):
            self._consumer.resume(tp)

    # --- positions ----------------------------------------------------------------------------------------------------

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record; waits while it is being looked up.

        Raises: IllegalStateError: the partition is not assigned; NoOffsetForPartitionError.
        """
        await self._ready()
        while True:
            (tp,) = self._assigned([partition])
            try:
                return await self._consumer.position(tp, timeout=self._request_timeout)
            except errors.RequestTimedOut:
                log.info("the position of %s is not known yet", tp)
            except errors.KafkaError as error:
                raise _converted(error) from error.__cause__

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at an offset.

        Raises: ValueError: it is not a non-negative int; IllegalStateError: not assigned.
        """
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"an offset must be an int of at least 0, not {offset!r}")
        (tp,) = self._assigned([partition])
        self._consumer.seek(tp, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Continue at the first available records, by default of all partitions.

        Returns False if a leader did not respond within the request timeout.

        Raises: IllegalStateError: one is not assigned; TypeError: one is not a TopicPartition.
        """
        return await self._seek_to(self._consumer.seek_to_beginning, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Continue with records written from now on. Otherwise as `seek_to_beginning`."""
        return await self._seek_to(self._consumer.seek_to_end, partitions)

    async def _seek_to(self, seek: Callable[..., Any], partitions: tuple[TopicPartition, ...]) -> bool:
        await self._ready()
        try:
            await seek(*self._assigned_or_all(partitions), timeout=self._request_timeout)
        except errors.RequestTimedOut:
            return False
        except errors.KafkaError as error:
            raise _converted(error) from error.__cause__
        return True

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """Continue at the group's committed offsets, and return them; partitions without one stay.

        Raises: IllegalOperation: no `group_id`; otherwise as `seek_to_beginning`.
        """
        await self._ready()
        found = {tp: await self.committed(tp) for tp in self._assigned_or_all(partitions)}
        for tp, offset in found.items():
            if offset is not None and offset > 0:
                self._consumer.seek(tp, offset)
        return found

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of the last fetch response; None before any."""
        return _known(self._ends(partition).high_watermark)

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the last stable offset of the last fetch response; -1 with "read_uncommitted"."""
        return _known(self._ends(partition).last_stable_offset) if self._is_transactional else -1

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """Return when the last fetch response came, in milliseconds since the epoch; None before
        any."""
        return _known(self._ends(partition).fetched_at)

    def _ends(self, partition: TopicPartition) -> Any:
        if partition not in self._consumer.assignment:
            raise AssertionError(f"{partition} is not assigned to this consumer")
        return self._consumer.log_ends(partition)

    # --- the group's offsets ------------------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit offsets, by default those after the last delivered records.

        Raises: IllegalOperation: no `group_id`; IllegalStateError: not subscribed, or not assigned;
        CommitFailedError: the group has given a partition to another member; ValueError, TypeError.
        """
        self._check_group()
        await self._ready()
        if self._mode is None:
            raise IllegalStateError("Not subscribed to any topics: call subscribe() or assign() first")
        if not self._consumer.assignment:
            raise IllegalStateError(
                "No partitions assigned: the group is rebalancing, or has more members than partitions"
            )
        if offsets is None:
            chosen = {tp: at for tp, at in self._consumer.positions().items() if at is not None}
        else:
            checked = commit_structure_validate(offsets)
            self._assigned(checked)
            chosen = {tp: OurOffset(*each) for tp, each in checked.items()}
        with translating(ConsumerStoppedError):
            await self._consumer.commit(chosen)

    async def committed(self, partition: TopicPartition) -> int | None:
        """Fetch the group's committed offset; None without one.

        Raises: IllegalOperation: no `group_id`.
        """
        self._check_group()
        await self._ready()
        with translating(ConsumerStoppedError):
            found = (await self._consumer.committed(partition))[partition]
        return None if found is None else found.offset

    def _check_group(self) -> None:
        if self._group_id is None:
            raise IllegalOperation("committed offsets are those of a group: pass a group_id")

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def topics(self) -> set[str]:
        """Return the topics that this client may read."""
        return (await self._client.fetch_all_metadata()).topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if its metadata is not known."""
        return self._client.cluster.partitions_for_topic(topic)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the first record of each partition at or after its time (milliseconds).

        Raises: ValueError: a time is negative; UnsupportedVersionError; KafkaTimeoutError.
        """
        for tp, time in timestamps.items():
            if time < 0:
                raise ValueError(f"the time for {tp} must not be negative, but is {time}")
        wanted = {tp: int(time) for tp, time in timestamps.items()}
        with translating(ConsumerStoppedError):
            found = await self._consumer.offsets_for_times(wanted, timeout=self._request_timeout)
        return {tp: None if at is None else OffsetAndTimestamp(at.offset, at.timestamp) for tp, at in found.items()}

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Look up the offsets of the first records. Raises: UnsupportedVersionError,
        KafkaTimeoutError."""
        with translating(ConsumerStoppedError):
            return await self._consumer.beginning_offsets(partitions, timeout=self._request_timeout)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Look up the offsets of the next records. Raises: UnsupportedVersionError,
        KafkaTimeoutError."""
        with translating(ConsumerStoppedError):
            return await self._consumer.end_offsets(partitions, timeout=self._request_timeout)

    # --- helpers ------------------------------------------------------------------------------------------------------

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The running loop: listeners of applications start tasks on it."""
        return asyncio.get_running_loop()

    @property
    def _coordinator(self) -> MemberView:
        """This member: listeners of FastStream log its id."""
        return MemberView(self._consumer)

    @property
    def _subscription(self) -> MemberView:
        """Its topics, likewise."""
        return MemberView(self._consumer)

    def _assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return assigned partitions.

        Raises: TypeError: one is not a TopicPartition; IllegalStateError: one is not assigned.
        """
        chosen = list(partitions)
        for tp in chosen:
            if not isinstance(tp, TopicPartition):
                raise TypeError(f"{tp!r} is not a TopicPartition")
        missing = sorted(tp for tp in chosen if self._mode is None or tp not in self._consumer.assignment)
        if missing:
            raise IllegalStateError(f"Partition {', '.join(map(str, missing))} is not assigned to this consumer")
        return chosen

    def _assigned_or_all(self, partitions: tuple[TopicPartition, ...]) -> list[TopicPartition]:
        chosen = self._assigned(partitions) if partitions else sorted(self._consumer.assignment)
        if not chosen:
            raise AssertionError("no partition is assigned to this consumer")
        return chosen


class MemberView:
    """A member of a group, with the names of aiokafka's coordinator and subscription."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        group = consumer.health().group
        self.topics: frozenset[str] = consumer.subscription
        self.member_id: str = "" if group is None else group.member_id
        self.generation: int = -1 if group is None else group.generation
        self.coordinator_id: int | None = None if group is None else group.coordinator


def _converted(error: errors.KafkaError) -> BaseException:
    return translated(error, ConsumerStoppedError)


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset


def _checked_topics(topics: object) -> set[str]:
    if not isinstance(topics, (tuple, set, list, frozenset)):
        raise TypeError(f"topics must be a list, tuple or set of names, not {topics!r}")
    return set(topics)


def _checked_partitions(partitions: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
    for tp in partitions:
        if not isinstance(tp, TopicPartition):
            raise AssertionError(f"{tp!r} is not a TopicPartition")
    return partitions
