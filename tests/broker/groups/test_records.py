"""Groups as records of `__consumer_offsets`; integration/interop lets Kafka read them."""

from __future__ import annotations

import dataclasses

import pytest

from aiokwire.broker.groups import consumer_records as rows
from aiokwire.broker.groups.classic_records import GroupLogValue, decode_group, encode_group, group_key
from aiokwire.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, Part
from aiokwire.broker.groups.consumer_records import ConsumerKey, KeyType, Row, decode_key
from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ClassicState, ReconciliationState
from aiokwire.errors import CorruptRecord
from aiokwire.protocol import encode_embedded
from tests.broker.groups.test_classic import group, member

T = b"t" * 16
MEMBER = ConsumerMember(
    "m",
    Client("c", "/127.0.0.1"),
    instance_id="i",
    rack_id="r",
    rebalance_timeout_ms=5000,
    topics=("t", "u"),
    regex="x.*",
    assignor="range",
    epoch=4,
    previous_epoch=3,
    state=ReconciliationState.UNREVOKED_PARTITIONS,
    assigned={Part(T, 0): 2, Part(T, 1): 4},
    revoking={Part(T, 3): 1},
)


@pytest.mark.parametrize("version", range(5))
def test_a_classic_group_is_read_as_it_was_written(version: int) -> None:
    made = group(member("a", instance="i"), member("b"))
    made.members["a"].assignment = b"part"
    made.changed_ms = 99
    read = decode_group("g", encode_embedded(GroupLogValue(made), version))
    assert (read.group_id, read.state, read.generation) == ("g", ClassicState.STABLE, 5)
    assert (read.protocol_type, read.protocol, read.leader) == ("consumer", "range", "a")
    assert read.changed_ms == (99 if version >= 2 else -1)
    assert read.static == ({"i": "a"} if version >= 3 else {})
    one = read.members["a"]
    assert (one.client, one.protocols, one.assignment) == (Client("c", "/h"), (("range", b"a range"),), b"part")
    assert (one.session_timeout_ms, one.rebalance_timeout_ms) == (100, 1000 if version >= 1 else 100)


def test_an_empty_classic_group_is_read_as_empty() -> None:
    read = decode_group("g", encode_group(group(state=ClassicState.EMPTY)))
    assert (read.state, read.protocol, read.leader) == (ClassicState.EMPTY, None, None)


def replay(*written: Row) -> ConsumerGroup:
    made = ConsumerGroup("g")
    for key, value in written:
        read = decode_key(key)
        assert isinstance(read, ConsumerKey)
        assert read.group_id == "g"
        rows.take_in(made, read, value, 77)
    return made


WRITTEN = (
    rows.member_row("g", MEMBER),
    rows.regex_row("g", "x.*", ("x1", "x2"), 3, 50),
    rows.epoch_row("g", 7, -5),
    rows.target_row("g", "m", frozenset({Part(T, 0), Part(T, 2)})),
    rows.target_epoch_row("g", 6),
    rows.current_row("g", MEMBER),
)


def test_a_consumer_group_is_read_as_it_was_written() -> None:
    read = replay(*WRITTEN)
    assert read.members == {"m": MEMBER}
    assert (read.epoch, read.metadata_hash, read.assignment_epoch) == (7, -5, 6)
    assert read.target == {"m": frozenset({Part(T, 0), Part(T, 2)})}
    assert read.regexes == {"x.*": ("x1", "x2")}
    assert read.owners == {Part(T, 0): "m", Part(T, 1): "m", Part(T, 3): "m"}
    assert read.static == {"i": "m"}


def test_a_member_with_a_new_subscription_keeps_its_place() -> None:
    changed = dataclasses.replace(MEMBER, topics=("v",), regex=None)
    read = replay(*WRITTEN, rows.member_row("g", changed), rows.regex_row("g", "x.*", None, 4, 60))
    assert read.members == {"m": changed}
    assert read.regexes == {}


def test_tombstones_of_members_leave_nothing() -> None:
    read = replay(*WRITTEN, *rows.ends_of_member("g", "m"))
    assert (read.members, read.target, read.owners, read.static) == ({}, {}, {}, {})
    assert read.emptied_ms == 77
    kinds = [decode_key(key) for key, value in rows.ends_of_group(replay(*WRITTEN)) if value is None]
    assert {one.type for one in kinds if isinstance(one, ConsumerKey)} == set(KeyType) - {KeyType.PARTITIONS}


def test_records_of_other_kinds_are_left_alone() -> None:
    assert decode_key(group_key("g")) == "g"
    assert decode_key(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00") is None, "an offset"
    assert decode_key(b"\x00\x0a\x00\x01g") is None, "a share group"
    hashes = decode_key(b"\x00\x04\x00\x01g")
    assert isinstance(hashes, ConsumerKey)
    rows.take_in(ConsumerGroup("g"), hashes, b"of an older Kafka", 0)


@pytest.mark.parametrize("key", [None, b"", b"\x00\x02\x00", b"\x00\x02\x00\x05g", b"\x00\x05\x00\x01g"])
def test_a_corrupt_key_is_named(key: bytes | None) -> None:
    with pytest.raises(CorruptRecord, match="corrupt"):
        decode_key(key)


def test_corrupt_values_are_named() -> None:
    with pytest.raises(CorruptRecord, match="'g'"):
        decode_group("g", encode_group(group(member("a")))[:-3])
    for key, value in WRITTEN:
        read = decode_key(key)
        assert isinstance(read, ConsumerKey)
        assert value is not None
        with pytest.raises(CorruptRecord, match=read.type.name):
            rows.take_in(replay(*WRITTEN), read, value[:-2], 0)
    state = bytearray(rows.current_row("g", MEMBER)[1] or b"")
    state[10] = 9
    with pytest.raises(CorruptRecord, match="state 9"):
        rows.take_in(replay(*WRITTEN), ConsumerKey(KeyType.CURRENT, "g", "m"), bytes(state), 0)
