"""Fetch sessions (KIP-227): brokers keep a lane's partitions; requests name only changes. No I/O.

    session --plan_turn--> request ... response --session_after--> session

After each request the broker's rows are exactly the plan's partitions: one that the other lane took
is removed here. A new session (epoch 0: names every partition, closes the old session) starts when
the rows are uncertain: on a new connection, after a missing response or an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aiokwire.consumer.fetch_plan import Asked
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch

FIRST_VERSION: Final = fetch.FetchRequest.FIRST_VERSION_WITH["session_id"]
FIRST_VERSION_WITH_IDS: Final = fetch.FetchRequest.FIRST_VERSION_WITH["topic_id"]  # and without names (KIP-516)
NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0  # requests a session
FINAL_EPOCH: Final = -1  # requests none, and closes the named one
MAX_EPOCH: Final = 2**31 - 1

# The response has no data, because broker and client disagree about the session.
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Key = tuple[str | bytes, int]  # a topic's name, or its id, and a partition

Row = tuple[int, int, int]  # a broker's state of one partition: offset, leader epoch, limit


@dataclasses.dataclass(frozen=True, slots=True)
class FetchSession:
    """The session of one lane with its broker."""

    session_id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH  # of the next request
    by_id: bool = False
    rows: Mapping[Key, Row] = dataclasses.field(default_factory=dict)

    def restarted(self) -> FetchSession:
        """After a failure: the next request names every partition and closes the old session."""
        return FetchSession(self.session_id)


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """The session fields of one request."""

    session_id: int
    epoch: int
    by_id: bool
    named: Sequence[Asked]
    forgotten: Mapping[str | bytes, Sequence[int]]  # partitions by their topic
    rows: Mapping[Key, Row]  # the broker's rows after the request

    @property
    def is_full(self) -> bool:
        """Whether the response contains every partition, not only those with changes."""
        return self.epoch <= INITIAL_EPOCH


def plan_turn(session: FetchSession, asked: Sequence[Asked], ids: Mapping[str, bytes], version: int) -> Turn:
    """Plan the next request of a lane, for a version of Fetch; `ids` are the known topic ids."""
    if version < FIRST_VERSION:
        return Turn(NO_SESSION, FINAL_EPOCH, False, asked, {}, {})
    by_id = version >= FIRST_VERSION_WITH_IDS
    known = session.rows
    rows: dict[Key, Row] = {}
    changed: list[Asked] = []
    for one in asked:
        state, _, offset, leader_epoch, limit = one
        topic, partition = state.tp
        key = (ids.get(topic, ZERO_UUID) if by_id else topic, partition)
        row = rows[key] = (offset, leader_epoch, limit)
        if known.get(key) != row:
            changed.append(one)
    if session.epoch == INITIAL_EPOCH or session.by_id != by_id:
        return Turn(session.session_id, INITIAL_EPOCH, by_id, asked, {}, rows)
    return Turn(session.session_id, session.epoch, by_id, changed, _by_topic(known.keys() - rows.keys()), rows)


def _by_topic(keys: Iterable[Key]) -> dict[str | bytes, list[int]]:
    topics: dict[str | bytes, list[int]] = {}
    for topic, partition in keys:
        topics.setdefault(topic, []).append(partition)
    return topics


def session_after(session: FetchSession, turn: Turn, error_code: int, session_id: int) -> FetchSession:
    """Return the session after a response with this top-level error and session id."""
    if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
        return FetchSession()
    if error_code:
        return session.restarted()
    if session_id == NO_SESSION:
        return FetchSession()  # the broker has no slot for a session, or has evicted it
    if turn.is_full:
        return FetchSession(session_id, 1, turn.by_id, turn.rows)
    if session_id != turn.session_id:
        return session.restarted()
    return FetchSession(session_id, 1 if turn.epoch == MAX_EPOCH else turn.epoch + 1, turn.by_id, turn.rows)


def closing_turn(session: FetchSession) -> Turn | None:
    """Return the request that closes the session at the broker; None without a session."""
    if session.session_id == NO_SESSION:
        return None
    return Turn(session.session_id, FINAL_EPOCH, session.by_id, (), {}, {})
