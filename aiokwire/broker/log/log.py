"""One partition's log: append, read, roll, flush, delete. Used by the broker's handlers.

    append -> active segment (page cache), roll, flush (Work), retention: .deleted, deletion (Work)
    read   -> a snapshot (tuple) of the segment list, two binary searches, one pread

All methods run on the loop and return at once; what waits for the medium is returned as a `Work`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import anyio

from aiokwire.broker.log.batches import read_marker
from aiokwire.broker.log.config import LogConfig
from aiokwire.broker.log.epochs import LeaderEpochs
from aiokwire.broker.log.index import AbortedTransaction
from aiokwire.broker.log.lookup import Candidate, find_max_timestamp, find_timestamp
from aiokwire.broker.log.producers import ProducerStates
from aiokwire.broker.log.recovery import LoadedLog, delete_segment, load_log, log_cut, restore_producers
from aiokwire.broker.log.retention import Removal, plan_retention
from aiokwire.broker.log.segment import LOG, NO_TIMESTAMP, ReadResult, Segment
from aiokwire.broker.log.storage import Storage
from aiokwire.broker.log.work import Flush
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, OffsetOutOfRange, StorageError, error_for
from aiokwire.records import RecordBatch, assign_offsets, scan_batches, set_log_append_time
from aiokwire.threads import run_in_thread


class AppendInfo(NamedTuple):
    """The result of an append. A duplicate has the result of its first append."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    is_duplicate: bool = False


