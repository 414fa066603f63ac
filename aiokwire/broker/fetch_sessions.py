"""Fetch sessions (KIP-227): the broker stores what a consumer fetches; messages name only changes.

A session is a list of rows, one per partition, in the order in which they are served. A fetch
without a session has rows for one request. The Fetch handler does the reading.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from aiokwire.error_codes import ErrorCode

if TYPE_CHECKING:  # the messages load with the first Fetch request
    from aiokwire.protocol.messages import fetch

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTABLE_AFTER = 120.0  # seconds; Java: ReplicaManager hands FetchSessionCache 120,000 ms
MAX_EPOCH = 2**31 - 1

Key = tuple[str, bytes, int]


class FetchRow:
    """One partition of a fetch, and the offsets last sent for it."""

    __slots__ = ("index", "leader_epoch", "last_fetched_epoch", "max_bytes", "offset", "sent", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, wanted: fetch.FetchPartition) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.index: int = wanted.partition
        # High watermark and log start offset as last sent; None: the next response names the partition in any case.
        self.sent: tuple[int, int] | None = None
        self.update(wanted)

    def update(self, wanted: fetch.FetchPartition) -> None:
        """Set the offsets and limits of a request."""
        self.offset: int = wanted.fetch_offset
        self.leader_epoch: int = wanted.current_leader_epoch
        self.last_fetched_epoch: int = wanted.last_fetched_epoch
        self.max_bytes: int = wanted.partition_max_bytes

    @property
    def key(self) -> Key:
        return self.topic, self.topic_id, self.index

    def replace_sent(self, marks: tuple[int, int] | None) -> bool:
        """Record what is sent; return whether it differs from what was sent before."""
        is_new, self.sent = self.sent != marks, marks
        return is_new


class FetchSession:
    """The partitions that one consumer fetches from this broker."""

    __slots__ = ("by_id", "epoch", "last_used", "rows", "session_id")

    def __init__(self, session_id: int, rows: Iterable[FetchRow], *, by_id: bool, now: float) -> None:
        self.session_id: int = session_id
        self.epoch: int = 1  # of the next request
        self.by_id: bool = by_id  # topics are named by id (version 13 and up), not by name
        self.rows: dict[Key, FetchRow] = {row.key: row for row in rows}
        self.last_used: float = now

    def update(self, request: fetch.FetchRequest, now: float) -> None:
        """Apply an incremental request."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        self.last_used = now
        for topic in request.topics:
            for wanted in topic.partitions:
                row = self.rows.get((topic.topic, topic.topic_id, wanted.partition))
                if row is None:
                    row = FetchRow(topic.topic, topic.topic_id, wanted)
                    self.rows[row.key] = row
                else:
                    row.update(wanted)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.rows.pop((forgotten.topic, forgotten.topic_id, index), None)

    def served(self, row: FetchRow) -> None:
        """Move a served partition behind the others: none starves under the size limit."""
        if self.rows.pop(row.key, None) is not None:
            self.rows[row.key] = row


class FetchPlan(NamedTuple):
    """The partitions to read for one request; none if there is an error."""

    rows: list[FetchRow]
    session: FetchSession | None = None
    incremental: bool = False  # the response names only changes
    error: ErrorCode = ErrorCode.NONE


class FetchSessions:
    """The sessions of a node, a bounded number."""

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: fetch.FetchRequest, version: int, now: float) -> FetchPlan:
        """Return the partitions that a request and its session name. Advances the session."""
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
        session.update(request, now)
        self._sessions[session_id] = self._sessions.pop(session_id)
        return FetchPlan(list(session.rows.values()), session, incremental=True)

    def rows_after(self, request: fetch.FetchRequest) -> list[FetchRow]:
        """Return the rows of a request's session that the request does not name."""
        session = self._sessions.get(request.session_id)
        if session is None or request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            return []
        named = {(one.topic, one.topic_id, wanted.partition) for one in request.topics for wanted in one.partitions}
        named.update(
            (one.topic, one.topic_id, index) for one in request.forgotten_topics_data for index in one.partitions
        )
        return [row for key, row in session.rows.items() if key not in named]

    def clear(self) -> None:
        """Remove every session."""
        self._sessions.clear()

    def _create(self, rows: list[FetchRow], *, by_id: bool, now: float) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.last_used < EVICTABLE_AFTER:
                return None  # the response has session id 0: the client continues without a session
            del self._sessions[oldest.session_id]
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, 2**31)
        session = FetchSession(session_id, rows, by_id=by_id, now=now)
        self._sessions[session_id] = session
        return session


def _rows(request: fetch.FetchRequest) -> list[FetchRow]:
    return [FetchRow(topic.topic, topic.topic_id, wanted) for topic in request.topics for wanted in topic.partitions]
