"""A task: ranges of offsets in, Arrow batches out, with one fetch in flight while decoding.

    fetch N+1 in flight | batches of fetch N -> Columns -> Arrow -> Spark

Used by both readers, in Spark's Python workers. Ends at the last offset; closing the generator
cancels the fetch in flight and keeps the connection for the next task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aiokwire.protocol import ZERO_UUID
from aiokwire.records import Columns, fill_columns
from aiokwire.spark.options import OnDataLoss, SourceOptions
from aiokwire.spark.session import Session
from aiokwire.spark.source.fetching import Ahead, Cursor, Fetching, LostData, Piece
from aiokwire.spark.source.planning import Range

if TYPE_CHECKING:
    import pyarrow as pa

logger: logging.Logger = logging.getLogger(__name__)

# Smaller batches cost throughput when passed to Spark, larger ones only memory.
ROWS_PER_BATCH: Final = 32_768
BYTES_PER_BATCH: Final = 8 * 1024 * 1024


class Scan:
    """The fetches of one task, in the order of its ranges."""

    def __init__(
        self,
        session: Session,
        options: SourceOptions,
        ranges: Sequence[Range],
        topic_ids: Mapping[str, bytes],
        *,
        keep_hidden: bool = False,
    ) -> None:
        self._session = session
        self._on_data_loss = options.on_data_loss
        self._fetching = Fetching(session.client, options.consumer, keep_hidden=keep_hidden)
        self._cursors = [Cursor(each, topic_ids.get(each.topic, ZERO_UUID), options.consumer) for each in ranges]
        self._ahead: Ahead | None = None

    def pieces(self) -> Iterator[Piece]:
        """Yield the result of each fetch, after the next one was sent.

        Raises: LostData: with `onDataLoss=fail`; KafkaError: see `Fetching.finish`.
        """
        cursors = iter(self._cursors)
        cursor = next(cursors, None)
        try:
            self._send(cursor)
            while cursor is not None:
                piece = self._receive(cursor)
                if cursor.done:
                    cursor = next(cursors, None)
                self._send(cursor)
                if piece is not None:
                    yield piece
        finally:
            self.close()

    def _send(self, cursor: Cursor | None) -> None:
        self._ahead = None if cursor is None else self._session.wait(self._fetching.start(cursor))

    def _receive(self, cursor: Cursor) -> Piece | None:
        ahead, self._ahead = self._ahead, None
        assert ahead is not None
        try:
            return self._session.wait(self._fetching.finish(cursor, ahead))
        except LostData as error:
            if self._on_data_loss is OnDataLoss.FAIL:
                raise
            if self._on_data_loss is OnDataLoss.REPORT:
                logger.warning("data loss: %s", error.loss)
            cursor.position = max(error.loss.end, cursor.position)
            return None

    def close(self) -> None:
        """Cancel the fetch in flight: the connection drops its response."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.answer is not None:
            ahead.answer.cancel()


def arrow_batches(
    pieces: Iterator[Piece], new: Callable[[], Columns], convert: Callable[[Columns], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decode pieces into batches of a size that suits Spark; the last has the remaining rows."""
    columns = new()
    for piece in pieces:
        at = 0
        while at < len(piece.batches):
            at = fill_columns(columns, piece.batches, at, piece.start, piece.end, ROWS_PER_BATCH, BYTES_PER_BATCH)
            if at < len(piece.batches) or len(columns) >= ROWS_PER_BATCH:
                yield convert(columns)
                columns = new()
    if len(columns):
        yield convert(columns)
