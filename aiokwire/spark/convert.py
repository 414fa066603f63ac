"""The kernel's columns as the Arrow batch that Spark expects. Used by the readers, in the tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from aiokwire.records import Columns, columns_to_arrow
from aiokwire.spark.columns import Column
from aiokwire.spark.decoding import Decoder, Rejected
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.schema import arrow_schema


class Converter:
    """Makes batches of one schema; `reject` is handed the rows that cannot be decoded."""

    def __init__(
        self,
        options: SourceOptions,
        columns: StructType,
        reject: Callable[[pa.RecordBatch, Rejected], None] | None = None,
    ) -> None:
        self._names = options.columns
        self._reject = reject
        self._schema = arrow_schema(columns)
        self._decoder = None if options.decoding.is_plain else Decoder(options.decoding, self._schema, columns)

    def new_columns(self) -> Columns:
        """Columns for what is asked for alone: the others are not decoded. Rejected rows are handed on whole."""
        asked = set(self._names) if self._reject is None else {"key", "value", "headers"}
        return Columns(keys="key" in asked, values="value" in asked, headers="headers" in asked)

    def __call__(self, columns: Columns) -> pa.RecordBatch:
        batch = columns_to_arrow(columns)
        found: dict[str, Column] = {name: _MAKE[name](batch) for name in self._names}
        if self._decoder is None:
            return pa.RecordBatch.from_arrays(list(found.values()), schema=self._schema)
        decoded, rejected = self._decoder.decode(found, batch)
        if rejected and self._reject is not None:
            self._reject(batch, rejected)
        return decoded


def _raw(name: str) -> Callable[[pa.RecordBatch], Column]:
    return lambda batch: batch.column(name)


def _topic(batch: pa.RecordBatch) -> Column:
    topics: Any = batch.column("topic")
    if len(topics.dictionary) == 1:
        one: Column = pa.repeat(topics.dictionary[0], len(topics))
        return one
    plain: Column = topics.cast(pa.string())
    return plain


def _timestamp(batch: pa.RecordBatch) -> Column:
    """Spark's timestamps have microseconds."""
    return batch.column("timestamp").cast(pa.timestamp("us", "UTC"))


def _timestamp_type(batch: pa.RecordBatch) -> Column:
    return batch.column("timestamp_type").cast(pa.int32())


def _headers(batch: pa.RecordBatch) -> Column:
    """Null for a record without headers, as in spark-sql-kafka."""
    headers: Any = batch.column("headers")
    has_some = pc.greater(pc.list_value_length(headers), pa.scalar(0, pa.int32()))
    pairs = headers.values
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    named = pa.StructArray.from_arrays([pairs.field(0), pairs.field(1)], names=["key", "value"])
    return pa.Array.from_buffers(kind, len(headers), [has_some.buffers()[1], headers.buffers()[1]], children=[named])


_MAKE: dict[str, Callable[[pa.RecordBatch], Column]] = {
    "key": _raw("key"),
    "value": _raw("value"),
    "topic": _topic,
    "partition": _raw("partition"),
    "offset": _raw("offset"),
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
}
