"""Several streams of records from one consumer, each partition in exactly one of them.

    assignment --share_out--> shares --Reader--> streams, each in the hands of a task of its own

Records of one partition are worked on one after the other, also when it goes from one stream to another. A stream that
is dropped counts as closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from aiokwire.consumer.batches import ConsumerRecord
from aiokwire.consumer.processed import Held
from aiokwire.consumer.reader import Reader, Share
from aiokwire.consumer.subscription import Subscription
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")


def share_out(
    partitions: Iterable[TopicPartition], shares: Sequence[frozenset[TopicPartition]]
) -> list[frozenset[TopicPartition]]:
    """Distribute partitions as evenly as possible; each share keeps as many of its own as that allows."""
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
    """The streams of one consumer: which of them has what."""

    def __init__(self, subscription: Subscription, reader: Reader, again: Callable[[Held], None]) -> None:
        """`again` has a record handed over once more that was in the hands of a stream that ended."""
        self._subscription = subscription
        self._reader = reader
        self._again = again
        self._locks: dict[TopicPartition, Share] = {}
        self._shares: dict[Share, weakref.ref[RecordStream[Any, Any]]] = {}

    def open(self, count: int) -> list[RecordStream[Any, Any]]:
        """So many streams over all that is assigned, now and later.

        Raises: InvalidArgument: less than one, or there are streams already.
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgument(f"the number of streams must be at least 1, not {count!r}")
        if self._shares:
            raise InvalidArgument(
                f"this consumer has {len(self._shares)} streams: close them before you ask for others"
            )
        loop = asyncio.get_running_loop()
        streams: list[RecordStream[Any, Any]] = []
        for _ in range(count):
            share = Share(self._locks)
            stream: RecordStream[Any, Any] = RecordStream(self, share, self._reader)
            self._shares[share] = weakref.ref(stream, self._on_drop(loop, share))
            streams.append(stream)
        self._subscription.add_listener(self._share_out)
        self._share_out()
        return streams

    def end(self, share: Share) -> None:
        """A stream was closed: the others have its partitions, and its record, from now on."""
        if self._shares.pop(share, None) is None:
            return
        share.closed = True
        share.partitions = frozenset()
        held = share.put_back()
        if held is not None and self._reader.processed.put_back(held) and self._is_assigned(held):
            self._again(held)
        self._share_out()
        self._reader.buffer.notify()

    def _is_assigned(self, held: Held) -> bool:
        return self._reader.ended is None and self._subscription.states.get(held.state.tp) is held.state

    def _on_drop(self, loop: asyncio.AbstractEventLoop, share: Share) -> Callable[[object], None]:
        def on_drop(_stream: object) -> None:  # wherever, and in whichever thread, the last reference went
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.end, share)

        return on_drop

    def _share_out(self) -> None:
        """What is assigned changed, or who takes from it."""
        shares = list(self._shares)
        if not shares:
            return  # the last one was closed
        given = share_out(self._subscription.states, [share.partitions for share in shares])
        for share, partitions in zip(shares, given, strict=True):
            share.partitions = partitions
        self._reader.buffer.notify()  # what is held may be somebody else's now


class RecordStream(Generic[K, V]):
    """Records of some of a consumer's partitions, for one task; ends when the consumer is closed.

    When it is closed or dropped, its partitions go to the other streams; so does the record that it has in hand, unless
    that was acked or committed.
    """

    def __init__(self, streams: Streams, share: Share, reader: Reader) -> None:
        self._streams = streams
        self._share = share
        self._reader = reader

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that it has now."""
        return self._share.partitions

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        """The next record; what this stream handed over before is finished. A call that is cancelled takes none.

        Raises: what keeps one of its partitions from going on.
        """
        record: ConsumerRecord[K, V] = await self._reader.next_of(self._share)
        return record

    def close(self) -> None:
        """Hand over to the others."""
        self._streams.end(self._share)

    async def aclose(self) -> None:
        """As `close`, for `contextlib.aclosing`."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
