"""Work that waits for the medium, mostly flushes, in two halves: for a thread and for the loop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

from aiokwire.broker.log.epochs import LeaderEpochs
from aiokwire.broker.log.storage import Storage


class Work:
    """`run()` only touches files and may run in a thread; `finish()` follows on the loop."""

    __slots__ = ("_finish", "_run", "what")

    def __init__(self, what: str, run: Callable[[], None], finish: Callable[[], None] | None = None) -> None:
        self.what: str = what
        self._run = run
        self._finish = finish

    def __repr__(self) -> str:
        return f"<Work {self.what}>"

    def run(self) -> None:
        """Raises: StorageError: the work is still due; do not call `finish`."""
        self._run()

    def finish(self) -> None:
        """Apply the result of `run`, which has succeeded."""
        if self._finish is not None:
            self._finish()

    def do(self) -> None:
        """Run and finish; waits for the medium."""
        self.run()
        self.finish()


class Flush(Work):
    """The flush of one log."""

    __slots__ = ("directories", "epochs", "lock", "paths", "storage")

    def __init__(
        self,
        what: str,
        storage: Storage,
        paths: Sequence[str],
        epochs: LeaderEpochs,
        directories: Sequence[str],
        lock: threading.Lock,
        finish: Callable[[], None],
    ) -> None:
        """Flushes `paths` and `directories`, updates the file of `epochs`; `lock` is the log's."""
        super().__init__(what, lambda: flush_all(storage, [self]), finish)
        self.storage: Storage = storage
        self.paths: Sequence[str] = paths
        self.epochs: LeaderEpochs = epochs
        self.directories: Sequence[str] = directories
        self.lock: threading.Lock = lock


def flush_all(storage: Storage, flushes: Sequence[Flush]) -> None:
    """Run flushes together, so the medium gets their writes at once; the caller calls `finish`.

    Raises: StorageError: the first one; the other files are flushed.
    """
    with contextlib.ExitStack() as locks:
        for flush in flushes:
            locks.enter_context(flush.lock)
        renamed = [flush for flush in flushes if flush.epochs.write_temporary()]
        paths = [path for flush in flushes for path in flush.paths]
        storage.sync_all([*paths, *(flush.epochs.temporary for flush in renamed)])
        for flush in renamed:
            flush.epochs.replace()
        directories = dict.fromkeys(path for flush in flushes for path in flush.directories)
        directories.update(dict.fromkeys(flush.epochs.directory for flush in renamed))
        storage.sync_directories(list(directories))
