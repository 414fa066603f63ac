"""Work that waits for the medium, in two halves: one for a thread, one for the loop."""

from __future__ import annotations

from collections.abc import Callable


class Work:
    """`run()` touches files only, so that it may be called in a thread; `finish()` follows on the loop."""

    __slots__ = ("_finish", "_run", "what")

    def __init__(self, what: str, run: Callable[[], None], finish: Callable[[], None] | None = None) -> None:
        self.what = what
        self._run = run
        self._finish = finish

    def __repr__(self) -> str:
        return f"<Work {self.what}>"

    def run(self) -> None:
        """Raises: StorageError: `finish` must not be called then; the work is still due."""
        self._run()

    def finish(self) -> None:
        """Note that `run` has succeeded."""
        if self._finish is not None:
            self._finish()

    def do(self) -> None:
        """Both at once, where waiting is no harm."""
        self.run()
        self.finish()
