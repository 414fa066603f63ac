"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, requests and answers name only changes.

A session is a list of rows, one per partition, in the order in which they are served. A fetch without a session makes
its rows for one request. Decides only; reading is the Fetch handler's.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from aiokwire.error_codes import ErrorCode

if TYPE_CHECKING:  # the messages load with the first Fetch, the broker is up before
    from aiokwire.protocol.messages import fetch

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTABLE_AFTER = 120.0  # seconds; Java: ReplicaManager hands FetchSessionCache 120,000 ms
MAX_EPOCH = 2**31 - 1

Key = tuple[str, bytes, int]


class FetchRow:
    """What is fetched of one partition, and what was last told about it."""

    __slots__ = ("index", "leader_epoch", "last_fetched_epoch", "max_bytes", "offset", "sent", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, wanted: fetch.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = wanted.partition
        # High watermark and log start offset as last sent; None: the partition is in the next answer whatever they are.
        self.sent: tuple[int, int] | None = None
        self.update(wanted)

    def update(self, wanted: fetch.FetchPartition) -> None:
        """Take over what a request says."""
        self.offset = wanted.fetch_offset
        self.leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.max_bytes = wanted.partition_max_bytes

    @property
    def key(self) -> Key:
        return self.topic, self.topic_id, self.index


class FetchSession:
    """What one consumer fetches from this broker."""

    __slots__ = ("by_id", "epoch", "last_used", "rows", "session_id")

    def __init__(self, session_id: int, rows: Iterable[FetchRow], *, by_id: bool, now: float) -> None:
        self.session_id = session_id
        self.epoch = 1  # that the next request must have
        self.by_id = by_id  # topics are named by id (version 13 and up), not by name
        self.rows = {row.key: row for row in rows}
        self.last_used = now

    def served(self, row: FetchRow) -> None:
        """Put a partition that gave records behind the others, so that none starves under the size limit."""
        if self.rows.pop(row.key, None) is not None:
            self.rows[row.key] = row


class FetchPlan(NamedTuple):
    """What to read for one request; with an error nothing is read."""

    rows: list[FetchRow]
    session: FetchSession | None = None
    incremental: bool = False  # only what changed is answered
    error: ErrorCode = ErrorCode.NONE


class FetchSessions:
    """All sessions of a broker, a bounded number."""

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}  # the one used longest ago first

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: fetch.FetchRequest, version: int, now: float) -> FetchPlan:
        """The partitions that a request asks for, its session's included. Moves the session on."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            self._sessions.pop(session_id, None)
            rows = _rows(request)
            if epoch == FINAL_EPOCH or not rows:
                return FetchPlan(rows)
            return FetchPlan(rows, self._create(rows, by_id=version >= 13, now=now))
        session = self._sessions.get(session_id)
        if session is None:
            return FetchPlan([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchPlan([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != (version >= 13):
            return FetchPlan([], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session, request)
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.last_used = now
        self._sessions[session_id] = self._sessions.pop(session_id)
        return FetchPlan(list(session.rows.values()), session, incremental=True)

    def rows_after(self, request: fetch.FetchRequest) -> list[FetchRow]:
        """The rows that stay of the session that a request goes on with; what the request names is left out."""
        session = self._sessions.get(request.session_id)
        if session is None or request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            return []
        named = {(one.topic, one.topic_id, wanted.partition) for one in request.topics for wanted in one.partitions}
        named.update(
            (one.topic, one.topic_id, index) for one in request.forgotten_topics_data for index in one.partitions
        )
        return [row for key, row in session.rows.items() if key not in named]

    def clear(self) -> None:
        """Forget every session."""
        self._sessions.clear()

    def _create(self, rows: list[FetchRow], *, by_id: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.last_used < EVICTABLE_AFTER:
                return None  # id 0 tells the client to go on without a session
            del self._sessions[oldest.session_id]
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, 2**31)
        session = FetchSession(session_id, rows, by_id=by_id, now=now)
        self._sessions[session_id] = session
        return session


def _rows(request: fetch.FetchRequest) -> list[FetchRow]:
    return [FetchRow(topic.topic, topic.topic_id, wanted) for topic in request.topics for wanted in topic.partitions]


def _update(session: FetchSession, request: fetch.FetchRequest) -> None:
    rows = session.rows
    for topic in request.topics:
        for wanted in topic.partitions:
            row = rows.get((topic.topic, topic.topic_id, wanted.partition))
            if row is None:
                row = FetchRow(topic.topic, topic.topic_id, wanted)
                rows[row.key] = row
            else:
                row.update(wanted)
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            rows.pop((forgotten.topic, forgotten.topic_id, index), None)
