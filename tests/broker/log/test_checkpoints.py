"""The text files have Kafka's form, and corrupt ones count as missing."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.log.checkpoints import (
    decode_id,
    encode_id,
    new_id,
    pack_offsets,
    pack_partition_metadata,
    pack_properties,
    unpack_checkpoint,
    unpack_offsets,
    unpack_partition_metadata,
    unpack_properties,
)
from aiokwire.types import TopicPartition


def test_an_offset_checkpoint_has_kafkas_lines() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a", 0): 42}
    assert pack_offsets(offsets) == b"0\n2\na 0 42\nb 1 7\n"
    assert unpack_offsets(pack_offsets(offsets)) == offsets


def test_a_corrupt_checkpoint_counts_as_missing() -> None:
    for content in (
        None,
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 0 42\n",
        b"0\nx\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 1\n",
        b"\xff",
    ):
        assert unpack_offsets(content) == {}


@given(st.binary(max_size=60))
def test_no_bytes_break_a_checkpoint_or_properties(content: bytes) -> None:
    unpack_offsets(content)
    unpack_partition_metadata(content)
    assert isinstance(unpack_properties(content), dict)
    assert all(len(entry) == 2 for entry in unpack_checkpoint(content, fields=2))


def test_partition_metadata_names_the_topic_id_in_22_characters() -> None:
    topic_id = bytes(range(16))
    assert pack_partition_metadata(topic_id) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert unpack_partition_metadata(pack_partition_metadata(topic_id)) == topic_id
    assert unpack_partition_metadata(b"version: 0\ntopic_id: short") is None


def test_properties_are_read_back_without_comments() -> None:
    properties = {"version": "1", "cluster.id": "abc=def"}
    assert unpack_properties(b"# written by a broker\n\n" + pack_properties(properties)) == properties


def test_ids_are_random_uuids_that_no_tool_takes_for_an_option() -> None:
    rng = random.Random(1)
    for _ in range(300):
        raw = new_id(rng)
        assert raw[6] >> 4 == 4
        assert not encode_id(raw).startswith("-")
        assert decode_id(encode_id(raw)) == raw
