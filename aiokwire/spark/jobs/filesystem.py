"""The files of an archive: in a local directory, or in any file system of pyarrow.

Paths are relative to the root, with slashes. A store is pickled to the tasks: on other machines,
its root must name the same directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from pyarrow import fs


@dataclasses.dataclass(frozen=True)
class Store:
    """Files below a root. A file is complete once it has its final name: see `replace`, `move`."""

    system: fs.FileSystem
    root: str
    is_local: bool

    @classmethod
    def at(cls, place: str | os.PathLike[str]) -> Store:
        """Open a local path, or a URI such as `s3://bucket/lake`.

        Raises: ConfigurationError: pyarrow has no file system for it.
        """
        from pyarrow import fs

        text = os.fspath(place)
        if "://" not in text:
            return cls(fs.LocalFileSystem(), str(pathlib.Path(text).absolute()), True)
        try:
            system, root = fs.FileSystem.from_uri(text)
        except (ValueError, OSError, NotImplementedError) as error:
            raise ConfigurationError(f"pyarrow has no file system for {text!r}: {error}") from None
        return cls(system, root.rstrip("/"), isinstance(system, fs.LocalFileSystem))

    def full(self, path: str) -> str:
        """Return the path in the file system."""
        return f"{self.root}/{path}" if path else self.root

    # --- reading ------------------------------------------------------------------------------------------------------

    def files(self, folder: str = "", *, recursive: bool = False) -> list[str]:
        """List the files in a folder, sorted; none if it does not exist."""
        from pyarrow import fs

        chosen = fs.FileSelector(self.full(folder), allow_not_found=True, recursive=recursive)
        skip = len(self.root) + 1
        return sorted(each.path[skip:] for each in self.system.get_file_info(chosen) if each.is_file)

    def folders(self) -> list[str]:
        """List the folders in the root, sorted."""
        from pyarrow import fs

        found = self.system.get_file_info(fs.FileSelector(self.root, allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == fs.FileType.Directory)

    def exists(self, path: str) -> bool:
        return bool(self.system.get_file_info(self.full(path)).is_file)

    def size(self, path: str) -> int | None:
        """Return the size in bytes; None if the file does not exist."""
        info = self.system.get_file_info(self.full(path))
        return info.size if info.is_file else None

    def read(self, path: str) -> bytes | None:
        """Read a whole file; None if it does not exist."""
        try:
            with self.system.open_input_stream(self.full(path)) as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None

    def open(self, path: str) -> Any:
        """Open a file for random reads.

        Raises: FileNotFoundError.
        """
        return self.system.open_input_file(self.full(path))

    # --- writing ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[Any]:
        """Create a file, and its folder if needed; it is synced when the block ends."""
        full = self.full(path)
        self.system.create_dir(full.rpartition("/")[0], recursive=True)
        if not self.is_local:
            with self.system.open_output_stream(full) as stream:
                yield stream
            return
        with open(full, "wb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file atomically."""
        folder, _, name = path.rpartition("/")
        beside = f"{folder}/.{name.lstrip('.')}.new"
        with self.writing(beside) as file:
            file.write(data)
        self.move(beside, path)
        self.settle(folder)

    def move(self, source: str, target: str) -> None:
        """Rename a file, replacing the target; atomically, if the file system supports it."""
        self.system.move(self.full(source), self.full(target))

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self.system.delete_file(self.full(path))

    def settle(self, folder: str) -> None:
        """Sync the names in a local folder to the disk."""
        if not self.is_local:
            return
        number = os.open(self.full(folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    @contextlib.contextmanager
    def alone(self, path: str) -> Iterator[None]:
        """Lock the block against other processes of this machine.

        Raises: ConfigurationError: another process holds the lock.
        """
        if not self.is_local:
            yield
            return
        import fcntl

        full = self.full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigurationError(f"another process is writing to {self.root}") from None
            yield
