"""A clean stop flushes partitions together, each file once, all on the medium before the mark."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from aiokwire.broker.log import DiskStorage, LogManager, MemoryStorage
from aiokwire.errors import StorageError

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
TOGETHER = 4  # flushes that must be under way at the same time
MakeBatch = Callable[..., bytearray]


class _Watched(DiskStorage):
    """Counts flushes; the first ones of the stop wait for each other."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.synced: Counter[str] = Counter()
        self.directories: Counter[str] = Counter()
        self.meeting: threading.Barrier | None = None

    def sync(self, path: str) -> None:
        self.synced[path] += 1
        if self.meeting is not None and path.endswith(".log"):
            self.meeting.wait(timeout=30)
        super().sync(path)

    def sync_directory(self, path: str) -> None:
        self.directories[path] += 1
        super().sync_directory(path)


def _written(storage: DiskStorage | MemoryStorage, partitions: int, make_batch: MakeBatch) -> LogManager:
    manager = LogManager(storage, rng=random.Random(7))
    manager.open(NOW)
    for log in manager.build("t", range(partitions), TOPIC_ID, NOW):
        manager.add(log)
        log.note_registered()
        log.append(make_batch(1, producer_id=3, epoch=0, sequence=0), now_ms=NOW)
    return manager


def test_a_clean_stop_flushes_the_files_of_many_partitions_at_the_same_time(
    tmp_path: Path, make_batch: MakeBatch
) -> None:
    storage = _Watched(tmp_path / "data")
    manager = _written(storage, 32, make_batch)
    storage.meeting = threading.Barrier(TOGETHER)
    manager.close(NOW)
    assert (tmp_path / "data/.kafka_cleanshutdown").exists()


def test_a_clean_stop_flushes_each_file_and_each_directory_of_a_partition_once(
    tmp_path: Path, make_batch: MakeBatch
) -> None:
    storage = _Watched(tmp_path / "data")
    manager = _written(storage, 8, make_batch)
    storage.synced.clear()
    storage.directories.clear()
    manager.close(NOW)
    for partition in range(8):
        files = {path: count for path, count in storage.synced.items() if path.startswith(f"t-{partition}/")}
        assert set(files.values()) == {1}
        assert storage.directories[f"t-{partition}"] == 1
        names = {path.partition("/")[2] for path in files}
        kept = {path.name for path in (tmp_path / f"data/t-{partition}").iterdir()}
        assert kept - names == {"leader-epoch-checkpoint"}  # flushed under its temporary name
        assert names - kept == {"leader-epoch-checkpoint.tmp", f"{0:020}.txnindex"}


def test_a_power_failure_after_a_clean_stop_loses_nothing(make_batch: MakeBatch) -> None:
    storage = MemoryStorage()
    _written(storage, 40, make_batch).close(NOW)
    storage.crash(random.Random(3))
    again = LogManager(storage, rng=random.Random(7))
    again.open(NOW)
    assert {log.end_offset for log in again.logs.values()} == {1}
    assert {len(log.producers) for log in again.logs.values()} == {1}
    assert {log.leader_epochs.latest for log in again.logs.values()} == {0}
    assert again.leader_epoch == 0  # it was clean
    again.abandon()


class _Refuses(MemoryStorage):
    """Cannot flush one partition."""

    def sync(self, path: str) -> None:
        if path.startswith("t-3/") and path.endswith(".log"):
            raise StorageError("cannot flush t-3: no device")
        super().sync(path)


def test_a_stop_that_cannot_flush_one_partition_flushes_the_others_and_is_not_clean(make_batch: MakeBatch) -> None:
    storage = _Refuses()
    manager = _written(storage, 8, make_batch)
    with pytest.raises(StorageError, match="no device"):
        manager.close(NOW)
    assert storage.read(".kafka_cleanshutdown") is None
    flushed = [file.synced == len(file.data) for path, file in storage.files.items() if path.endswith(".log")]
    assert sorted(flushed) == [False, *[True] * 7]
