"""ConsumerGroupHeartbeat contains only changes, or everything if the coordinator's knowledge is
uncertain."""

from __future__ import annotations

import pytest

from aiokwire.errors import UnsupportedVersion
from aiokwire.group.consumer_protocol.requests import (
    Description,
    HeartbeatBuilder,
    HeartbeatContent,
    Part,
    leave_request,
    read_heartbeat,
)
from aiokwire.net import ApiVersions
from aiokwire.net.handshake import Offered
from aiokwire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from aiokwire.types import GroupMetadata

T = b"t" * 16
WANTED = Description(frozenset({"b", "a"}), None, "uniform", "r1", 300_000)
MEMBER = GroupMetadata("g", 5, "m")
NOTHING = frozenset[Part]()


def versions(newest: int) -> ApiVersions:
    return ApiVersions({ConsumerGroupHeartbeatRequest.API: Offered(0, newest)}, who="a broker")


def test_a_join_is_complete_and_holds_no_partition() -> None:
    request = HeartbeatBuilder(GroupMetadata("g", 0, "m"), WANTED, WANTED, frozenset({Part(T, 1)})).request
    assert (request.member_id, request.member_epoch) == ("m", 0)
    assert request.subscribed_topic_names == ["a", "b"]
    assert request.subscribed_topic_regex is None
    assert (request.server_assignor, request.rack_id, request.rebalance_timeout_ms) == ("uniform", "r1", 300_000)
    assert request.topic_partitions == []


def test_most_heartbeats_are_minimal() -> None:
    request = HeartbeatBuilder(MEMBER, WANTED, WANTED, None).request
    assert request == ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=5)


def test_a_change_is_sent_alone() -> None:
    request = HeartbeatBuilder(MEMBER, WANTED._replace(topics=frozenset({"c"})), WANTED, None).request
    assert request.subscribed_topic_names == ["c"]
    assert (request.server_assignor, request.rack_id, request.rebalance_timeout_ms) == (None, None, -1)


def test_held_partitions_are_sent_by_topic_and_number() -> None:
    request = HeartbeatBuilder(MEMBER, WANTED, WANTED, frozenset({Part(T, 2), Part(T, 0)})).request
    assert request.topic_partitions == [TopicPartitions(topic_id=T, partitions=[0, 2])]
    assert HeartbeatBuilder(MEMBER, WANTED, WANTED, NOTHING).request.topic_partitions == []


def test_an_empty_pattern_ends_a_pattern() -> None:
    pattern = WANTED._replace(pattern="a.*")
    assert HeartbeatBuilder(MEMBER, pattern, WANTED, None).request.subscribed_topic_regex == "a.*"
    assert HeartbeatBuilder(MEMBER, WANTED, pattern, None).request.subscribed_topic_regex == ""
    assert HeartbeatBuilder(MEMBER, WANTED, None, NOTHING).request.subscribed_topic_regex == "", (
        "the last pattern is not known"
    )
    static = GroupMetadata("g", 0, "m", "i")
    assert HeartbeatBuilder(static, WANTED, None, None).request.subscribed_topic_regex == "", (
        "the replaced member may have had one"
    )


def test_before_version_1_the_coordinator_generates_ids_and_there_are_no_patterns() -> None:
    heartbeat = HeartbeatBuilder(GroupMetadata("g", 0, "m", "i"), WANTED, None, None)
    assert heartbeat.version(versions(0)) == 0
    assert (heartbeat.request.member_id, heartbeat.request.subscribed_topic_regex) == ("", None)
    assert HeartbeatBuilder(MEMBER, WANTED, WANTED, None).version(versions(1)) == 1
    with pytest.raises(UnsupportedVersion, match="does not support patterns"):
        HeartbeatBuilder(MEMBER, WANTED._replace(pattern="a.*"), None, None).version(versions(0))


def test_a_repeated_heartbeat_has_the_epoch_of_the_last_response() -> None:
    content = HeartbeatContent(MEMBER, WANTED, WANTED, None)
    assert content(versions(1), None)[0].member_epoch == 5
    assert content(versions(1), ConsumerGroupHeartbeatResponse(member_epoch=7))[0].member_epoch == 7


def test_a_static_member_leaves_temporarily() -> None:
    assert leave_request(MEMBER).member_epoch == -1
    request = leave_request(MEMBER._replace(group_instance_id="i"))
    assert (request.member_epoch, request.instance_id) == (-2, "i")


def test_a_response_without_an_assignment_does_not_change_it() -> None:
    answer = ConsumerGroupHeartbeatResponse(member_epoch=6, heartbeat_interval_ms=5000)
    assert read_heartbeat(answer, "m") == ("m", 6, 5.0, None)
    answer.assignment = Assignment(topic_partitions=[TopicPartitions(topic_id=T, partitions=[3, 1])])
    answer.member_id = "given"
    assert read_heartbeat(answer, "m") == ("given", 6, 5.0, frozenset({Part(T, 1), Part(T, 3)}))
