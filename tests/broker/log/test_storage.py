"""Both storages keep the same promises; the one in memory also fails on demand."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
from pathlib import Path

import pytest

from aiokwire.broker.log import DiskStorage, MemoryStorage, Storage, write_atomically
from aiokwire.broker.log.storage import append_exactly
from aiokwire.errors import StorageError


@pytest.fixture
def locked(storage: Storage) -> Storage:
    storage.lock()
    return storage


def test_a_file_is_read_where_it_was_written(locked: Storage) -> None:
    locked.make_directory("t-0")
    file = locked.open("t-0/a.log")
    assert file.pwrite(b"hello", 0) == 5
    assert file.pwrite(memoryview(b" world"), 5) == 6
    assert file.pread(100, 4) == b"o world"
    assert file.pread(3, 0) == b"hel"
    assert file.size() == locked.size("t-0/a.log") == 11
    file.truncate(4)
    assert locked.read("t-0/a.log") == b"hell"
    file.close()


def test_files_are_created_and_deleted(locked: Storage) -> None:
    locked.make_directory("t-0")
    locked.write("t-0/a", b"1")
    locked.write("t-0/b", b"2")
    locked.rename("t-0/a", "t-0/b")
    assert locked.list("t-0") == ["b"]
    assert locked.read("t-0/b") == b"1"
    locked.rename("t-0", "t-0.x-delete")
    assert not locked.is_directory("t-0")
    assert locked.read("t-0.x-delete/b") == b"1"
    locked.delete("t-0.x-delete/b")
    locked.delete("t-0.x-delete/b")
    assert locked.list("t-0.x-delete") == []
    locked.delete_directory("t-0.x-delete")
    locked.delete_directory("t-0.x-delete")
    assert "t-0.x-delete" not in locked.list("")


def test_a_missing_file_reads_as_empty(locked: Storage) -> None:
    assert locked.read("nothing") is None
    assert locked.size("nothing") == -1
    assert locked.list("nothing") == []
    locked.sync("nothing")
    with pytest.raises(StorageError, match="nothing"):
        locked.rename("nothing", "something")
    with pytest.raises(StorageError, match="no-directory"):
        locked.open("no-directory/file")


def test_a_small_file_is_replaced_whole(locked: Storage) -> None:
    write_atomically(locked, "topics.json", b"old and long")
    write_atomically(locked, "topics.json", b"new")
    assert locked.read("topics.json") == b"new"
    assert "topics.json.tmp" not in locked.list("")


def test_a_directory_is_locked_by_one_broker(tmp_path: Path) -> None:
    first, second = DiskStorage(tmp_path), DiskStorage(tmp_path)
    first.lock()
    with pytest.raises(StorageError, match="is in use by another broker"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_memory_storage_is_locked_by_one_broker() -> None:
    storage = MemoryStorage()
    storage.lock()
    with pytest.raises(StorageError, match="another broker"):
        storage.lock()


def test_a_data_directory_that_is_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file"):
        DiskStorage(tmp_path / "file").lock()


def test_a_file_system_without_locks_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(StorageError, match=f"cannot lock the data directory {tmp_path}"):
        DiskStorage(tmp_path).lock()
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before


def test_a_full_disk_takes_what_fits_and_the_partial_append_is_truncated() -> None:
    storage = MemoryStorage(capacity=10)
    file = storage.open("a.log")
    append_exactly(file, b"12345678", 0)
    assert file.pwrite(b"abcd", 8) == 2  # a short write, as a full disk makes it
    with pytest.raises(StorageError, match="No space left"):
        append_exactly(file, b"abcd", 8)
    assert storage.read("a.log") == b"12345678"
    storage.capacity = 12
    append_exactly(file, b"abcd", 8)
    assert storage.read("a.log") == b"12345678abcd"


def test_a_short_write_on_a_real_disk_is_cut_off(tmp_path: Path) -> None:
    """The system's limit on file size stands in for a full disk: it causes the same short write."""
    import resource
    import signal

    storage = DiskStorage(tmp_path)
    storage.lock()
    file = storage.open("a.log")
    append_exactly(file, b"x" * 1000, 0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
        with pytest.raises(StorageError, match="cannot write"):
            append_exactly(file, b"y" * 1000, 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.size() == 1000
    append_exactly(file, b"y" * 1000, 1000)
    assert storage.read("a.log") == b"x" * 1000 + b"y" * 1000
    file.close()
    storage.unlock()


def test_a_crash_keeps_flushed_records() -> None:
    for seed in range(50):
        storage = MemoryStorage()
        file = storage.open("a.log")
        append_exactly(file, b"flushed", 0)
        storage.sync("a.log")
        append_exactly(file, b"not yet", 7)
        storage.crash(random.Random(seed))
        left = storage.read("a.log")
        assert left is not None
        assert left.startswith(b"flushed")
        assert len(left) <= 14


def test_memory_knows_when_a_file_was_written(locked: Storage) -> None:
    locked.write("a", b"1")
    assert locked.modified_ms("a") > 1_600_000_000_000


def test_the_repr_of_a_storage_shows_its_place(tmp_path: Path) -> None:
    assert repr(DiskStorage(tmp_path)) == f"<DiskStorage {tmp_path}>"
    assert repr(MemoryStorage()) == "<MemoryStorage 0 files>"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("mode", "files"), [(0o700, 0o600), (0o750, 0o640)])
def test_new_files_and_directories_are_private_unless_another_mode_is_given(
    tmp_path: Path, mode: int, files: int
) -> None:
    storage = DiskStorage(tmp_path / "data", mode=mode)
    storage.lock()
    storage.make_directory("t-0")
    storage.open("t-0/segment").close()
    storage.write("file", b"x")
    storage.unlock()
    assert {_mode(tmp_path / "data"), _mode(tmp_path / "data" / "t-0")} == {mode}
    assert {_mode(tmp_path / "data" / name) for name in (".lock", "t-0/segment", "file")} == {files}


@pytest.mark.parametrize("action", ["open", "read", "write", "sync", "lock"])
def test_a_symbolic_link_does_not_lead_out_of_the_data_directory(tmp_path: Path, action: str) -> None:
    victim, root = tmp_path / "victim", tmp_path / "data"
    victim.write_bytes(b"precious")
    root.mkdir()
    name = ".lock" if action == "lock" else "file"
    (root / name).symlink_to(victim)
    storage = DiskStorage(root)
    arguments = {"write": ("file", b"overwritten"), "lock": ()}.get(action, ("file",))
    with pytest.raises(StorageError, match="must not be symbolic links"):
        getattr(storage, action)(*arguments)
    assert victim.read_bytes() == b"precious"


def test_the_data_directory_itself_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    storage = DiskStorage(tmp_path / "data")
    storage.lock()
    write_atomically(storage, "file", b"x")
    storage.unlock()
    assert (tmp_path / "disk" / "file").read_bytes() == b"x"
