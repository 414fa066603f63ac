"""What a writer of a batch does, on the driver and in the tasks: at least once, or exactly once.

Used by `writer` and `stream_writer`, which are what Spark calls.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from aiokwire.spark.options import SinkOptions
from aiokwire.spark.sink import exactly_once, writing
from aiokwire.spark.sink.columns import SinkColumns
from aiokwire.spark.sink.commit_messages import Written, ticket_of, whole
from aiokwire.spark.sink.exactly_once import Opened, Plan

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("aiokwire.spark")

Messages = Sequence[WriterCommitMessage | None]


class Sink:
    """Rows are sent by idempotent producers; a batch or task that is repeated sends its rows again."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._config = options.producer
        self._columns = columns

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """A task's part; all of it is acknowledged at the end.

        Raises: KafkaError.
        """
        context = TaskContext.get()
        tally = writing.run(functools.partial(writing.write, batches, self._config, self._columns))
        return Written(0 if context is None else context.partitionId(), tally.rows, tally.counts)

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Nothing is left to do."""
        _tell(messages, f"{_name(batch_id)} written")

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Nothing can be done."""
        _tell(messages, f"{_name(batch_id)} failed; these tasks had finished, and what they wrote stays")


def _tell(messages: Messages, what: str) -> None:
    written = [message for message in messages if isinstance(message, Written)]
    places = {place for message in written for place in message.counts}
    rows = sum(message.rows for message in written)
    logger.info("%s: %d rows to %d partitions by %d tasks", what, rows, len(places), len(written))


class TransactionalSink:
    """All tasks of a batch write to one transaction, which is opened when Spark pickles the writer for them.

    Not when it is made: the process that commits a stream's batch makes one too, and must not fence the batch.
    """

    def __init__(self, options: SinkOptions, columns: SinkColumns, *, streaming: bool) -> None:
        self._plan: Plan = exactly_once.plan_of(options, streaming=streaming)
        self._columns = columns
        self._streaming = streaming
        self._opened: Opened | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._opened is None:
            self._opened = writing.run(functools.partial(exactly_once.open_transaction, self._plan))
        return self.__dict__

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """A task's part; all of it is acknowledged at the end, and nobody sees it before the commit.

        Raises: KafkaError.
        """
        opened = self._opened
        assert opened is not None, "a task has a writer that was pickled"
        place = exactly_once.place_of(TaskContext.get(), streaming=self._streaming)
        written = Written(place.task, 0, {}, opened.ticket, place.batch_id, place.query_id)
        if exactly_once.is_repeated(opened, place, self._plan):
            for _ in batches:
                pass  # Spark waits until its rows are taken
            written.repeated = True
            return written
        joining = writing.Joining(opened.ticket, place.task)
        tally = writing.run(functools.partial(writing.write, batches, self._plan.config, self._columns, joining))
        written.rows, written.counts = tally.rows, tally.counts
        return written

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        """Raises: KafkaError: not committed, or not known to be."""
        found = whole(cast("Sequence[Written | None]", messages), batch_id)
        if found is None:
            logger.info("%s: nothing to commit; it was committed before, or had no task", _name(batch_id))
            return
        writing.run(functools.partial(exactly_once.commit_transaction, self._plan, found, batch_id))
        _tell(messages, f"{_name(batch_id)} committed")

    def abort(self, messages: Messages, batch_id: int | None) -> None:
        """Raises: KafkaError: it is left to the next batch, or to the coordinator when its time is over."""
        ticket = ticket_of(cast("Sequence[Written | None]", messages))
        if ticket is None and self._opened is not None:
            ticket = self._opened.ticket
        writing.run(functools.partial(exactly_once.abort_transaction, self._plan, ticket))
        logger.info("%s aborted", _name(batch_id))


def _name(batch_id: int | None) -> str:
    return "the job" if batch_id is None else f"batch {batch_id}"
