"""Arrow's parser decodes a column as Python's parser does, or is not used."""

from __future__ import annotations

import datetime
import json
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from aiokwire.spark.decode.columns import Column, Faults
from aiokwire.spark.decode.from_json import PIECE, JsonDecoder
from aiokwire.spark.source.schema import arrow_schema

INNER: Final = spark.StructType().add("x", spark.ShortType()).add("ts", spark.ArrayType(spark.TimestampType()))
SCHEMA: Final = (
    spark.StructType()
    .add("a", spark.LongType())
    .add("b", spark.StringType())
    .add("c", spark.DoubleType())
    .add("d", spark.BooleanType())
    .add("t", spark.TimestampType())
    .add("dt", spark.DateType())
    .add("e", spark.ArrayType(spark.IntegerType()))
    .add("f", spark.FloatType())
    .add("g", INNER)
)


def decoder(schema: spark.StructType = SCHEMA) -> JsonDecoder:
    arrow = arrow_schema(spark.StructType().add("value", schema)).field(0).type
    return JsonDecoder(schema, arrow, "value")


FAST: Final = decoder()
SLOW: Final = decoder()
SLOW._readable = None


def column(values: list[bytes | None]) -> Column:
    return pa.array(values, pa.binary())


def both(values: list[bytes | None]) -> tuple[list[Any], Faults]:
    fast, faults = FAST(column(values))
    slow, expected = SLOW(column(values))
    fast.validate(full=True)
    assert fast.type.equals(slow.type)
    assert repr(fast.to_pylist()) == repr(slow.to_pylist()), "compared as text because of NaN"
    assert faults.keys() == expected.keys()
    return fast.to_pylist(), faults


def is_at_once(values: list[bytes | None], by: JsonDecoder = FAST) -> bool:
    return by._at_once(column(values)) is not None


GOOD: Final = (
    b'{"a":1,"b":"caf\xc3\xa9 \\u00e9","c":-1.5e3,"d":true,"t":"2026-01-02T03:04:05.5+01:00","dt":"2026-01-02",'
    b'"e":[1,null],"f":16777217,"g":{"x":4,"ts":["2026-01-02T03:04:05Z"],"y":[{}]},"more":{"a":[]}}'
)


def test_valid_records_are_decoded_by_arrow_in_one_call() -> None:
    values: list[bytes | None] = [GOOD, None, b"{}", b'{"a":null,"g":null,"e":null}', GOOD]
    assert is_at_once(values)
    found, faults = both(values)
    assert not faults
    assert found[0] == found[4]
    assert found[1] is None
    assert found[0]["t"] == datetime.datetime(2026, 1, 2, 2, 4, 5, 500_000, tzinfo=datetime.UTC)
    assert found[0]["g"]["x"] == 4
    assert found[0]["f"] == 16777216.0


def test_columns_without_a_value_are_null() -> None:
    for values in ([None, None], []):
        assert both(list(values)) == (values, {})


