"""Reading from the closest replica (KIP-392). No I/O.

Only the leader is authoritative: a partition that a replica refuses is fetched from the leader, and only the leader's
response may lead to a reset. For some time after a refusal the leader does not receive the client's rack, because it
would name the same replica.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from aiokwire.consumer.positions import PartitionState

SHUN_SECONDS: Final = 30.0  # how long a partition is read from its leader after its replica refused it


def expire(states: Iterable[PartitionState], now: float) -> tuple[bool, float]:
    """End preferences that have expired, so that the leader chooses again.

    Returns whether there were any, and when the next one expires.
    """
    is_changed = False
    due = math.inf
    for state in states:
        source = state.source
        if source.replica is None:
            continue
        if source.replica_until <= now:
            source.end_preference()
            state.attempt.interrupt()
            is_changed = True
        else:
            due = min(due, source.replica_until)
    return is_changed, due


def rack_for(states: Iterable[PartitionState], rack: str, now: float) -> str:
    """Return the rack for a fetch of these partitions; empty while one of them shuns replicas."""
    return "" if not rack or any(state.source.shun_until > now for state in states) else rack
