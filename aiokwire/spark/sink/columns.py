"""The columns of a frame that become records, in Spark's schema and in Arrow batches.

No I/O. The columns are spark-sql-kafka's and `timestamp`; others are ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from aiokwire.errors import ConfigurationError, InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa


def _is_bytes(kind: DataType) -> bool:
    return isinstance(kind, (BinaryType, StringType))


def _is_number(kind: DataType) -> bool:
    return isinstance(kind, (IntegerType, LongType, ShortType, ByteType))


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return len(fields) == 2 and isinstance(fields[0].dataType, StringType) and _is_bytes(fields[1].dataType)


_KINDS: Final[dict[str, tuple[Callable[[DataType], bool], str]]] = {
    "key": (_is_bytes, "string or binary"),
    "value": (_is_bytes, "string or binary"),
    "topic": (lambda kind: isinstance(kind, StringType), "string"),
    "partition": (_is_number, "int"),
    "headers": (_is_headers, "array<struct<key: string, value: binary>>"),
    "timestamp": (lambda kind: isinstance(kind, TimestampType), "timestamp"),
}


@dataclasses.dataclass(frozen=True)
class SinkColumns:
    """The indices of the columns that make up a record."""

    parts: tuple[tuple[str, int], ...]
    """Name and index of each column but the topic."""
    topic: int | None
    """The index of the topic, None if the option names it."""
    option: str | None

    def by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the records of a batch by topic, in their order, for `Producer.submit_arrow`.

        Raises: InvalidArgument: a row names no topic.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        names = [name for name, _ in self.parts]
        records = pa.RecordBatch.from_arrays([batch.column(place) for _, place in self.parts], names=names)
        if self.option is not None:
            yield self.option, records
            return
        assert self.topic is not None
        topics: Any = batch.column(self.topic).dictionary_encode()
        if topics.null_count:
            raise InvalidArgument("a row has a null in the column topic: fill it, or set the option topic")
        found = topics.dictionary.to_pylist()
        if len(found) == 1:
            yield found[0], records
            return
        for number, name in enumerate(found):
            yield name, records.filter(pc.equal(topics.indices, pa.scalar(number, topics.indices.type)))


def sink_columns(schema: StructType, topic: str | None) -> SinkColumns:
    """Find the columns of a frame to write; the option `topic` overrides the column.

    Raises: ConfigurationError: value is missing, a column has another type or occurs twice, or
        there is no topic.
    """
    places: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = field.name.lower()
        if name not in _KINDS:
            continue
        if name in places:
            raise ConfigurationError(f"the frame has the column {name} twice")
        fits, wanted = _KINDS[name]
        if not fits(field.dataType):
            raise ConfigurationError(
                f"the column {name} must be {wanted}, not {field.dataType.simpleString()}: cast it in the query"
            )
        places[name] = place
    if "value" not in places:
        raise ConfigurationError(f"the frame has no column value, only {', '.join(schema.fieldNames()) or 'none'}")
    if topic is None and "topic" not in places:
        raise ConfigurationError("the sink has no topic: set the option topic, or give the frame a column topic")
    parts = tuple((name, place) for name, place in places.items() if name != "topic")
    return SinkColumns(parts, None if topic is not None else places["topic"], topic)


def lacks_partition(records: pa.RecordBatch) -> bool:
    """Whether a record has neither key nor partition, so that the sink chooses its partition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = records.schema.names
    given = [records.column(names.index(name)) for name in ("key", "partition") if name in names]
    missing: Any = pa.repeat(pa.scalar(True), records.num_rows)
    for column in given:
        if not column.null_count:
            return False
        missing = pc.and_(missing, pc.is_null(column))
    return bool(pc.any(missing).as_py())


def with_owner(records: pa.RecordBatch, partition: int) -> pa.RecordBatch:
    """Assign this partition to the records that have neither key nor partition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names, columns = records.schema.names, list(records.columns)
    own: Any = pa.scalar(partition, pa.int64())
    if "key" in names:
        keyless = pc.is_null(columns[names.index("key")])
        chosen = pc.if_else(keyless, own, pa.scalar(None, pa.int64()))
    else:
        chosen = pa.repeat(own, records.num_rows)
    if "partition" not in names:
        return records.append_column("partition", chosen)
    place = names.index("partition")
    columns[place] = pc.coalesce(columns[place].cast(pa.int64()), chosen)
    return pa.RecordBatch.from_arrays(columns, names=names)
