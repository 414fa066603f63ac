"""Watches the Python files below a folder, for `aiokwire run --reload`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio

from aiokwire.threads import run_in_thread

# The polling interval (seconds).
INTERVAL: Final = 0.5
_IGNORED: Final = frozenset({"__pycache__", "node_modules", "venv", "build", "site-packages"})

Times = Mapping[Path, int]


def modification_times(folder: Path) -> dict[Path, int]:
    """Return the times of the Python files below a folder, without hidden and generated folders."""
    found = {}
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _IGNORED and not name.startswith(".")]
        for name in names:
            if name.endswith(".py"):
                file = Path(path, name)
                try:
                    found[file] = file.stat().st_mtime_ns
                except OSError:
                    continue  # deleted meanwhile
    return found


class FileWatch:
    """Waits for changes since its creation, or since the last change that it has returned."""

    def __init__(self, folder: Path, look: Callable[[Path], Times] = modification_times) -> None:
        self._folder = folder
        self._look = look
        self._times = look(folder)

    async def changed(self) -> str:
        """Return the path of a file that was changed, added or deleted."""
        while True:
            await anyio.sleep(INTERVAL)
            times = await run_in_thread(self._look, self._folder)
            differing = sorted(path for path, _ in times.items() ^ self._times.items())
            self._times = times
            if differing:
                return str(differing[0])
