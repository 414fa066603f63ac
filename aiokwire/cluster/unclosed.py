"""The warning about a client that was started and never closed: one for all clients."""

from __future__ import annotations

import os
import warnings
from typing import Any


class Unclosed:
    """Belongs to a `Client` and the producer, consumer or admin client above. Warns at most once.

    Warns from the owner's `__del__`, and from the client when its tasks are cancelled from outside,
    as `asyncio.run` does at its end.
    """

    __slots__ = ("_pid", "_who")

    def __init__(self) -> None:
        self._who = ""  # empty: nothing to warn about
        self._pid = 0

    def watch(self, owner: object, client_id: str) -> None:
        """`owner` has been started."""
        self._who = f"{type(owner).__name__} {client_id!r}"
        self._pid = os.getpid()

    def forget(self) -> None:
        """It is being closed, or has failed."""
        self._who = ""

    def warn(self, source: object, _warn: Any = warnings.warn) -> None:
        """Warn that it was not closed; not in a forked process: connections are the parent's."""
        who, self._who = self._who, ""
        if who and self._pid == os.getpid():
            _warn(f"{who} was not closed: use `async with`, or await close()", ResourceWarning, 3, source)


class Owner:
    """A mixin for classes that own a client and that programs close."""

    _unclosed: Unclosed

    def __del__(self) -> None:
        unclosed = getattr(self, "_unclosed", None)  # None: its construction failed
        if unclosed is not None:
            unclosed.warn(self)
