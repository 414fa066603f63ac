"""Avro as columns: types, schema evolution, ids of a registry, and undecodable bytes."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.avro_plan import flat_schema
from aiokwire.spark.decode.avro_types import avro_schema, spark_type
from aiokwire.spark.decode.columns import Faults
from aiokwire.spark.decode.from_avro import AvroDecoder, log_if_slow
from aiokwire.spark.decode.options import Format, Side
from aiokwire.spark.source.schema import arrow_schema

ITEM = {"type": "record", "name": "Item", "fields": [{"name": "sku", "type": "string"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "rate", "type": "float"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": ["null", "Kind"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "paid", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "hour", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "times", "type": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}}},
        {"name": "items", "type": {"type": "array", "items": ["null", ITEM]}},
        {"name": "first", "type": ["null", "Item"]},
        {"name": "tags", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
        {"name": "wide", "type": ["int", "long"]},
    ],
}
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)
WRITTEN: dict[str, Any] = {
    "id": 5,
    "note": None,
    "rate": 1.5,
    "kind": "NEW",
    "before": "PAID",
    "at": AT,
    "paid": AT,
    "local": AT.replace(tzinfo=None),
    "day": AT.date(),
    "hour": datetime.time(1, 2, 3),
    "price": decimal.Decimal("12.34"),
    "uuid": "d0f7a9a0-0000-4000-8000-000000000000",
    "hash": b"\0\1\2\3",
    "times": {"a": AT},
    "items": [None, {"sku": "x"}],
    "first": {"sku": "y"},
    "tags": [{"k": "v"}, {}],
    "wide": 2**40,
}
READ = WRITTEN | {"hour": 3_723_000, "times": [("a", AT)], "tags": [[("k", "v")], []]}


def datum(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoder(side: Side) -> AvroDecoder:
    kind = spark_type(avro_schema(side.schema, "value.schema").expanded, "value.schema")
    return AvroDecoder(side, arrow_schema(StructType().add("value", kind)).field(0).type, "value")


def decoded(side: Side, *values: bytes | None) -> tuple[list[Any], Faults]:
    column, faults = decoder(side)(pa.array(values, pa.binary()))
    column.validate(full=True)
    return column.to_pylist(), faults


def avro(schema: Any, **more: Any) -> Side:
    return Side(Format.AVRO, json.dumps(schema), **more)


def test_types_equal_those_of_sparks_from_avro() -> None:
    found = spark_type(avro_schema(json.dumps(ORDER), "value.schema").expanded, "value.schema")
    item = "struct<sku:string>"
    assert found.simpleString() == (
        "struct<id:bigint,note:string,rate:float,kind:string,before:string,at:timestamp,paid:timestamp,"
        "local:timestamp_ntz,day:date,hour:int,price:decimal(10,2),uuid:string,hash:binary,times:map<string,timestamp>,"
        f"items:array<{item}>,first:{item},tags:array<map<string,string>>,wide:bigint>"
    )


def test_a_record_is_read_by_its_schema() -> None:
    found, faults = decoded(avro(ORDER), datum(ORDER, WRITTEN), None)
    assert found == [READ, None]
    assert not faults


def test_a_schema_other_than_a_record_is_one_column_of_its_type() -> None:
    assert decoded(avro("string"), datum("string", "paid"))[0] == ["paid"]
    assert decoded(avro(["null", "long"]), datum(["null", "long"], 7), b"\0")[0] == [7, None]


def test_undecodable_bytes_are_null_and_reported() -> None:
    good = datum(ORDER, WRITTEN)
    found, faults = decoded(avro(ORDER), good, good + b"x", good[:-3], b"", good)
    assert found == [READ, None, None, None, READ]
    assert faults.keys() == {1, 2, 3}
    assert faults[1] == "ValueError: 1 bytes follow the datum"


def test_numbers_out_of_arrows_range_are_reported() -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    found, faults = decoded(avro(schema), datum("long", 2**62), datum("long", 0))
    assert found == [None, datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)]
    assert "would result in out of bounds" in faults[0]


@given(st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3))
def test_corrupt_bytes_never_end_the_task(place: int, junk: bytes, cut: int) -> None:
    good = datum(ORDER, WRITTEN)
    place = min(place, len(good))
    column, faults = decoder(avro(ORDER))(pa.array([good[:place] + junk + good[place + cut :], good], pa.binary()))
    column.validate(full=True)
    assert column[1].as_py() == READ
    # not converted to Python: a corrupt timestamp may be in Arrow's range and out of Python's
    assert column[0].is_valid == (0 not in faults)


# --- records of another schema than the columns' --------------------------------------------------------------------

OLD = {"type": "record", "name": "O", "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string"}]}
NEW = {
    "type": "record",
    "name": "O",
    "fields": [{"name": "id", "type": "long"}, {"name": "state", "type": "string", "default": "new"}],
}


def framed(number: int, data: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + data


def test_records_of_an_older_schema_are_resolved_to_the_columns() -> None:
    side = avro(NEW, writer_schema=json.dumps(OLD))
    assert decoded(side, datum(OLD, {"id": 5, "gone": "x"}))[0] == [{"id": 5, "state": "new"}]


def test_each_record_is_read_with_the_schema_of_its_id() -> None:
    side = avro(NEW, registry="schemas", schemas={1: json.dumps(OLD), 2: json.dumps(NEW), 3: "{", 4: '"string"'})
    new, old = datum(NEW, {"id": 7, "state": "paid"}), datum(OLD, {"id": 5, "gone": "x"})
    values = [framed(2, new), framed(1, old), framed(9, new), framed(3, new), framed(4, b"\2x"), new, b"\0\0", None]
    found, faults = decoded(side, *values)
    assert found == [{"id": 7, "state": "paid"}, {"id": 5, "state": "new"}, *[None] * 6]
    assert faults[2] == "ValueError: no file has the schema 9"
    assert faults[3].startswith("ValueError: the schema 3 is not an Avro schema")
    assert faults[4].startswith("SchemaResolutionError")
    assert faults[5] == faults[6] == "ValueError: it does not begin with a zero byte and a schema's id"
    assert 7 not in faults


# --- flat schemas, which the kernel decodes ---------------------------------------------------------------------------

FLAT: dict[str, Any] = ORDER | {
    "fields": [
        {"name": "first", "type": "boolean"},
        *(field for field in ORDER["fields"] if field["name"] not in ("times", "items", "first", "tags", "wide")),
        {"name": "single", "type": ["double"]},
        {"name": "cents", "type": {"type": "fixed", "name": "C", "size": 4, "logicalType": "decimal", "precision": 9}},
        {"name": "local_micros", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    ]
}
FLAT_WRITTEN = {name: value for name, value in WRITTEN.items() if name not in ("times", "items", "tags", "wide")} | {
    "first": True,
    "single": 0.25,
    "cents": decimal.Decimal(-5),
    "local_micros": AT.replace(tzinfo=None),
}
FLAT_READ = FLAT_WRITTEN | {"hour": READ["hour"]}


def read_by_fastavro(side: Side, column: pa.Array[Any]) -> tuple[pa.Array[Any], Faults]:
    """Read with fastavro: an appended field keeps the kernel from decoding the schema."""
    schema = json.loads(side.schema)
    schema = schema | {"fields": [*schema["fields"], {"name": "end", "type": {"type": "array", "items": "int"}}]}
    nested = decoder(avro(schema))
    values = [None if value is None else value + b"\0" for value in column.to_pylist()]
    found, faults = nested(pa.array(values, pa.binary()))
    flat: Any = found
    names = [field.name for field in flat.type][:-1]
    made = pa.StructArray.from_arrays([flat.field(name) for name in names], names=names, mask=flat.is_null())
    return made, faults


def bits(column: Any) -> Any:
    """Return a column whose NaNs compare by their bits."""
    kinds = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
    return column.view(kinds[column.type]) if column.type in kinds else column


def test_a_flat_record_is_read_by_its_schema() -> None:
    flat_schema(avro_schema(json.dumps(FLAT), "value.schema").expanded)
    found, faults = decoded(avro(FLAT), datum(FLAT, FLAT_WRITTEN), None)
    assert found == [FLAT_READ, None]
    assert not faults


HARM = st.tuples(
    st.integers(0, 80), st.integers(0, 3), st.binary(max_size=3) | st.sampled_from([b"\xff" * 9 + b"\1", b"\x80" * 10])
)


@given(st.lists(st.none() | HARM, min_size=1, max_size=10))
def test_rows_and_errors_of_a_flat_schema_are_those_of_fastavro(harms: list[tuple[int, int, bytes] | None]) -> None:
    good = datum(FLAT, FLAT_WRITTEN)
    values: list[bytes | None] = [good]
    for harm in harms:
        place, cut, junk = harm or (0, 0, b"")
        values.append(None if harm is None else good[:place] + junk + good[place + cut :])
    column = pa.array(values, pa.binary())
    found, faults = decoder(avro(FLAT))(column)
    found.validate(full=True)
    oracle, oracle_faults = read_by_fastavro(avro(FLAT), column)
    for mine, its in zip(cast("Any", found).flatten(), cast("Any", oracle).flatten(), strict=True):
        assert bits(mine).equals(bits(its))
    assert found.is_null().equals(oracle.is_null())
    assert faults.keys() == oracle_faults.keys()


def test_records_that_only_fastavro_reads_keep_their_position() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "boolean"}]}
    column: Any = pa.array([b"", b"\0", b"\2", None, b"\1", b"\7", b""], pa.binary())
    found, faults = decoder(avro(schema))(column.slice(1))
    assert found.to_pylist() == [{"b": False}, {"b": True}, None, {"b": True}, {"b": True}, None]
    assert list(faults) == [5]


def test_schemas_that_differ_only_in_docs_share_a_plan() -> None:
    again = FLAT | {"doc": "orders", "fields": [field | {"doc": "of"} for field in FLAT["fields"]]}
    assert flat_schema(avro_schema(json.dumps(again), "").expanded) == flat_schema(
        avro_schema(json.dumps(FLAT), "").expanded
    )
    side = avro(FLAT, registry="schemas", schemas={1: json.dumps(again), 2: json.dumps(FLAT)})
    good = datum(FLAT, FLAT_WRITTEN)
    assert decoded(side, framed(1, good), None, framed(2, good)) == ([FLAT_READ, None, FLAT_READ], {})


@pytest.mark.parametrize(
    "other",
    [
        {"fields": [{"name": "at", "type": "long"}]},
        {"name": "Other"},
        {"fields": [{"name": "other", "type": {"type": "long", "logicalType": "timestamp-millis"}}]},
        {"fields": [{"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}]},
    ],
)
def test_schemas_that_are_read_differently_do_not_share_a_plan(other: dict[str, Any]) -> None:
    at = {"type": "record", "name": "At", "fields": [{"name": "at", "type": FLAT["fields"][6]["type"]}]}
    both = [flat_schema(avro_schema(json.dumps(schema), "").expanded) for schema in (at, at | other)]
    assert both[0] != both[1]


def test_a_nested_schema_logs_once_that_it_is_slow(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        log_if_slow(avro(ORDER), "nested.schema")
        log_if_slow(avro(FLAT), "flat.schema")
    (line,) = caplog.messages
    assert line.startswith("nested.schema: field 'times' is of type map: fastavro decodes the records individually")
    log_if_slow(avro(NEW, writer_schema=json.dumps(OLD)), "evolved.schema")
    assert caplog.messages[1].startswith("evolved.schema: evolved.schema.writer differs from evolved.schema: fastavro")


# --- schemas that cannot be columns ---------------------------------------------------------------------------------

TREE = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "value.schema is not an Avro schema"),
        ('{"type":"array"}', "value.schema is not an Avro schema"),
        ('"strin"', "value.schema is not an Avro schema"),
        (json.dumps(TREE), r"value\.schema\.next: Tree, which contains itself, cannot be a column"),
        ('["int","string"]', "a union of several types cannot be a column"),
        ('"null"', "null alone cannot be a column"),
        ('{"type":"record","name":"R","fields":[]}', "a record without fields"),
        ('{"type":"bytes","logicalType":"decimal","precision":50}', "Spark's decimals have at most 38"),
    ],
)
def test_schemas_that_spark_has_no_type_for_are_refused(schema: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        spark_type(avro_schema(schema, "value.schema").expanded, "value.schema")
