"""Loggers that do not repeat a lasting error (a full disk): on change, then every 30 seconds."""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from weakref import WeakKeyDictionary

PAUSE: Final = 30.0  # seconds
REMEMBERED: Final = 1_000  # subjects for each loop

Subject = tuple[object, ...]


class RepeatFilter(logging.Filter):
    """Drops an ERROR that equals the last about its subject: the message's arguments but the last.

    Remembers them for each event loop, on its clock. Errors with a traceback are never dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Subject, tuple[str, float]]] = WeakKeyDictionary()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        if record.levelno != logging.ERROR or record.exc_info or not isinstance(record.args, tuple):
            return True
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return True
        last = self._last.setdefault(loop, {})
        subject = (record.msg, *map(str, record.args[:-1]))
        text, logged_at = last.get(subject, ("", 0.0))
        if text == record.getMessage() and loop.time() - logged_at < PAUSE:
            return False
        if len(last) >= REMEMBERED:
            last.clear()
        last[subject] = (record.getMessage(), loop.time())
        return True


def unrepeated_logger(name: str) -> logging.Logger:
    """Return the logger of a module, which does not repeat lasting errors."""
    logger = logging.getLogger(name)
    logger.addFilter(RepeatFilter())
    return logger