class PartitionLog:
    """The log of one partition, opened by `LogManager`."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        *,
        config: LogConfig,
        now_ms: int,
        clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        known_end: int = 0,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.config: LogConfig = config
        self._storage = storage
        loaded = load_log(
            storage,
            directory,
            ProducerStates(topic, partition),
            config=config,
            now_ms=now_ms,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            known_end=known_end,
        )
        if loaded.cut is not None:
            log_cut(topic, partition, loaded.cut)
        self._adopt(loaded)
        self._last_flush_ms = now_ms
        self._names = 1  # number of creations, renames and deletions of files
        self._synced_names = 0  # the number of them that are on the medium
        # The file with the topic id, not flushed yet. No append is allowed while it is in `metadata_to_sync`; then the
        # topics' file has the id, and the first flush includes this file.
        self.metadata_to_sync: str | None = None
        self._metadata_to_flush: str | None = None
        # Index files of sealed segments from here on may not be flushed; those of the active segment are flushed only
        # at a clean stop: recovery always reads that segment.
        self._unsynced_base = self._bases[max(bisect_right(self._bases, self.recovery_point) - 1, 0)]
        self._closed_at = self.end_offset if clean or self.end_offset == 0 else -1  # the end of the last whole flush
        self._history = 0  # number of truncations, which invalidate flushes in progress
        self._flushing = threading.Lock()  # taken in threads only
        self._flush_turn: anyio.Lock | None = None  # created at first use: it belongs to a running loop

    def _adopt(self, loaded: LoadedLog) -> None:
        self._set_segments(loaded.segments)
        self.log_start_offset: int = loaded.log_start_offset
        self.end_offset: int = loaded.end_offset
        self.recovery_point: int = loaded.recovery_point
        self.leader_epochs: LeaderEpochs = loaded.epochs
        self.producers: ProducerStates = loaded.producers
        self._snapshots = loaded.snapshots

    def __repr__(self) -> str:
        offsets = f"{self.log_start_offset}..{self.end_offset}"
        return f"<PartitionLog {self.topic}[{self.partition}] {offsets}, {len(self._segments)} segments>"

    def _set_segments(self, segments: Sequence[Segment]) -> None:
        # Replaced, never changed: a reader keeps the pair with which it started.
        self._segments = tuple(segments)
        self._bases = tuple(segment.base_offset for segment in segments)
        self._active = segments[-1]

    def configure(self, config: LogConfig) -> None:
        self.config = config

    # --- content ------------------------------------------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may read: the log's end, because one node holds each log."""
        return self.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The start of the oldest open transaction, or the high watermark."""
        unstable = self.producers.first_unstable_offset
        return self.end_offset if unstable is None else min(unstable, self.end_offset)

    @property
    def size(self) -> int:
        """Bytes of batches in all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def segment_offsets(self) -> tuple[int, ...]:
        """The base offset of each segment."""
        return self._bases

    # --- append -------------------------------------------------------------------------------------------------------

    def append(
        self,
        data: bytearray | memoryview,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        headers: Sequence[RecordBatch] | None = None,
        log_append_time: int | None = None,
        from_client: bool = True,
    ) -> AppendInfo:
        """Append whole, verified batches of format 2; their offsets are set in `data`.

        `headers` are its `scan_batches`, if the caller has them. `log_append_time` replaces the
        timestamps. `from_client` is False for coordinators, whose batches have no sequence numbers.
        A producer id may have one batch in `data`.

        Raises: BrokerError: with the code of a rejected producer epoch, sequence or size.
            StorageError: the medium is full or failed. Nothing was appended in either case.
        """
        if headers is None:
            headers = scan_batches(data)
        if not headers:
            raise InvalidArgument("append needs at least one whole batch")
        duplicate = self._duplicate_of(headers, from_client=from_client)
        if duplicate is not None:
            return duplicate
        if len(data) > self.config.segment_bytes:
            what = f"append {len(data)} bytes where segment.bytes is {self.config.segment_bytes}"
            raise error_for(
                ErrorCode.RECORD_LIST_TOO_LARGE, what, topic=self.topic, partition=self.partition, request="Produce"
            )
        if log_append_time is not None:
            set_log_append_time(data, log_append_time)
            headers = scan_batches(data)
        base = end = self.end_offset
        latest = NO_TIMESTAMP
        placed = []  # read before the offsets are set: a header may be a view
        for header in headers:
            last = end + header.last_offset - header.base_offset
            placed.append((header, end, last))
            end = last + 1
            latest = max(latest, header.max_timestamp)
        if self._active.must_roll(self.config, len(data), latest, end - 1, now_ms):
            self.roll(now_ms)
        assign_offsets(data, base, leader_epoch, headers)
        self._active.write(data)
        self._note(placed, data)
        self.end_offset = end
        if leader_epoch > self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base)
        appended_at = NO_TIMESTAMP if log_append_time is None else log_append_time
        return AppendInfo(base, end - 1, appended_at, self.log_start_offset)

    def _duplicate_of(self, headers: Sequence[RecordBatch], *, from_client: bool) -> AppendInfo | None:
        for header in headers:
            if header.producer_id >= 0 and (known := self.producers.check(header, from_client=from_client)) is not None:
                return AppendInfo(known.base_offset, known.last_offset, known.timestamp, self.log_start_offset, True)
        return None

    def _note(self, placed: Sequence[tuple[RecordBatch, int, int]], data: bytearray | memoryview) -> None:
        """Update indexes and producers after a write; cannot fail."""
        position = 0
        interval = self.config.index_interval_bytes
        active = self._active
        for header, base, last in placed:
            active.note(header.size, last, header.max_timestamp, interval)
            if header.producer_id >= 0:
                if not header.is_control:
                    self.producers.note(header, base, last)
                elif (marker := read_marker(memoryview(data)[position : position + header.size])) is not None:
                    aborted = self.producers.complete(header, marker, last)
                    if aborted is not None:
                        active.txn_index.append(aborted)
            position += header.size

    # --- roll ---------------------------------------------------------------------------------------------------------

    def roll(self, now_ms: int) -> None:
        """Seal the active segment and start a new one, unless it is empty.

        Raises: StorageError: nothing has changed.
        """
        active = self._active
        if active.size == 0:
            return
        active.seal()
        self._snapshots.write(self.producers, self.end_offset)
        fresh = Segment(self._storage, self.directory, self.end_offset, now_ms)
        try:
            fresh.create()
        except StorageError:
            # Appends may continue in the old segment, beyond this one's offset: delete its file.
            fresh.close()
            self._storage.delete(fresh.name + LOG)
            raise
        self._set_segments([*self._segments, fresh])
        self._names += 1

    # --- read ---------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, min_one: bool = True, upto: int | None = None) -> ReadResult:
        """Return batches from the one with `offset` on, at most `max_bytes`, of one segment.

        With `min_one` the first batch is whole even if it is larger. All records are below `upto`
        (the last stable offset for read_committed). The last batch may be truncated, as in Kafka.

        Raises: OffsetOutOfRange: the log does not have the offset. StorageError.
        """
        if not self.log_start_offset <= offset <= self.end_offset:
            raise self._out_of_range(offset)
        limit = self.end_offset if upto is None else min(upto, self.end_offset)
        if offset >= limit:
            return ReadResult(b"", offset)
        segments, bases = self._segments, self._bases
        for index in range(bisect_right(bases, offset) - 1, len(segments)):
            next_base = bases[index + 1] if index + 1 < len(bases) else self.end_offset
            found = segments[index].read(offset, max_bytes, upto=limit, next_base=next_base, min_one=min_one)
            if found is not None:
                return found
        return ReadResult(b"", offset)

    def aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Return aborted transactions with records in [offset, upper_bound), for read_committed."""
        found = []
        start = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[start:]:
            for entry in segment.txn_index.entries:
                if entry.last_offset >= offset and entry.first_offset < upper_bound:
                    found.append(entry)
                if entry.last_stable_offset >= upper_bound:
                    return found
        return found

    def _out_of_range(self, offset: int) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            f"{self.topic}[{self.partition}] has offsets {self.log_start_offset} to {self.end_offset}, not {offset}",
            topic=self.topic,
            partition=self.partition,
            offset=offset,
        )

    # --- lookup by timestamp ------------------------------------------------------------------------------------------

    def candidates(self, timestamp: int | None) -> Iterator[Candidate]:
        """Return batches that may have the first record from `timestamp` on; None: the greatest."""
        if timestamp is None:
            return find_max_timestamp(self._segments, self.log_start_offset)
        return find_timestamp(self._segments, timestamp, self.log_start_offset)

    # --- flush --------------------------------------------------------------------------------------------------------

    @property
    def unflushed(self) -> int:
        """The number of offsets appended since the last flush."""
        return self.end_offset - self.recovery_point

    @property
    def flush_needed(self) -> bool:
        """Whether flush.messages is reached: then a produce response waits for the flush."""
        return self.end_offset - self.recovery_point >= self.config.flush_messages

    def flush_is_due(self, now_ms: int) -> bool:
        """Return whether flush.ms has passed, or a segment was sealed."""
        if self._active.base_offset > self.recovery_point:
            return True
        return self.unflushed > 0 and now_ms - self._last_flush_ms >= self.config.flush_ms

    def prepare_flush(self, now_ms: int, *, whole: bool = False) -> Flush | None:
        """Return the flush of everything appended so far; None if it is flushed.

        `whole` includes the active segment's indexes, for a clean stop.

        Raises: StorageError: the indexes could not be written.
        """
        end, history, names = self.end_offset, self._history, self._names
        if end <= self.recovery_point and not (whole and self._closed_at != end):
            return None
        paths, active, metadata = self._to_flush(whole=whole), self._active, self._metadata_to_flush
        directories = [self.directory] if names > self._synced_names else []
        if metadata is not None:
            directories.append("")

        def finish() -> None:
            self._synced_names = max(self._synced_names, names)
            if self._metadata_to_flush == metadata:
                self._metadata_to_flush = None
            if history == self._history:
                self.recovery_point = max(self.recovery_point, end)
                self._unsynced_base = max(self._unsynced_base, active.base_offset)
                self._last_flush_ms = now_ms
                self._closed_at = end if whole else self._closed_at

        what = f"flush {self.topic}[{self.partition}] up to {end}"
        return Flush(what, self._storage, paths, self.leader_epochs, directories, self._flushing, finish)

    def _to_flush(self, *, whole: bool) -> list[str]:
        """Write the indexes of sealed segments; return the files to flush. Raises: StorageError."""
        paths = []
        for segment in self._segments[max(bisect_right(self._bases, self._unsynced_base) - 1, 0) :]:
            if segment is self._active and not whole:
                paths.append(segment.name + LOG)
            else:
                segment.save_indexes()
                paths += segment.paths()
        paths += [self._snapshots.path(offset) for offset in self._snapshots.offsets if offset > self.recovery_point]
        if self._metadata_to_flush is not None:
            paths.append(self._metadata_to_flush)
        return paths

    async def flush_upto(self, offset: int, now_ms: Callable[[], int]) -> None:
        """Wait until the records below `offset` are flushed.

        Callers share flushes: one runs at a time, the next one covers records appended in between.

        Raises: StorageError.
        """
        if self._flush_turn is None:
            self._flush_turn = anyio.Lock()
        history = self._history
        async with self._flush_turn:
            if self.recovery_point >= offset or history != self._history:
                return
            work = self.prepare_flush(now_ms())
            if work is not None:
                await run_in_thread(work.run)
                work.finish()

    # --- delete -------------------------------------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Move the log's start up to `offset` (-1: the high watermark) and return it.

        Durable once the manager's checkpoint is written. The next retention removes segments below.

        Raises: OffsetOutOfRange: above the high watermark.
        """
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise self._out_of_range(offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
        return self.log_start_offset

    def prepare_retention(self, now_ms: int) -> Removal | None:
        """Remove segments that are too old, too many or below the start; None if none is.

        Raises: StorageError.
        """
        if not (count := plan_retention(self._segments, self.log_start_offset, self.config, now_ms)):
            return None
        if count == len(self._segments):
            self.roll(now_ms)
        gone, kept = self._segments[:count], self._segments[count:]
        self._set_segments(kept)
        self.log_start_offset = max(self.log_start_offset, kept[0].base_offset)
        self.recovery_point = max(self.recovery_point, kept[0].base_offset)
        self.leader_epochs.truncate_from_start(self.log_start_offset)
        self._names += 1
        snapshots = [self._snapshots.forget(segment.base_offset) for segment in gone]
        for segment in gone:
            segment.close()
        return Removal(f"remove {count} segments of {self.topic}[{self.partition}]", gone, snapshots)

    def truncate_to(self, offset: int) -> None:
        """Truncate the log before the batch with `offset`, as in unclean elections; for tests.

        Raises: StorageError.
        """
        if offset >= self.end_offset:
            return
        kept = max(bisect_right(self._bases, offset) - 1, 0)
        for segment in self._segments[kept + 1 :]:
            delete_segment(segment)
        last = self._segments[kept]
        if (batch := last.find(offset)) is not None:
            last.truncate(batch)
        self._set_segments(self._segments[: kept + 1])
        self.end_offset = last.end_offset()
        self.log_start_offset = min(self.log_start_offset, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self._history += 1
        self._names += 1
        self.leader_epochs.truncate_from_end(self.end_offset)
        self._snapshots.delete_strays(list(self._bases), self.end_offset)
        restore_producers(self.producers, list(self._segments), self._snapshots, self.end_offset, rebuilt_from=None)

    # --- files --------------------------------------------------------------------------------------------------------

    def require_registration(self, metadata: str) -> None:
        """Allow no append before `note_registered`; `metadata` is the file with the topic id."""
        self.metadata_to_sync = metadata

    def note_registered(self) -> None:
        """The topics' file has the topic id, so the next start restores it: allow appends."""
        if self.metadata_to_sync is not None:
            self._metadata_to_flush, self.metadata_to_sync = self.metadata_to_sync, None

    def release_idle(self) -> None:
        """Release the handles and index memory of sealed segments; a read opens them again."""
        for segment in self._segments[:-1]:
            segment.release()

    def prepare_close(self, now_ms: int) -> Flush | None:
        """Write indexes and producers for a clean stop; return their flush, or None.

        Raises: StorageError: the log needs recovery at the next start.
        """
        self._active.seal()
        if self.end_offset > 0:
            self._snapshots.write(self.producers, self.end_offset)
        return self.prepare_flush(now_ms, whole=True)

    def abandon(self) -> None:
        """Close the files without flushing: the log is deleted, or a test kills the broker."""
        for segment in self._segments:
            segment.close()
