"""The only place of the broker that touches files; paths are relative to the data directory.

`DiskStorage` is a directory; `memory_storage` keeps files in the process. Errors of the operating
system become `StorageError` here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from aiokwire.errors import StorageError
from aiokwire.threads import call_for_each

Buffer = bytes | bytearray | memoryview

# Files that `sync_all` flushes at the same time. A journaling file system commits waiting flushes together: a sixth of
# the time on ext4. More threads gain nothing.
SYNC_THREADS = 16

# How files are opened: a link in the data directory must not lead out of it.
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW

# Flushes content and size, but no timestamps; macOS does not have it.
_sync_content: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


class StoredFile(Protocol):
    """An open file that is read and written at given positions."""

    def pread(self, size: int, position: int) -> bytes:
        """Return up to `size` bytes; fewer at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> int:
        """Write as many bytes as fit and return their number.

        Raises: StorageError: nothing could be written.
        """

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class Storage(Protocol):
    """A tree of files. Methods raise StorageError, naming the path, when an operation fails."""

    def lock(self) -> None:
        """Take the data directory for this broker, creating it when it does not exist.

        Raises: StorageError: another broker has it.
        """

    def unlock(self) -> None: ...

    def open(self, path: str) -> StoredFile:
        """Open for reading and writing, creating the file when it does not exist."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, None if it does not exist."""

    def write(self, path: str, data: Buffer) -> None:
        """Replace the file's content; not atomic, not flushed."""

    def sync(self, path: str) -> None:
        """Wait until the file's content is on the medium. Does nothing if the file was deleted."""

    def sync_directory(self, path: str) -> None:
        """Wait until creations, renames and deletions in a directory are on the medium."""

    def sync_all(self, paths: Sequence[str]) -> None:
        """`sync` of many files, several at a time: the medium takes their writes together.

        Raises: StorageError: the first one; the other files are flushed.
        """

    def sync_directories(self, paths: Sequence[str]) -> None:
        """`sync_directory` of many directories, as `sync_all`."""

    def rename(self, source: str, target: str) -> None:
        """Rename atomically; an existing target is replaced."""

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, in any order; none if it does not exist."""

    def is_directory(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None: ...

    def delete_directory(self, path: str) -> None:
        """Delete a directory with its content, if it exists."""

    def size(self, path: str) -> int:
        """Return the size of a file, -1 if it does not exist."""

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in milliseconds since the epoch."""

    def space(self) -> tuple[int, int]:
        """Return the total and the free bytes of the medium; -1 without a limit."""


def append_exactly(file: StoredFile, data: Buffer, position: int) -> None:
    """Write all of `data` at the end of a file of size `position`, or leave the file unchanged.

    Raises: StorageError: the disk is full or failed; nothing of `data` is in the file.
    """
    written = 0
    try:
        written = file.pwrite(data, position)
        while written < len(data):
            # A short write: the rest fits, or raises the reason.
            written += file.pwrite(memoryview(data)[written:], position + written)
    except StorageError:
        # A failed write may have left bytes. If truncation fails, too, the next append overwrites them, and recovery
        # cuts the rest.
        with contextlib.suppress(StorageError):
            file.truncate(position)
        raise


def write_atomically(storage: Storage, path: str, data: Buffer) -> None:
    """Replace a small file so that a crash leaves the old content or the new one, never a part.

    It is on the medium when this returns.
    """
    temporary = f"{path}.tmp"
    storage.write(temporary, data)
    storage.sync(temporary)
    storage.rename(temporary, path)
    storage.sync_directory(os.path.dirname(path))


