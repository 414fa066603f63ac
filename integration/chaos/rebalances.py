"""The classic group's generations, which members tell in the log and nobody else does."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

_LOGGER = "aiokwire.group.classic.member"


class Rebalances(logging.Handler):
    """While it is entered, `tell` is called with the number of each generation that a member of this process joins."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell
        self._logger = logging.getLogger(_LOGGER)

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        said = re.search(r"joined generation (\d+)", record.getMessage())
        if said:
            self._tell(int(said[1]))

    def __enter__(self) -> Rebalances:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = logging.getLogger().hasHandlers()
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(logging.NOTSET)
        self._logger.propagate = True
