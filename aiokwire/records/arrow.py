"""Batches as a `pyarrow.RecordBatch`, without a Python object per record. Needs the extra `arrow`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.records._batch import RecordBatch
from aiokwire.records._columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.records._columns import ArrowBuffer, BytesBuffers, ColumnBuffers

NAMES: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")


def to_arrow(batches: Sequence[RecordBatch], from_offsets: Iterable[int] | None = None) -> pa.RecordBatch:
    """The records of `batches`, each from its entry of `from_offsets` on, as one Arrow record batch.

    Columns: topic (dictionary), partition, offset, timestamp (milliseconds, UTC), timestamp_type, key, value, headers
    (a list of name and value). Bytes are copied once, from the batch into Arrow's memory. A timestamp of -1 means
    that the broker kept none.

    Raises: ConfigurationError: without pyarrow; CorruptRecord: naming topic, partition and offset; InvalidArgument: for
        more than 2 GiB.
    """
    columns = Columns()
    if from_offsets is None:
        for batch in batches:
            batch.add_to(columns)
    else:
        for batch, from_offset in zip(batches, from_offsets, strict=True):
            batch.add_to(columns, from_offset)
    return columns_to_arrow(columns)


def columns_to_arrow(columns: Columns, names: Sequence[str] = NAMES) -> pa.RecordBatch:
    """Filled columns as an Arrow record batch, not copied; with `names` these of `NAMES` only, in that order.

    Raises: ConfigurationError: without pyarrow.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigurationError("Arrow needs pyarrow: install aiokwire[arrow]") from error
    rows, parts = len(columns), columns.buffers()
    return pa.RecordBatch.from_arrays([_MAKE[name](rows, parts) for name in names], names=list(names))


def _topic_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(_plain(pa.int32(), rows, parts["topic"]), _names_array(parts["topics"]))


def _plain(kind: pa.DataType, rows: int, buffer: ArrowBuffer) -> pa.Array[Any]:
    import pyarrow as pa

    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)])


def _partition_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _plain(pa.int32(), rows, parts["partition"])


def _offset_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _plain(pa.int64(), rows, parts["offset"])


def _timestamp_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _plain(pa.timestamp("ms", "UTC"), rows, parts["timestamp"])


def _timestamp_type_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _plain(pa.int8(), rows, parts["timestamp_type"])


def _key_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _bytes_array(pa.binary(), rows, parts["key"])


def _value_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    return _bytes_array(pa.binary(), rows, parts["value"])


def _names_array(names: Sequence[str]) -> pa.Array[Any]:
    """Made of buffers, since `pa.array` imports pandas where there is one: half a second of a blocked loop."""
    import pyarrow as pa

    encoded = [name.encode() for name in names]
    offsets = array("i", accumulate(map(len, encoded), initial=0))
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def _bytes_array(kind: pa.DataType, rows: int, column: BytesBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    validity, offsets, data, nulls = column
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, rows, buffers, null_count=nulls)


def _headers_array(rows: int, parts: ColumnBuffers) -> pa.Array[Any]:
    import pyarrow as pa

    count = parts["header_count"]
    name = pa.field("name", pa.string(), nullable=False)
    value = pa.field("value", pa.binary())
    pairs = pa.StructArray.from_arrays(
        [
            _bytes_array(pa.string(), count, parts["header_key"]),
            _bytes_array(pa.binary(), count, parts["header_value"]),
        ],
        fields=[name, value],
    )
    kind = pa.list_(pa.struct([name, value]))
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(parts["header_offsets"])], children=[pairs])


_MAKE: Final[dict[str, Callable[[int, ColumnBuffers], pa.Array[Any]]]] = {
    "topic": _topic_array,
    "partition": _partition_array,
    "offset": _offset_array,
    "timestamp": _timestamp_array,
    "timestamp_type": _timestamp_type_array,
    "key": _key_array,
    "value": _value_array,
    "headers": _headers_array,
}
