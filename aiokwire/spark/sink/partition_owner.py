"""`one_owner`: spreads a frame so that each output partition is written by one task, as exactly-once needs it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from aiokwire.errors import ConfigurationError
from aiokwire.records import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

_CHOOSE_BY = ("key", "partition")


def one_owner(frame: DataFrame, partitions: int, *, tasks: int | None = None) -> DataFrame:
    """The same rows with a column `partition` that is never null, all rows of one partition in one task.

    `partitions` is how many the topic has; the same number where there are several topics. A row keeps the partition
    that it names, a key decides as in Kafka's own clients, rows without either are spread. `tasks`: how many write, as
    many as there are partitions unless told. On streams as well. Rows of a task keep their order, those of several
    tasks are mixed.

    Raises: ConfigurationError: there are no partitions or tasks.
    """
    tasks = partitions if tasks is None else tasks
    if partitions < 1 or tasks < 1:
        raise ConfigurationError(f"partitions and tasks must be at least 1, not {partitions} and {tasks}")
    fields = [field for field in frame.schema.fields if field.name != "partition"]
    schema = StructType([*fields, StructField("partition", IntegerType())])

    def choose(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        turn = 0
        for batch in batches:
            yield with_partitions(batch, partitions, turn % partitions)
            turn += batch.num_rows

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used for this
        chosen = frame.mapInArrow(choose, schema)
    by_id: Any = getattr(chosen, "repartitionById", None)  # since 4.1: no two numbers meet in one task by chance
    if by_id is not None:
        spread: DataFrame = by_id(tasks, chosen["partition"] % tasks)
        return spread
    return chosen.repartition(tasks, "partition")


def with_partitions(batch: pa.RecordBatch, partitions: int, first: int) -> pa.RecordBatch:
    """The batch with its column `partition` last, and filled."""
    import pyarrow as pa

    names = batch.schema.names
    known = [name for name in _CHOOSE_BY if name in names]
    told = pa.RecordBatch.from_arrays([batch.column(name) for name in known], names=known)
    if not known:
        told = pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], names=["value"])
    numbers: Any = pa.Array.from_buffers(
        pa.int32(), batch.num_rows, [None, pa.py_buffer(rows_of(told).choose(partitions, first))]
    )
    others = [name for name in names if name != "partition"]
    columns = [batch.column(name) for name in others]
    return pa.RecordBatch.from_arrays([*columns, numbers], names=[*others, "partition"])
