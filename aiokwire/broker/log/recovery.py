"""Opens a partition's directory; unless it was closed cleanly, the log is checked.

Follows Kafka's LogLoader. No index is trusted: from the recovery point's segment on each batch is
read, its CRC checked, the log cut at the first corrupt byte; indexes and producers are rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Set
from typing import NamedTuple

from aiokwire.broker.log.batches import read_marker
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.epochs import LeaderEpochs
from aiokwire.broker.log.producers import ProducerStates
from aiokwire.broker.log.segment import DELETED, INDEX_SUFFIXES, LOG, Segment
from aiokwire.broker.log.storage import Storage
from aiokwire.errors import CorruptRecord

logger: logging.Logger = logging.getLogger(__name__)

SNAPSHOT = ".snapshot"
# The part of a log's end that is searched for batches that producers may retry.
REMEMBERED_BYTES = 256 * 1024
_LEFTOVERS = (DELETED, ".cleaned", ".tmp")


class Cut(NamedTuple):
    """The part of a log that recovery truncated."""

    offset: int  # of the first lost record, now the end of the log
    known_end: int  # the log reached at least to here
    size: int  # bytes
    cause: str
    is_torn: bool  # only an append that did not finish


class LoadedLog(NamedTuple):
    """The content of a partition's directory."""

    segments: list[Segment]
    log_start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: SnapshotFiles
    cut: Cut | None


def load_log(
    storage: Storage,
    directory: str,
    producers: ProducerStates,
    *,
    config: LogConfig,
    now_ms: int,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    known_end: int = 0,
) -> LoadedLog:
    """Open the log in a directory, which may be empty, and repair it unless it was closed cleanly.

    `known_end` is an offset up to which records were acknowledged.

    Raises: StorageError.
    """
    names = frozenset(storage.list(directory))
    segments = _find_segments(storage, directory, names, now_ms)
    epochs = LeaderEpochs(storage, directory)
    epochs.load()
    snapshots = SnapshotFiles(storage, directory, names)
    interval = config.index_interval_bytes
    suspect = _first_suspect(segments, names, clean=clean, recovery_point=recovery_point)
    checked_from, cut = None, None
    if suspect is not None:
        checked_from, cut = _recover(segments, suspect, epochs, interval, recovery_point)
    end = segments[-1].resume() if segments else 0
    cut = _whole_cut(cut, end, known_end)
    start = max(log_start_offset, segments[0].base_offset) if segments else log_start_offset
    if not segments or end < start:
        for segment in segments:
            delete_segment(segment)
        segment = Segment(storage, directory, start, now_ms)
        segment.create()
        segments, end, checked_from = [segment], start, start
        for offset in list(snapshots.offsets):
            snapshots.delete(offset)  # their records were deleted: they may have open transactions
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    snapshots.delete_strays([segment.base_offset for segment in segments], end)
    restore_producers(producers, segments, snapshots, end, rebuilt_from=checked_from)
    return LoadedLog(
        segments, start, end, end if clean else min(recovery_point, end), epochs, producers, snapshots, cut
    )


def _find_segments(storage: Storage, directory: str, names: Set[str], now_ms: int) -> list[Segment]:
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG) and name[:20].isdigit())
    known = set(bases)
    for name in names:
        stem = name.partition(".")[0]
        is_orphan = name.endswith(INDEX_SUFFIXES) and stem.isdigit() and int(stem) not in known
        if is_orphan or name.endswith(_LEFTOVERS):
            storage.delete(f"{directory}/{name}")
    return [Segment(storage, directory, base, now_ms) for base in bases]


def _first_suspect(segments: list[Segment], names: Set[str], *, clean: bool, recovery_point: int) -> int | None:
    """Return the first segment that must be checked, None if all can be trusted."""
    for index, segment in enumerate(segments):
        if segment.size and not segment.has_indexes(names):
            return index
        is_last = index == len(segments) - 1
        # A flush leaves out the indexes of the active segment: the last flushed segment is checked, too.
        if not clean and (is_last or segments[index + 1].base_offset >= recovery_point):
            return index
    return None


def _recover(
    segments: list[Segment], index: int, epochs: LeaderEpochs, interval: int, recovery_point: int
) -> tuple[int, Cut | None]:
    """Check segments from `index`, truncate at corrupt bytes; return first checked base and cut."""
    first = end = segments[index].base_offset
    cut = None
    epochs.truncate_from_end(first)
    while index < len(segments):
        segment, whole = segments[index], segments[index].size
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        # A lost write leaves a hole if it ended at the end of a batch.
        if segment.base_offset != end and (segment.base_offset < end or end >= recovery_point):
            cause = f"the segment after offset {end} begins at {segment.base_offset}"
            cut = Cut(end, segment.base_offset, 0, cause, is_torn=False)
            break
        end = segment.base_offset
        for batch in segment.rebuild(interval, gaps_below=recovery_point, next_base=following):
            epochs.assign(batch.leader_epoch, batch.base_offset)
            end = batch.last_offset + 1
        segment.seal()
        index += 1
        if segment.damage is not None:
            cause = f"{segment.name}{LOG}: {segment.damage.cause}"
            cut = Cut(end, segment.damage.end_offset, whole - segment.size, cause, segment.damage.is_torn)
            break
        if following is not None:
            segment.release()
    if cut is not None and (gone := segments[index:]):
        known_end = max(cut.known_end, gone[-1].base_offset)
        size = cut.size + sum(segment.size for segment in gone)
        cut = cut._replace(known_end=known_end, size=size, is_torn=False)
    for later in segments[index:]:
        delete_segment(later)
    del segments[index:]
    return first, cut


