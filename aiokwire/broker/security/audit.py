"""The authorizer's log: what was denied, and on request what was allowed (Java: its audit log).

Denied requests are logged at INFO, a few per principal and minute; allowed ones at DEBUG.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiokwire._text import printable
from aiokwire.broker.security.operations import AclOperation, ResourceType

logger = logging.getLogger(__name__)

PER_WINDOW: Final = 10  # lines for one principal
WINDOW: Final = 60.0  # seconds
MOST_PRINCIPALS: Final = 1000  # that have their own count; the others share one
_OTHERS: Final = "other principals"


class AuditLog:
    """Logs decisions, with everything that came over the wire escaped."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # denied requests of the current window, by principal
        self._end: asyncio.TimerHandle | None = None  # of the window

    @property
    def logs_allowed(self) -> bool:
        """Whether allowed requests are logged."""
        return logger.isEnabledFor(logging.DEBUG)

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
    ) -> None:
        """Log a request that was allowed."""
        logger.debug("%s", _line(principal, "allowed", host, operation, resource, name, rule))

    def denied(
        self, principal: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
    ) -> None:
        """Log a request that was denied; only count it if the principal's lines are used up."""
        if not logger.isEnabledFor(logging.INFO):
            return
        if principal not in self._counts and len(self._counts) >= MOST_PRINCIPALS:
            principal = _OTHERS
        count = self._counts[principal] = self._counts.get(principal, 0) + 1
        if self._end is None:
            self._end = asyncio.get_running_loop().call_later(WINDOW, self.flush)
        if count <= PER_WINDOW:
            logger.info("%s", _line(principal, "denied", host, operation, resource, name, rule))

    def flush(self) -> None:
        """End the window: log how many denied requests were left out."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        counts, self._counts = self._counts, {}
        for principal, count in counts.items():
            if count > PER_WINDOW:
                logger.info(
                    "%s was denied %d more times within %.0f s, not logged one by one",
                    printable(principal),
                    count - PER_WINDOW,
                    WINDOW,
                )


def _line(
    principal: str, result: str, host: str, operation: AclOperation, resource: ResourceType, name: str, rule: str
) -> str:
    return printable(f"{principal} was {result} {operation.name} on {resource.name} {name!r} from {host}: {rule}")
