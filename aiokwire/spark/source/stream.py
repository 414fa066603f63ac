"""`spark.readStream`: how far each microbatch goes, planned in the driver's long-lived process.

    initialOffset -> latestOffset(start, limit) -> commit(end before) -> partitions(start, end) -> read in the tasks

Needs PySpark 4.2: before it, a Python source cannot limit what a microbatch takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from aiokwire.errors import KafkaError
from aiokwire.spark.failures import one_sentence
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.source.batch import read_task
from aiokwire.spark.source.driver_state import Progress

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One query's source. Its copies in the tasks only read."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._progress: Progress | None = None  # made where Spark asks for offsets, never in a task

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_schema": self._schema, "_progress": None}

    @property
    def _driver(self) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._options)
        return self._progress

    # --- called by Spark on the driver --------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""
        return self._driver.wait(self._driver.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """What a microbatch takes at most, by the options."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Where the next microbatch ends: `start` itself when there is nothing, or not enough."""
        return self._driver.wait(self._driver.next_end(start, limit))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The end of the topics, for progress reports."""
        return self._driver.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from here on is for the next run."""
        self._driver.wait(self._driver.freeze())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        """The tasks of a microbatch."""
        return list(self._driver.wait(self._driver.tasks(start, end)))

    def commit(self, end: dict[str, Any]) -> None:
        """A microbatch is done. Spark does not say so of the last one of an AvailableNow run."""
        self._driver.wait(self._driver.committed(end))

    def stop(self) -> None:
        """Spark may not call it; the process ends soon after."""

    # --- called by Spark in the tasks ---------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's records."""
        return read_task(self._options, self._schema, partition)


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stands for a source whose options are wrong: the first question that Spark asks it raises the error."""

    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def _refuse(self) -> NoReturn:
        with one_sentence():
            raise self._error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> ReadLimit:
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse()
