"""Conversion of the kernel's columns to the Arrow batches that Spark expects, in the tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from aiokwire.errors import KafkaError
from aiokwire.records import Columns, Spare, columns_to_arrow
from aiokwire.spark.decode.columns import Column
from aiokwire.spark.decode.decoding import Decoder, Rejected
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.source.schema import arrow_schema

# The latest and, negated, the earliest time (milliseconds) that fits 64 bits of microseconds.
LATEST_TIME: Final = (2**63 - 1) // 1000
_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_PLACE: Final = ("topic", "partition", "offset")


class TimeOutOfRange(KafkaError):
    """A record's timestamp, any 64 bits of milliseconds in Kafka, is out of Spark's range."""


class Converter:
    """Builds batches of one schema, each in the memory of released ones.

    `reject` receives the rows that cannot be decoded.
    """

    def __init__(
        self,
        options: SourceOptions,
        columns: StructType,
        reject: Callable[[pa.RecordBatch, Rejected], None] | None = None,
    ) -> None:
        self._names = options.columns
        self._reject = reject
        self._raw_names = [_RAW.get(name, name) for name in options.columns]
        self._schema = arrow_schema(columns)
        self._decoder = None if options.decoding.is_plain else Decoder(options.decoding, self._schema, columns)
        self._topics = _Repeated()
        self._spare = Spare()

    def new_columns(self) -> Columns:
        """Return empty columns for the parts of a record that are needed; others are not decoded.

        Rejected rows are passed on complete, with the broker's milliseconds.
        """
        needed = set(self._names) if self._reject is None else {"key", "value", "headers"}
        return Columns(
            keys="key" in needed,
            values="value" in needed,
            headers="headers" in needed,
            microseconds=self._decoder is None or self._reject is None,
            spare=self._spare,
        )

    def __call__(self, columns: Columns) -> pa.RecordBatch:
        """Convert filled columns.

        Raises: TimeOutOfRange; UndecodableRecord: see `Decoder.decode`.
        """
        if columns.out_of_range is not None and "timestamp" in self._names:
            raise _out_of_range(columns_to_arrow(columns, _PLACE), *columns.out_of_range)
        # a decoder needs all columns: the message of a record that does not decode names its offset
        batch = columns_to_arrow(columns, self._raw_names) if self._decoder is None else columns_to_arrow(columns)
        found = {name: self._column(name, batch) for name in self._names}
        if self._decoder is None:
            return pa.RecordBatch.from_arrays(list(found.values()), schema=self._schema)
        decoded, rejected = self._decoder.decode(found, batch)
        if rejected and self._reject is not None:
            self._reject(batch, rejected)
        return decoded

    def _column(self, name: str, batch: pa.RecordBatch) -> Column:
        if name == "topic":
            return self._topics(batch.column(name))
        if name == "timestamp":
            return _timestamp(batch)
        column: Column = batch.column(_RAW.get(name, name))
        return _CHANGE[name](column) if name in _CHANGE else column


class _Repeated:
    """A column of names as text; reused while all rows have the same name, as they usually do."""

    def __init__(self) -> None:
        self._text: Column = pa.array([], pa.string())

    def __call__(self, topics: Any) -> Column:
        if len(topics.dictionary) != 1:
            plain: Column = topics.cast(pa.string())
            return plain
        rows = len(topics)
        if len(self._text) < rows or self._text[0] != topics.dictionary[0]:
            self._text = pa.repeat(topics.dictionary[0], rows + rows // 4)
        return self._text.slice(0, rows)


def _timestamp(batch: pa.RecordBatch) -> Column:
    """Return timestamps in microseconds."""
    column = batch.column("timestamp")
    if column.type == _MICROSECONDS:
        return column
    try:
        found: Column = column.cast(_MICROSECONDS)
    except pa.ArrowInvalid as error:
        times: Any = column.cast(pa.int64())
        row, time = next((row, time) for row, time in enumerate(times.to_pylist()) if abs(time) > LATEST_TIME)
        raise _out_of_range(batch, row, time) from error
    return found


def _out_of_range(batch: pa.RecordBatch, row: int, time: int) -> TimeOutOfRange:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in _PLACE)
    return TimeOutOfRange(
        f"{topic}[{partition}] at offset {offset}: the timestamp {time} (milliseconds) is out of Spark's range; "
        "leave timestamp out of columns to read the record"
    )


def _timestamp_type(column: Column) -> Column:
    return column if column.type == pa.int32() else column.cast(pa.int32())


def _headers(headers: Any) -> Column:
    """Return headers, null for a record without any, as in spark-sql-kafka."""
    has_some = pc.greater(pc.list_value_length(headers), pa.scalar(0, pa.int32()))
    pairs = headers.values
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    named = pa.StructArray.from_arrays([pairs.field(0), pairs.field(1)], names=["key", "value"])
    return pa.Array.from_buffers(kind, len(headers), [has_some.buffers()[1], headers.buffers()[1]], children=[named])


_RAW: Final = {"timestampType": "timestamp_type"}
_CHANGE: Final[dict[str, Callable[[Any], Column]]] = {
    "timestampType": _timestamp_type,
    "headers": _headers,
}
