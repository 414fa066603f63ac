"""Batches: which records of a partition a handler receives together, and when.

A record joins the open batch of its partition, unless it must wait for one that is in an earlier
batch: it then stays behind that batch's chain. A batch may start when it is full, when its first
record has waited for `max_wait`, or when its partition is not read any more. Until it starts, or is
full, records still join it.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokwire.loop_timer import LoopTimer
from aiokwire.types import Order

if TYPE_CHECKING:
    from aiokwire.worker.signatures import RawRecord
    from aiokwire.worker.work_queue import InFlightBatch

_OFFSET: Final = operator.attrgetter("offset")
_WHOLE_PARTITION: Final = b""


class BatchBounds(NamedTuple):
    """The most records of a batch, and how long (seconds) it waits for more after its first."""

    max_records: int
    max_wait: float


class BatchAssembly:
    """Assembles batches from the records of one partition. `WorkQueue` calls it."""

    __slots__ = ("_bounds", "_loop", "_new_batch", "_offer", "_open", "_order", "_timer", "_wait", "_waiting")

    def __init__(
        self,
        order: Order,
        bounds: BatchBounds,
        new_batch: Callable[[], InFlightBatch],
        offer: Callable[[InFlightBatch], None],
    ) -> None:
        """`offer` makes a batch runnable. It may still be open: `close` must precede its call."""
        self._order = order
        self._bounds = bounds
        self._wait = bounds.max_wait
        self._new_batch = new_batch
        self._offer = offer
        self._loop = asyncio.get_running_loop()
        self._timer = LoopTimer(self._loop, self._on_time)
        self._open: InFlightBatch | None = None
        # Of each chain in a closed batch, the records behind it.
        self._waiting: dict[bytes, list[RawRecord]] = {}

    def add(self, records: Sequence[RawRecord]) -> None:
        """Admit records, in the order of their offsets."""
        waiting, by_key, most = self._waiting, self._order is Order.KEY, self._bounds.max_records
        chain = _WHOLE_PARTITION if self._order is Order.PARTITION else None
        joining = self._open.record if self._open is not None else None
        for record in records:
            if by_key:
                chain = record.key
            behind = None if chain is None else waiting.get(chain)
            if behind is not None:
                behind.append(record)
                continue
            if joining is None:
                joining = self._begin().record
            joining.append(record)
            if len(joining) >= most:
                self._close_full()
                joining = None
        if not self._wait:
            self.flush()

    def release(self, records: Sequence[RawRecord], held: Sequence[RawRecord] = ()) -> None:
        """Release the records that wait for a closed batch, except those that wait for `held`."""
        still = set(self._chains(held))
        for chain in dict.fromkeys(self._chains(records)):
            behind = None if chain in still else self._waiting.pop(chain, None)
            if behind:
                self.add(behind)

    def close(self, batch: object) -> None:
        """Let no further record join a batch that is about to be handled."""
        if self._open is None or batch is not self._open:
            return
        records, self._open = self._open.record, None
        for chain in self._chains(records):
            self._waiting[chain] = []
        if self._order is Order.KEY:  # records that were released joined it later
            records.sort(key=_OFFSET)

    def flush(self) -> None:
        """Let the open batch start."""
        if self._open is not None and not self._open.is_offered:
            self._offer(self._open)

    def stop_waiting(self) -> None:
        """Let every batch start at once from now on: no further record is admitted."""
        self._wait = 0.0
        self.flush()

    def drop(self) -> None:
        """Forget the records that are not in a closed batch."""
        self._timer.cancel()
        self._open = None
        self._waiting.clear()

    def _chains(self, records: Sequence[RawRecord]) -> list[bytes]:
        if self._order is Order.NONE or not records:
            return []
        if self._order is Order.PARTITION:
            return [_WHOLE_PARTITION]
        return [record.key for record in records if record.key is not None]

    def _begin(self) -> InFlightBatch:
        self._open = batch = self._new_batch()
        if self._wait:
            batch.due = self._loop.time() + self._wait
            self._timer.set(batch.due)
        return batch

    def _close_full(self) -> None:
        assert self._open is not None
        batch = self._open
        self.flush()
        self.close(batch)

    def _on_time(self) -> None:
        if self._open is None:
            return
        if self._open.due <= self._loop.time():
            self.flush()
        else:
            self._timer.set(self._open.due)
