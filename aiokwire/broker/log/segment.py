"""One segment of a partition: a file of batches, back to back, with its indexes.

Only a log's last segment is appended to. File and indexes of earlier ones are closed until read.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import NamedTuple

from aiokwire.broker.log.batches import Damage, StoredBatch, diagnose, find, walk
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.index import OffsetIndex, TimeIndex, TransactionIndex
from aiokwire.broker.log.storage import Buffer, Storage, StoredFile, append_exactly

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
DELETED = ".deleted"
INDEX_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
SUFFIXES = (LOG, *INDEX_SUFFIXES)

NO_TIMESTAMP = -1
MAX_RELATIVE_OFFSET = 2**31 - 1  # the greatest in an index entry


class ReadResult(NamedTuple):
    """Batches back to back, the last one possibly truncated.

    Every offset in `data` is below `upper_bound`.
    """

    data: bytes
    upper_bound: int


class Segment:
    """The batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_directory",
        "_file",
        "_first_timestamp",
        "_latest",
        "_may_have_txn_file",
        "_offset_index",
        "_since_index",
        "_time_index",
        "_txn_index",
        "base_offset",
        "created_ms",
        "damage",
        "name",
        "size",
        "storage",
    )

    def __init__(self, storage: Storage, directory: str, base_offset: int, created_ms: int) -> None:
        self.storage: Storage = storage
        self._directory = directory
        self.base_offset: int = base_offset
        self.created_ms: int = created_ms
        self.name: str = f"{directory}/{base_offset:020d}"
        self._file: StoredFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self._latest: tuple[int, int] | None = None  # the greatest timestamp, last offset of its batch; None: not read
        self._first_timestamp: int | None = None  # the first batch's greatest timestamp; None: not read
        self._since_index = 0  # bytes since the last index entry
        self._may_have_txn_file = True
        self.damage: Damage | None = None  # where `rebuild` cut the file
        self.size: int = max(storage.size(self.name + LOG), 0)

    def __repr__(self) -> str:
        return f"<Segment {self.name} {self.size} bytes>"

    # --- files, opened at first use -----------------------------------------------------------------------------------

    @property
    def file(self) -> StoredFile:
        if self._file is None:
            self._file = self.storage.open(self.name + LOG)
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._offset_index = OffsetIndex(self.base_offset, self.storage.read(self.name + OFFSET_INDEX))
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self.base_offset, self.storage.read(self.name + TIME_INDEX))
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        if self._txn_index is None:
            content = self.storage.read(self.name + TXN_INDEX)
            self._may_have_txn_file = content is not None
            self._txn_index = TransactionIndex(content)
        return self._txn_index

    def has_indexes(self, names: Set[str]) -> bool:
        """Return whether `names` (of its directory) has the index files of a written segment."""
        stem = f"{self.base_offset:020d}"
        return stem + OFFSET_INDEX in names and stem + TIME_INDEX in names

    def create(self) -> None:
        """Make the file of a new segment, with empty indexes.

        Raises: StorageError.
        """
        file = self.file
        if file.size():  # left by an earlier attempt that failed
            file.truncate(0)
        self.size = 0
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._txn_index = TransactionIndex()
        self._latest = (NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = NO_TIMESTAMP

    def save_indexes(self) -> None:
        """Update the index files; an index that was not opened is up to date.

        Raises: StorageError: the next call writes the rest.
        """
        if self._offset_index is not None:
            self._offset_index.save(self.storage, self.name + OFFSET_INDEX)
        if self._time_index is not None:
            self._time_index.save(self.storage, self.name + TIME_INDEX)
        if self._txn_index is not None and self._txn_index.entries:
            self._txn_index.save(self.storage, self.name + TXN_INDEX)
            self._may_have_txn_file = True
        elif self._txn_index is not None and self._may_have_txn_file:
            self.storage.delete(self.name + TXN_INDEX)
            self._may_have_txn_file = False

    def seal(self) -> None:
        """End the time index with the greatest timestamp, write the indexes; appends may follow."""
        self.time_index.append(*self.latest)
        self.save_indexes()

    def paths(self) -> list[str]:
        """Return the files of this segment, for a flush."""
        return [self.name + suffix for suffix in SUFFIXES]

    def release(self) -> None:
        """Release the file handle and the index memory of a sealed segment."""
        self.save_indexes()
        self.close()
        self._offset_index = self._time_index = self._txn_index = None

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def retire(self) -> list[str]:
        """Rename the files so that no start finds them; return the new names, to delete later."""
        self.close()
        gone = []
        for path in self.paths():
            if self.storage.size(path) >= 0:
                self.storage.rename(path, path + DELETED)
                gone.append(path + DELETED)
        return gone

    # --- timestamps ---------------------------------------------------------------------------------------------------

    @property
    def latest(self) -> tuple[int, int]:
        """The greatest timestamp (-1: no record has one) and the last offset of its batch."""
        if self._latest is None:
            self._latest = self.time_index.last or (NO_TIMESTAMP, self.base_offset)
        return self._latest

    @property
    def first_timestamp(self) -> int:
        """The first batch's greatest timestamp: `segment.ms` counts from it; -1 if none."""
        if self._first_timestamp is None:
            first = next(self.walk(0), None)
            self._first_timestamp = NO_TIMESTAMP if first is None else first.max_timestamp
        return self._first_timestamp

    def largest_timestamp(self) -> int:
        """Return the timestamp for retention: the greatest one, or when the file was written."""
        timestamp = self.latest[0]
        return timestamp if timestamp >= 0 else self.storage.modified_ms(self.name + LOG)

    def must_roll(self, config: LogConfig, incoming: int, latest: int, last_offset: int, now_ms: int) -> bool:
        """Return whether `incoming` bytes, up to `last_offset` and `latest`, need a new segment.

        `latest` is its greatest timestamp. The rules are Kafka's (Java: LogSegment.shouldRoll).
        """
        if self.size == 0:
            return False
        return (
            self.size > config.segment_bytes - incoming
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
            or len(self.offset_index) >= config.segment_index_bytes // OffsetIndex.ENTRY.size
            or len(self.time_index) >= config.segment_index_bytes // TimeIndex.ENTRY.size - 1
            or self._age_ms(latest, now_ms) > config.segment_ms - config.segment_jitter_ms
        )

    def _age_ms(self, latest: int, now_ms: int) -> int:
        """Return the segment's age by its records' timestamps, by the clock if they have none."""
        first = self.first_timestamp
        return latest - first if first >= 0 and latest >= 0 else now_ms - self.created_ms

    # --- append -------------------------------------------------------------------------------------------------------

    def write(self, data: Buffer) -> None:
        """Append bytes; `note` is called for their batches afterwards.

        Raises: StorageError: the segment is unchanged.
        """
        append_exactly(self.file, data, self.size)

    def note(self, size: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Account for one batch written at the end."""
        latest = self.latest
        if max_timestamp > latest[0]:
            self._latest = latest = (max_timestamp, last_offset)
        if self.size == 0:
            self._first_timestamp = max_timestamp
        if self._since_index > index_interval:
            self.offset_index.append(last_offset, self.size)
            self.time_index.append(*latest)
            self._since_index = 0
        self._since_index += size
        self.size += size

    # --- read ---------------------------------------------------------------------------------------------------------

    def walk(self, position: int, *, verify: bool = False) -> Iterator[StoredBatch]:
        """Return the headers of the batches from a position on."""
        if position >= self.size:
            return iter(())  # an idle partition takes no file handle
        return walk(self.file, position, self.size, verify=verify)

    def find(self, offset: int) -> StoredBatch | None:
        """Return the first batch that ends at or after `offset`."""
        return find(self.file, self.offset_index.floor(offset), self.size, offset)

    def read(self, offset: int, max_bytes: int, *, upto: int, next_base: int, min_one: bool) -> ReadResult | None:
        """Return bytes from the batch with `offset` on, of batches below `upto`; None if none.

        `next_base` is the base offset of the next segment, or the end of the log.
        """
        first = self.find(offset)
        if first is None or first.base_offset >= upto:
            return None
        limit = self.size
        if upto < next_base and (beyond := self.find(upto)) is not None:
            limit = beyond.position
        available = limit - first.position
        if available <= 0:
            return None
        length = min(available, max_bytes)
        if length < first.size:
            if not min_one:
                return ReadResult(b"", offset)  # a part of one batch is useless
            length = first.size
        if length < available:
            # End at a batch if the index has one nearby: a cut batch would be read and sent twice.
            boundary = self.offset_index.floor_position(first.position + length)
            length = max(boundary - first.position, first.size) if boundary > first.position else length
        data = self.file.pread(length, first.position)
        return ReadResult(data, self._upper_bound(first.position + length, min(upto, next_base)))

    def _upper_bound(self, position: int, limit: int) -> int:
        indexed = self.offset_index.offset_at(position) if position < self.size else None
        return limit if indexed is None else min(limit, indexed + 1)

    # --- truncate and recover -----------------------------------------------------------------------------------------

    def truncate(self, batch: StoredBatch) -> None:
        """Cut off this batch and all that follow."""
        self._cut(batch.position, batch.base_offset)

    def _cut(self, position: int, offset: int) -> None:
        self.file.truncate(position)
        self.size = position
        self.offset_index.truncate_from(position)
        self.time_index.truncate_from(offset)
        self.txn_index.truncate_from(offset)
        self._resume()

    def _resume(self) -> None:
        """Read the batches after the last index entry."""
        self._first_timestamp = None
        self._latest = None
        latest = self.latest
        start = self.offset_index.last_position
        for batch in self.walk(start):
            if batch.max_timestamp > latest[0]:
                latest = (batch.max_timestamp, batch.last_offset)
        self._latest = latest
        self._since_index = self.size - start

    def resume(self) -> int:
        """Prepare a cleanly closed segment for appends; return the offset after its last batch."""
        end = self.base_offset
        position = 0
        for batch in self.walk(self.offset_index.last_position):
            end = batch.last_offset + 1
            position = batch.position + batch.size
        if position < self.size:
            self._cut(position, end)
        else:
            self._resume()
        return end

    def end_offset(self) -> int:
        """Return the offset after the last batch, read from the file."""
        end = self.base_offset
        for batch in self.walk(self.offset_index.last_position):
            end = batch.last_offset + 1
        return end

    def rebuild(self, index_interval: int, *, gaps_below: int, next_base: int | None) -> Iterator[StoredBatch]:
        """Check every batch, rebuild indexes, cut at the first corrupt byte; yield valid batches.

        No checksum covers a batch's base offset: it must follow from the batch before, except below
        `gaps_below`, where compaction may have left gaps, and end below `next_base`. After the last
        batch `size` and `damage` show whether the file was cut.
        """
        whole, self.size = self.size, 0
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._txn_index = TransactionIndex()
        self._latest = (NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = NO_TIMESTAMP
        self._since_index = 0
        expected = self.base_offset
        limit = self.base_offset + MAX_RELATIVE_OFFSET + 1 if next_base is None else next_base
        for batch in walk(self.file, 0, whole, verify=True) if whole else ():
            is_gap_allowed = batch.base_offset > expected and expected < gaps_below
            if (batch.base_offset != expected and not is_gap_allowed) or batch.last_offset >= limit:
                break
            expected = batch.last_offset + 1
            self.note(batch.size, batch.last_offset, batch.max_timestamp, index_interval)
            yield batch
        if self.size < whole:
            self.damage = diagnose(self.file, self.size, whole, expected)
            self.file.truncate(self.size)
