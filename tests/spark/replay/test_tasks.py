"""The files of an archive as rows: in order, selected by time, with all parts of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aiokwire.spark.archive.manifest import ArchiveDamaged, DataFile
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.replay.tasks import HEADERS, as_rows, ordered, owned, with_coordinates, within
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

ORDERS = TopicPartition("orders", 2)


def batch_of(offsets: list[int], times: list[int] | None = None, headers: Any = None) -> pa.RecordBatch:
    columns: list[Any] = [
        pa.array(offsets, pa.int64()),
        pa.array([b"k%d" % offset for offset in offsets], pa.binary()),
        pa.array([b"v%d" % offset for offset in offsets], pa.binary()),
        pa.array([time * 1000 for time in times or offsets], pa.timestamp("us", "UTC")),
        pa.array(headers or [None] * len(offsets), HEADERS),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["offset", "key", "value", "timestamp", "headers"])


def write(path: Path, name: str, offsets: list[int], rows_per_group: int = 3) -> DataFile:
    table = pa.Table.from_batches([batch_of(offsets)])
    pq.write_table(table, path / name, row_group_size=rows_per_group, store_schema=False)
    return DataFile(*ORDERS, offsets[0], offsets[-1], name, len(offsets), 0, 0, 0, 0)


def read(path: Path, files: list[DataFile], start: int, end: int) -> list[int]:
    found: list[int] = []
    for batch in ordered(Store.at(path), files, Range(*ORDERS, start, end), ("offset", "value")):
        offsets: list[Any] = batch.column("offset").to_pylist()
        assert batch.column("value").to_pylist() == [b"v%d" % offset for offset in offsets]
        found += offsets
    return found


def test_records_of_several_files_are_read_in_offset_order(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "a", [0, 1, 2, 5, 6, 9]),
        write(tmp_path, "b", [3, 4, 7, 8, 12]),
        write(tmp_path, "c", [10, 11, 13]),
        write(tmp_path, "d", [20, 21]),
    ]
    everything = [*range(14), 20, 21]
    assert read(tmp_path, files, 0, 100) == everything
    for start in range(0, 22, 3):
        for end in range(start, 23, 2):
            assert read(tmp_path, files, start, end) == [each for each in everything if start <= each < end]


def test_an_error_names_the_missing_file_of_a_task(tmp_path: Path) -> None:
    file = write(tmp_path, "a", [0, 1])
    (tmp_path / "a").unlink()
    with pytest.raises(ArchiveDamaged, match="a, which a manifest names, is missing"):
        read(tmp_path, [file], 0, 5)


def test_only_records_of_the_selected_time_are_read() -> None:
    batch = batch_of([1, 2, 3, 4], [100, 300, 200, 400])
    assert within(batch, None, None) is batch
    assert within(batch, 200, None).column("offset").to_pylist() == [2, 3, 4]
    assert within(batch, None, 300).column("offset").to_pylist() == [1, 3]
    assert within(batch, 200, 300).column("offset").to_pylist() == [3]


def test_a_record_without_a_timestamp_gets_that_of_the_write() -> None:
    rows = as_rows(batch_of([1, 2], [-1, 5]), ORDERS, coordinates=False)
    assert rows.schema.names == ["key", "value", "headers", "timestamp"]
    assert rows.column("timestamp").is_null().to_pylist() == [True, False]


def test_coordinates_are_added_after_a_records_own_headers() -> None:
    given = [[{"key": "a", "value": b"1"}, {"key": "b", "value": None}], None, []]
    found = with_coordinates(pa.array(given, HEADERS), ORDERS, pa.array([7, 8, 9], pa.int64()))
    place = [("aiokwire.topic", b"orders"), ("aiokwire.partition", b"2")]
    assert [[(pair["key"], pair["value"]) for pair in row] for row in found.to_pylist()] == [
        [("a", b"1"), ("b", None), *place, ("aiokwire.offset", b"7")],
        [*place, ("aiokwire.offset", b"8")],
        [*place, ("aiokwire.offset", b"9")],
    ]
    without = with_coordinates(None, ORDERS, pa.array([7], pa.int64()))
    assert [pair["value"] for pair in without.to_pylist()[0]] == [b"orders", b"2", b"7"]
    sliced = with_coordinates(pa.array(given, HEADERS)[1:], ORDERS, pa.array([8, 9], pa.int64()))
    assert sliced.to_pylist() == found.to_pylist()[1:]


def test_a_task_keeps_the_rows_of_its_own_partitions() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([0, 1, 2, 3, 4], pa.int32())], names=["partition"])
    assert owned(rows, None) is rows
    parts = [owned(rows, (number, 3)).column("partition").to_pylist() for number in range(3)]
    assert parts == [[0, 3], [1, 4], [2]]
