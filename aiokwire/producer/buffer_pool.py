"""Those who wait for room in the producer's buffer: first come, first served, each with a maximum wait.

When room comes back, the records of as many as fit are taken at once, in order: nobody is woken in vain, nobody
overtakes, and batches fill as fast as room comes, however many tasks wait.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable
from typing import Any, TypeAlias

from aiokwire.errors import BufferFullError, KafkaError
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import Delivery

# topic, value, key, partition, timestamp, headers, mode
Record: TypeAlias = tuple[Any, Any, Any, Any, Any, Any, int]


class WaitingLine:
    """The queue in front of a full buffer."""

    def __init__(self, accumulator: Accumulator, max_wait: float, on_wait: Callable[[], None]) -> None:
        """`on_wait` is told when somebody waits: whatever holds room should move."""
        self._accumulator = accumulator
        self._on_wait = on_wait
        self._max_wait = max_wait
        self._waiting: collections.OrderedDict[asyncio.Future[Delivery], tuple[float, Record]] = (
            collections.OrderedDict()
        )
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def join(self, record: Record) -> Delivery:
        """Wait until the record is taken.

        A cancelled wait leaves nothing behind: its record is not taken, unless that happened in the same turn.

        Raises: BufferFullError: the maximum wait ended.
        """
        loop = asyncio.get_running_loop()
        place: asyncio.Future[Delivery] = loop.create_future()
        self._waiting[place] = (loop.time() + self._max_wait, record)
        self._accumulator.blocked = True
        self._on_wait()
        if self._timer is None:
            self._timer = loop.call_later(self._max_wait, self._expire)
        try:
            return await place
        finally:
            if self._waiting.pop(place, None) is not None:
                self.serve()  # the one behind may be smaller

    def serve(self) -> None:
        """Take the records of those in front, as far as there is room."""
        waiting = self._waiting
        append = self._accumulator.append
        limit = self._accumulator.limit
        while waiting:
            place, (_, record) = next(iter(waiting.items()))
            if not place.done():
                if self._accumulator.used + self._accumulator.need(record[1], record[2], record[5]) > limit:
                    return
                try:
                    delivery = append(*record, True)
                except Exception as error:  # this record's fault: its place is the next one's
                    place.set_exception(error)
                else:
                    if delivery is not None:
                        place.set_result(delivery)
            waiting.popitem(last=False)
        self._accumulator.blocked = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def dismiss(self, error: KafkaError) -> None:
        """Nobody will be served any more."""
        while self._waiting:
            place, _ = self._waiting.popitem(last=False)
            if not place.done():
                place.set_exception(error)
        self.serve()

    def _expire(self) -> None:
        """The timer: those in front have waited long enough."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = None
        while self._waiting:
            place, (deadline, record) = next(iter(self._waiting.items()))
            if deadline > now:
                self._timer = loop.call_at(deadline, self._expire)
                break
            self._waiting.popitem(last=False)
            if not place.done():
                place.set_exception(self.full(record, self._max_wait))
        self.serve()

    def full(self, record: Record, waited: float = 0.0) -> BufferFullError:
        """The error for a record that finds no room."""
        used = self._accumulator.used
        limit = self._accumulator.limit
        need = self._accumulator.need(record[1], record[2], record[5])
        after = f" within {waited:.3f} s" if waited else ""
        return BufferFullError(
            f"no room for a record of {need} bytes for {record[0]}{after}: buffer_memory is {limit} bytes, {used} are "
            f"in use, {len(self._waiting)} calls wait before it; the brokers take records more slowly than they come",
            needed=need,
            in_use=used,
            limit=limit,
        )
