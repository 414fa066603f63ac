"""Columns and to_arrow: the same records as `records()` returns, valid by Arrow's full check."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ConfigurationError, CorruptRecord, InvalidArgument
from aiokwire.records import (
    Columns,
    Record,
    RecordBatch,
    Spare,
    columns_to_arrow,
    compress,
    fill_columns,
    read_batches,
    records_to_arrow,
    to_arrow,
)
from aiokwire.records._arrow_c import export
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, rows

_MICROSECONDS = pa.timestamp("us", "UTC")
ROWS = [Row(index, 1000 + index, b"k", b"v%d" % index, (("h", b"x"),) * (index % 3)) for index in range(20)]


def as_rows(table: pa.RecordBatch) -> list[tuple[object, ...]]:
    table.validate(full=True)
    # timestamps far outside of datetime's years are compared as numbers
    columns = [
        column.cast(pa.int64()) if name == "timestamp" else column
        for name, column in zip(table.schema.names, table.columns, strict=True)
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def wanted(record: Record) -> tuple[object, ...]:
    headers = [{"name": name, "value": value} for name, value in record.headers]
    kind = int(record.timestamp_type)
    return record.topic, record.partition, record.offset, record.timestamp, kind, record.key, record.value, headers


def batch_of(data: bytes, topic: str = "t", partition: int = 3) -> RecordBatch:
    (batch,) = read_batches(data, topic, partition)
    return batch


@given(st.lists(st.tuples(rows(gaps=True), CODECS, st.sampled_from(["a", "b"]), st.integers(0, 300)), max_size=4))
def test_arrow_holds_what_records_holds(parts: list[tuple[list[Row], int, str, int]]) -> None:
    batches, from_offsets, records = [], [], []
    for content, codec, topic, from_offset in parts:
        payload = compress(codec, b"".join(reference.record(row, content[0].timestamp) for row in content))
        batch = batch_of(reference.batch(payload, content, attributes=int(codec)), topic, from_offset)
        batches.append(batch)
        from_offsets.append(from_offset)
        records += batch.records(from_offset)
    assert as_rows(to_arrow(batches, from_offsets)) == [wanted(record) for record in records]


@given(rows(gaps=True), st.integers(0, 300), st.integers(0, 300))
def test_columns_take_the_records_between_two_offsets(content: list[Row], start: int, end: int) -> None:
    batch = batch_of(reference.batch(b"".join(reference.record(row, content[0].timestamp) for row in content), content))
    columns = Columns()
    batch.add_to(columns, start, end)
    expected = [wanted(record) for record in batch.records(start) if record.offset < end]
    assert as_rows(columns_to_arrow(columns)) == expected


def test_columns_that_are_not_wanted_are_null_or_empty() -> None:
    batch = batch_of(reference.batch(b"".join(reference.record(row, 1000) for row in ROWS), ROWS))
    whole = [wanted(record) for record in batch.records()] * 2
    for want in ("keys", "values", "headers"):
        unwanted: dict[str, Any] = {want: False}
        columns = Columns(**unwanted)
        batch.add_to(columns)
        batch.add_to(columns)
        places: dict[str, tuple[int, object]] = {"keys": (5, None), "values": (6, None), "headers": (7, [])}
        index, empty = places[want]
        assert as_rows(columns_to_arrow(columns)) == [(*row[:index], empty, *row[index + 1 :]) for row in whole]


@given(st.lists(rows(gaps=True), max_size=3))
def test_microseconds_are_a_thousand_times_what_the_batch_holds(parts: list[list[Row]]) -> None:
    columns = Columns(microseconds=True)
    times: list[int] = []
    for content in parts:
        payload = b"".join(reference.record(row, content[0].timestamp) for row in content)
        batch = batch_of(reference.batch(payload, content))
        batch.add_to(columns)
        times += [record.timestamp for record in batch.records()]
    table = columns_to_arrow(columns)
    table.validate(full=True)
    assert (table.column("timestamp").type, table.column("timestamp_type").type) == (_MICROSECONDS, pa.int32())
    assert table.column("timestamp_type").to_pylist() == [0] * len(times)
    most = (2**63 - 1) // 1000
    strange = [(row, time) for row, time in enumerate(times) if abs(time) > most]
    assert columns.out_of_range == (strange[0] if strange else None)
    found = table.column("timestamp").cast(pa.int64()).to_pylist()
    assert found == [time * 1000 if abs(time) <= most else 0 for time in times]


def test_a_time_out_of_range_is_forgotten_with_its_corrupt_batch() -> None:
    strange = [Row(0, 2**62, None, None), Row(1, 2**62, None, None)]
    payload = reference.record(strange[0], 2**62) + b"\x0e" + b"\xff" * 7
    columns = Columns(microseconds=True)
    with pytest.raises(CorruptRecord):
        batch_of(reference.batch(payload, strange)).add_to(columns)
    batch_of(reference.plain_batch(ROWS)).add_to(columns)
    assert columns.out_of_range is None
    assert columns_to_arrow(columns).column("timestamp").cast(pa.int64())[0].as_py() == 1_000_000


def test_message_sets_become_columns_too() -> None:
    for magic in (0, 1):
        batch = batch_of(reference.message_set(magic, ROWS, 50))
        assert as_rows(to_arrow([batch])) == [wanted(record) for record in batch.records()]


def test_many_rows_fill_many_bytes_of_the_bitmaps() -> None:
    content = [Row(index, 5, None if index % 3 else b"k", b"v" * 99 if index % 5 else None) for index in range(5000)]
    batches = [batch_of(reference.plain_batch(content, base_offset=base)) for base in (0, 5000)]
    expected = [wanted(record) for batch in batches for record in batch.records()][7:]
    assert as_rows(to_arrow(batches, [7, 0])) == expected


def test_nothing_is_a_valid_table() -> None:
    assert as_rows(to_arrow([])) == []
    assert as_rows(to_arrow([batch_of(reference.plain_batch(ROWS))], [99])) == []


def test_foreign_header_names_stay_valid_text() -> None:
    body = b"\0\0\0\1\1" + reference.varint(1) + reference.sized(b"\xff\xfe") + reference.sized(b"x")
    data = reference.batch(reference.varint(len(body)) + body, [Row(0, 1, None, None)])
    assert as_rows(to_arrow([batch_of(data)]))[0][-1] == [{"name": "\ufffd\ufffd", "value": b"x"}]


def test_a_corrupt_batch_adds_no_row() -> None:
    good = batch_of(reference.plain_batch(ROWS))
    payload = b"".join(reference.record(row, 1000) for row in ROWS[:-1]) + b"\x0e" + b"\xff" * 7
    bad = batch_of(reference.batch(payload, ROWS, base_offset=20))
    for before in (0, 1):
        columns = Columns()
        for _ in range(before):
            good.add_to(columns)
        with pytest.raises(CorruptRecord) as caught:
            bad.add_to(columns)
        assert 20 <= caught.value.offset < 40
        good.add_to(columns, 5)
        expected = good.records() * before + good.records(5)
        assert as_rows(columns_to_arrow(columns)) == [wanted(record) for record in expected]


def test_columns_that_were_returned_accept_no_more_records() -> None:
    batch = batch_of(reference.plain_batch(ROWS))
    columns = batch.columns()
    buffers = columns.buffers()
    assert len(columns) == 20
    assert columns.buffers() is buffers
    assert memoryview(buffers["value"][2]).readonly
    with pytest.raises(InvalidArgument, match="handed out already"):
        batch.add_to(columns)


def test_a_column_lives_on_when_its_batch_is_gone() -> None:
    batch = batch_of(reference.plain_batch(ROWS))
    table = to_arrow([batch])
    topic, values, headers = table.column("topic").slice(3, 2), table.column("value").slice(18), table.column("headers")
    expected = [wanted(record)[-1] for record in batch.records()]
    del table, batch
    gc.collect()
    assert topic.to_pylist() == ["t", "t"]
    assert values.to_pylist() == [b"v18", b"v19"]
    assert headers.to_pylist() == expected
    pairs = headers.flatten()  # type: ignore[attr-defined]  # the stubs do not know lists
    del headers
    assert pairs.field("name").unique().to_pylist() == ["h"]


def test_arrow_gives_every_buffer_back() -> None:
    columns = batch_of(reference.plain_batch(ROWS)).columns()
    parts = columns.buffers()
    held = sys.getrefcount(parts)
    table = columns_to_arrow(columns)
    assert sys.getrefcount(parts) > held
    del table
    assert sys.getrefcount(parts) == held
    export(columns, ("topic", "headers"))  # never imported
    assert sys.getrefcount(parts) == held
    with pytest.raises(KeyError, match="colour"):
        export(columns, ("topic", "colour"))
    assert sys.getrefcount(parts) == held
    with pytest.raises(ValueError, match="twice"):
        export(columns, ("key",) * 9)


@given(
    st.lists(rows(gaps=True), min_size=1, max_size=6),
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(1, 30),
    st.integers(1, 400),
)
def test_batches_fill_one_set_of_columns_after_the_other(
    contents: list[list[Row]], start: int, end: int, most: int, size: int
) -> None:
    batches = [batch_of(reference.plain_batch(content), partition=at) for at, content in enumerate(contents)]
    expected = [wanted(each) for batch in batches for each in batch.records(start) if each.offset < end]
    spare, found, at = Spare(), list[tuple[object, ...]](), 0
    while at < len(batches):
        columns, before = Columns(spare=spare), at
        at = fill_columns(columns, batches, at, start, end, most, size)
        assert at > before
        if at < len(batches):
            assert len(columns) >= most or _bytes(columns_to_arrow(columns)) >= size
        found += as_rows(columns_to_arrow(columns))
        del columns
    assert found == expected


def _bytes(table: pa.RecordBatch) -> int:
    sides: list[Any] = [*table.column("key").to_pylist(), *table.column("value").to_pylist()]
    lists: list[Any] = table.column("headers").to_pylist()
    pairs = [pair for headers in lists for pair in headers]
    sides += [pair["name"].encode() for pair in pairs] + [pair["value"] for pair in pairs]
    return sum(len(side) for side in sides if side is not None)


def test_filling_stops_at_a_corrupt_batch_and_keeps_earlier_records() -> None:
    good = batch_of(reference.plain_batch(ROWS))
    bad = batch_of(reference.batch(reference.record(ROWS[0], 1000) + b"\xff\xff", ROWS[:1], base_offset=20))
    columns = Columns()
    with pytest.raises(CorruptRecord):
        fill_columns(columns, [good, bad, good])
    assert as_rows(columns_to_arrow(columns)) == [wanted(record) for record in good.records()]
    with pytest.raises(TypeError):
        fill_columns(Columns(), [good, None])  # type: ignore[list-item]  # what the kernel must refuse


def test_spare_memory_is_used_again_once_arrow_has_let_go_of_it() -> None:
    spare = Spare()
    batch = batch_of(reference.plain_batch(ROWS))
    first, second = (Columns(spare=spare) for _ in range(2))
    batch.add_to(first)
    batch.add_to(second, 10)
    tables = [columns_to_arrow(first), columns_to_arrow(second)]
    del first, second
    held = spare.size  # bitmaps: no key or value is null
    kept = tables[0].column("value")
    tables.clear()
    ready = spare.size
    assert ready > held
    again = Columns(spare=spare)
    assert spare.size < ready
    batch.add_to(again, 15)
    assert as_rows(columns_to_arrow(again)) == [wanted(record) for record in batch.records(15)]
    assert kept.to_pylist() == [row.value for row in ROWS], "memory that is still referenced is not reused"
    again = Columns(spare=spare)
    batch.add_to(again)
    ready = spare.size
    del again
    assert spare.size > ready, "columns that were never handed out give it back, too"


def test_spare_memory_is_bounded() -> None:
    spare = Spare()
    content = [Row(index, 5, b"k" * 50, b"v" * 50) for index in range(200)]
    batch = batch_of(reference.plain_batch(content))
    sizes = []
    for count in (1, 3, 9):
        many = [Columns(spare=spare) for _ in range(count)]
        for columns in many:
            batch.add_to(columns)
        tables = [columns_to_arrow(columns) for columns in many]
        del many, columns, tables
        sizes.append(spare.size)
    assert 0 < sizes[0] < sizes[1] == sizes[2]
    huge = Columns(spare=spare)
    batch_of(reference.plain_batch([Row(0, 5, None, b"v" * (33 << 20))])).add_to(huge)
    del huge
    assert spare.size < 1 << 20


def test_only_the_columns_that_are_named_are_made() -> None:
    columns = batch_of(reference.plain_batch(ROWS)).columns()
    table = columns_to_arrow(columns, ["value", "offset"])
    assert table.schema.names == ["value", "offset"]
    assert table.column("value").to_pylist() == [row.value for row in ROWS]
    assert table.column("offset").to_pylist() == list(range(len(ROWS)))


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r"install aiokwire\[arrow\]"):
        to_arrow([])


@given(st.lists(st.tuples(rows(gaps=True), st.sampled_from(["a", "b"])), max_size=4), st.booleans())
def test_records_become_the_same_columns_as_their_batches(parts: list[tuple[list[Row], str]], twice: bool) -> None:
    batches = [
        batch_of(reference.plain_batch(content), topic, number)
        for number, (content, topic) in enumerate(parts)
        if content
    ]
    records = [record for batch in batches for record in batch.records()]
    table = records_to_arrow(records)
    assert table.equals(to_arrow(batches))
    if twice:
        columns = Columns()
        columns.add_records(records)
        columns.add_records(records)
        assert as_rows(columns_to_arrow(columns)) == [wanted(record) for record in records + records]
