"""`spark.readStream`: plans each microbatch in the driver's long-lived process.

    initialOffset -> latestOffset(start, limit) -> commit(previous end) -> partitions(start, end)
        -> read in the tasks

Needs PySpark 4.2: earlier, a Python source cannot limit a microbatch.
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
    """The source of one query. Its copies in the tasks only read."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._progress: Progress | None = None  # created when Spark asks for offsets, never in a task

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_schema": self._schema, "_progress": None}

    @property
    def _driver(self) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._options)
        return self._progress

    # --- called by Spark on the driver --------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Return the offsets at which a query without a checkpoint begins."""
        return self._driver.wait(self._driver.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a microbatch, from the options."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next microbatch; `start` to wait for more records."""
        return self._driver.wait(self._driver.next_end(start, limit))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the topics, for progress reports."""
        return self._driver.report()

    def prepareForTriggerAvailableNow(self) -> None:
        """Leave records that are produced from now on to the next run."""
        self._driver.wait(self._driver.freeze())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        """Return the tasks of a microbatch."""
        return list(self._driver.wait(self._driver.tasks(start, end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Note a finished microbatch; not called for the last one of an AvailableNow run."""
        self._driver.wait(self._driver.committed(end))

    def stop(self) -> None:
        """Do nothing: Spark may not call it, and the process ends soon after."""

    # --- called by Spark in the tasks ---------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's records."""
        return read_task(self._options, self._schema, partition)


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Replaces a source whose options are invalid: each of Spark's calls raises the error."""

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
