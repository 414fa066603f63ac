"""Offsets by time: requests and responses, without a broker."""

from __future__ import annotations

import pytest

from aiokwire.cluster.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    list_offsets_request,
    read_list_offsets,
)
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import UnsupportedVersion
from aiokwire.protocol.messages import list_offsets
from aiokwire.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def answer(*rows: tuple[TopicPartition, dict[str, object]]) -> list_offsets.ListOffsetsResponse:
    topics = [
        list_offsets.ListOffsetsTopicResponse(
            name=tp.topic,
            partitions=[list_offsets.ListOffsetsPartitionResponse(partition_index=tp.partition, **fields)],  # type: ignore[arg-type]  # fields by name
        )
        for tp, fields in rows
    ]
    return list_offsets.ListOffsetsResponse(topics=topics)


def test_partitions_are_grouped_by_topic() -> None:
    request = list_offsets_request({T0: EARLIEST, U0: 5, T1: LATEST}, epochs={T1: 3}, version=7)
    found = {
        (topic.name, one.partition_index): (one.timestamp, one.current_leader_epoch)
        for topic in request.topics
        for one in topic.partitions
    }
    assert found == {("t", 0): (-2, -1), ("t", 1): (-1, 3), ("u", 0): (5, -1)}
    assert len(request.topics) == 2
    assert request.replica_id == -1


def test_the_isolation_level_is_left_out_where_no_version_carries_it() -> None:
    for version, expected in ((1, 0), (2, 1)):
        request = list_offsets_request({T0: LATEST}, isolation=IsolationLevel.READ_COMMITTED, version=version)
        assert request.isolation_level == expected


@pytest.mark.parametrize(
    ("time", "first"), [(0, 1), (1_700_000_000_000, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9)]
)
def test_a_broker_too_old_for_a_lookup_is_not_asked(time: int, first: int) -> None:
    with pytest.raises(UnsupportedVersion, match=rf"t\[0\].*v{first}"):
        list_offsets_request({T0: time}, version=first - 1)
    assert list_offsets_request({T0: time}, version=first).topics


def test_responses_are_sorted_by_their_meaning() -> None:
    response = answer(
        (T0, {"offset": 7, "timestamp": 9, "leader_epoch": 2}),
        (T1, {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}),
        (U0, {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}),
    )
    answers = read_list_offsets(response, dict.fromkeys((T0, T1, U0), LATEST), "node 1")
    assert answers.found == {T0: OffsetAndTimestamp(7, 9, 2)}
    assert list(answers.again) == [T1]
    assert list(answers.refused) == [U0]
    assert "node 1" in str(answers.refused[U0])


def test_the_oldest_form_of_a_response_is_read() -> None:
    answers = read_list_offsets(answer((T0, {"old_style_offsets": [42]})), {T0: LATEST}, "node 1")
    assert answers.found[T0].offset == 42


def test_a_missing_partition_is_asked_again_and_an_unrequested_one_is_ignored() -> None:
    answers = read_list_offsets(answer((U0, {"offset": 1})), {T0: LATEST}, "node 1")
    assert answers.found == {}
    assert list(answers.again) == [T0]


def test_a_server_error_is_retried_as_by_a_fetch() -> None:
    """Java's client retries UNKNOWN_SERVER_ERROR.

    Kafka returns it while it rolls a log or loads tiered metadata.
    """
    answers = read_list_offsets(answer((T0, {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR})), {T0: LATEST}, "node 1")
    assert list(answers.again) == [T0]
    assert not answers.refused
