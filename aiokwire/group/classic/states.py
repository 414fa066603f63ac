"""The states of a member of a classic group, and what moves it. Driven by `member` alone.

UNJOINED -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> RECONCILING -> STABLE -> REVOKING -> PREPARING_REBALANCE ...
              JoinGroup              SyncGroup             take, give     heartbeats give up
"""

from __future__ import annotations

import enum
from typing import Final

from aiokwire.group.state_table import StateTable


class ClassicProtocolState(enum.Enum):
    """Where a member is; the first four names are Kafka's."""

    UNJOINED = enum.auto()  # in no generation
    PREPARING_REBALANCE = enum.auto()  # JoinGroup sent, not answered
    COMPLETING_REBALANCE = enum.auto()  # JoinGroup answered, SyncGroup not
    STABLE = enum.auto()  # assigned and heartbeating
    RECONCILING = enum.auto()  # partitions are given up and taken up; heartbeats continue
    REVOKING = enum.auto()  # partitions are given up before a join; heartbeats continue
    LOSING = enum.auto()  # the generation is gone, and the listener is notified
    IDLE = enum.auto()  # out of the group until the application reads again
    FAILED = enum.auto()  # for good: another member has this one's instance id
    LEFT = enum.auto()  # for good: closed


class ClassicProtocolEvent(enum.Enum):
    """What moves a member."""

    JOIN = enum.auto()  # there is something to join for
    JOINED = enum.auto()  # a new generation has this member
    SYNCED = enum.auto()  # its assignment came
    SETTLED = enum.auto()  # the assignment is in force
    REVOKED = enum.auto()  # what has to be given up before a join was given up
    INCOMPATIBLE = enum.auto()  # the group needs an assignor that has to be joined without partitions
    RETRY = enum.auto()  # an attempt failed and may succeed now
    REBALANCE = enum.auto()  # join again, in possession of the generation
    LOST = enum.auto()  # the generation is gone: others may have the partitions already
    RELEASED = enum.auto()  # what was lost was let go
    EXPIRED = enum.auto()  # the application made no progress for max_poll_interval_ms
    REFUSED = enum.auto()  # the coordinator will not have this member as it is
    POLLED = enum.auto()  # the application reads again
    FENCED = enum.auto()  # another member has the instance id
    LEAVE = enum.auto()  # closed


_S, _E = ClassicProtocolState, ClassicProtocolEvent

FINAL: Final = frozenset({_S.FAILED, _S.LEFT})
# States in which the coordinator expects heartbeats.
HEARTBEATING: Final = frozenset({_S.COMPLETING_REBALANCE, _S.RECONCILING, _S.STABLE, _S.REVOKING})
# States in which commits wait: a join is under way.
JOINING: Final = frozenset({_S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE})

TRANSITIONS: Final = {
    (_S.UNJOINED, _E.JOIN): _S.PREPARING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.JOINED): _S.COMPLETING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.RETRY): _S.PREPARING_REBALANCE,
    (_S.PREPARING_REBALANCE, _E.INCOMPATIBLE): _S.REVOKING,
    (_S.COMPLETING_REBALANCE, _E.SYNCED): _S.RECONCILING,
    (_S.COMPLETING_REBALANCE, _E.RETRY): _S.COMPLETING_REBALANCE,
    (_S.RECONCILING, _E.SETTLED): _S.STABLE,
    **{(state, _E.REBALANCE): _S.REVOKING for state in (_S.COMPLETING_REBALANCE, _S.RECONCILING, _S.STABLE)},
    (_S.REVOKING, _E.REVOKED): _S.PREPARING_REBALANCE,
    **{(state, _E.LOST): _S.LOSING for state in sorted(HEARTBEATING | JOINING, key=lambda state: state.value)},
    (_S.LOSING, _E.RELEASED): _S.UNJOINED,
    **{(state, _E.EXPIRED): _S.IDLE for state in sorted(HEARTBEATING, key=lambda state: state.value)},
    **{(state, _E.REFUSED): _S.IDLE for state in sorted(JOINING, key=lambda state: state.value)},
    (_S.IDLE, _E.POLLED): _S.UNJOINED,
    **{(state, _E.FENCED): _S.FAILED for state in sorted(HEARTBEATING | JOINING, key=lambda state: state.value)},
    **{(state, _E.LEAVE): _S.LEFT for state in ClassicProtocolState if state not in FINAL},
}

TABLE: Final = StateTable(
    transitions=TRANSITIONS,
    unjoined=_S.UNJOINED,
    idle=_S.IDLE,
    final=FINAL,
    heartbeating=HEARTBEATING,
    join=_E.JOIN,
    retry=_E.RETRY,
    released=_E.RELEASED,
    expired=_E.EXPIRED,
    refused=_E.REFUSED,
    fenced=_E.FENCED,
    polled=_E.POLLED,
    leave=_E.LEAVE,
)
