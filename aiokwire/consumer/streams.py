"""Several streams of records from one consumer, each partition in exactly one of them.

    assignment --share_out--> shares --Reader--> streams, one per task

Records of a partition are processed one after the other, even when it moves to another stream. A
stream that is dropped counts as closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Generic, Self

from aiokwire.consumer.batches import ConsumerRecord
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.processed import Held
from aiokwire.consumer.reader import Reader, Share
from aiokwire.consumer.subscription import Subscription
from aiokwire.errors import InvalidArgument
from aiokwire.types import K, TopicPartition, V


def share_out(
    partitions: Iterable[TopicPartition], shares: Sequence[frozenset[TopicPartition]]
) -> list[frozenset[TopicPartition]]:
    """Distribute partitions evenly; each share keeps as many of its own as that allows."""
    wanted = frozenset(partitions)
    least, more = divmod(len(wanted), len(shares))
    kept = [sorted(share & wanted) for share in shares]
    richest_first = sorted(range(len(shares)), key=lambda index: -len(kept[index]))
    quotas = {index: least + (rank < more) for rank, index in enumerate(richest_first)}
    kept = [mine[: quotas[index]] for index, mine in enumerate(kept)]
    left = sorted(wanted.difference(*kept))
    for index, mine in enumerate(kept):
        room = quotas[index] - len(mine)
        mine.extend(left[:room])
        del left[:room]
    return [frozenset(mine) for mine in kept]


class Streams:
    """The streams of one consumer, and the partitions of each."""

    def __init__(
        self, subscription: Subscription, reader: Reader, redeliver: Callable[[Held], None], hooks: ConsumerHooks
    ) -> None:
        """`redeliver` delivers again a record that a stream was processing when it ended."""
        self._hooks = hooks
        self._subscription = subscription
        self._reader = reader
        self._redeliver = redeliver
        self._locks: dict[TopicPartition, Share] = {}
        self._shares: dict[Share, weakref.ref[RecordStream[Any, Any]]] = {}

    def open(self, count: int) -> list[RecordStream[Any, Any]]:
        """Open `count` streams over the assigned partitions.

        Raises: InvalidArgument: `count` is less than 1, or there are open streams.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgument(f"the number of streams must be at least 1, not {count!r}")
        if self._shares:
            raise InvalidArgument(f"this consumer has {len(self._shares)} open streams: close them before opening more")
        loop = asyncio.get_running_loop()
        streams: list[RecordStream[Any, Any]] = []
        for _ in range(count):
            share = Share(self._locks)
            stream: RecordStream[Any, Any] = RecordStream(self, share, self._reader, self._hooks)
            self._shares[share] = weakref.ref(stream, self._on_drop(loop, share))
            streams.append(stream)
        self._subscription.add_listener(self._share_out)
        self._share_out()
        return streams

    def end(self, share: Share) -> None:
        """Distribute the partitions of a closed stream, and its record, to the other streams."""
        if self._shares.pop(share, None) is None:
            return
        share.closed = True
        share.partitions = frozenset()
        held = share.put_back()
        if held is not None and self._reader.processed.put_back(held) and self._is_assigned(held):
            self._redeliver(held)
        self._share_out()
        self._reader.buffer.notify()

    def _is_assigned(self, held: Held) -> bool:
        return self._reader.ended is None and self._subscription.states.get(held.state.tp) is held.state

    def _on_drop(self, loop: asyncio.AbstractEventLoop, share: Share) -> Callable[[object], None]:
        def on_drop(_stream: object) -> None:  # runs in whichever thread drops the last reference
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.end, share)

        return on_drop

    def _share_out(self) -> None:
        """Distribute the partitions after a change of the assignment or of the streams."""
        shares = list(self._shares)
        if not shares:
            return  # the last one was closed
        given = share_out(self._subscription.states, [share.partitions for share in shares])
        for share, partitions in zip(shares, given, strict=True):
            share.partitions = partitions
        self._reader.buffer.notify()  # buffered chunks may belong to another stream now


class RecordStream(Generic[K, V]):
    """Records of some of a consumer's partitions, for one task; ends when the consumer is closed.

    When it is closed or dropped, the other streams receive its partitions, and the record that it
    is processing, unless that was acked or committed.
    """

    def __init__(self, streams: Streams, share: Share, reader: Reader, hooks: ConsumerHooks) -> None:
        self._hooks = hooks
        self._streams = streams
        self._share = share
        self._reader = reader

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions of this stream now."""
        return self._share.partitions

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        return self._hooks.iterated(self)

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """Return the next record; the previous one is finished. A cancelled call takes none.

        Raises: the error of a partition that cannot be read.
        """
        record: ConsumerRecord[K, V] = await self._reader.next_of(self._share)
        return record

    def close(self) -> None:
        """End this stream; the others receive its partitions."""
        self._streams.end(self._share)

    async def aclose(self) -> None:
        """Close it; for `contextlib.aclosing`."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