@contextlib.contextmanager
def _mapped(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(what, path, error) from error


def storage_error(what: str, path: str, error: OSError) -> StorageError:
    """Convert an error of the operating system; it names the operation and the path."""
    hint = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "; stored records are safe, and writes work again once there is room"
    elif error.errno == errno.ELOOP:
        hint = "; the files of a data directory must not be symbolic links: replace the link by the file"
    return StorageError(f"cannot {what} {path}: {error.strerror or error}{hint}")


class DiskFile:
    """A file of `DiskStorage`."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path

    def __repr__(self) -> str:
        return f"<DiskFile {self._path}>"

    def pread(self, size: int, position: int) -> bytes:
        try:
            return os.pread(self._fd, size, position)
        except OSError as error:
            raise storage_error("read", self._path, error) from error

    def pwrite(self, data: Buffer, position: int) -> int:
        try:
            return os.pwrite(self._fd, data, position)
        except OSError as error:
            raise storage_error("write", self._path, error) from error

    def truncate(self, size: int) -> None:
        with _mapped("truncate", self._path):
            os.ftruncate(self._fd, size)

    def size(self) -> int:
        with _mapped("look at", self._path):
            return os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            with _mapped("close", self._path):
                fd, self._fd = self._fd, -1
                os.close(fd)


class DiskStorage:
    """A data directory, locked by one broker at a time; the process's end releases the lock."""

    def __init__(self, root: str | Path, *, mode: int = 0o700) -> None:
        """`mode`: permissions of new directories; new files have the same without execution."""
        self.root: str = str(root)
        self._mode = mode
        self._file_mode = mode & 0o666
        self._lock_fd = -1

    def __repr__(self) -> str:
        return f"<DiskStorage {self.root}>"

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def lock(self) -> None:
        with _mapped("use the data directory", self.root):
            os.makedirs(self.root, self._mode, exist_ok=True)
            fd = os.open(self._at(".lock"), os.O_RDWR | os.O_CREAT | _FILE, self._file_mode)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise StorageError(
                f"data directory {self.root} is in use by another broker: stop it, or choose another directory"
            ) from error
        except OSError as error:
            os.close(fd)
            raise storage_error("lock the data directory", self.root, error) from error
        self._lock_fd = fd

    def unlock(self) -> None:
        if self._lock_fd >= 0:
            fd, self._lock_fd = self._lock_fd, -1
            os.close(fd)

    def open(self, path: str) -> DiskFile:
        with _mapped("open", self._at(path)):
            return DiskFile(os.open(self._at(path), os.O_RDWR | os.O_CREAT | _FILE, self._file_mode), self._at(path))

    def read(self, path: str) -> bytes | None:
        with self._reading(path, "read", _FILE) as fd:
            return None if fd is None else os.pread(fd, os.fstat(fd).st_size, 0)

    @contextlib.contextmanager
    def _reading(self, path: str, what: str, flags: int) -> Iterator[int | None]:
        """Open a file to do `what` with it; None if it does not exist."""
        fd = None
        with _mapped("open", self._at(path)), contextlib.suppress(FileNotFoundError):
            fd = os.open(self._at(path), os.O_RDONLY | flags)
        try:
            with _mapped(what, self._at(path)):
                yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def write(self, path: str, data: Buffer) -> None:
        with _mapped("write", self._at(path)):
            fd = os.open(self._at(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FILE, self._file_mode)
            try:
                written = 0
                while written < len(data):
                    written += os.pwrite(fd, memoryview(data)[written:], written)
            finally:
                os.close(fd)

    def sync(self, path: str) -> None:
        self._sync(path, _sync_content, _FILE)

    def sync_directory(self, path: str) -> None:
        self._sync(path, os.fsync, os.O_CLOEXEC)  # the data directory itself may be a link

    def sync_all(self, paths: Sequence[str]) -> None:
        self._for_each(self.sync, paths)

    def sync_directories(self, paths: Sequence[str]) -> None:
        self._for_each(self.sync_directory, paths)

    @staticmethod
    def _for_each(sync: Callable[[str], None], paths: Sequence[str]) -> None:
        errors = call_for_each(sync, paths, threads=min(SYNC_THREADS, len(paths) // 4), name="aiokwire flush")
        if errors:
            raise errors[0]

    def _sync(self, path: str, flush: Callable[[int], None], flags: int) -> None:
        with self._reading(path, "flush", flags) as fd:
            if fd is not None:
                flush(fd)

    def rename(self, source: str, target: str) -> None:
        with _mapped("rename", self._at(source)):
            os.replace(self._at(source), self._at(target))

    def delete(self, path: str) -> None:
        with _mapped("delete", self._at(path)), contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(path))

    def list(self, path: str) -> list[str]:
        with _mapped("list", self._at(path)), contextlib.suppress(FileNotFoundError):
            return os.listdir(self._at(path))
        return []

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(self._at(path))

    def make_directory(self, path: str) -> None:
        with _mapped("create", self._at(path)):
            os.makedirs(self._at(path), self._mode, exist_ok=True)

    def delete_directory(self, path: str) -> None:
        import shutil  # here, because it loads every compression library of Python: 3 ms of the broker's start

        with _mapped("delete", self._at(path)), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._at(path))

    def size(self, path: str) -> int:
        with _mapped("look at", self._at(path)), contextlib.suppress(FileNotFoundError):
            return os.stat(self._at(path)).st_size
        return -1

    def modified_ms(self, path: str) -> int:
        with _mapped("look at", self._at(path)):
            return os.stat(self._at(path)).st_mtime_ns // 1_000_000

    def space(self) -> tuple[int, int]:
        with _mapped("look at", self.root):
            found = os.statvfs(self.root)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
