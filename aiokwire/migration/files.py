"""Finds, reads, compares and writes the files that are migrated."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import libcst as cst

from aiokwire.migration.findings import Finding
from aiokwire.migration.source import UnreadableSource, migrate_source

# Folders with files of other programs.
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "venv"})


class FileResult(NamedTuple):
    """A file before and after its migration."""

    path: Path
    before: str
    after: str
    encoding: str
    findings: tuple[Finding, ...]

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    def write(self) -> None:
        """Replace the file, in its encoding and with its line ends.

        Raises: OSError: it cannot be written.
        """
        temporary = self.path.with_name(f".{self.path.name}.migrating")
        try:
            temporary.write_bytes(self.after.encode(self.encoding))
            temporary.chmod(self.path.stat().st_mode)
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)


class UnreadableFile(Exception):
    """A file cannot be read or parsed."""


def python_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among `paths`, and the Python files in folders, in order and once.

    Hidden folders, environments and caches are left out.
    """
    seen: set[Path] = set()
    for path in paths:
        for file in sorted(_in_folder(path)) if path.is_dir() else [path]:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def _in_folder(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        folders[:] = [each for each in folders if not _is_skipped(here / each)]
        yield from (here / each for each in files if each.endswith((".py", ".pyi")))


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _SKIPPED or (folder / "pyvenv.cfg").exists()


def migrate_file(path: Path, *, keep_defaults: bool = False, todo: bool = False) -> FileResult:
    """Migrate one file, without writing it.

    Raises: UnreadableFile: it cannot be read, decoded or parsed.
    """
    try:
        data = path.read_bytes()
        encoding = cst.parse_module(data).encoding if b"coding" in data[:500] else "utf-8"
        before = data.decode(encoding)
        migrated = migrate_source(before, keep_defaults=keep_defaults, todo=todo)
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not {error.encoding}: {error.reason} at byte {error.start}") from None
    except (cst.ParserSyntaxError, UnreadableSource, LookupError) as error:
        raise UnreadableFile(f"{path}: not a Python module: {error}") from None
    return FileResult(path, before, migrated.text, encoding, migrated.findings)


def unified_diff(result: FileResult) -> str:
    """Return the changes of a file as `git apply -p0` and `patch` read them."""
    lines = difflib.unified_diff(
        result.before.splitlines(keepends=True),
        result.after.splitlines(keepends=True),
        str(result.path),
        str(result.path),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
