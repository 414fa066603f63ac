"""The cases to measure, and what is ideal for each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SUBJECT: Final = "aiokwire"
BARE: Final = "asyncio"  # tasks without a client
PEERS: Final = ("parallel-consumer", "aiokafka", "faststream", "faust")
CLIENTS: Final = (SUBJECT, *PEERS, BARE)


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the report: how long a handler waits, how many may run, and the topic's keys."""

    handler_ms: float
    concurrency: int
    keys: int

    @property
    def title(self) -> str:
        """The case in words."""
        return f"handlers of {self.handler_ms:g} ms, concurrency {self.concurrency:,}, {self.keys:,} keys"

    @property
    def ideal(self) -> float:
        """Records per second if nothing but the handlers took time; in the order of the keys."""
        if not self.handler_ms:
            return math.inf
        return min(self.concurrency, self.keys) * 1000 / self.handler_ms


def cases(handlers_ms: Sequence[float], concurrencies: Sequence[int], keys: Sequence[int]) -> list[Case]:
    """Return every combination."""
    return [Case(*each) for each in itertools.product(handlers_ms, concurrencies, keys)]
