"""The partitions that a request of a fetch session names, checked by the broker's sessions."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.fetch_sessions import FetchSessions
from aiokwire.consumer.fetch_plan import Asked, FetchPlan
from aiokwire.consumer.fetch_responses import fetch_request
from aiokwire.consumer.fetch_session import (
    FINAL_EPOCH,
    MAX_EPOCH,
    SESSION_ERRORS,
    FetchSession,
    Turn,
    closing_turn,
    plan_turn,
    session_after,
)
from aiokwire.consumer.positions import PartitionState
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import decode_request, encode_request
from aiokwire.protocol.messages import fetch
from aiokwire.types import IsolationLevel, TopicPartition

IDS = {"t": b"t" * 16, "u": b"u" * 16}
BY_NAME, BY_ID = 12, 13


def asked(topic: str = "t", partition: int = 0, offset: int = 5, *, epoch: int = 2, limit: int = 1000) -> Asked:
    return Asked(PartitionState(TopicPartition(topic, partition)), 0, offset, epoch, limit)


def names(turn: Turn) -> list[tuple[str, int]]:
    return [(one.state.tp.topic, one.state.tp.partition) for one in turn.named]


def after(*first: Asked, version: int = BY_NAME, ids: Mapping[str, bytes] = IDS) -> FetchSession:
    """Return a session in which the broker has these partitions."""
    turn = plan_turn(FetchSession(), first, ids, version)
    return session_after(FetchSession(), turn, 0, 77)


def test_the_first_request_names_all_partitions_and_requests_a_session() -> None:
    turn = plan_turn(FetchSession(), [asked("t", 0), asked("u", 1)], IDS, BY_NAME)
    assert (turn.session_id, turn.epoch, turn.is_full) == (0, 0, True)
    assert names(turn) == [("t", 0), ("u", 1)]


def test_a_request_without_changes_names_no_partition() -> None:
    session = after(asked("t", 0), asked("u", 1))
    turn = plan_turn(session, [asked("u", 1), asked("t", 0)], IDS, BY_NAME)
    assert (turn.session_id, turn.epoch, turn.is_full) == (77, 1, False)
    assert (names(turn), turn.forgotten) == ([], {})


@pytest.mark.parametrize("change", [asked(offset=6), asked(epoch=3), asked(limit=2000)])
def test_a_partition_is_named_when_its_position_its_epoch_or_its_limit_changed(change: Asked) -> None:
    assert names(plan_turn(after(asked(), asked("u")), [change, asked("u")], IDS, BY_NAME)) == [("t", 0)]


def test_new_partitions_are_named_and_unwanted_ones_are_forgotten() -> None:
    session = after(asked("t", 0), asked("t", 1), asked("u", 0))
    turn = plan_turn(session, [asked("t", 0), asked("t", 2)], IDS, BY_NAME)
    assert names(turn) == [("t", 2)]
    assert turn.forgotten == {"t": [1], "u": [0]}
    assert session_after(session, turn, 0, 77).rows.keys() == {("t", 0), ("t", 2)}


def test_a_recreated_topic_is_forgotten_by_its_old_id_and_named_by_its_new_one() -> None:
    session = after(asked("t"), version=BY_ID)
    turn = plan_turn(session, [asked("t")], {"t": b"n" * 16}, BY_ID)
    assert names(turn) == [("t", 0)]
    assert turn.forgotten == {IDS["t"]: [0]}


def test_a_recreated_topic_is_not_forgotten_in_a_session_by_name() -> None:
    turn = plan_turn(after(asked("t")), [asked("t")], {"t": b"n" * 16}, BY_NAME)
    assert turn.forgotten == {}


def test_a_session_by_name_does_not_continue_with_ids() -> None:
    turn = plan_turn(after(asked("t")), [asked("t")], IDS, BY_ID)
    assert (turn.session_id, turn.is_full, names(turn)) == (77, True, [("t", 0)])


def test_old_versions_have_no_session() -> None:
    turn = plan_turn(FetchSession(), [asked()], {}, 6)
    assert (turn.session_id, turn.epoch, names(turn)) == (0, FINAL_EPOCH, [("t", 0)])
    assert session_after(FetchSession(), turn, 0, 0) == FetchSession()


def test_a_session_is_requested_again_from_a_broker_without_room() -> None:
    turn = plan_turn(FetchSession(), [asked()], IDS, BY_NAME)
    assert session_after(FetchSession(), turn, 0, 0) == FetchSession()


def test_a_broker_may_end_a_session_in_any_response() -> None:
    session = after(asked())
    assert session_after(session, plan_turn(session, [asked()], IDS, BY_NAME), 0, 0) == FetchSession()


def test_a_response_of_another_session_restarts_the_session() -> None:
    session = after(asked())
    turn = plan_turn(session, [asked()], IDS, BY_NAME)
    assert session_after(session, turn, 0, 99) == session.restarted()


@pytest.mark.parametrize("code", sorted(SESSION_ERRORS | {ErrorCode.UNKNOWN_SERVER_ERROR}))
def test_after_an_error_all_partitions_are_named_and_an_existing_session_ends(code: ErrorCode) -> None:
    session = after(asked())
    then = session_after(session, plan_turn(session, [asked()], IDS, BY_NAME), code, 0)
    turn = plan_turn(then, [asked()], IDS, BY_NAME)
    assert (turn.epoch, names(turn)) == (0, [("t", 0)])
    assert turn.session_id == (0 if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND else 77)


def test_the_epoch_increases_and_wraps_to_one() -> None:
    session = after(asked())
    turn = plan_turn(session, [asked()], IDS, BY_NAME)
    assert session_after(session, turn, 0, 77).epoch == 2
    last = FetchSession(77, MAX_EPOCH, False, session.rows)
    assert session_after(last, plan_turn(last, [asked()], IDS, BY_NAME), 0, 77).epoch == 1


def test_only_an_existing_session_is_ended_on_close() -> None:
    assert closing_turn(FetchSession()) is None
    turn = closing_turn(after(asked()))
    assert turn is not None
    assert (turn.session_id, turn.epoch, turn.named) == (77, FINAL_EPOCH, ())


def on_the_wire(request: fetch.FetchRequest, version: int) -> fetch.FetchRequest:
    """Return the request as a broker decodes it, without fields that the version lacks."""
    decoded = decode_request(b"".join(encode_request(request, version, 1, None))[4:])[1]
    assert isinstance(decoded, fetch.FetchRequest)
    return decoded


WANTED = st.dictionaries(
    st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 2)),
    min_size=1,
    max_size=5,
)
STEPS = st.lists(
    st.tuples(WANTED, st.sampled_from(["answered", "answered", "lost", "lost after", "forgotten"]), st.booleans()),
    max_size=8,
)


@given(steps=STEPS, slots=st.sampled_from([0, 9]))
def test_the_broker_fetches_exactly_the_plan_despite_lost_messages(
    steps: list[tuple[dict[tuple[str, int], tuple[int, int, int]], str, bool]], slots: int
) -> None:
    sessions = FetchSessions(slots, random.Random(0))
    session = FetchSession()
    unheard = 0  # sessions whose id never arrived
    for wanted, fate, by_id in steps:
        version = BY_ID if by_id else BY_NAME
        plan = [
            asked(*name, offset=offset, epoch=epoch, limit=limit)
            for name, (offset, epoch, limit) in sorted(wanted.items())
        ]
        turn = plan_turn(session, plan, IDS, version)
        if fate == "lost":
            session = session.restarted()
            continue
        if fate == "forgotten":
            sessions.clear()
        made = FetchPlan(asked=plan, max_bytes=1, max_wait_ms=0, min_bytes=0)
        request = fetch_request(made, turn, IsolationLevel.READ_COMMITTED, IDS)
        found = sessions.plan(on_the_wire(request, version), version, now=0.0)
        if found.error is ErrorCode.NONE:
            rows = {
                (row.topic or {v: k for k, v in IDS.items()}[row.topic_id], row.index): (
                    row.offset,
                    row.leader_epoch,
                    row.max_bytes,
                )
                for row in found.rows
            }
            assert rows == wanted
            assert found.incremental != turn.is_full
        else:
            assert fate == "forgotten"
            assert not turn.is_full
        if fate == "lost after":
            unheard += turn.is_full
            session = session.restarted()
            continue
        session_id = found.session.session_id if found.session is not None else 0
        session = session_after(session, turn, found.error, session_id)
    assert len(sessions) <= 1 + unheard, "a restarted session ends the old one"
