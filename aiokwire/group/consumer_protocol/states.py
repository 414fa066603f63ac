"""The states of a member of a group that speaks the consumer protocol (KIP-848), and what moves it. Driven by
`member` alone.

UNJOINED -> JOINING -> RECONCILING <-> STABLE      heartbeats from the join's answer until the member is out
            epoch 0    give up, take up
"""

from __future__ import annotations

import enum
from typing import Final

from aiokwire.group.state_table import StateTable


class ConsumerProtocolState(enum.Enum):
    """Where a member is."""

    UNJOINED = enum.auto()  # has no epoch
    JOINING = enum.auto()  # a heartbeat with epoch 0 is on its way, or will be
    RECONCILING = enum.auto()  # partitions are given up and taken up
    STABLE = enum.auto()  # what the coordinator gave is in force
    LOSING = enum.auto()  # the epoch is gone, and the listener is notified
    IDLE = enum.auto()  # out of the group until the application reads again
    UNSERVED = enum.auto()  # for good: the broker does not speak this protocol
    FAILED = enum.auto()  # for good: another member has this one's instance id
    LEFT = enum.auto()  # for good: closed


class ConsumerProtocolEvent(enum.Enum):
    """What moves a member."""

    JOIN = enum.auto()  # there is something to join for
    JOINED = enum.auto()  # the coordinator gave an epoch
    RETRY = enum.auto()  # the join failed and may succeed now
    ASSIGNMENT_CHANGED = enum.auto()  # the coordinator sent another assignment
    SETTLED = enum.auto()  # the assignment is in force
    LOST = enum.auto()  # the epoch is gone: others may have the partitions already
    RELEASED = enum.auto()  # what was lost was let go
    EXPIRED = enum.auto()  # the application made no progress for max_poll_interval_ms
    REFUSED = enum.auto()  # the coordinator will not have this member as it is
    POLLED = enum.auto()  # the application reads again
    FENCED = enum.auto()  # another member has the instance id
    UNSERVED = enum.auto()  # the broker knows no such request
    LEAVE = enum.auto()  # closed


_S, _E = ConsumerProtocolState, ConsumerProtocolEvent

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
