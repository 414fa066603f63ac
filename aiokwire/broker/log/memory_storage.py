"""Files in memory: for brokers without a data directory, and tests of full disks and crashes."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Sequence

from aiokwire.broker.log.storage import Buffer, append_exactly, storage_error
from aiokwire.clock import wall_ms
from aiokwire.errors import StorageError
from aiokwire.threads import call_for_each


class MemoryFile:
    """A file of `MemoryStorage`: its content, and how much of it survives a crash."""

    __slots__ = ("_storage", "data", "modified_ms", "synced")

    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage
        self.data: bytearray = bytearray()
        self.synced: int = 0  # flushed bytes from the start
        self.modified_ms: int = wall_ms()

    def pread(self, size: int, position: int) -> bytes:
        with memoryview(self.data) as view:
            return bytes(view[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> int:
        end = position + len(data)
        room = self._storage.room(end - len(self.data))
        if room < 0:
            end = max(end + room, position)
            if end <= position:
                full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                raise storage_error("write", "to memory", full)
            data = memoryview(data)[: end - position]
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = data
        self.synced = min(self.synced, position)
        self.modified_ms = wall_ms()
        return end - position

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.synced = min(self.synced, size)

    def sync(self) -> None:
        self.synced = len(self.data)

    def replace(self, data: bytearray) -> None:
        self.data = data
        self.sync()

    def size(self) -> int:
        return len(self.data)

    def close(self) -> None:
        """Nothing to do: the content stays in the storage."""


class MemoryStorage:
    """Files in memory, with the faults of a disk.

    `capacity`: total bytes, which may change at any time; None for no limit. `crash()` is a power
    failure. A storage outlives the broker that used it, as a disk does.
    """

    def __init__(self, *, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.files: dict[str, MemoryFile] = {}
        self._directories: dict[str, set[str]] = {"": set()}
        self._locked = False

    def __repr__(self) -> str:
        return f"<MemoryStorage {len(self.files)} files>"

    def room(self, more: int) -> int:
        """Return 0 if `more` bytes fit, else the missing bytes as a negative number."""
        if self.capacity is None or more <= 0:
            return 0
        return min(self.capacity - sum(len(file.data) for file in list(self.files.values())) - more, 0)

    def space(self) -> tuple[int, int]:
        if self.capacity is None:
            return -1, -1
        return self.capacity, max(self.capacity - sum(len(file.data) for file in list(self.files.values())), 0)

    def crash(self, rng: random.Random) -> None:
        """Lose unflushed content: files keep flushed bytes, some others, and maybe garbage."""
        self._locked = False
        for file in self.files.values():
            kept = rng.randint(file.synced, len(file.data))
            torn = rng.randint(0, min(len(file.data) - kept, 200))
            garbage = rng.randbytes(torn) if rng.random() < 0.5 else bytes(torn)
            file.replace(file.data[:kept] + garbage)

    def lock(self) -> None:
        if self._locked:
            raise StorageError("another broker uses this MemoryStorage: close that broker first")
        self._locked = True

    def unlock(self) -> None:
        self._locked = False

    def open(self, path: str) -> MemoryFile:
        file = self.files.get(path)
        if file is None:
            directory, _, name = path.rpartition("/")
            if directory not in self._directories:
                raise storage_error("open", path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
            file = self.files[path] = MemoryFile(self)
            self._directories[directory].add(name)
        return file

    def read(self, path: str) -> bytes | None:
        file = self.files.get(path)
        return None if file is None else bytes(file.data)

    def write(self, path: str, data: Buffer) -> None:
        file = self.open(path)
        file.truncate(0)
        append_exactly(file, data, 0)

    def sync(self, path: str) -> None:
        if (file := self.files.get(path)) is not None:
            file.sync()

    def sync_directory(self, path: str) -> None:
        """Names are durable at once: only content can be lost."""

    def sync_all(self, paths: Sequence[str]) -> None:
        errors = call_for_each(self.sync, paths, threads=1, name="")
        if errors:
            raise errors[0]

    def sync_directories(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        if source in self._directories:
            self._rename_directory(source, target)
            return
        file = self.files.pop(source, None)
        if file is None:
            raise storage_error("rename", source, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        self.files[target] = file
        self._forget(source)
        directory, _, name = target.rpartition("/")
        self._directories[directory].add(name)

    def _rename_directory(self, source: str, target: str) -> None:
        names = self._directories.pop(source)
        self._forget(source)
        self.make_directory(target)
        self._directories[target] = names
        for name in names:
            self.files[f"{target}/{name}"] = self.files.pop(f"{source}/{name}")

    def _forget(self, path: str) -> None:
        directory, _, name = path.rpartition("/")
        self._directories[directory].discard(name)

    def delete(self, path: str) -> None:
        if self.files.pop(path, None) is not None:
            self._forget(path)

    def list(self, path: str) -> list[str]:
        return sorted(self._directories.get(path, ()))  # sorted: the same in every simulated run

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def make_directory(self, path: str) -> None:
        if path not in self._directories:
            self._directories[path] = set()
            directory, _, name = path.rpartition("/")
            self._directories[directory].add(name)

    def delete_directory(self, path: str) -> None:
        for name in sorted(self._directories.pop(path, set())):
            del self.files[f"{path}/{name}"]
        self._forget(path)

    def size(self, path: str) -> int:
        file = self.files.get(path)
        return -1 if file is None else len(file.data)

    def modified_ms(self, path: str) -> int:
        return self.files[path].modified_ms if path in self.files else -1
