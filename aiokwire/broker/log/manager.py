"""A data directory: every partition's log, the checkpoints, and the lock."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from aiokwire.broker.log.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    encode_id,
    new_id,
    pack_clean_shutdown,
    pack_offsets,
    pack_partition_metadata,
    pack_properties,
    unpack_offsets,
    unpack_partition_metadata,
    unpack_properties,
)
from aiokwire.broker.log.config import DAY_MS, LogConfig
from aiokwire.broker.log.log import PartitionLog
from aiokwire.broker.log.retention import Removal
from aiokwire.broker.log.storage import Storage, write_atomically
from aiokwire.broker.log.work import Work, flush_all
from aiokwire.errors import InvalidArgument, StorageError
from aiokwire.types import TopicPartition

LEADER_EPOCH = "aiokwire-leader-epoch"  # written since the first unclean stop
_DIRECTORY = re.compile(r"(.+)-(\d+)\Z")
_NOT_OURS = "__cluster_metadata"  # of Kafka, if it wrote the directory: never written, so that Kafka may use it again
_DELETED = "-delete"
_LONGEST_NAME = 255  # of a file, on every common file system


class LogManager:
    """Opens, creates, deletes and maintains the partition logs of one data directory."""

    def __init__(
        self,
        storage: Storage,
        *,
        config: LogConfig | None = None,
        node_id: int = 1,
        cluster_id: str | None = None,
        producer_expiration_ms: int = DAY_MS,
        rng: random.Random | None = None,
    ) -> None:
        self.storage = storage
        self.config: LogConfig = config or LogConfig()
        self.node_id = node_id
        self.cluster_id: str = cluster_id or ""
        self.directory_id: str = ""
        self.leader_epoch: int = 0  # of every partition whose log has no greater one
        self._producer_expiration_ms = producer_expiration_ms
        self._rng = rng or random.Random()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._deletions: list[tuple[int, list[str], list[str]]] = []  # due time, files, directories
        self._checkpoints = self._written = 0  # numbers of the latest prepared and the latest written one
        self._writing = threading.Lock()  # taken in threads only
        self._is_open = False
        self.logs: Mapping[TopicPartition, PartitionLog] = MappingProxyType(self._logs)

    def __repr__(self) -> str:
        return f"<LogManager {self.storage!r}, {len(self._logs)} logs{'' if self._is_open else ', closed'}>"

    # --- open and close -----------------------------------------------------------------------------------------------

    def open(self, now_ms: int, read_topic_ids: Callable[[], Mapping[str, bytes]] = dict) -> None:
        """Lock the directory and open every log; after an unclean stop, check and repair them.

        `read_topic_ids` returns the ids in the topics' file, for logs that lost theirs (power cut).

        Raises: StorageError: another broker has the directory, it is another node's, or unreadable.
        """
        self.storage.lock()
        try:
            names = self.storage.list("")
            self._identify()
            was_clean = CLEAN_SHUTDOWN in names
            self._load(names, now_ms, read_topic_ids(), clean=was_clean)
            self._begin_epoch(clean=was_clean)
            if was_clean:
                # before the first append: otherwise a power failure would look like a clean stop
                self.storage.delete(CLEAN_SHUTDOWN)
                self.storage.sync_directory("")
        except BaseException:
            self._abandon()
            raise
        self._is_open = True

    def _identify(self) -> None:
        """Read meta.properties, or write it for a new directory."""
        known = unpack_properties(self.storage.read(META_PROPERTIES))
        owner = known.get("node.id", str(self.node_id))
        if owner != str(self.node_id):
            raise StorageError(f"{self.storage!r} belongs to node {owner}, this is node {self.node_id}")
        cluster_id = known.get("cluster.id", "")
        if self.cluster_id and cluster_id and cluster_id != self.cluster_id:
            raise StorageError(f"{self.storage!r} belongs to cluster {cluster_id}, not to {self.cluster_id}")
        self.cluster_id = cluster_id or self.cluster_id or encode_id(new_id(self._rng))
        self.directory_id = known.get("directory.id") or encode_id(new_id(self._rng))
        properties = {
            "version": "1",
            "cluster.id": self.cluster_id,
            "node.id": str(self.node_id),
            "directory.id": self.directory_id,
        }
        if properties != known:
            write_atomically(self.storage, META_PROPERTIES, pack_properties(properties))

    def _load(self, names: list[str], now_ms: int, topic_ids: Mapping[str, bytes], *, clean: bool) -> None:
        recovery_points = unpack_offsets(self.storage.read(RECOVERY_POINTS))
        log_starts = unpack_offsets(self.storage.read(LOG_STARTS))
        high_watermarks = unpack_offsets(self.storage.read(HIGH_WATERMARKS))
        deleted = []
        for name in names:
            if name.endswith(_DELETED):
                deleted.append(name)
                continue
            match = _DIRECTORY.match(name)
            if match is None or match[1] == _NOT_OURS or not self.storage.is_directory(name):
                continue
            tp = TopicPartition(match[1], int(match[2]))
            topic_id = unpack_partition_metadata(self.storage.read(f"{name}/{PARTITION_METADATA}"))
            is_restored = topic_id is None
            if topic_id is None:
                topic_id = topic_ids.get(tp.topic)
            if topic_id is None:
                self._drop_half_made(name)
                continue
            if is_restored:
                self.storage.write(f"{name}/{PARTITION_METADATA}", pack_partition_metadata(topic_id))
            log = self._logs[tp] = PartitionLog(
                self.storage,
                name,
                *tp,
                topic_id,
                config=self.config,
                now_ms=now_ms,
                clean=clean,
                recovery_point=recovery_points.get(tp, 0),
                log_start_offset=log_starts.get(tp, 0),
                known_end=high_watermarks.get(tp, 0),
            )
            if log.end_offset == 0 or is_restored:  # the metadata may not have been flushed
                log.require_registration(f"{name}/{PARTITION_METADATA}")
        if deleted:
            self._deletions.append((now_ms, [], deleted))

    def _begin_epoch(self, *, clean: bool) -> None:
        """After an unclean stop, start an epoch in each partition that no record had, lost or not.

        Records that consumers have read may be lost, and new ones will have their offsets: by the
        epoch, consumers detect that (KIP-320). It is flushed before any client receives it.
        """
        content = self.storage.read(LEADER_EPOCH)
        try:
            self.leader_epoch = int(content) if content is not None else 0
        except ValueError as error:
            raise StorageError(f"{LEADER_EPOCH} in the data directory is corrupt: {content!r}") from error
        if clean or not self._logs:
            return
        latest = max(log.leader_epochs.latest for log in self._logs.values())
        self.leader_epoch = max(self.leader_epoch, latest, 0) + 1
        write_atomically(self.storage, LEADER_EPOCH, str(self.leader_epoch).encode())
        for log in self._logs.values():
            if log.end_offset > 0:
                log.leader_epochs.assign(self.leader_epoch, log.end_offset)

    def raise_leader_epoch(self, above: int) -> None:
        """Let new leaders start after epoch `above`, which clients may have seen.

        Raises: StorageError.
        """
        if above >= self.leader_epoch:
            self.leader_epoch = above + 1
            write_atomically(self.storage, LEADER_EPOCH, str(self.leader_epoch).encode())

    def _drop_half_made(self, directory: str) -> None:
        """Delete the directory of a log whose creation was interrupted; it has no records."""
        # The metadata file itself may be torn: no append preceded its flush.
        others = [name for name in self.storage.list(directory) if name != PARTITION_METADATA]
        if any(self.storage.size(f"{directory}/{name}") > 0 for name in others):
            raise StorageError(
                f"{directory} has data, but no readable {PARTITION_METADATA}: restore it, or move the directory away"
            )
        self.storage.delete_directory(directory)

    def close(self, now_ms: int) -> None:
        """Flush and close every log, write checkpoints and mark a clean stop; waits for the medium.

        Raises: StorageError: the first one; the other logs are closed, the next start repairs them.
        """
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._flush_all(now_ms)
            self.checkpoint()
            write_atomically(self.storage, CLEAN_SHUTDOWN, pack_clean_shutdown())
        finally:
            self._abandon()

    def _flush_all(self, now_ms: int) -> None:
        """Flush all logs together: individual flushes of thousands would take half a minute.

        Raises: StorageError: the first one; the other logs are flushed.
        """
        first_error: StorageError | None = None
        flushes = []
        for log in self._logs.values():
            try:
                flush = log.prepare_close(now_ms)
            except StorageError as error:
                first_error = first_error or error
            else:
                flushes += [flush] if flush is not None else []
        flush_all(self.storage, flushes)
        if first_error is not None:
            raise first_error
        for flush in flushes:
            flush.finish()

    def abandon(self) -> None:
        """Close all files without flush or mark of a clean stop, as if the process was killed."""
        self._is_open = False
        self._abandon()

    def _abandon(self) -> None:
        for log in self._logs.values():
            log.abandon()
        self._logs.clear()
        self.storage.unlock()

    # --- partitions ---------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get(TopicPartition(topic, partition))

    def create(
        self, topic: str, partition: int, topic_id: bytes, now_ms: int, config: LogConfig | None = None
    ) -> PartitionLog:
        """Create the log of a new partition; it takes appends after `note_registered`.

        Raises: InvalidArgument: it exists. StorageError: the disk is full; nothing was created.
        """
        (log,) = self.build(topic, [partition], topic_id, now_ms, config)
        self.add(log)
        return log

    def build(
        self, topic: str, partitions: Iterable[int], topic_id: bytes, now_ms: int, config: LogConfig | None = None
    ) -> list[PartitionLog]:
        """Create files of new partitions, perhaps in a thread; pass the logs to `add`, on the loop.

        Raises: InvalidArgument: one exists. StorageError: the disk is full; nothing was created.
        """
        logs: list[PartitionLog] = []
        try:
            for tp in (TopicPartition(topic, partition) for partition in partitions):
                logs += [self._build(tp, topic_id, now_ms, config)]
        except StorageError:
            for log in logs:
                log.abandon()
                self.storage.delete_directory(log.directory)
            raise
        return logs

    def _build(self, tp: TopicPartition, topic_id: bytes, now_ms: int, config: LogConfig | None) -> PartitionLog:
        if tp in self._logs:
            raise InvalidArgument(f"{tp} already exists")
        directory = f"{tp.topic}-{tp.partition}"
        self.storage.make_directory(directory)
        try:
            metadata = f"{directory}/{PARTITION_METADATA}"
            self.storage.write(metadata, pack_partition_metadata(topic_id))
            log = PartitionLog(self.storage, directory, *tp, topic_id, config=config or self.config, now_ms=now_ms)
            log.require_registration(metadata)
        except StorageError:
            self.storage.delete_directory(directory)
            raise
        return log

    def add(self, *logs: PartitionLog) -> None:
        """Add logs that `build` created."""
        self._logs.update((TopicPartition(log.topic, log.partition), log) for log in logs)

    def delete(self, topic: str, partition: int, now_ms: int) -> None:
        """Remove a partition's log: its name is free at once, `deletions_due` deletes its files.

        Raises: KeyError: it does not exist. StorageError.
        """
        self.prepare_delete(topic, [partition], now_ms).do()

    def prepare_delete(self, topic: str, partitions: Iterable[int], now_ms: int) -> Work:
        """Remove logs of a topic; the work frees their names, `deletions_due` deletes their files.

        Raises: KeyError: none has that number.
        """
        renames = []
        due_ms = now_ms
        for partition in partitions:
            log = self._logs.pop(TopicPartition(topic, partition))
            suffix = f"-{partition}.{self._rng.randbytes(16).hex()}{_DELETED}"
            renames.append((log.directory, topic[: _LONGEST_NAME - len(suffix)] + suffix))
            due_ms = now_ms + log.config.file_delete_delay_ms
            log.abandon()

        def run() -> None:
            for source, target in renames:
                self.storage.rename(source, target)

        def finish() -> None:
            self._deletions.append((due_ms, [], [target for _, target in renames]))

        return Work(f"rename the directories of {len(renames)} partitions of {topic}", run, finish)

    # --- periodic work ------------------------------------------------------------------------------------------------

    def retention_due(self, now_ms: int) -> Iterator[Work | None]:
        """Yield, log by log, the removal of segments that are too old or too many; None if none.

        Raises: StorageError.
        """
        for log in list(self._logs.values()):
            is_deleted = self._logs.get(TopicPartition(log.topic, log.partition)) is not log  # since this began
            removal = None if is_deleted else log.prepare_retention(now_ms)
            yield None if removal is None else self._removal_work(removal, now_ms + log.config.file_delete_delay_ms)

    def _removal_work(self, removal: Removal, due_ms: int) -> Work:
        return Work(removal.what, removal.run, lambda: self._deletions.append((due_ms, removal.files, [])))

    def flush_due(self, now_ms: int) -> list[Work]:
        """Return the flushes required by flush.ms or a rolled segment.

        Raises: StorageError.
        """
        due = [log.prepare_flush(now_ms) for log in self._logs.values() if log.flush_is_due(now_ms)]
        return [work for work in due if work is not None]

    def deletions_due(self, now_ms: int) -> Work | None:
        """Return the deletion of files and directories whose delay is over, or None."""
        due = [deleted for deleted in self._deletions if deleted[0] <= now_ms]
        if not due:
            return None

        def run() -> None:
            for _, files, directories in due:
                for path in files:
                    self.storage.delete(path)
                for path in directories:
                    self.storage.delete_directory(path)

        def finish() -> None:
            self._deletions = [deleted for deleted in self._deletions if deleted not in due]

        return Work(f"delete the files of {len(due)} removals", run, finish)

    def prepare_checkpoint(self) -> Work:
        """Return the write of the current recovery points, log starts and high watermarks."""
        logs = self._logs.items()
        files = {
            RECOVERY_POINTS: pack_offsets({tp: log.recovery_point for tp, log in logs}),
            LOG_STARTS: pack_offsets({tp: log.log_start_offset for tp, log in logs if log.log_start_offset > 0}),
            HIGH_WATERMARKS: pack_offsets({tp: log.high_watermark for tp, log in logs}),
        }

        self._checkpoints += 1
        number = self._checkpoints

        def run() -> None:
            with self._writing:
                if number < self._written:
                    return  # a later one was written first
                for path, content in files.items():
                    write_atomically(self.storage, path, content)
                self._written = number

        return Work("write the checkpoints", run)

    def checkpoint(self) -> None:
        """Write the checkpoints at once; waits for the medium.

        Raises: StorageError.
        """
        self.prepare_checkpoint().do()

    def expire_producers(self, now_ms: int) -> int:
        """Remove the producer ids idle for `producer.id.expiration.ms`; return their number."""
        return sum(log.producers.expire(now_ms, self._producer_expiration_ms) for log in self._logs.values())

    def release_idle(self) -> None:
        """Release the file handles of sealed segments; reads open them again."""
        for log in self._logs.values():
            log.release_idle()
