"""Flat Avro data as columns: the kernel must agree with fastavro on each datum.

`integration/asan/run.py` runs these once more under AddressSanitizer.
"""

from __future__ import annotations

import array
import decimal
import io
import itertools
import math
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.records import AvroField, AvroPlan, framed_ids

DIGITS = decimal.Context(prec=38)
HOSTILE = st.sampled_from(
    [b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\x80" * 10, b"\x80" * 9 + b"\x02", b"\xff" * 4 + b"\x0f", b"\x01", b"\0"]
)


class Kind(NamedTuple):
    """A type of a field: Avro's, the kernel's, Arrow's, and values of it."""

    avro: Any
    field: AvroField
    arrow: pa.DataType
    values: st.SearchStrategy[Any]


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    numbers = st.integers(1 - 10**digits, 10**digits - 1)
    return numbers.map(lambda number: decimal.Decimal(number).scaleb(-scale, DIGITS))


def number_of(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


KINDS = [
    Kind("boolean", AvroField("boolean"), pa.bool_(), st.booleans()),
    Kind("int", AvroField("int"), pa.int32(), number_of(32)),
    Kind("long", AvroField("long"), pa.int64(), number_of(64)),
    Kind("float", AvroField("float"), pa.float32(), st.floats(width=32)),
    Kind("double", AvroField("double"), pa.float64(), st.floats()),
    Kind("string", AvroField("string"), pa.string(), st.text(max_size=20)),
    Kind("bytes", AvroField("bytes"), pa.binary(), st.binary(max_size=20)),
    Kind(
        {"type": "fixed", "name": "F", "size": 3},
        AvroField("fixed", size=3),
        pa.binary(),
        st.binary(min_size=3, max_size=3),
    ),
    Kind(
        {"type": "enum", "name": "E", "symbols": ["NEW", "PAID_IN_FULL", "X"]},
        AvroField("enum", symbols=("NEW", "PAID_IN_FULL", "X")),
        pa.string(),
        st.sampled_from(["NEW", "PAID_IN_FULL", "X"]),
    ),
    Kind(
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
        AvroField("decimal", limit=10**38),
        pa.decimal128(38, 10),
        decimals(38, 10),
    ),
    Kind(
        {"type": "bytes", "logicalType": "decimal", "precision": 5},
        AvroField("decimal", limit=10**5),
        pa.decimal128(5, 0),
        decimals(5, 0),
    ),
    Kind(
        {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 30, "scale": 2},
        AvroField("fixed-decimal", size=20, limit=10**30),
        pa.decimal128(30, 2),
        decimals(30, 2),
    ),
]


class Case(NamedTuple):
    """A schema, how the kernel has it, and data of it."""

    schema: Any
    fields: list[AvroField]
    types: list[pa.DataType]
    rows: list[dict[str, Any] | None]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    avro, fields, types, values = [], [], [], {}
    for number, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))):
        name = f"f{number}"
        own = dict(kind.avro, name=f"T{number}") if "name" in kind.avro else kind.avro
        null = draw(st.sampled_from([None, 0, 1]))
        union = {None: own, 0: ["null", own], 1: [own, "null"]}[null]
        avro.append({"name": name, "type": union})
        fields.append(kind.field if null is None else kind.field._replace(branches=2, null_branch=null))
        types.append(kind.arrow)
        values[name] = kind.values if null is None else st.none() | kind.values
    schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": avro})
    return Case(schema, fields, types, draw(st.lists(st.none() | st.fixed_dictionaries(values), max_size=20)))


