"""The line of records that wait for buffer room: first come, first served, each with a deadline.

With room, as many records as fit are accepted at once, in order: a task wakes after its record was
accepted, no record overtakes another, and batches fill as room is freed, however many tasks wait.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable
from typing import Any, TypeAlias

from aiokwire.errors import BufferFullError, KafkaError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import Delivery, WaitingRecord

logger: FieldLogger = get_logger("aiokwire.producer")

# topic, value, key, partition, timestamp, headers, mode
Record: TypeAlias = tuple[Any, Any, Any, Any, Any, Any, int]

# The limits of records that wait without an awaited `submit`: a count, and bytes (or `buffer_memory` if more).
LINE_LIMIT = 10_000
LINE_BYTES = 16 * 1024 * 1024
# Records whose deadlines are this close (seconds) expire together, with one line in the log.
EXPIRY_SLACK = 0.01


class WaitingLine:
    """The records that wait for room in the buffer."""

    def __init__(
        self,
        accumulator: Accumulator,
        max_wait: float,
        on_wait: Callable[[], None],
        wake_at: Callable[[float], None] = lambda when: None,
    ) -> None:
        """`max_wait` in seconds bounds wait and delivery. `on_wait()`: a record joins, so batches
        that hold room are sent; `wake_at(when)`: the deadline of an accepted record."""
        self._accumulator = accumulator
        self._on_wait = on_wait
        self._wake_at = wake_at
        self._max_wait = max_wait
        self._waiting: collections.OrderedDict[WaitingRecord, None] = collections.OrderedDict()
        self._most_bytes = max(accumulator.limit, LINE_BYTES)
        self._number = 0  # of the last place
        self._unawaited = 0  # records whose `submit` is not awaited
        self._unawaited_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    # --- joining and leaving ----------------------------------------------------------------------------------------

    async def join(self, record: Record) -> Delivery:
        """Wait until the record is accepted.

        The record of a cancelled wait is not accepted, unless that happened in the same turn.

        Raises: BufferFullError: the deadline ended.
        """
        return await self._enter(self._accumulator.frozen(record), awaited=True)

    def enter(self, record: Record) -> WaitingRecord:
        """Queue a record, which keeps its place whether it is awaited or not.

        Raises: BufferFullError: too many records wait without an awaited `submit`.
        """
        if self._unawaited >= LINE_LIMIT or self._unawaited_bytes + self._need(record) > self._most_bytes:
            raise self._overfull(record)
        return self._enter(record, awaited=False)

    def _enter(self, record: Record, *, awaited: bool) -> WaitingRecord:
        loop = asyncio.get_running_loop()
        self._number += 1
        waiting = WaitingRecord(
            self, loop, record, self._need(record), loop.time() + self._max_wait, self._number, awaited
        )
        self._waiting[waiting] = None
        if not awaited:
            self._count(waiting, 1)
        self._accumulator.blocked = True
        self._on_wait()
        if self._timer is None:
            self._timer = loop.call_later(self._max_wait, self._expire)
        return waiting

    def on_awaited(self, waiting: WaitingRecord) -> None:
        """A task waits for the record."""
        self._count(waiting, -1)

    def withdraw(self, waiting: WaitingRecord) -> None:
        """Remove a record whose wait was cancelled."""
        if waiting in self._waiting:
            del self._waiting[waiting]
            if not waiting.awaited:
                self._count(waiting, -1)
            waiting.refuse(asyncio.CancelledError())
            self.serve()  # the next one may be smaller

    def _need(self, record: Record) -> int:
        return self._accumulator.need(record[1], record[2], record[5])

    def _count(self, waiting: WaitingRecord, step: int) -> None:
        self._unawaited += step
        self._unawaited_bytes += step * waiting.need

    def _take_first(self) -> WaitingRecord:
        waiting, _ = self._waiting.popitem(last=False)
        if not waiting.awaited:
            self._count(waiting, -1)
        return waiting

    # --- serving ----------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Accept the first records, as long as there is room."""
        accumulator = self._accumulator
        while self._waiting:
            waiting = next(iter(self._waiting))
            if accumulator.used + waiting.need > accumulator.limit:
                return
            self._take_first()
            try:
                delivery = accumulator.append(*waiting.record, True)
            except Exception as error:  # of this record: the next one follows
                waiting.refuse(error)
                self._report([waiting], error)
            else:
                assert delivery is not None
                accumulator.deliver_by(delivery, waiting.deadline)
                self._wake_at(waiting.deadline)
                waiting.accept(delivery)
        accumulator.blocked = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def served(self) -> None:
        """Wait until every record now in the line is accepted or refused."""
        last = self._number
        while self._waiting and next(iter(self._waiting)).number <= last:
            waiting = next(reversed(self._waiting))
            if waiting.number > last:
                waiting = next(iter(self._waiting))
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting.add_waiter(waiter)
            await waiter

    def dismiss(self, error: KafkaError, *, report: bool = True) -> list[Record]:
        """Refuse every record; return those not awaited, after logging their loss if `report`."""
        refused: list[WaitingRecord] = []
        while self._waiting:
            waiting = self._take_first()
            waiting.refuse(error)
            refused.append(waiting)
        if report:
            self._report(refused, error)
        self.serve()
        return [waiting.record for waiting in refused if not waiting.awaited]

    def _expire(self) -> None:
        """Refuse the records whose deadline has ended."""
        loop = asyncio.get_running_loop()
        now = loop.time() + EXPIRY_SLACK
        self._timer = None
        expired: list[WaitingRecord] = []
        while self._waiting:
            waiting = next(iter(self._waiting))
            if waiting.deadline > now:
                self._timer = loop.call_at(waiting.deadline, self._expire)
                break
            self._take_first()
            waiting.refuse(self.full(waiting.record, self._max_wait))
            expired.append(waiting)
        if expired:
            self._report(expired, self.full(expired[0].record, self._max_wait))
        self.serve()

    # --- errors -----------------------------------------------------------------------------------------------------

    def _report(self, refused: list[WaitingRecord], error: Exception) -> None:
        lost = collections.Counter(waiting.record[0] for waiting in refused if not waiting.awaited)
        for topic, count in lost.items():
            message = "%d record(s) for %s were not sent, and their submit() was not awaited: %s"
            logger.error(message, count, topic, error, extra={"topic": topic})

    def full(self, record: Record, waited: float = 0.0) -> BufferFullError:
        """The error for a record that finds no room."""
        after = f" within {waited:.3f} s" if waited else ""
        return self._error(
            record,
            f"{after}: buffer_memory is {self._accumulator.limit} bytes, {self._accumulator.used} are in use, "
            f"{len(self._waiting)} records wait before it; the program sends faster than the brokers acknowledge",
        )

    def _overfull(self, record: Record) -> BufferFullError:
        return self._error(
            record,
            f": buffer_memory is full, and {self._unawaited} records ({self._unawaited_bytes} bytes) wait for room "
            "whose submit() is not awaited: use `await producer.submit(...)`, which waits until there is room",
        )

    def _error(self, record: Record, why: str) -> BufferFullError:
        need = self._need(record)
        return BufferFullError(
            f"no room for a record of {need} bytes for {record[0]}{why}",
            needed=need,
            in_use=self._accumulator.used,
            limit=self._accumulator.limit,
        )
