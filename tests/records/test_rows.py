"""Arrow arrays into record batches: the same records as record by record, whatever the layout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.records import ArrowRows, BatchBuilder, Record, murmur2, read_batches, rows_of
from aiokwire.types import Compression
from tests.records.strategies import CODECS, CONTENTS, HEADERS

NOW = 1_700_000_000_000
PAIR = pa.struct([("name", pa.string()), ("value", pa.binary())])
STAMPS = st.one_of(st.none(), st.integers(0, 2_000_000_000_000))
ROW = st.tuples(CONTENTS, CONTENTS, HEADERS, STAMPS, st.one_of(st.none(), st.integers(0, 2)))
Given = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int | None, int | None]


def record_batch(rows: list[Given], kinds: tuple[pa.DataType, pa.DataType]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([row[0] for row in rows], kinds[0]),
            "value": pa.array([row[1] for row in rows], kinds[0]),
            "headers": pa.array([list(row[2]) for row in rows], kinds[1]),
            "timestamp": pa.array([row[3] for row in rows], pa.int64()),
            "partition": pa.array([row[4] for row in rows], pa.int32()),
        }
    )


def expected(rows: list[Given], partitions: int, batch_size: int, codec: Compression) -> dict[int, list[bytes]]:
    """What `BatchBuilder` makes of them, one record at a time."""
    builders: dict[int, BatchBuilder] = {}
    batches: dict[int, list[bytes]] = {}
    turn = 0

    def seal(at: int) -> None:
        batches.setdefault(at, []).append(bytes(builders.pop(at).seal(compression=codec)))

    for key, value, headers, timestamp, partition in rows:
        if partition is not None:
            at = partition
        elif key is not None:
            at = (murmur2(key) & 0x7FFFFFFF) % partitions
        else:
            at, turn = turn, (turn + 1) % partitions
        record = (NOW if timestamp is None else timestamp, key, value, headers)
        if builders.setdefault(at, BatchBuilder(2, batch_size)).append(*record) < 0:
            seal(at)
            builders[at] = BatchBuilder(2, batch_size)
            builders[at].append(*record)
    for at in sorted(builders):
        seal(at)
    return batches


def records(data: dict[int, list[Any]]) -> dict[int, list[Record]]:
    return {
        partition: [record for part in parts for batch in read_batches(part, "t", 0) for record in batch.records()]
        for partition, parts in data.items()
    }


def encoded(batch: pa.RecordBatch, partitions: int = 3, **options: Any) -> dict[int, list[bytes]]:
    found = rows_of(batch).encode(partitions, NOW, **options)
    return {partition: [bytes(part) for part in parts] for partition, parts in found.items()}


@given(
    st.lists(ROW, max_size=30),
    CODECS,
    st.sampled_from([1, 300, 16384]),
    st.sampled_from([(pa.binary(), pa.list_(PAIR)), (pa.large_binary(), pa.large_list(PAIR))]),
    st.integers(0, 5),
)
def test_the_bytes_are_those_of_the_record_by_record_builder(
    rows: list[Given], codec: Compression, batch_size: int, kinds: tuple[pa.DataType, pa.DataType], cut: int
) -> None:
    batch = record_batch(rows, kinds).slice(cut)
    batch.validate(full=True)
    found = encoded(batch, batch_size=batch_size, compression=codec)
    assert found == expected(rows[cut:], 3, batch_size, codec)


def test_records_come_back_as_they_were_given() -> None:
    rows: list[Given] = [(b"k", None, (("h", None), ("é", b"x")), 5, 1), (None, b"", (), None, 1)]
    (read,) = records(encoded(record_batch(rows, (pa.binary(), pa.list_(PAIR))))).values()
    assert [(r.key, r.value, r.headers, r.timestamp) for r in read] == [
        (b"k", None, (("h", None), ("é", b"x")), 5),
        (None, b"", (), NOW),
    ]


VALUES = [b"abc", None, b"", b"defg", b"abc", b"x" * 40]
LAYOUTS: dict[str, Callable[[], Any]] = {
    "text": lambda: pa.array([None if v is None else v.decode() for v in VALUES], pa.string()),
    "large text": lambda: pa.array([None if v is None else v.decode() for v in VALUES], pa.large_string()),
    "binary view": lambda: pa.array(VALUES, pa.binary_view()),
    "text view": lambda: pa.array([None if v is None else v.decode() for v in VALUES], pa.string_view()),
    "dictionary": lambda: pa.array(VALUES, pa.binary()).dictionary_encode(),
    "slice of more": lambda: pa.array([b"zz", None, *VALUES, b"yy"], pa.binary()).slice(2, len(VALUES)),
    "joined": lambda: pa.chunked_array([VALUES[:2], VALUES[2:]], pa.binary()).combine_chunks(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_bytes_mean_the_same(layout: str) -> None:
    array = LAYOUTS[layout]()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    (read,) = records(encoded(pa.record_batch({"key": array, "value": array}), 1)).values()
    assert [record.value for record in read] == VALUES
    assert [record.key for record in read] == VALUES


def test_fixed_size_binary_and_null_columns() -> None:
    batch = pa.record_batch({"value": pa.array([b"ab", None], pa.binary(2)), "key": pa.nulls(2)})
    (read,) = records(encoded(batch, 1)).values()
    assert [(record.key, record.value) for record in read] == [(None, b"ab"), (None, None)]


@given(st.data())
def test_slices_of_slices_hold_the_same_rows(data: st.DataObject) -> None:
    rows = data.draw(st.lists(ROW, min_size=1, max_size=20))
    batch = record_batch(rows, (pa.binary(), pa.list_(PAIR)))
    start = 0
    for _ in range(2):
        cut = data.draw(st.integers(0, batch.num_rows))
        batch, start = batch.slice(cut, data.draw(st.integers(0, batch.num_rows - cut))), start + cut
    assert encoded(batch) == expected(rows[start : start + batch.num_rows], 3, 1_000_012, Compression.NONE)


@pytest.mark.parametrize(
    ("unit", "stamp", "ms"),
    [("s", 7, 7000), ("ms", 7, 7), ("us", 7999, 7), ("ns", 7_999_999, 7)],
)
def test_timestamps_become_milliseconds(unit: str, stamp: int, ms: int) -> None:
    batch = pa.record_batch({"timestamp": pa.array([stamp, None], pa.int64()).cast(pa.timestamp(unit, "UTC"))})
    (read,) = records(encoded(batch, 1)).values()
    assert [record.timestamp for record in read] == [ms, NOW]


@pytest.mark.parametrize(("unit", "stamp"), [("us", -1), ("ms", -1), ("s", -1), ("s", 1 << 62), ("ms", (1 << 62) + 1)])
def test_a_timestamp_that_kafka_has_not_names_its_row(unit: str, stamp: int) -> None:
    batch = pa.record_batch({"timestamp": pa.array([0, stamp], pa.int64()).cast(pa.timestamp(unit))})
    with pytest.raises(InvalidArgument, match="row 1: timestamp"):
        encoded(batch)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32()])
def test_a_partition_may_be_any_whole_number(kind: pa.DataType) -> None:
    batch = pa.record_batch({"value": pa.array([b"v", b"w"]), "partition": pa.array([2, 0], kind)})
    assert sorted(encoded(batch)) == [0, 2]


@pytest.mark.parametrize(
    ("number", "message"), [(-1, "a number from 0, not -1"), (3, "there are 3"), (1 << 40, "not 1099")]
)
def test_a_wrong_partition_names_its_row(number: int, message: str) -> None:
    batch = pa.record_batch({"partition": pa.array([0, number], pa.int64())})
    with pytest.raises(InvalidArgument, match=rf"row 1: .*{message}"):
        encoded(batch)


BAD_COLUMNS = {
    "not a field of a record": {"offset": pa.array([1])},
    "value must be binary or text, not int64": {"value": pa.array([1])},
    "headers must be lists of structs": {"headers": pa.array([[1]])},
    "headers must be lists": {"headers": pa.array(["x"])},
    "timestamp must be": {"timestamp": pa.array(["x"])},
    "partition must be a whole number": {"partition": pa.array([1.5])},
}


@pytest.mark.parametrize("message", BAD_COLUMNS)
def test_the_error_names_a_column_of_the_wrong_type(message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        rows_of(pa.record_batch(BAD_COLUMNS[message]))


def test_a_column_twice_is_refused() -> None:
    column = pa.array([b"x"])
    with pytest.raises(InvalidArgument, match="2 columns named 'value'"):
        rows_of(pa.RecordBatch.from_arrays([column, column], names=["value", "value"]))


@pytest.mark.parametrize("pairs", [[(None, b"x")], [None]])
def test_a_header_without_a_name_names_its_row(pairs: list[Any]) -> None:
    batch = pa.record_batch({"headers": pa.array([[], pairs], pa.list_(PAIR))})
    with pytest.raises(InvalidArgument, match="row 1: headers: a header has no name"):
        encoded(batch)


def test_rows_are_read_as_objects_too() -> None:
    rows: list[Given] = [(b"k", None, (("h", None), ("é", b"x")), 5, 1), (None, b"", (), None, None)]
    found = rows_of(record_batch(rows, (pa.binary(), pa.list_(PAIR))))
    assert found.record(0) == (None, b"k", 1, 5, [("h", None), ("é", b"x")])
    assert found.record(1) == (b"", None, None, None, None)
    assert len(found) == 2
    with pytest.raises(IndexError):
        found.record(2)


def test_places_name_the_rows_of_each_run() -> None:
    found = ArrowRows(6)
    for index, run in enumerate([0, 1, 0, 0, 1, 1]):
        found.mark_row(index, run)
    assert found.places(6, 0, 0, 9) == [(0, 0), (2, 3)]
    assert found.places(6, 1, 1, 2) == [(4, 5)]
    assert found.places(5, 1, 1, 2) == [(4, 4)]
    assert ArrowRows(3).places(3, 0, 0, 1) == []


def test_buffers_that_are_too_short_are_named() -> None:
    with pytest.raises(InvalidArgument, match="timestamp: a buffer of the Arrow array has 8 bytes, 16 are needed"):
        ArrowRows(2, timestamp=(None, 0, b"\0" * 8, True))
    with pytest.raises(InvalidArgument, match="value: a buffer of the Arrow array has 0 bytes"):
        ArrowRows(1, value=(b"", b"\0" * 8, 0, b"", False))
    with pytest.raises(InvalidArgument, match="begins before"):
        ArrowRows(1, value=(None, b"\0" * 8, -1, b"", False))
    with pytest.raises(InvalidArgument, match="count must be"):
        ArrowRows(-1)


@given(st.lists(ROW, max_size=30), st.integers(0, 2))
def test_the_chosen_partitions_are_those_of_the_batches(rows: list[Given], first: int) -> None:
    found = rows_of(record_batch(rows, (pa.binary(), pa.list_(PAIR))))
    chosen = memoryview(found.choose(3, first)).cast("i").tolist() if rows else []
    batches = records({key: list(parts) for key, parts in found.encode(3, NOW, first_partition=first).items()})
    for partition in range(3):
        wanted = [row[1] for row, at in zip(rows, chosen, strict=True) if at == partition]
        assert [record.value for record in batches.get(partition, [])] == wanted


def test_the_partitions_must_be_possible() -> None:
    with pytest.raises(InvalidArgument, match="partitions must be at least 1"):
        ArrowRows(1).encode(0, NOW)


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r"install aiokwire\[arrow\]"):
        rows_of(None)  # type: ignore[arg-type]  # it does not come to that
