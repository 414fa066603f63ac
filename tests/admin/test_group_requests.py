"""Requests about groups in old versions, and plans of resets; without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.admin.groups import AllOffsets, Leaver, lags, read_left, shape_leave
from aiokwire.admin.offset_resets import ResetTo, plan_reset
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, UnsupportedVersion
from aiokwire.net import ApiVersions
from aiokwire.net.handshake import Offered
from aiokwire.protocol import ApiKey, decode_request, encode_request
from aiokwire.protocol.messages import leave_group, offset_fetch
from aiokwire.types import OffsetAndMetadata, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def offered(api: ApiKey, newest: int) -> ApiVersions:
    return ApiVersions({api: Offered(0, newest)}, who="a broker")


def sent(request: Any, version: int) -> Any:
    """The request as the broker reads it."""
    return decode_request(b"".join(bytes(part) for part in encode_request(request, version, 1, "c"))[4:])[1]


@pytest.mark.parametrize("newest", range(2, 11))
def test_all_offsets_are_requested_in_every_version_that_supports_it(newest: int) -> None:
    question = AllOffsets("g", stable=True)
    version = question.version(offered(ApiKey.OFFSET_FETCH, newest))
    assert version == min(newest, 9)
    read = sent(question.request, version)
    assert read.require_stable is (version >= 7)
    if version >= 8:
        assert [(one.group_id, one.topics) for one in read.groups] == [("g", None)]
    else:
        assert (read.group_id, read.topics) == ("g", None)


@pytest.mark.parametrize("newest", [0, 1])
def test_requesting_all_offsets_from_a_broker_before_0_10_2_raises(newest: int) -> None:
    question = AllOffsets("g", stable=False)
    version = question.version(offered(ApiKey.OFFSET_FETCH, newest))
    with pytest.raises(UnsupportedVersion):
        encode_request(question.request, version, 1, "c")


def test_offsets_are_read_in_both_shapes_and_errors_are_raised() -> None:
    old = offset_fetch.OffsetFetchResponse(
        topics=[
            offset_fetch.OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    offset_fetch.OffsetFetchResponsePartition(partition_index=1, committed_offset=7, metadata=None),
                    offset_fetch.OffsetFetchResponsePartition(partition_index=0, committed_offset=-1),
                ],
            )
        ]
    )
    assert AllOffsets("g", stable=False).read(old) == {T1: OffsetAndMetadata(7)}
    refused = offset_fetch.OffsetFetchResponse(
        groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    )
    with pytest.raises(BrokerError, match="'g'"):
        AllOffsets("g", stable=False).read(refused)


@pytest.mark.parametrize("newest", range(6))
def test_members_leave_one_by_one_before_version_3(newest: int) -> None:
    request = leave_group.LeaveGroupRequest(group_id="g")
    leavers = [Leaver("a"), Leaver(group_instance_id="i")] if newest >= 3 else [Leaver("a")]
    version = shape_leave(request, leavers, offered(ApiKey.LEAVE_GROUP, newest), "why")
    assert version == newest
    read = sent(request, version)
    if newest < 3:
        assert read.member_id == "a"
    else:
        reason = "why" if newest >= 5 else None
        assert [(one.member_id, one.group_instance_id, one.reason) for one in read.members] == [
            ("a", None, reason), ("", "i", reason),
        ]  # fmt: skip


def test_a_member_that_was_not_removed_has_an_error() -> None:
    response = leave_group.LeaveGroupResponse(
        members=[
            leave_group.MemberResponse(member_id="a", group_instance_id=None),
            leave_group.MemberResponse(member_id="", group_instance_id="i", error_code=ErrorCode.UNKNOWN_MEMBER_ID),
        ]
    )
    results = read_left(response, "g", [Leaver("a"), Leaver(group_instance_id="i")])
    assert list(results.succeeded) == [Leaver("a")]
    assert "instance i" in str(results.errors[Leaver(group_instance_id="i")])


def test_lag_is_never_negative() -> None:
    found = lags({T0: OffsetAndMetadata(9)}, {T0: 5, T1: 3})
    assert (found[T0].lag, found[T1].lag) == (0, None)


def test_a_reset_stays_within_the_available_offsets() -> None:
    committed = {T0: OffsetAndMetadata(50)}
    for to, expected in (
        (ResetTo.offset(0), 10),
        (ResetTo.offset(99), 20),
        (ResetTo.current(), 20),
        (ResetTo.shift(-100), 10),
        (ResetTo.time(5), 12),
    ):
        assert plan_reset(to, committed, {T0: 10}, {T0: 20}, {T0: 12})[T0].after == expected
    assert plan_reset(ResetTo.time(5), {}, {T0: 10}, {T0: 20}, {T0: -1})[T0] == (None, 20)
    assert plan_reset(ResetTo.current(), {}, {T0: 10}, {T0: 20}, {})[T0] == (None, 20)
