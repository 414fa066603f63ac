"""From whom a partition is fetched (KIP-392): its leader, or the replica in our rack that the leader names. No I/O.

The leader is the one to be believed: whatever a replica refuses is asked of the leader, and only the leader's answer
may lead to a reset. For a while after such a refusal the leader is not told our rack, or it would name the replica
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from aiokwire.consumer.positions import PartitionState

SHUN_SECONDS: Final = 30.0  # how long a partition is read from its leader after its replica refused it


def prefer(state: PartitionState, node_id: int, until: float) -> bool:
    """Fetch from a replica until then, on the loop's clock. Returns whether that is news."""
    if node_id in (state.replica, state.leader):
        return False
    state.replica = node_id
    state.replica_until = until
    return True


def turn_back(state: PartitionState, now: float) -> None:
    """The replica refused the partition or cannot be reached: fetch from the leader."""
    state.replica = None
    state.shun_until = now + SHUN_SECONDS


def expire(states: Iterable[PartitionState], now: float) -> tuple[bool, float]:
    """Let go of preferences that are too old, so that the leader may choose again.

    Returns whether there were any, and when the next one is due.
    """
    changed = False
    due = math.inf
    for state in states:
        if state.replica is None:
            continue
        if state.replica_until <= now:
            state.replica = None
            state.interrupt()
            changed = True
        else:
            due = min(due, state.replica_until)
    return changed, due


def rack_for(states: Iterable[PartitionState], rack: str, now: float) -> str:
    """The rack to tell a broker that is asked for these partitions."""
    return "" if not rack or any(state.shun_until > now for state in states) else rack
