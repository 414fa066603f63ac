"""The indexes of a segment: offset to position, timestamp to offset, and the aborted transactions.

Kept in memory and written when their segment is flushed, rolled or closed, not with each append:
recovery rebuilds them from the log. Files have exactly their entries' size; Kafka preallocates.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from aiokwire.broker.log.storage import Storage, append_exactly

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_TXN_ENTRY = struct.Struct(">hqqqq")


class _Saved:
    """An append-only file, which may lag behind the index in memory."""

    ENTRY: struct.Struct

    __slots__ = ("_dirty", "_saved")

    def __init__(self) -> None:
        self._saved = 0  # entries of the file that are up to date
        self._dirty = True  # the file does not exist, or has another size

    def __len__(self) -> int:
        raise NotImplementedError

    def _pack(self, start: int) -> bytes:
        raise NotImplementedError

    def _unpack(self, content: bytes | None) -> Iterator[tuple[int, ...]]:
        whole = content or b""
        return self.ENTRY.iter_unpack(whole[: len(whole) - len(whole) % self.ENTRY.size])

    def _loaded(self, content: bytes | None) -> None:
        self._saved = len(self)
        self._dirty = content is None or len(content) != self._saved * self.ENTRY.size

    def _cut(self, count: int) -> None:
        self._saved = min(self._saved, count)
        self._dirty = True

    def save(self, storage: Storage, path: str) -> None:
        """Update the file if it is out of date.

        Raises: StorageError: the next call writes the rest.
        """
        if not self._dirty and self._saved == len(self):
            return
        if self._dirty and storage.read(path) == self._pack(0):  # usual after a kill: rewriting costs far more
            self._saved = len(self)
            self._dirty = False
            return
        file = storage.open(path)
        try:
            size = self._saved * self.ENTRY.size
            if file.size() > size:
                file.truncate(size)
            append_exactly(file, self._pack(self._saved), size)
        finally:
            file.close()
        self._saved = len(self)
        self._dirty = False


class _Pairs(_Saved):
    """Two columns that only rise: offsets from the segment's base, and what has these offsets."""

    __slots__ = ("_base", "_offsets", "_others")

    OTHERS: str  # the type code of the other column
    OFFSET_FIRST: bool  # in an entry of the file

    def __init__(self, base_offset: int, content: bytes | None = None) -> None:
        super().__init__()
        self._base = base_offset
        self._offsets = array("i")
        self._others = array(self.OTHERS)
        first, second = self._columns()
        for index, entry in enumerate(self._unpack(content)):
            # Kafka preallocates with zeros: after an unclean stop they are the end.
            if index and entry[0] <= first[-1]:
                break
            first.append(entry[0])
            second.append(entry[1])
        self._loaded(content)

    def _columns(self) -> tuple[array[int], array[int]]:
        return (self._offsets, self._others) if self.OFFSET_FIRST else (self._others, self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def _pack(self, start: int) -> bytes:
        first, second = self._columns()
        return b"".join(map(self.ENTRY.pack, first[start:], second[start:]))

    def _truncate(self, count: int) -> None:
        del self._offsets[count:]
        del self._others[count:]
        self._cut(count)


class OffsetIndex(_Pairs):
    """Last offset of a batch to its start position, for about one batch in each interval."""

    ENTRY = _OFFSET_ENTRY
    OTHERS: str = "i"
    OFFSET_FIRST: bool = True

    __slots__ = ()

    def append(self, offset: int, position: int) -> None:
        self._offsets.append(offset - self._base)
        self._others.append(position)

    def floor(self, offset: int) -> int:
        """Return the start of the last indexed batch that ends at or before `offset`; or 0."""
        found = bisect_right(self._offsets, offset - self._base)
        return self._others[found - 1] if found else 0

    def floor_position(self, position: int) -> int:
        """Return the start of the last indexed batch that starts at or before `position`; or 0."""
        found = bisect_right(self._others, position)
        return self._others[found - 1] if found else 0

    def offset_at(self, position: int) -> int | None:
        """Return the last offset of the first indexed batch that starts at or after `position`."""
        found = bisect_left(self._others, position)
        return self._base + self._offsets[found] if found < len(self._offsets) else None

    @property
    def last_position(self) -> int:
        return self._others[-1] if self._others else 0

    def truncate_from(self, position: int) -> None:
        """Remove the batches that start at or after `position`."""
        self._truncate(bisect_left(self._others, position))


class TimeIndex(_Pairs):
    """The greatest timestamp so far and the last offset of the batch that has it."""

    ENTRY = _TIME_ENTRY
    OTHERS: str = "q"
    OFFSET_FIRST: bool = False

    __slots__ = ()

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless the index has a timestamp that is as great."""
        if timestamp >= 0 and (not self._others or timestamp > self._others[-1]):
            self._others.append(timestamp)
            self._offsets.append(offset - self._base)

    def floor(self, timestamp: int) -> int:
        """Return an offset at or before the first record with `timestamp` or later."""
        found = bisect_left(self._others, timestamp)
        return self._base + self._offsets[found - 1] if found else self._base

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry: timestamp, offset."""
        return (self._others[-1], self._base + self._offsets[-1]) if self._others else None

    def truncate_from(self, offset: int) -> None:
        """Remove the batches that end at or after `offset`."""
        self._truncate(bisect_left(self._offsets, offset - self._base))


class AbortedTransaction(NamedTuple):
    """A transaction that ended by an abort marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(_Saved):
    """The transactions with an abort marker in this segment; the file exists only if it has one."""

    ENTRY = _TXN_ENTRY

    __slots__ = ("entries",)

    def __init__(self, content: bytes | None = None) -> None:
        super().__init__()
        self.entries: list[AbortedTransaction] = [AbortedTransaction(*fields[1:]) for fields in self._unpack(content)]
        self._loaded(content)

    def __len__(self) -> int:
        return len(self.entries)

    def _pack(self, start: int) -> bytes:
        return b"".join(_TXN_ENTRY.pack(0, *entry) for entry in self.entries[start:])

    def append(self, entry: AbortedTransaction) -> None:
        self.entries.append(entry)

    def truncate_from(self, offset: int) -> None:
        """Forget the transactions whose marker lies at or after `offset`."""
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]
        self._cut(len(self.entries))
