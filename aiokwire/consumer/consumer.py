"""The consumer that users hold: what to read, where from, and the ways to get records.

Its parts: `Subscription` (which partitions), `Upkeep` (positions and leaders), `Fetcher` (fetches), `Reader`
(hand-over).
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, overload

import anyio

from aiokwire.cluster import EARLIEST, LATEST, Client, list_offsets
from aiokwire.config import from_options
from aiokwire.consumer.arguments import Moment, checked_partitions, checked_topics, milliseconds
from aiokwire.consumer.batches import Batch, ConsumerRecord
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.intake import Intake
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.subscription import Subscription
from aiokwire.consumer.upkeep import Upkeep
from aiokwire.errors import ClosedError, InvalidArgument, RequestTimedOut
from aiokwire.hooks import Hooks
from aiokwire.types import OffsetAndTimestamp, OffsetReset, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # `Consumer` alone means one without deserializers.
    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


class BatchIterator(Generic[K, V]):
    """Batch by batch. May be dropped at any time: it holds nothing."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch[K, V]:
        batch = await self._reader.batch()
        if batch is None:
            raise StopAsyncIteration
        return batch


class Consumer(Generic[K, V]):
    """Reads topics, or single partitions, without a group.

        async with Consumer("orders", bootstrap_servers="localhost:9092") as consumer:
            async for record in consumer: ...

    Records of one partition come in order; partitions take turns. `async for`, `batches`, `getone` and `getmany` draw
    from the same positions and may be mixed. A partition that cannot go on (no permission, damaged data, a position out
    of range with `auto_offset_reset="none"`) raises at the next await, once all before it was handed over; its position
    stays, and it is tried again when the consumer is used on.
    """

    @overload
    def __init__(
        self: Consumer[K, V],
        *topics: str,
        partitions: Iterable[TopicPartition] | None = ...,
        key_deserializer: Callable[[bytes], K],
        value_deserializer: Callable[[bytes], V],
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        **options: Any,
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[bytes, V],
        *topics: str,
        partitions: Iterable[TopicPartition] | None = ...,
        value_deserializer: Callable[[bytes], V],
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        **options: Any,
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[K, bytes],
        *topics: str,
        partitions: Iterable[TopicPartition] | None = ...,
        key_deserializer: Callable[[bytes], K],
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        **options: Any,
    ) -> None: ...

    @overload
    def __init__(
        self: Consumer[bytes, bytes],
        *topics: str,
        partitions: Iterable[TopicPartition] | None = ...,
        hooks: Hooks | None = ...,
        rng: random.Random | None = ...,
        **options: Any,
    ) -> None: ...

    def __init__(
        self,
        *topics: str,
        partitions: Iterable[TopicPartition] | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        **options: Any,
    ) -> None:
        """`topics` to read, or else `partitions`; options as in `ConsumerConfig`. Needs no running event loop.

        Raises: ConfigurationError: an option is unknown or wrong; InvalidArgument: topics together with partitions.
        """
        if topics and partitions is not None:
            raise InvalidArgument("give topics or partitions, not both")
        self.config = from_options(ConsumerConfig, options)
        self._client = Client(self.config, hooks=hooks, rng=rng)
        self._subscription = Subscription(self.config.reset)
        self._reader = Reader(self.config, self._on_room, self._on_wait)
        intake = Intake(self._client, self.config, self._reader.buffer)
        self._fetcher = Fetcher(self._client, self.config, self._subscription.states, self._reader, intake)
        self._upkeep = Upkeep(self._client, self.config, self._subscription, self._reader, self._fetcher, intake)
        self._starting = anyio.Lock()
        self._started = False
        self._closed = False
        if topics:
            self._subscription.subscribe(checked_topics(topics))
        elif partitions is not None:
            self._subscription.assign(checked_partitions(partitions))

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, find the topics, and begin to fetch.

        Raises: ConnectionFailed: no broker could be reached; BrokerError: a topic does not exist or is forbidden.
        """
        async with self._starting:  # whoever comes second waits for the outcome
            if self._closed:
                raise ClosedError("this consumer was closed; make a new one")
            if not self._started:
                await self._start()

    async def _start(self) -> None:
        self._reader.start()
        self._client.metadata.pin(self._subscription.wanted_topics)  # so that the first answer has them
        try:
            await self._client.start()
            await self._find_topics(self._subscription.wanted_topics)
            self._upkeep.follow()
            self._client.spawn(self._upkeep.run, name="consumer upkeep")
            self._started = True
        finally:
            if not self._started:
                with anyio.CancelScope(shield=True):
                    await self._client.close(timeout=1.0)

    async def close(self, timeout: float | None = None) -> None:
        """Stop; every reader that waits ends. May be called from any task, and again."""
        self._closed = True
        self._reader.close()
        await self._client.close(timeout=timeout)

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

    async def subscribe(self, *topics: str) -> None:
        """Read all partitions of `topics` and nothing else; positions of partitions that stay are kept.

        Partitions that are added to a topic later are noticed and read from their start.

        Raises: BrokerError: a topic does not exist or is forbidden.
        """
        names = checked_topics(topics)
        if self._started:
            await self._find_topics(names)
        for state in self._subscription.subscribe(names):
            self._upkeep.forget(state)
        self._on_assignment()

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and nothing else; positions of partitions that stay are kept.

        Raises: BrokerError: a topic does not exist or is forbidden.
        """
        wanted = checked_partitions(partitions)
        if self._started:
            await self._find_topics({tp.topic for tp in wanted})
        _, removed = self._subscription.assign(wanted)
        for state in removed:
            self._upkeep.forget(state)
        self._on_assignment()

    def _on_assignment(self) -> None:
        if self._started:
            self._client.metadata.pin(self._subscription.wanted_topics)
            self._upkeep.follow()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._subscription.states)

    @property
    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; empty when partitions were assigned one by one."""
        return self._subscription.topics

    async def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> frozenset[int]:
        """The partition numbers of a topic.

        Raises: BrokerError: the topic does not exist or is forbidden.
        """
        self._check_open()
        cluster = await self._client.metadata.wait_for_topics([topic], self._timeout(timeout))
        return frozenset(partition.partition for partition in cluster.topics[topic].partitions)

    # --- records ------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Record by record; ends when the consumer is closed. Gives other tasks their turn now and then.

        A record counts as handed over when its step of the loop begins.
        """
        self._check_open()
        return self._reader.feed

    def batches(self) -> BatchIterator[K, V]:
        """Batch by batch, undecoded until asked; ends when the consumer is closed."""
        self._check_open()
        return BatchIterator(self._reader)

    async def getone(self, timeout: float | None = None) -> ConsumerRecord[K, V]:
        """The next record. A call that is cancelled takes none.

        Raises: RequestTimedOut: none came within `timeout` seconds; ClosedError: the consumer is closed; and what
        keeps a partition from going on.
        """
        self._check_open()
        with anyio.move_on_after(timeout):
            record: ConsumerRecord[K, V] = await self._reader.one()
            return record
        raise RequestTimedOut(f"no record came within {timeout} s")

    async def getmany(
        self,
        max_records: int | None = None,
        timeout: float | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> list[ConsumerRecord[K, V]]:
        """A list of up to `max_records` (default: the option `max_poll_records`) records, in order by partition.

        Gives what is at hand at once; else waits for the first, at most `timeout` seconds (None: for ever), and gives
        an empty list when none came. With `partitions`, only of these. A call that is cancelled takes none.

        Raises: ClosedError: the consumer is closed; and what keeps a partition from going on.
        """
        self._check_open()
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise InvalidArgument(f"max_records must be at least 1, not {max_records!r}")
        only = None if partitions is None else frozenset(self._state(tp).tp for tp in partitions)
        return await self._reader.many(limit, timeout, only)

    # --- positions ----------------------------------------------------------------------------------------------------

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at `offset`. What was fetched from elsewhere is never handed over.

        Raises: InvalidArgument: the partition is not assigned, or the offset is negative.
        """
        if not isinstance(offset, int) or offset < 0:
            raise InvalidArgument(f"an offset is a number from 0, not {offset!r}")
        state = self._state(partition)
        self._reader.buffer.drop(state)
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
            self._reader.buffer.drop(state)
            state.forget_position()
            state.ask_for_reset(where, "sought")
        self._upkeep.wake()
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
            state.paused = True
            self._reader.buffer.set_aside(state)

    def resume(self, *partitions: TopicPartition) -> None:
        """End a pause; without arguments of all partitions."""
        for state in self._states(partitions):
            state.paused = False
            self._fetcher.wake(state)
        self._reader.buffer.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return frozenset(tp for tp, state in self._subscription.states.items() if state.paused)

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

    async def _find_topics(self, topics: Collection[str]) -> None:
        """Have the metadata of `topics`, and from now on keep it."""
        if topics:
            await self._client.metadata.wait_for_topics(topics, self._timeout(None))

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

    def _on_room(self, state: PartitionState) -> None:
        self._fetcher.wake(state)
        if not state.is_fetchable():
            self._upkeep.wake()

    def _on_wait(self) -> None:
        """A reader is about to wait: when memory is held, it may be what keeps its records away."""
        if self._reader.buffer.held:
            self._fetcher.wake_all()
