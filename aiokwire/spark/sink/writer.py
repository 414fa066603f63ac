"""What Spark calls for `df.write`: a writer for each job, pickled to the tasks and to the process that commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.options import Delivery, SinkOptions
from aiokwire.spark.sink.columns import sink_columns
from aiokwire.spark.sink.sink import Messages, Sink, TransactionalSink

if TYPE_CHECKING:
    import pyarrow as pa


def batch_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> DataSourceWriter:
    """For `df.write`.

    Raises: ConfigurationError: the columns or options do not do.
    """
    if overwrite:
        raise ConfigurationError("a topic cannot be overwritten: use mode('append')")
    columns = sink_columns(schema, options.topic)
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return BatchWriter(Sink(options, columns))
    return BatchWriter(TransactionalSink(options, columns, streaming=False))


class BatchWriter(DataSourceArrowWriter):
    """`df.write`; with a `TransactionalSink` it is one transaction."""

    def __init__(self, sink: Sink | TransactionalSink) -> None:
        self._sink = sink

    def write(  # type: ignore[override]  # as PySpark's own Arrow writers have it
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: Messages) -> None:
        self._sink.commit(messages, None)

    def abort(self, messages: Messages) -> None:
        self._sink.abort(messages, None)
