"""The verdict of each error code about its partition."""

from __future__ import annotations

import pytest

from aiokwire.consumer.fetch_plan import Asked, FetchPlan
from aiokwire.consumer.fetch_responses import Verdict, error_of, fetch_request, read_response, verdict_for
from aiokwire.consumer.fetch_session import FetchSession, Turn, plan_turn
from aiokwire.consumer.positions import PartitionState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch
from aiokwire.types import IsolationLevel, OffsetReset, TopicPartition

ID = b"0123456789abcdef"


def asked(topic: str = "t", partition: int = 0, offset: int = 5) -> Asked:
    state = PartitionState(TopicPartition(topic, partition))
    state.request_reset(OffsetReset.EARLIEST, "subscribed")
    state.move_to(offset)
    return Asked(state, state.attempt.generation, offset, 2, 1000)


def plan(*partitions: Asked) -> FetchPlan:
    return FetchPlan(asked=partitions, max_bytes=5000, max_wait_ms=7, min_bytes=3)


def response(*rows: tuple[str, int, int], topic_id: bytes = ZERO_UUID) -> fetch.FetchResponse:
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=topic,
                topic_id=topic_id,
                partitions=[fetch.PartitionData(partition_index=partition, error_code=code)],
            )
            for topic, partition, code in rows
        ]
    )


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NONE, Verdict.RECORDS),
        (ErrorCode.OFFSET_OUT_OF_RANGE, Verdict.OUT_OF_RANGE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.MOVED),
        (ErrorCode.FENCED_LEADER_EPOCH, Verdict.MOVED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Verdict.MOVED),
        (ErrorCode.UNKNOWN_TOPIC_ID, Verdict.MOVED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Verdict.RETRY),
        (ErrorCode.OFFSET_NOT_AVAILABLE, Verdict.RETRY),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Verdict.DENIED),
        (ErrorCode.CORRUPT_MESSAGE, Verdict.CORRUPT),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, Verdict.REFUSED),
    ],
)
def test_a_code_has_its_verdict(code: ErrorCode, verdict: Verdict) -> None:
    assert verdict_for(code) is verdict


@pytest.mark.parametrize("code", list(ErrorCode))
def test_one_code_alone_causes_a_reset_and_no_retriable_code_stops_a_partition(code: ErrorCode) -> None:
    verdict = verdict_for(code)
    assert (verdict is Verdict.OUT_OF_RANGE) == (code is ErrorCode.OFFSET_OUT_OF_RANGE)
    if code.retriable and code is not ErrorCode.CORRUPT_MESSAGE:
        assert verdict in (Verdict.MOVED, Verdict.RETRY)


def test_an_unknown_code_does_not_cause_a_reset() -> None:
    assert verdict_for(9999) in (Verdict.RETRY, Verdict.REFUSED)


def test_the_request_groups_partitions_by_topic() -> None:
    made_plan = plan(asked("a", 0), asked("b", 1), asked("a", 2))
    ids = {"a": ID, "b": ZERO_UUID}
    turn = plan_turn(FetchSession(), made_plan.asked, ids, 12)
    made = fetch_request(made_plan, turn, IsolationLevel.READ_COMMITTED, ids, "rack")
    assert [(topic.topic, topic.topic_id, [p.partition for p in topic.partitions]) for topic in made.topics] == [
        ("a", ID, [0, 2]),
        ("b", ZERO_UUID, [1]),
    ]
    first = made.topics[0].partitions[0]
    assert (first.fetch_offset, first.current_leader_epoch, first.partition_max_bytes) == (5, 2, 1000)
    assert (made.max_bytes, made.max_wait_ms, made.min_bytes, made.isolation_level) == (5000, 7, 3, 1)
    assert (made.session_id, made.session_epoch, made.rack_id) == (0, 0, "rack")


def test_forgotten_topics_are_named_by_name_or_id_like_the_session() -> None:
    for topic, named in ("a", ("a", ZERO_UUID, [3, 4])), (ID, ("", ID, [3, 4])):
        turn = Turn(9, 5, False, (), {topic: [3, 4]}, {})
        made = fetch_request(plan(asked()), turn, IsolationLevel.READ_UNCOMMITTED, {})
        (gone,) = made.forgotten_topics_data
        assert (gone.topic, gone.topic_id, gone.partitions) == named
        assert (made.session_id, made.session_epoch, made.topics) == (9, 5, [])


def test_topics_of_a_response_are_found_by_their_ids() -> None:
    (answer,) = read_response(response(("", 0, 0), topic_id=ID), plan(asked("a", 0)), {"a": ID})
    assert answer.asked.state.tp == ("a", 0)
    assert answer.verdict is Verdict.RECORDS


def test_unrequested_and_duplicate_partitions_are_ignored() -> None:
    answers = list(read_response(response(("a", 0, 0), ("a", 0, 0), ("a", 9, 0), ("x", 0, 0)), plan(asked("a", 0)), {}))
    assert len(answers) == 1


def test_the_error_names_partition_and_offset() -> None:
    (answer,) = read_response(response(("a", 3, 29)), plan(asked("a", 3, 77)), {})
    error = error_of(answer, "node 1 at h:9092")
    assert isinstance(error, AuthorizationError)
    assert (error.topic, error.partition) == ("a", 3)
    assert "offset 77" in str(error)
    assert "node 1 at h:9092" in str(error)
