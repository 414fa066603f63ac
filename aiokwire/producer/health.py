"""The state of a producer at one moment, for dashboards and liveness checks. Plain values; costs no request."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from aiokwire.producer._accumulator import Accumulator


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerHealth:
    """A producer at one moment."""

    records: int
    """Accepted, and neither acknowledged nor given up."""
    waiting: int
    """Records that wait for room in the buffer."""
    memory_in_use: int
    """Bytes of `buffer_memory`."""
    oldest: float | None
    """Seconds since the oldest batch took its first record; None while nothing is buffered."""
    last_error: Exception | None
    """The last error of the oldest buffered batch that has one: why it is retried."""
    running: bool
    """Started and neither closed nor failed."""

    @property
    def ok(self) -> bool:
        """Whether it runs, has room, and no buffered batch has failed so far."""
        return self.running and not self.waiting and self.last_error is None


def health_of(accumulator: Accumulator, waiting: int, now: Callable[[], float], *, running: bool) -> ProducerHealth:
    """The health by the batches that are not done; `waiting` records wait for room, `now` is the loop's clock."""
    live = [batch for batch in accumulator.live if batch.remaining]
    errors = (batch.last_error for batch in live if batch.last_error is not None)
    return ProducerHealth(
        records=sum(batch.remaining for batch in live),
        waiting=waiting,
        memory_in_use=accumulator.used,
        oldest=max(0.0, now() - min(batch.created for batch in live)) if live else None,
        last_error=next(errors, None),
        running=running,
    )
