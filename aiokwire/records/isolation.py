"""Selection of the visible batches of a fetch. Used by the consumer and by `Client.fetch`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from aiokwire.records._batch import RecordBatch


class Visible:
    """The visible batches of a fetch, and the position after them."""

    __slots__ = ("batches", "begin", "end", "epoch")

    def __init__(self, begin: int) -> None:
        self.batches: list[tuple[RecordBatch, int]] = []  # each with the position after it
        self.begin: int = begin  # offsets between this and the first batch are not visible
        self.end: int = begin
        self.epoch: int = -1  # of the last batch


def select_visible(batches: Iterable[RecordBatch], begin: int, aborted: Iterable[tuple[int, int]] | None) -> Visible:
    """Leave out control batches and, with `aborted` given, the records of aborted transactions.

    `aborted`: pairs of producer id and first offset, in any order; None: read uncommitted, too.
    """
    chosen = Visible(begin)
    pending = deque(sorted(aborted or (), key=lambda pair: pair[1]))
    open_aborted: set[int] = set()
    for batch in batches:
        if batch.next_offset <= begin:
            continue  # a broker sends the whole batch that the position lies in, and sometimes one more
        while pending and pending[0][1] <= batch.last_offset:
            open_aborted.add(pending.popleft()[0])
        chosen.epoch = batch.leader_epoch
        chosen.end = batch.next_offset
        hidden = batch.is_control or (batch.is_transactional and batch.producer_id in open_aborted)
        if batch.is_control and batch.control_type == 0:
            open_aborted.discard(batch.producer_id)
        if not hidden:
            chosen.batches.append((batch, batch.next_offset))
        elif chosen.batches:
            chosen.batches[-1] = (chosen.batches[-1][0], batch.next_offset)
        else:
            chosen.begin = batch.next_offset
    return chosen
