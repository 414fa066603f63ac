"""Which record is handled next: chains of records that must not overlap, one runnable each.

A chain is a partition, a key of a partition, or a single record. A record that waits for its next
attempt keeps the place of its chain. Each handler has a line, which may bound its running records.
`_ordering` has the code that runs for each record.
"""

from __future__ import annotations

from typing import Protocol

from aiokwire.worker._ordering import InFlightRecord, Line, Ordered, Ordering

__all__ = ["Gate", "InFlightRecord", "Line", "Ordered", "Ordering"]


class Gate(Protocol):
    """Decides when the records of a line may run."""

    @property
    def admits(self) -> bool:
        """Whether a record may run now; if not, an executor is woken when one may."""

    def enter(self) -> None:
        """Count a record that runs now."""
