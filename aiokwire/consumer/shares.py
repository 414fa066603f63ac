"""How the partitions of one consumer are shared out among its streams. No I/O; used by `streams` and `reader`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aiokwire.consumer.positions import PartitionState
from aiokwire.types import OffsetAndMetadata, TopicPartition


class Held(NamedTuple):
    """A record that a stream has in hand."""

    state: PartitionState
    place: OffsetAndMetadata  # the position before it


class Share:
    """What one stream may take from: a container of partitions for the reader.

    A partition whose record is in hand is locked until that is put back, whoever it belongs to by then.
    """

    def __init__(self, locks: dict[TopicPartition, Share]) -> None:
        """`locks` is one for all shares of a consumer."""
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.closed = False
        self._held: Held | None = None
        self._locks = locks

    def __contains__(self, tp: object) -> bool:
        return tp in self.partitions and self._locks.get(tp, self) is self

    def take(self, held: Held) -> None:
        """A record is handed over."""
        self._held = held
        self._locks[held.state.tp] = self

    def put_back(self) -> Held | None:
        """What was in hand, and is not any more."""
        held, self._held = self._held, None
        if held is not None:
            del self._locks[held.state.tp]
        return held


def share_out(
    partitions: Iterable[TopicPartition], shares: Sequence[frozenset[TopicPartition]]
) -> list[frozenset[TopicPartition]]:
    """Who gets what: as even as can be, each keeping as much as that allows of what it has in `shares`."""
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
