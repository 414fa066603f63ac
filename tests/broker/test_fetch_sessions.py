"""Fetch sessions: when one is created, what it stores, and when it is removed."""

from __future__ import annotations

import random

import pytest

from aiokwire.broker.fetch_sessions import EVICTABLE_AFTER, MAX_EPOCH, FetchPlan, FetchSessions
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import fetch


def _request(*partitions: tuple[str, int, int], session_id: int = 0, epoch: int = 0) -> fetch.FetchRequest:
    return fetch.FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                partitions=[fetch.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)],
            )
            for topic, index, offset in partitions
        ],
    )


def _rows(plan: FetchPlan) -> list[tuple[str, int, int]]:
    return [(row.topic, row.index, row.offset) for row in plan.rows]


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(2, random.Random(1))


def test_a_fetch_without_a_session_leaves_nothing(sessions: FetchSessions) -> None:
    plan = sessions.plan(_request(("a", 0, 5), epoch=-1), 12, 0.0)
    assert (_rows(plan), plan.session, len(sessions)) == ([("a", 0, 5)], None, 0)


def test_a_session_keeps_its_partitions_and_takes_changes(sessions: FetchSessions) -> None:
    opened = sessions.plan(_request(("a", 0, 5), ("b", 1, 6)), 12, 0.0).session
    assert opened is not None
    request = _request(("b", 1, 9), ("c", 2, 1), session_id=opened.session_id, epoch=1)
    request.forgotten_topics_data = [fetch.ForgottenTopic(topic="a", partitions=[0, 3])]
    plan = sessions.plan(request, 12, 1.0)
    assert _rows(plan) == [("b", 1, 9), ("c", 2, 1)]
    assert plan.incremental
    assert opened.epoch == 2


def test_the_epoch_wraps_to_one(sessions: FetchSessions) -> None:
    opened = sessions.plan(_request(("a", 0, 5)), 12, 0.0).session
    assert opened is not None
    opened.epoch = MAX_EPOCH
    plan = sessions.plan(_request(session_id=opened.session_id, epoch=MAX_EPOCH), 12, 0.0)
    assert (plan.error, opened.epoch) == (ErrorCode.NONE, 1)


def test_a_partition_that_gave_records_goes_behind_the_others(sessions: FetchSessions) -> None:
    plan = sessions.plan(_request(("a", 0, 0), ("b", 0, 0)), 12, 0.0)
    assert plan.session is not None
    plan.session.served(plan.rows[0])
    again = sessions.plan(_request(session_id=plan.session.session_id, epoch=1), 12, 0.0)
    assert [row.topic for row in again.rows] == ["b", "a"]


def test_a_new_session_in_place_of_an_old_one_frees_its_slot(sessions: FetchSessions) -> None:
    first = sessions.plan(_request(("a", 0, 0)), 12, 0.0).session
    assert first is not None
    second = sessions.plan(_request(("a", 0, 0), session_id=first.session_id), 12, 0.0).session
    assert second is not None
    assert len(sessions) == 1
    gone = sessions.plan(_request(session_id=first.session_id, epoch=1), 12, 0.0)
    assert gone.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND or first.session_id == second.session_id


def test_slots_are_bounded_and_the_one_idle_longest_gives_way(sessions: FetchSessions) -> None:
    opened = [sessions.plan(_request(("a", 0, 0)), 12, float(now)).session for now in (0, 1)]
    assert all(opened)
    assert sessions.plan(_request(("a", 0, 0)), 12, 2.0).session is None, "both are in use"
    first = opened[0]
    assert first is not None
    sessions.plan(_request(session_id=first.session_id, epoch=1), 12, 3.0)
    later = sessions.plan(_request(("a", 0, 0)), 12, 1.0 + EVICTABLE_AFTER).session
    assert later is not None
    assert sessions.plan(_request(session_id=first.session_id, epoch=2), 12, 4.0).error is ErrorCode.NONE
    assert len(sessions) == 2


def test_a_fetch_of_nothing_opens_no_session(sessions: FetchSessions) -> None:
    assert sessions.plan(_request(), 12, 0.0).session is None
