"""The format of `__transaction_state`: round trips, bytes written by hand, and corrupt ones."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.transactions import Transaction, TransactionState
from aiokwire.broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from aiokwire.errors import CorruptRecord
from aiokwire.types import TopicPartition

LONG = st.integers(-1, 2**63 - 1)
PARTITIONS = st.frozensets(
    st.builds(TopicPartition, st.sampled_from(["a", "b.c", "__consumer_offsets"]), st.integers(0, 300)), max_size=6
)


@given(
    st.text(max_size=30),
    st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY]),
    PARTITIONS,
    st.lists(LONG, min_size=5, max_size=5),
    st.integers(-1, 2**15 - 1),
    st.integers(0, 2),
)
def test_a_transaction_survives_a_round_trip(
    name: str,
    state: TransactionState,
    partitions: frozenset[TopicPartition],
    numbers: list[int],
    epoch: int,
    version: int,
) -> None:
    producer_id, previous, following, started, updated = numbers
    one = Transaction(
        name,
        producer_id,
        epoch=epoch,
        previous_producer_id=previous,
        next_producer_id=following,
        timeout_ms=900_000,
        state=state,
        partitions=partitions,
        started_ms=started,
        updated_ms=updated,
        client_version=version,
    )
    assert decode_key(encode_key(name)) == name
    assert decode_value(name, encode_value(one)) == one


def test_an_empty_transaction_has_no_list_of_partitions() -> None:
    value = encode_value(Transaction("tx", 5, epoch=1, timeout_ms=60_000, updated_ms=9))
    assert value == struct.pack(">hqhibBqqB", 1, 5, 1, 60_000, 0, 0, 9, -1, 0)


def test_the_older_version_of_kafka_3_is_read() -> None:
    value = struct.pack(">hqhib", 0, 5, 1, 60_000, 1)
    value += struct.pack(">ih1siii", 1, 1, b"t", 2, 0, 3) + struct.pack(">qq", 9, 8)
    one = decode_value("tx", value)
    assert (one.producer_id, one.epoch, one.state, one.updated_ms, one.started_ms) == (5, 1, 1, 9, 8)
    assert one.partitions == {TopicPartition("t", 0), TopicPartition("t", 3)}


def test_keys_of_another_kind_are_passed_over() -> None:
    assert decode_key(b"\x00\x01\x00\x00") is None


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x00\x00\x05ab"])
def test_a_corrupt_key_is_reported(key: bytes | None) -> None:
    with pytest.raises(CorruptRecord, match="key of a transaction"):
        decode_key(key)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_reported_as_corrupt(value: bytes) -> None:
    with contextlib.suppress(CorruptRecord):
        assert decode_value("tx", value).producer_id == int.from_bytes(value[2:10], "big", signed=True)
