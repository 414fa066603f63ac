"""Opening a partition's directory: what a clean stop left is trusted, after anything else the log is checked.

Order and rules follow Kafka's LogLoader. Recovery never trusts an index: from the segment of the recovery point on it
reads every batch, checks its CRC, cuts the log at the first byte that is wrong, and rebuilds what is derived from it.
"""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.broker.log.batches import read_marker
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.epochs import LeaderEpochs
from aiokwire.broker.log.producers import ProducerStates
from aiokwire.broker.log.segment import DELETED, INDEX_SUFFIXES, LOG, Segment
from aiokwire.broker.log.storage import Storage
from aiokwire.errors import CorruptRecord

SNAPSHOT = ".snapshot"
# So much of the end of a log is searched for batches that producers may send again.
REMEMBERED_BYTES = 256 * 1024
_LEFTOVERS = (DELETED, ".cleaned", ".tmp")


class LoadedLog(NamedTuple):
    """What a partition's directory holds."""

    segments: list[Segment]
    log_start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs
    producers: ProducerStates


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
) -> LoadedLog:
    """Open the log in a directory, which may be empty, and repair it unless it was closed cleanly.

    Raises: StorageError.
    """
    segments = _find_segments(storage, directory, now_ms)
    epochs = LeaderEpochs(storage, directory)
    epochs.load()
    snapshots = SnapshotFiles(storage, directory)
    interval = config.index_interval_bytes
    suspect = _first_suspect(segments, clean=clean, recovery_point=recovery_point)
    checked_from = None if suspect is None else _recover(segments, suspect, epochs, interval, recovery_point)
    end = segments[-1].resume() if segments else 0
    start = max(log_start_offset, segments[0].base_offset) if segments else log_start_offset
    if not segments or end < start:
        for segment in segments:
            delete_segment(segment)
        segment = Segment(storage, directory, start, now_ms)
        segment.create()
        segments, end, checked_from = [segment], start, start
        for offset in list(snapshots.offsets):
            snapshots.delete(offset)  # of producers whose records are gone, perhaps with open transactions
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    snapshots.delete_strays([segment.base_offset for segment in segments], end)
    restore_producers(producers, segments, snapshots, end, rebuilt_from=checked_from)
    return LoadedLog(segments, start, end, end if clean else min(recovery_point, end), epochs, producers)


def _find_segments(storage: Storage, directory: str, now_ms: int) -> list[Segment]:
    names = storage.list(directory)
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG) and name[:20].isdigit())
    known = set(bases)
    for name in names:
        stem = name.partition(".")[0]
        is_orphan = name.endswith(INDEX_SUFFIXES) and stem.isdigit() and int(stem) not in known
        if is_orphan or name.endswith(_LEFTOVERS):
            storage.delete(f"{directory}/{name}")
    return [Segment(storage, directory, base, now_ms) for base in bases]


def _first_suspect(segments: list[Segment], *, clean: bool, recovery_point: int) -> int | None:
    """The first segment whose content must be checked, None when all can be trusted."""
    for index, segment in enumerate(segments):
        if segment.size and not segment.has_indexes():
            return index
        is_last = index == len(segments) - 1
        if not clean and (is_last or segments[index + 1].base_offset > recovery_point):
            return index
    return None


def _recover(segments: list[Segment], index: int, epochs: LeaderEpochs, interval: int, recovery_point: int) -> int:
    """Check the segments from `index` on, cut off what is damaged; gives the first checked base offset."""
    first = end = segments[index].base_offset
    epochs.truncate_from_end(first)
    while index < len(segments):
        segment, whole = segments[index], segments[index].size
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        # A hole is what a lost write leaves, if its end happened to be the end of a batch.
        if segment.base_offset != end and (segment.base_offset < end or end >= recovery_point):
            break
        end = segment.base_offset
        for batch in segment.rebuild(interval, gaps_below=recovery_point, next_base=following):
            epochs.assign(batch.leader_epoch, batch.base_offset)
            end = batch.last_offset + 1
        segment.seal()
        index += 1
        if segment.size < whole:
            break
        if following is not None:
            segment.release()
    for damaged in segments[index:]:
        delete_segment(damaged)
    del segments[index:]
    return first


def delete_segment(segment: Segment) -> None:
    """Delete the files of a segment."""
    for path in segment.retire():
        segment.storage.delete(path)


class SnapshotFiles:
    """The producer snapshots in a partition's directory: `<offset>.snapshot` holds everything below that offset."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._directory = directory
        names = (name for name in storage.list(directory) if name.endswith(SNAPSHOT) and name[:20].isdigit())
        self.offsets = sorted(int(name[:20]) for name in names)

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
            self.offsets.remove(offset)
            self._storage.delete(self.path(offset))

    def delete_strays(self, bases: list[int], end: int) -> None:
        """Delete the snapshots above `end`, and those of no segment except the newest."""
        kept = set(bases)
        newest = max((offset for offset in self.offsets if offset <= end), default=-1)
        for offset in list(self.offsets):
            if offset > end or (offset not in kept and offset != newest):
                self.delete(offset)

    def load_newest(self, producers: ProducerStates, upto: int) -> int | None:
        """Load the newest sound snapshot at or below `upto`, deleting damaged ones; gives its offset."""
        for offset in reversed([offset for offset in self.offsets if offset <= upto]):
            try:
                producers.unpack(self._storage.read(self.path(offset)) or b"")
            except CorruptRecord:
                self.delete(offset)
            else:
                return offset
        return None


def restore_producers(
    producers: ProducerStates,
    segments: list[Segment],
    snapshots: SnapshotFiles,
    end: int,
    *,
    rebuilt_from: int | None,
) -> None:
    """Bring the producers' state to `end`: the newest snapshot, then the batches after it.

    From `rebuilt_from` on (a segment's base; None for nowhere) snapshots are taken anew and the transaction indexes,
    which were emptied, are filled again.
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
    """Find the batches before the last one of each producer again: a snapshot, in Kafka's format, has only the last.

    A producer that did not hear of five batches before the broker stopped sends all five again.
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
