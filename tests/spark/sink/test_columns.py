"""Columns as parts of a record, and frames that are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.spark.sink.columns import lacks_partition, sink_columns, with_owner

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
TYPES = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
    "headers": _HEADERS,
    "map": MapType(StringType(), BinaryType()),
}


def schema(text: str) -> StructType:
    """Parse names and types; Spark's parser would need its JVM."""
    pairs = [column.split() for column in text.split(",")]
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


def rows(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_columns_are_found_by_name_in_any_case_and_order() -> None:
    found = sink_columns(
        schema("timestamp timestamp, Headers headers, x double, KEY string, value binary, topic string, partition int"),
        None,
    )
    assert found.parts == (("timestamp", 0), ("headers", 1), ("key", 3), ("value", 4), ("partition", 6))
    assert found.topic == 5


REFUSED = [
    ("key string", "t", "no column value, only key"),
    ("value int", "t", "value must be string or binary, not int: cast it"),
    ("value string, key double", "t", "key must be string or binary"),
    ("value string, partition string", "t", "partition must be int"),
    ("value string, timestamp bigint", "t", "timestamp must be timestamp"),
    ("value string, headers map", "t", "headers must be array"),
    ("value string, topic int", "t", "topic must be string"),
    ("value string, Value string", "t", "column value twice"),
    ("value string", None, "no topic: set the option topic"),
]


@pytest.mark.parametrize(("columns", "topic", "message"), REFUSED)
def test_a_frame_that_cannot_be_written_is_refused(columns: str, topic: str | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        sink_columns(schema(columns), topic)


def test_rows_go_to_the_topic_that_they_name() -> None:
    columns = sink_columns(schema("topic string, value string"), None)
    batch = rows(topic=["a", "b", "a"], value=["1", "2", "3"])
    assert {topic: part.to_pydict() for topic, part in columns.by_topic(batch)} == {
        "a": {"value": ["1", "3"]},
        "b": {"value": ["2"]},
    }
    assert [(topic, part.num_rows) for topic, part in columns.by_topic(rows(topic=["a", "a"], value=["1", "2"]))] == [
        ("a", 2)
    ]
    assert list(columns.by_topic(rows(topic=pa.array([], pa.string()), value=pa.array([], pa.string())))) == []


def test_the_option_overrides_the_column() -> None:
    columns = sink_columns(schema("topic string, value string"), "mine")
    ((topic, part),) = columns.by_topic(rows(topic=["a", None], value=["1", "2"]))
    assert (topic, part.to_pydict()) == ("mine", {"value": ["1", "2"]})


def test_a_row_without_a_topic_is_refused() -> None:
    columns = sink_columns(schema("topic string, value string"), None)
    with pytest.raises(InvalidArgument, match="a null in the column topic"):
        list(columns.by_topic(rows(topic=["a", None], value=["1", "2"])))


@pytest.mark.parametrize(
    ("columns", "lacks"),
    [
        ({"value": ["x"]}, True),
        ({"value": ["x"], "key": ["k"]}, False),
        ({"value": ["x", "y"], "key": ["k", None]}, True),
        ({"value": ["x", "y"], "key": ["k", None], "partition": [None, 1]}, False),
        ({"value": ["x", "y"], "partition": [3, None]}, True),
        ({"value": ["x", "y"], "partition": [3, 4]}, False),
    ],
)
def test_the_sink_chooses_a_partition_for_rows_without_key_and_partition(columns: dict[str, Any], lacks: bool) -> None:
    assert lacks_partition(rows(**columns)) is lacks


def test_an_owner_sets_the_partition_only_of_rows_without_key_and_partition() -> None:
    def filled(**columns: Any) -> Any:
        return with_owner(rows(**columns), 7).to_pydict()["partition"]

    assert filled(value=["x", "y"]) == [7, 7]
    assert filled(value=["x", "y"], key=["k", None]) == [None, 7]
    assert filled(value=["x", "y", "z"], key=["k", None, None], partition=pa.array([None, 1, None], pa.int32())) == [
        None,
        1,
        7,
    ]
    assert filled(value=["x", "y"], partition=pa.array([2, None], pa.int32())) == [2, 7]
