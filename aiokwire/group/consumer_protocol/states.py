"""The states of a member that uses the consumer protocol (KIP-848), and their transitions. Driven
by `member` alone.

UNJOINED -> JOINING -> RECONCILING <-> STABLE   heartbeats from the join's response until it leaves
            epoch 0    revoke, assign
"""

from __future__ import annotations

import enum
from typing import Final

from aiokwire.group.state_table import MemberEvent as _E
from aiokwire.group.state_table import StateTable


class ConsumerProtocolState(enum.Enum):
    """The state of a member."""

    UNJOINED = enum.auto()  # has no epoch
    JOINING = enum.auto()  # a heartbeat with epoch 0 is in flight, or will be
    RECONCILING = enum.auto()  # partitions are revoked and assigned
    STABLE = enum.auto()  # the coordinator's assignment is in force
    LOSING = enum.auto()  # the epoch is gone, and the listener is notified
    IDLE = enum.auto()  # out of the group until the application reads again
    UNSERVED = enum.auto()  # final: the broker does not support this protocol
    FAILED = enum.auto()  # final: another member has the instance id
    LEFT = enum.auto()  # final: closed


_S = ConsumerProtocolState

FINAL: Final = frozenset({_S.UNSERVED, _S.FAILED, _S.LEFT})
# States in which the coordinator expects heartbeats.
HEARTBEATING: Final = (_S.RECONCILING, _S.STABLE)

TRANSITIONS: Final = {
    (_S.UNJOINED, _E.JOIN): _S.JOINING,
    (_S.JOINING, _E.JOINED): _S.RECONCILING,
    (_S.JOINING, _E.RETRY): _S.JOINING,
    (_S.JOINING, _E.UNSERVED): _S.UNSERVED,
    (_S.RECONCILING, _E.ASSIGNMENT_CHANGED): _S.RECONCILING,
    (_S.RECONCILING, _E.SETTLED): _S.STABLE,
    (_S.STABLE, _E.ASSIGNMENT_CHANGED): _S.RECONCILING,
    **{(state, _E.LOST): _S.LOSING for state in (_S.JOINING, *HEARTBEATING)},
    (_S.LOSING, _E.RELEASED): _S.UNJOINED,
    **{(state, _E.EXPIRED): _S.IDLE for state in HEARTBEATING},
    **{(state, _E.REFUSED): _S.IDLE for state in (_S.JOINING, *HEARTBEATING)},
    (_S.IDLE, _E.POLLED): _S.UNJOINED,
    **{(state, _E.FENCED): _S.FAILED for state in (_S.JOINING, *HEARTBEATING)},
    **{(state, _E.LEAVE): _S.LEFT for state in ConsumerProtocolState if state not in FINAL},
}

TABLE: Final = StateTable(
    transitions=TRANSITIONS,
    unjoined=_S.UNJOINED,
    losing=_S.LOSING,
    idle=_S.IDLE,
    final=FINAL,
    heartbeating=HEARTBEATING,
)
