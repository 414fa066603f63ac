"""The states of a member that uses the classic protocol, and their transitions. Driven by `member`
alone.

UNJOINED -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> RECONCILING -> STABLE -> REVOKING -> ...
              JoinGroup              SyncGroup             revoke, assign  heartbeats  revoke
REVOKING -> PREPARING_REBALANCE
"""

from __future__ import annotations

import enum
from typing import Final

from aiokwire.group.state_table import MemberEvent as _E
from aiokwire.group.state_table import StateTable


class ClassicProtocolState(enum.Enum):
    """The state of a member; the first four names are Kafka's."""

    UNJOINED = enum.auto()  # in no generation
    PREPARING_REBALANCE = enum.auto()  # JoinGroup is in flight
    COMPLETING_REBALANCE = enum.auto()  # JoinGroup succeeded, SyncGroup is in flight
    STABLE = enum.auto()  # assigned and heartbeating
    RECONCILING = enum.auto()  # partitions are revoked and assigned; heartbeats continue
    REVOKING = enum.auto()  # partitions are revoked before a join; heartbeats continue
    LOSING = enum.auto()  # the generation is gone, and the listener is notified
    IDLE = enum.auto()  # out of the group until the application reads again
    FAILED = enum.auto()  # final: another member has the instance id
    LEFT = enum.auto()  # final: closed


_S = ClassicProtocolState

FINAL: Final = frozenset({_S.FAILED, _S.LEFT})
# States in which the coordinator expects heartbeats.
HEARTBEATING: Final = frozenset({_S.COMPLETING_REBALANCE, _S.RECONCILING, _S.STABLE, _S.REVOKING})
# States in which commits wait for the end of the join.
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
    losing=_S.LOSING,
    idle=_S.IDLE,
    final=FINAL,
    heartbeating=HEARTBEATING,
)