def test_times_without_an_offset_are_utc() -> None:
    found, _ = both([b'{"t":"2026-01-02T03:04:05"}', b'{"t":"2026-01-02"}'])
    assert is_at_once([b'{"t":"2026-01-02T03:04:05"}', b'{"t":"2026-01-02"}'])
    assert found[1]["t"] == datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "values",
    [
        [b"null", b"{}"],
        [b"{}null", b"{}"],
        [b"{} null{}", b"{}", b""],
        [b'{"a":1}{"a":2}', b""],
        [b'{"a":', b"1}", b"{}{}"],
        [b'{"g":', b'{"x":1}}', b"{}{}"],
        [b'{"a":1}\n{"a":2}', b""],
        [b'{\n"a":1\n}'],
        [b" {}", b"\t"],
        [b'{"z":Inf}', b'{"c":Infinity}', b'{"c":-Infinity}', b'{"c":NaN}'],
        [b'{"a":1,"a":2}'],
        [b'{"a":"1"}'],
        [b'{"a":1.0}'],
        [b'{"a":9223372036854775808}'],
        [b'{"c":1e400}', b'{"c":1e-400}', b'{"f":1e39}'],
        [b'{"b":5}', b'{"b":{"x":1}}'],
        [b'{"b":"\\ud800"}'],
        [b'{"z":"\xff"}'],
        [b'{"t":5}', b'{"t":"20260102T030405Z"}', b'{"t":"2026-01-02T03:04:05.1234567Z"}'],
        [b'{"t":"0000-01-01T00:00:00Z"}', b'{"dt":"0000-01-01"}', b'{"dt":"2026-02-30"}'],
        [b'{"t":"2026-01-02T03:04:05Z"}', b'{"t":"2026-01-02T03:04:05"}'],
        [b'{"a":1}\x00', b'{"a":1}\x00{"a":2}'],
        [b'{"e":[1.5]}', b'{"e":{}}', b'{"g":[]}'],
        ["{}".encode("utf-16")],
        [b'{"a":1}, {"a":2}'],
    ],
)
def test_where_the_parsers_differ_the_result_is_that_of_python(values: list[bytes | None]) -> None:
    for mixed in (values, [GOOD, *values, GOOD], [b'{"a":1}', *reversed(values)]):
        both(list(mixed))


def test_a_malformed_record_does_not_affect_the_others() -> None:
    values: list[bytes | None] = [b'{"a":%d}' % number for number in range(3 * PIECE)]
    values[PIECE + 5] = b"{"
    assert not is_at_once(values)
    found, faults = FAST(column(values))
    assert list(faults) == [PIECE + 5]
    assert [each and each["a"] for each in found.to_pylist()] == [
        None if number == PIECE + 5 else number for number in range(3 * PIECE)
    ]


@pytest.mark.parametrize("kind", [spark.DecimalType(6, 2), spark.BinaryType(), spark.TimestampNTZType()])
def test_types_that_arrow_reads_differently_are_left_to_python(kind: spark.DataType) -> None:
    assert decoder(spark.StructType().add("a", kind))._readable is None


NUMBERS: Final = st.one_of(st.integers(-(2**63), 2**63), st.integers(-9, 9), st.floats())
TEXTS: Final = st.one_of(st.text(max_size=5), st.sampled_from(["}null", "}{", ": Inf", "\n", "2026-01-02"]))
TIMES: Final = st.one_of(st.datetimes().map(datetime.datetime.isoformat), st.dates().map(datetime.date.isoformat))
ANY: Final = st.one_of(st.none(), NUMBERS, TEXTS, TIMES, st.booleans(), st.lists(st.integers(), max_size=2))
RIGHT: Final[dict[str, st.SearchStrategy[Any]]] = {
    "a": st.integers(-9, 9),
    "b": TEXTS,
    "c": st.floats(),
    "d": st.booleans(),
    "t": TIMES,
    "dt": st.dates().map(datetime.date.isoformat),
    "e": st.lists(st.integers(-9, 9), max_size=2),
    "f": st.floats(width=32),
    "g": st.fixed_dictionaries({"x": st.integers(-9, 9), "ts": st.lists(TIMES, max_size=2), "y": ANY}),
    "z": ANY,
}
OBJECTS: Final = st.one_of(
    st.fixed_dictionaries({}, optional=RIGHT), st.fixed_dictionaries({}, optional=dict.fromkeys(RIGHT, ANY))
)
DOCUMENTS: Final = st.builds(
    lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace"),
    OBJECTS,
    st.booleans(),
)
JUNK: Final = st.sampled_from([b"{", b"}", b"null", b",", b'"', b"\\", b"\n", b"\xff", b"\0", b"Inf", b"{}", b"1", b""])


@st.composite
def corrupt_documents(draw: st.DrawFn) -> bytes:
    data = draw(DOCUMENTS)
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(JUNK) + data[place + draw(st.integers(0, 2)) :]


@given(st.lists(st.one_of(DOCUMENTS, DOCUMENTS, DOCUMENTS, st.none(), corrupt_documents()), min_size=1, max_size=3))
def test_every_column_equals_that_of_pythons_parser(values: list[bytes | None]) -> None:
    both(values)