def datum(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


class Decoded(NamedTuple):
    """By row: its fields, or None; and which rows were refused."""

    rows: list[tuple[Any, ...] | None]
    refused: list[int]


def decoded(plan: AvroPlan, types: list[pa.DataType], column: Any, ids: list[int] | None = None) -> Decoded:
    """What the kernel makes of a column, through Arrow, which checks the buffers."""
    validity, offsets, data = column.buffers()
    found = plan.decode(offsets, data, validity, column.offset, len(column), ids)
    rows = len(column)
    columns = []
    for kind, (present, places, content, nulls) in zip(types, found.columns, strict=True):
        buffers = [each for each in (places, content) if each is not None]
        memory = [None if present is None else pa.py_buffer(present), *map(pa.py_buffer, buffers)]
        made: Any = pa.Array.from_buffers(kind, rows, memory, nulls)
        made.validate(full=True)
        columns.append(made.to_pylist())
    valid = pa.Array.from_buffers(
        pa.bool_(), rows, [None, pa.py_buffer(found.validity or b"\xff" * (rows // 8 + 1))]
    ).to_pylist()
    assert valid.count(False) == found.nulls
    values = list(zip(*columns, strict=True))
    assert all(values[row] == (None,) * len(types) for row in range(rows) if not valid[row])
    return Decoded([values[row] if valid[row] else None for row in range(rows)], found.refused)


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def expected(rows: list[dict[str, Any] | None]) -> list[tuple[Any, ...] | None]:
    return [None if row is None else tuple(comparable(row[name]) for name in sorted(row)) for row in rows]


def shown(rows: list[tuple[Any, ...] | None]) -> list[tuple[Any, ...] | None]:
    return [None if row is None else tuple(map(comparable, row)) for row in rows]


@given(cases(), st.integers(0, 3))
def test_rows_come_out_as_they_were_written(case: Case, skipped: int) -> None:
    written = [None if row is None else datum(case.schema, row) for row in case.rows]
    column: Any = pa.array(written, pa.binary()).slice(skipped)
    found = decoded(AvroPlan(case.fields), case.types, column)
    assert not found.refused
    assert shown(found.rows) == expected(case.rows[skipped:])


@given(cases(), st.data())
def test_corrupt_rows_are_rejected_or_decoded_as_by_fastavro(case: Case, data: st.DataObject) -> None:
    written: list[bytes] = []
    for row in case.rows:
        good = b"" if row is None else datum(case.schema, row)
        place, cut = data.draw(st.integers(0, len(good))), data.draw(st.integers(0, 3))
        written.append(good[:place] + data.draw(HOSTILE | st.binary(max_size=3)) + good[place + cut :])
    found = decoded(AvroPlan(case.fields), case.types, pa.array(written, pa.binary()))
    for number, value in enumerate(written):
        if number in found.refused:
            assert found.rows[number] is None
            continue
        stream = io.BytesIO(value)
        read: Any = fastavro.schemaless_reader(stream, case.schema, None)
        assert not stream.read()
        assert shown([found.rows[number]]) == expected([read])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (AvroField("long"), b""),
        (AvroField("long"), b"\x80"),
        (AvroField("long"), b"\2x"),
        (AvroField("long"), b"\xff" * 9 + b"\2"),
        (AvroField("long"), b"\x80" * 10 + b"\1"),
        (AvroField("int"), b"\x80\x80\x80\x80\x10"),
        (AvroField("long", 2, 0), b"\4\2"),
        (AvroField("long", 2, 0), b"\1\2"),
        (AvroField("long", 1), b"\2\2"),
        (AvroField("string"), b"\1"),
        (AvroField("string"), b"\6ab"),
        (AvroField("string"), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1ab"),
        (AvroField("string"), b"\4\xc3("),
        (AvroField("bytes"), b"\1"),
        (AvroField("bytes"), b"\xff\xff\xff\xff\x0f"),
        (AvroField("boolean"), b"\2"),
        (AvroField("boolean"), b""),
        (AvroField("float"), b"\0\0\0"),
        (AvroField("double"), b"\0" * 7),
        (AvroField("fixed", size=4), b"\0\0\0"),
        (AvroField("enum", symbols=("A",)), b"\2"),
        (AvroField("enum", symbols=("A",)), b"\1"),
        (AvroField("millis"), b"\xff" * 9 + b"\1"),
        (AvroField("decimal", limit=1000), b"\0"),
        (AvroField("decimal", limit=1000), b"\4\3\xe8"),
        (AvroField("decimal", limit=1000), b"\4\xfc\x18"),
        (AvroField("decimal", limit=10**38), b"\x22" + b"\1" + b"\0" * 16),
        (AvroField("decimal", limit=10**38), b"\x22" + b"\0" + b"\xff" * 16),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing_behind(field: AvroField, value: bytes) -> None:
    text = AvroField("string")
    column: Any = pa.array([b"\2a" + value, None], pa.binary())
    validity, places, content = column.buffers()
    found = AvroPlan([text, field]).decode(places, content, validity, 0, 2)
    assert found.refused == [0]
    assert found.nulls == 2
    _, offsets, data, nulls = found.columns[0]
    assert offsets is not None
    assert list(memoryview(offsets).cast("i")) == [0, 0, 0]
    assert len(data) == 0
    assert nulls == 2


def test_milliseconds_become_microseconds() -> None:
    schema = fastavro.parse_schema("long")
    times = [0, 1, -1, 1_700_000_000_123, 9223372036854775, -9223372036854775, 9223372036854776, -9223372036854776]
    column = pa.array([datum(schema, time) for time in times])
    found = decoded(AvroPlan([AvroField("millis")]), [pa.int64()], column)
    assert found.refused == [6, 7]
    assert [row and row[0] for row in found.rows] == [*(time * 1000 for time in times[:6]), None, None]


def test_text_is_what_pythons_decoder_takes() -> None:
    edges = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED]
    edges += [0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    texts = [bytes(text) for size in (1, 2, 3) for text in itertools.product(edges, repeat=size)]
    texts += [
        bytes([first, second, 0x80, last]) for first in edges for second in edges for last in (0x7F, 0x80, 0xBF, 0xC0)
    ]
    column = pa.array([bytes([2 * len(text)]) + text for text in texts])
    found = decoded(AvroPlan([AvroField("string")]), [pa.string()], column)

    def is_text(text: bytes) -> bool:
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert found.refused == [row for row, text in enumerate(texts) if not is_text(text)]


def test_a_record_in_a_union_with_null_may_be_null_and_nothing_else_may_follow() -> None:
    plan = AvroPlan([AvroField("long")], branches=2, null_branch=0)
    found = decoded(plan, [pa.int64()], pa.array([b"\0", b"\2\4", b"\0\0", b"\4\4", b""]))
    assert found == Decoded([None, (2,), None, None, None], [2, 3, 4])


def test_only_rows_of_known_ids_are_read() -> None:
    framed = [b"\0\0\0\0\7\2", b"\0\xff\0\0\1\4", b"\0\0\0\0\x08\2", b"\1\0\0\0\7\2", b"\0\0\0", None, b"\0\0\0\0\7"]
    column: Any = pa.array(framed, pa.binary())
    validity, offsets, data = column.buffers()
    assert framed_ids(offsets, data, validity, 0, len(framed)) == [7, 0xFF000001, 8]
    found = decoded(AvroPlan([AvroField("long")]), [pa.int64()], column, [0xFF000001, 7])
    assert found == Decoded([(1,), (2,), None, None, None, None, None], [2, 3, 4, 6])


def test_buffers_that_end_before_their_rows_are_refused() -> None:
    plan = AvroPlan([AvroField("long")])
    offsets = array.array("i", [0, 1])
    with pytest.raises(ValueError, match="offsets"):
        plan.decode(offsets, b"\2", None, 0, 2)
    with pytest.raises(ValueError, match="offsets"):
        plan.decode(offsets, b"\2", None, -1, 1)
    with pytest.raises(ValueError, match="validity"):
        plan.decode(array.array("i", [0] * 20), b"", b"\0", 0, 10)


def test_offsets_outside_of_the_data_are_empty_values() -> None:
    offsets = array.array("i", [0, 5, 3, -1, 1])
    found = AvroPlan([AvroField("long")]).decode(offsets, b"\2\2", None, 0, 4)
    assert found.refused == [0, 1, 2, 3]


def test_impossible_fields_are_rejected() -> None:
    with pytest.raises(KeyError):
        AvroPlan([AvroField("map")])
    with pytest.raises(ValueError, match="negative"):
        AvroPlan([AvroField("fixed", size=-1)])
