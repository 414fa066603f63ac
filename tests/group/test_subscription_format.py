"""Encoding of subscriptions and assignments, in every version, and malformed bytes of other
members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ProtocolViolation
from aiokwire.group.subscription_format import (
    MemberSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from aiokwire.types import TopicPartition

OWNED = (TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1))


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_version_contains_the_fields_that_it_has(version: int) -> None:
    data = encode_subscription({"b", "a"}, b"mine", OWNED, 7, "r1", version)
    assert data[:2] == version.to_bytes(2, "big")
    assert decode_subscription("m", data, "static") == MemberSubscription(
        member_id="m",
        topics=("a", "b"),
        owned=OWNED if version >= 1 else (),
        generation=7 if version >= 2 else -1,
        user_data=b"mine",
        instance_id="static",
        rack_id="r1" if version >= 3 else None,
    )


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    data = encode_subscription(["t"], b"", OWNED, 3, "r")
    assert decode_subscription("m", b"\0\x63" + data[2:] + b"what came later") == decode_subscription("m", data)


def test_a_topic_named_twice_counts_once_and_an_empty_rack_is_none() -> None:
    data = encode_subscription(["t"], rack="")
    assert decode_subscription("m", data).rack_id is None
    twice = bytes.fromhex("0000 00000002 000174 000174 ffffffff".replace(" ", ""))
    assert decode_subscription("m", twice).topics == ("t",)


@given(st.binary(max_size=60))
def test_garbage_is_refused_by_an_error_that_names_the_member(data: bytes) -> None:
    message = "'the-other-one'"
    try:
        decode_subscription("the-other-one", data)
    except ProtocolViolation as error:
        message = str(error)
    assert "'the-other-one'" in message


def test_an_impossible_owned_partition_is_refused() -> None:
    data = encode_subscription(["t"], owned=[TopicPartition("t", -5)])
    with pytest.raises(ProtocolViolation, match=r"member 'm'.*no partition -5"):
        decode_subscription("m", data)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_assignment_survives_a_round_trip(version: int) -> None:
    assert decode_assignment(encode_assignment(reversed(OWNED), b"x", version)) == (list(OWNED), b"x")


def test_empty_bytes_mean_no_partitions() -> None:
    assert decode_assignment(b"") == ([], b"")


@given(st.binary(min_size=1, max_size=60))
def test_a_bad_assignment_is_refused(data: bytes) -> None:
    try:
        partitions, _ = decode_assignment(data)
    except ProtocolViolation:
        return
    assert all(tp.partition >= 0 for tp in partitions)
