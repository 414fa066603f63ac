"""The generations of a classic group, which are only reported in the members' log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

_LOGGER = "aiokwire.group.member_base"


class Rebalances(logging.Handler):
    """While entered, calls `report` with each generation that a member of this process joins."""

    def __init__(self, report: Callable[[int], None]) -> None:
        super().__init__(logging.INFO)
        self._report = report
        self._logger = logging.getLogger(_LOGGER)

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        match = re.search(r"joined generation (\d+)", record.getMessage())
        if match:
            self._report(int(match[1]))

    def __enter__(self) -> Rebalances:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = logging.getLogger().hasHandlers()
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(logging.NOTSET)
        self._logger.propagate = True
