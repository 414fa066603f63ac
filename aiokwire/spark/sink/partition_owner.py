"""`one_owner`: repartitions a frame so that one task writes each output partition."""

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
    """Fill the column `partition`, and move all rows of one partition to one task.

    `partitions` is the topic's partition count; several topics must have the same. A row keeps the
    partition that it names; a key chooses as in Kafka's clients; rows without either are
    distributed. `tasks` is the count of writing tasks, `partitions` by default. Works on streams,
    too. Rows of one task keep their order, rows of several tasks are interleaved.

    Raises: ConfigurationError: `partitions` or `tasks` is below 1.
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
        warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
        chosen = frame.mapInArrow(choose, schema)
    by_id: Any = getattr(chosen, "repartitionById", None)  # since 4.1; distributes without hash collisions
    if by_id is not None:
        spread: DataFrame = by_id(tasks, chosen["partition"] % tasks)
        return spread
    return chosen.repartition(tasks, "partition")


def with_partitions(batch: pa.RecordBatch, partitions: int, first: int) -> pa.RecordBatch:
    """Return the batch with the column `partition` filled, as its last column."""
    import pyarrow as pa

    names = batch.schema.names
    known = [name for name in _CHOOSE_BY if name in names]
    given = pa.RecordBatch.from_arrays([batch.column(name) for name in known], names=known)
    if not known:
        given = pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], names=["value"])
    numbers: Any = pa.Array.from_buffers(
        pa.int32(), batch.num_rows, [None, pa.py_buffer(rows_of(given).choose(partitions, first))]
    )
    others = [name for name in names if name != "partition"]
    columns = [batch.column(name) for name in others]
    return pa.RecordBatch.from_arrays([*columns, numbers], names=[*others, "partition"])
