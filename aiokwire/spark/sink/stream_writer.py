"""What Spark calls for `df.writeStream` (PySpark 4.1 and newer): a writer for each microbatch, pickled to the tasks.

The process that commits makes another one, which knows what the messages of the tasks tell it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from aiokwire.spark.options import Delivery, SinkOptions
from aiokwire.spark.sink.columns import sink_columns
from aiokwire.spark.sink.sink import Messages, Sink, TransactionalSink

if TYPE_CHECKING:
    import pyarrow as pa


def stream_writer(options: SinkOptions, schema: StructType) -> DataSourceStreamWriter:
    """For `df.writeStream`.

    Raises: ConfigurationError: the columns or options do not do.
    """
    columns = sink_columns(schema, options.topic)
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return StreamWriter(Sink(options, columns))
    return StreamWriter(TransactionalSink(options, columns, streaming=True))


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`; with a `TransactionalSink` each microbatch is one transaction."""

    def __init__(self, sink: Sink | TransactionalSink) -> None:
        self._sink = sink

    def write(  # type: ignore[override]  # as PySpark's own Arrow writers have it
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        self._sink.commit(messages, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:
        self._sink.abort(messages, batchId)
