from __future__ import annotations

import json

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.offsets import from_json, parse_assign, parse_by_partition, to_json
from aiokwire.types import TopicPartition

A0, A1, B10, B2 = (TopicPartition(*each) for each in (("a", 0), ("a", 1), ("b", 10), ("b", 2)))


def test_offsets_are_read_as_spark_sql_kafka_reads_them() -> None:
    assert parse_by_partition('{"a":{"0":23,"1":-2},"b":{"10":-1}}', "startingOffsets") == {A0: 23, A1: -2, B10: -1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"a":5}',
        '{"a":{"x":1}}',
        '{"a":{"-1":1}}',
        '{"a":{"0":"1"}}',
        '{"a":{"0":true}}',
        '{"a":{"0":1.5}}',
    ],
)
def test_an_invalid_offset_is_refused_with_the_options_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="startingOffsets must look like"):
        parse_by_partition(text, "startingOffsets")


def test_a_partition_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="names '0' twice"):
        parse_by_partition('{"a":{"0":1,"0":2}}', "startingOffsets")


def test_a_checkpoints_offset_is_sorted_by_topic_and_number() -> None:
    kept = to_json({B10: 1, A1: 2, B2: 3, A0: 4})
    assert json.dumps(kept) == '{"a": {"0": 4, "1": 2}, "b": {"2": 3, "10": 1}}'
    assert from_json(kept) == ({A0: 4, A1: 2, B2: 3, B10: 1}, {})


def test_topic_ids_are_stored_with_the_topics() -> None:
    kept = json.loads(json.dumps(to_json({A0: 4}, {"a": "0f"})))
    assert kept == {"@aiokwire": {"ids": {"a": "0f"}, "v": 1}, "a": {"0": 4}}
    assert from_json(kept) == ({A0: 4}, {"a": "0f"})


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="checkpoint"):
        from_json({"offset": 5})
    with pytest.raises(ConfigurationError, match="newer aiokwire"):
        from_json({"@aiokwire": {"v": 2}, "a": {"0": 1}})


def test_partitions_are_assigned_by_topic() -> None:
    assert parse_assign('{"a":[0,1],"b":[10]}') == {A0, A1, B10}


@pytest.mark.parametrize("text", ["", "a", "{}", '{"a":0}', '{"a":[]}', '{"a":["0"]}', '{"a":[-1]}'])
def test_an_empty_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="assign must look like"):
        parse_assign(text)
