"""A source with prepared batches: the most that Spark can read from a Python source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from aiokwire.spark.source.scan import ROWS_PER_BATCH

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_DDL = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


class Limit(DataSource):
    """A source with the columns of ours, or the value alone."""

    @classmethod
    def name(cls) -> str:
        return "limit"

    def schema(self) -> str:
        return "value binary" if self.options.get("columns") == "value" else _DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema, int(self.options["rows"]), int(self.options["tasks"]))


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, rows: int, tasks: int) -> None:
        self._schema = schema
        self._rows = rows
        self._tasks = tasks

    def partitions(self) -> list[Any]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = _batch(self._schema, partition.value)
        left = self._rows // self._tasks
        while left:
            count = min(left, batch.num_rows)
            yield batch.slice(0, count)
            left -= count


def _batch(schema: StructType, partition: int) -> pa.RecordBatch:
    import pyarrow as pa

    from aiokwire.spark.source.schema import arrow_schema

    rows = ROWS_PER_BATCH
    columns: dict[str, Any] = {
        "key": pa.nulls(rows, pa.binary()),
        "value": pa.array([b"x" * 100] * rows, pa.binary()),
        "topic": pa.array(["plain-1a2b"] * rows, pa.string()),
        "partition": pa.array([partition] * rows, pa.int32()),
        "offset": pa.array(range(rows), pa.int64()),
        "timestamp": pa.array([1_700_000_000_000_000] * rows, pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0] * rows, pa.int32()),
    }
    arrow = arrow_schema(schema)
    return pa.RecordBatch.from_arrays([columns[name] for name in arrow.names], schema=arrow)