def _whole_cut(cut: Cut | None, end: int, known_end: int) -> Cut | None:
    """Return the cut, with the known end of the log."""
    if cut is not None:
        return cut._replace(known_end=max(cut.known_end, known_end), is_torn=cut.is_torn and known_end <= end)
    if end < known_end:
        return Cut(end, known_end, 0, "the files end before the checkpointed high watermark", is_torn=False)
    return None


def log_cut(topic: str, partition: int, cut: Cut) -> None:
    """Log the truncation of a recovery, in one line."""
    if cut.is_torn:
        logger.info(
            "%s[%d]: %s; truncated the %d bytes of an unfinished append. The log ends at offset %d",
            *(topic, partition, cut.cause, cut.size, cut.offset),
        )
        return
    if cut.known_end > cut.offset:
        lost = f"offset {cut.offset} to {cut.known_end - 1} are lost"
    else:
        lost = f"offset {cut.offset} on may be lost"
    logger.error(
        "%s[%d]: acknowledged records from %s: %s. %d bytes were truncated, and the log ends at offset %d: new "
        "records get these offsets, in a later leader epoch. Restore a backup of the partition, or produce the lost "
        "records again",
        *(topic, partition, lost, cut.cause, cut.size, cut.offset),
    )


def delete_segment(segment: Segment) -> None:
    """Delete the files of a segment."""
    for path in segment.retire():
        segment.storage.delete(path)


class SnapshotFiles:
    """A partition's producer snapshots: `<offset>.snapshot` holds everything below that offset."""

    def __init__(self, storage: Storage, directory: str, names: Set[str]) -> None:
        """`names` are those in the directory."""
        self._storage = storage
        self._directory = directory
        self.offsets: list[int] = sorted(
            int(name[:20]) for name in names if name.endswith(SNAPSHOT) and name[:20].isdigit()
        )

    def path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SNAPSHOT}"

    def write(self, producers: ProducerStates, offset: int) -> None:
        """Save the state at `offset`, unless there is such a snapshot; not flushed.

        Raises: StorageError.
        """
        if offset not in self.offsets:
            self._storage.write(self.path(offset), producers.pack())
            self.offsets = sorted([*self.offsets, offset])

    def delete(self, offset: int) -> None:
        if offset in self.offsets:
            self._storage.delete(self.forget(offset))

    def forget(self, offset: int) -> str:
        """Remove the snapshot at `offset`; return its path, which the caller deletes."""
        if offset in self.offsets:
            self.offsets.remove(offset)
        return self.path(offset)

    def delete_strays(self, bases: list[int], end: int) -> None:
        """Delete the snapshots above `end`, and those of no segment except the newest."""
        kept = set(bases)
        newest = max((offset for offset in self.offsets if offset <= end), default=-1)
        for offset in list(self.offsets):
            if offset > end or (offset not in kept and offset != newest):
                self.delete(offset)

    def load_newest(self, producers: ProducerStates, upto: int) -> int | None:
        """Load the newest intact snapshot up to `upto`, delete corrupt ones; return its offset."""
        for offset in reversed([offset for offset in self.offsets if offset <= upto]):
            try:
                producers.unpack(self._storage.read(self.path(offset)) or b"")
            except CorruptRecord:
                self.delete(offset)
            else:
                return offset
        return None


def restore_producers(
    producers: ProducerStates, segments: list[Segment], snapshots: SnapshotFiles, end: int, *, rebuilt_from: int | None
) -> None:
    """Bring the producers' state to `end`: the newest snapshot, then the batches after it.

    From `rebuilt_from` on (a segment's base; None: nowhere) snapshots are rewritten, and the
    emptied transaction indexes are rebuilt.
    """
    if rebuilt_from is not None:
        for offset in [offset for offset in snapshots.offsets if offset > rebuilt_from]:
            snapshots.delete(offset)
    producers.clear()
    position = snapshots.load_newest(producers, end)
    if position is None:
        position = segments[0].base_offset
    elif producers.states:
        _remember(producers, segments, position)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        limit = end if following is None else following.base_offset
        if limit <= position:
            continue
        _replay(
            producers, segment, position, is_rebuilt=rebuilt_from is not None and segment.base_offset >= rebuilt_from
        )
        if following is not None and rebuilt_from is not None and limit > rebuilt_from:
            snapshots.write(producers, limit)


def _remember(producers: ProducerStates, segments: list[Segment], upto: int) -> None:
    """Read each producer's batches before its last: snapshots, in Kafka's format, have only that.

    A producer without responses to its last five batches retries all five.
    """
    below = [segment for segment in segments if segment.base_offset < upto]
    if below:
        start = below[-1].offset_index.floor_position(max(0, below[-1].size - REMEMBERED_BYTES))
        tail = below[-1].walk(start)
        producers.recall([batch for batch in tail if batch.last_offset < upto and not batch.is_control])


def _replay(producers: ProducerStates, segment: Segment, from_offset: int, *, is_rebuilt: bool) -> None:
    first = segment.find(from_offset)
    if first is None:
        return
    for batch in segment.walk(first.position):
        if batch.producer_id < 0 or batch.base_offset < from_offset:
            continue
        if not batch.is_control:
            producers.note(batch, batch.base_offset, batch.last_offset)
        elif (marker := read_marker(segment.file.pread(batch.size, batch.position))) is not None:
            aborted = producers.complete(batch, marker, batch.last_offset)
            if aborted is not None and is_rebuilt:
                segment.txn_index.append(aborted)
    if is_rebuilt:
        segment.save_indexes()
