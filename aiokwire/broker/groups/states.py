"""The states of groups and of their members, with Kafka's names and numbers.

A group of the classic protocol has a table:

Empty -rebalance-> PreparingRebalance -joined-> CompletingRebalance -synced-> Stable -rebalance->
                                     `-abandoned-> Empty

The state of a group of the consumer protocol (KIP-848) follows from its epochs.
"""

from __future__ import annotations

import enum


class ClassicState(enum.Enum):
    """The state of a classic protocol group; the value is its name in responses and filters."""

    EMPTY = "Empty"  # no members; there may be offsets
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for its members to rejoin
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # deleted


class ClassicEvent(enum.Enum):
    """The events of a group of the classic protocol."""

    REBALANCE = enum.auto()  # a member joined, left or changed
    JOINED = enum.auto()  # all members joined, or the rebalance timeout is over
    ABANDONED = enum.auto()  # the rebalance timeout is over, and no member is left
    SYNCED = enum.auto()  # the leader sent the assignment
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
    """The state of a consumer protocol group; the value is its name in responses and filters."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # its target assignment is older than its members' subscriptions
    RECONCILING = "Reconciling"  # some members have not reached their target
    STABLE = "Stable"
    DEAD = "Dead"


class ReconciliationState(enum.IntEnum):
    """A consumer protocol member's state, numbered as in the records of `__consumer_offsets`."""

    STABLE = 0  # it has its target
    UNREVOKED_PARTITIONS = 1  # it must revoke partitions first
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others must revoke
