"""The states of groups and of their members, as Kafka names and numbers them.

A group of the classic protocol is moved by a table:

Empty --rebalance--> PreparingRebalance --joined--> CompletingRebalance --synced--> Stable --rebalance--> ...
                                       `-abandoned-> Empty

A group of the consumer protocol (KIP-848) has no such way: its state follows from its epochs.
"""

from __future__ import annotations

import enum


class ClassicState(enum.Enum):
    """Where a group of the classic protocol is; the value is its name in answers and filters."""

    EMPTY = "Empty"  # no members; offsets may be kept
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for its members to join again
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # deleted


class ClassicEvent(enum.Enum):
    """What moves a group of the classic protocol."""

    REBALANCE = enum.auto()  # a member came, went or changed
    JOINED = enum.auto()  # everybody joined, or the time for it is over
    ABANDONED = enum.auto()  # the time for joining is over, and nobody is left
    SYNCED = enum.auto()  # the leader said who gets what
    DELETED = enum.auto()


_S, _E = ClassicState, ClassicEvent

TRANSITIONS: dict[tuple[ClassicState, ClassicEvent], ClassicState] = {
    **{(state, _E.REBALANCE): _S.PREPARING_REBALANCE for state in (_S.EMPTY, _S.COMPLETING_REBALANCE, _S.STABLE)},
    (_S.PREPARING_REBALANCE, _E.JOINED): _S.COMPLETING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.ABANDONED): _S.EMPTY,
    (_S.COMPLETING_REBALANCE, _E.SYNCED): _S.STABLE,
    (_S.EMPTY, _E.DELETED): _S.DEAD,
}


class ConsumerState(enum.Enum):
    """Where a group of the consumer protocol is; the value is its name in answers and filters."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # its target assignment is older than its members' subscriptions
    RECONCILING = "Reconciling"  # members are on their way to the target
    STABLE = "Stable"
    DEAD = "Dead"


class ReconciliationState(enum.IntEnum):
    """How far a member of the consumer protocol is, numbered as in the records of `__consumer_offsets`."""

    STABLE = 0  # it has what it was told at its epoch
    UNREVOKED_PARTITIONS = 1  # it must give partitions up before it goes on
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others must give up
