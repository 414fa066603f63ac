"""Decoding of columns, and the exact Arrow schema that Spark expects."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from aiokwire.errors import ConfigurationError
from aiokwire.records import BatchBuilder, Columns, read_batches
from aiokwire.spark.decode.decoding import Rejected, UndecodableRecord, check_decoding
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.convert import LATEST_TIME, Converter, TimeOutOfRange
from tests.spark.conftest import columns_of

SERVERS = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}


def converted(
    values: list[bytes | None],
    kind: DataType | None = None,
    reject: Callable[[pa.RecordBatch, Rejected], None] | None = None,
    **options: str,
) -> pa.RecordBatch:
    builder = BatchBuilder(2, 1 << 20)
    for value in values:
        builder.append(1000, b"k", value)
    named = {"columns": "offset,value"} | SERVERS | {name.replace("__", "."): text for name, text in options.items()}
    parsed = parse_source(named, streaming=False)
    converter = Converter(parsed, columns_of(parsed, **({} if kind is None else {"value": kind})), reject)
    found = converter(filled(converter, builder))
    found.validate(full=True)
    return found


def filled(converter: Converter, builder: BatchBuilder) -> Columns:
    columns = converter.new_columns()
    for batch in read_batches(builder.seal(base_offset=7, leader_epoch=0), "t", 3):
        batch.add_to(columns)
    return columns


def converted_times(
    times: list[int], names: str, reject: Callable[[pa.RecordBatch, Rejected], None] | None = None, **options: str
) -> pa.RecordBatch:
    builder = BatchBuilder(2, 1 << 20)
    for time in times:
        builder.append(time, b"k", b"v")
    parsed = parse_source({"columns": names} | SERVERS | options, streaming=False)
    converter = Converter(parsed, columns_of(parsed), reject)
    return converter(filled(converter, builder))


@pytest.mark.parametrize("with_letters", [False, True], ids=["plain", "with dead letters"])
@pytest.mark.parametrize("time", [LATEST_TIME + 1, 2**63 - 1, -LATEST_TIME - 1])
def test_a_timestamp_out_of_sparks_range_is_an_error_with_its_offset(time: int, with_letters: bool) -> None:
    decoding = ({"key.format": "string"}, lambda _, __: None) if with_letters else ({}, None)
    with pytest.raises(TimeOutOfRange, match=rf"^t\[3\] at offset 8: the timestamp {time} "):
        converted_times([1000, time, 1000], "value,timestamp", decoding[1], **decoding[0])


def test_a_timestamp_out_of_sparks_range_is_ignored_unless_its_column_is_read() -> None:
    assert converted_times([1000, 2**63 - 1], "value").num_rows == 2


def test_the_first_and_the_last_timestamp_of_sparks_range_are_read() -> None:
    found = converted_times([LATEST_TIME, -LATEST_TIME], "timestamp").column("timestamp")
    assert found.cast(pa.int64()).to_pylist() == [LATEST_TIME * 1000, -LATEST_TIME * 1000]


def json_of(values: list[bytes | None], kind: StructType) -> list[Any]:
    batch = converted(values, kind, value__format="json", value__schema="as Spark parsed it")
    return batch.column("value").to_pylist()


def test_plain_columns_have_the_types_that_spark_expects() -> None:
    batch = converted([b"v"], columns="topic,timestamp,timestampType,key,partition", includeHeaders="true")
    assert [(field.name, str(field.type)) for field in batch.schema] == [
        ("topic", "string"),
        ("timestamp", "timestamp[us, tz=UTC]"),
        ("timestampType", "int32"),
        ("key", "binary"),
        ("partition", "int32"),
        ("headers", "list<element: struct<key: string, value: binary>>"),
    ]
    assert all(field.nullable for field in batch.schema)
    assert batch.to_pylist()[0]["timestamp"] == datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)


def test_strings_that_are_not_utf8_are_null_and_kept_in_the_corrupt_column() -> None:
    batch = converted(
        [b"caf\xc3\xa9", b"\xff", None, b""],
        kind=StringType(),
        value__format="string",
        columnNameOfCorruptRecord="_bad",
    )
    assert batch.column("value").to_pylist() == ["caf\u00e9", None, None, ""]
    assert batch.column("_bad").to_pylist() == [None, b"\xff", None, None]


def test_a_malformed_record_is_dropped_or_named() -> None:
    dropped = converted([b"a", b"\xff", b"b"], StringType(), value__format="string", mode="DROPMALFORMED")
    assert dropped.to_pylist() == [{"offset": 7, "value": "a"}, {"offset": 9, "value": "b"}]
    with pytest.raises(UndecodableRecord, match=r"t\[3\] at offset 8: cannot decode the value b'\\xff'"):
        converted([b"a", b"\xff"], StringType(), value__format="string", mode="FAILFAST")


def test_rejected_rows_are_reported_with_all_columns() -> None:
    got: list[tuple[pa.RecordBatch, Rejected]] = []
    batch = converted(
        [b"a", b"\xff"],
        StringType(),
        reject=lambda raw, rejected: got.append((raw, rejected)),
        value__format="string",
        columns="offset",
    )
    assert batch.num_rows == 2
    assert not got, "values of unused columns are not decoded"
    converted([b"a", b"\xff"], StringType(), reject=lambda *found: got.append(found), value__format="string")
    ((raw, rejected),) = got
    assert {row: fault.side for row, fault in rejected.items()} == {1: "value"}
    assert (raw.column("key")[1].as_py(), raw.column("value")[1].as_py()) == (b"k", b"\xff")


def test_json_is_read_by_its_schema() -> None:
    schema = (
        StructType()
        .add("a", IntegerType())
        .add("b", StringType())
        .add("c", DoubleType())
        .add("d", BooleanType())
        .add("e", ArrayType(IntegerType()))
        .add("f", MapType(StringType(), IntegerType()))
        .add("g", StructType().add("x", IntegerType()))
        .add("h", DecimalType(6, 2))
    )
    text = b'{"a":1,"b":"x","c":2,"d":true,"e":[1,null],"f":{"k":3},"g":{"x":4,"y":5},"h":1.25,"more":0}'
    (found,) = json_of([text], schema)
    assert found | {"h": str(found["h"])} == {
        "a": 1, "b": "x", "c": 2.0, "d": True, "e": [1, None], "f": [("k", 3)], "g": {"x": 4}, "h": "1.25",
    }  # fmt: skip
    assert json_of([b"{}"], StructType().add("a", IntegerType())) == [{"a": None}]


def test_times_in_json_are_iso_or_seconds() -> None:
    schema = StructType().add("t", TimestampType()).add("d", DateType()).add("n", TimestampNTZType())
    (found,) = json_of([b'{"t":"2026-01-02T03:04:05+01:00","d":"2026-01-02","n":"2026-01-02T03:04:05"}'], schema)
    assert found["t"] == datetime.datetime(2026, 1, 2, 2, 4, 5, tzinfo=datetime.UTC)
    assert found["d"] == datetime.date(2026, 1, 2)
    assert found["n"] == datetime.datetime(2026, 1, 2, 3, 4, 5)
    (seconds,) = json_of([b'{"t":1.5}'], StructType().add("t", TimestampType()))
    assert seconds["t"] == datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"5", b'{"a":"x"}', b'{"a":1.5}', b'{"a":true}', b'{"a":3000000000}', b'{"a":1}{}', b"\xff"],
)
def test_json_that_does_not_match_the_schema_is_malformed(text: bytes) -> None:
    good = b'{"a":1}'
    schema: dict[str, Any] = {"value__format": "json", "value__schema": "a int", "columnNameOfCorruptRecord": "_bad"}
    batch = converted([good, text, good, None], StructType().add("a", IntegerType()), **schema)
    assert batch.column("value").to_pylist() == [{"a": 1}, None, {"a": 1}, None]
    assert batch.column("_bad").to_pylist() == [None, text, None, None]


def test_types_without_a_json_form_are_refused_on_the_driver() -> None:
    decoding = parse_source(SERVERS | {"value.format": "json", "value.schema": "x"}, streaming=False).decoding
    schema = StructType().add("value", StructType().add("m", MapType(IntegerType(), IntegerType())))
    with pytest.raises(ConfigurationError, match=r"value\.schema\.m: the keys of a JSON map are strings, not int"):
        check_decoding(schema, decoding)
