"""The writers that Spark calls for `df.write` and `df.writeStream`, pickled to the tasks.

A writer belongs to one job or one microbatch. The process that commits creates another one, which
knows only the tasks' commit messages.
"""

from __future__ import annotations

import functools
import logging
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.spark.failures import one_sentence
from aiokwire.spark.options import Delivery, SinkOptions
from aiokwire.spark.sink import exactly_once, writing
from aiokwire.spark.sink.columns import SinkColumns, sink_columns
from aiokwire.spark.sink.commit_messages import Written, ticket_of, whole
from aiokwire.spark.sink.exactly_once import Opened, Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:  # PySpark 4.0, whose streams `compat` refuses
        DataSourceStreamArrowWriter = DataSourceStreamWriter

logger: logging.Logger = logging.getLogger("aiokwire.spark")

Messages = Sequence[WriterCommitMessage | None]


def batch_writer(options: SinkOptions, schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Return the writer of `df.write`.

    Raises: ConfigurationError: a column or an option is invalid.
    """
    if overwrite:
        raise ConfigurationError("a topic cannot be overwritten: use mode('append')")
    return BatchWriter(_sink(options, schema, streaming=False))


def stream_writer(options: SinkOptions, schema: StructType) -> DataSourceStreamWriter:
    """Return the writer of `df.writeStream`.

    Raises: ConfigurationError: a column or an option is invalid.
    """
    return StreamWriter(_sink(options, schema, streaming=True))


def _sink(options: SinkOptions, schema: StructType, *, streaming: bool) -> Sink | TransactionalSink:
    columns = sink_columns(schema, options.topic)
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return Sink(options, columns)
    return TransactionalSink(options, columns, streaming=streaming)


class BatchWriter(DataSourceArrowWriter):
    """`df.write`; with a `TransactionalSink` it is one transaction."""

    def __init__(self, sink: Sink | TransactionalSink) -> None:
        self._sink = sink

    @one_sentence()
    def write(  # type: ignore[override]  # as in PySpark's own Arrow writers
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        return self._sink.write(iterator)

    @one_sentence()
    def commit(self, messages: Messages) -> None:
        self._sink.commit(messages, None)

    @one_sentence()
    def abort(self, messages: Messages) -> None:
        self._sink.abort(messages, None)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream`; with a `TransactionalSink` each microbatch is one transaction."""

    def __init__(self, sink: Sink | TransactionalSink) -> None:
        self._sink = sink

    @one_sentence()
    def write(  # type: ignore[override]  # as in PySpark's own Arrow writers
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        return self._sink.write(iterator)

    @one_sentence()
    def commit(self, messages: Messages, batchId: int) -> None:
        self._sink.commit(messages, batchId)

    @one_sentence()
    def abort(self, messages: Messages, batchId: int) -> None:
        self._sink.abort(messages, batchId)


class Sink:
    """At least once: a repeated task or batch sends its rows again, by an idempotent producer."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._config = options.producer
        self._columns = columns

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Send a task's rows; all are acknowledged on return.

        Raises: KafkaError.
        """
        context = TaskContext.get()
        tally = writing.run(functools.partial(writing.write, batches, self._config, self._columns))
        return Written(0 if context is None else context.partitionId(), tally.rows, tally.counts)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Log the rows; they are already delivered."""
        _log_rows(messages, f"{_name(batch_id)} written")

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Log the rows that finished tasks have delivered; they cannot be withdrawn."""
        _log_rows(messages, f"{_name(batch_id)} failed; the rows of finished tasks stay in the topic")


def _log_rows(messages: Messages, what: str) -> None:
    written = [message for message in messages if isinstance(message, Written)]
    places = {place for message in written for place in message.counts}
    rows = sum(message.rows for message in written)
    logger.info("%s: %d rows to %d partitions by %d tasks", what, rows, len(places), len(written))


class TransactionNotOpened(KafkaError, pickle.PicklingError):
    """The transaction of a batch could not be opened.

    A PicklingError because it is raised while Spark pickles the writer: Spark replaces any other
    error, and prints its traceback.
    """


class TransactionalSink:
    """Exactly once: all tasks of a batch share a transaction, opened when Spark pickles the writer.

    It is not opened in the constructor: the process that commits a stream's batch creates a writer,
    too, and must not fence the batch.
    """

    def __init__(self, options: SinkOptions, columns: SinkColumns, *, streaming: bool) -> None:
        self._plan: Plan = exactly_once.plan_of(options, streaming=streaming)
        self._columns = columns
        self._streaming = streaming
        self._opened: Opened | None = None

    @one_sentence()
    def __getstate__(self) -> dict[str, Any]:
        if self._opened is None:
            try:
                self._opened = writing.run(functools.partial(exactly_once.open_transaction, self._plan))
            except KafkaError as error:
                raise TransactionNotOpened(
                    f"cannot open the transaction of the batch: {type(error).__name__}: {error}"
                ) from error
        return self.__dict__

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Send a task's rows; all are acknowledged on return, and visible after the commit.

        Raises: KafkaError.
        """
        opened = self._opened
        assert opened is not None, "tasks receive a pickled writer"
        place = exactly_once.place_of(TaskContext.get(), streaming=self._streaming)
        written = Written(place.task, 0, {}, opened.ticket, place.batch_id, place.query_id)
        if exactly_once.is_repeated(opened, place, self._plan):
            for _ in batches:
                pass  # Spark waits until its rows are consumed
            written.repeated = True
            return written
        joining = writing.Joining(opened.ticket, place.task)
        tally = writing.run(functools.partial(writing.write, batches, self._plan.config, self._columns, joining))
        written.rows, written.counts = tally.rows, tally.counts
        return written

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Commit the transaction.

        Raises: KafkaError: the commit failed, or its outcome is unknown.
        """
        found = whole(cast("Sequence[Written | None]", messages), batch_id)
        if found is None:
            logger.info("%s: nothing to commit: already committed, or without tasks", _name(batch_id))
            return
        writing.run(functools.partial(exactly_once.commit_transaction, self._plan, found, batch_id))
        _log_rows(messages, f"{_name(batch_id)} committed")

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Abort the transaction.

        Raises: KafkaError: the next batch, or the coordinator after the timeout, aborts it.
        """
        ticket = ticket_of(cast("Sequence[Written | None]", messages))
        if ticket is None and self._opened is not None:
            ticket = self._opened.ticket
        writing.run(functools.partial(exactly_once.abort_transaction, self._plan, ticket))
        logger.info("%s aborted", _name(batch_id))


def _name(batch_id: int | None) -> str:
    return "the job" if batch_id is None else f"batch {batch_id}"
