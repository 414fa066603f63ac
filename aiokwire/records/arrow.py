"""Batches as a `pyarrow.RecordBatch` without a Python object per record. Needs extra `arrow`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from aiokwire.errors import ConfigurationError
from aiokwire.records._arrow_c import export
from aiokwire.records._batch import RecordBatch
from aiokwire.records._columns import Columns
from aiokwire.records._record import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import CapsuleType

NAMES: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")


def to_arrow(batches: Sequence[RecordBatch], from_offsets: Iterable[int] | None = None) -> pa.RecordBatch:
    """Return the records of `batches`, each from its `from_offsets` entry on, as one record batch.

    Columns: topic (dictionary), partition, offset, timestamp (milliseconds, UTC), timestamp_type,
    key, value, headers (a list of name and value). Bytes are copied once, from the batch into
    Arrow's memory. A timestamp of -1 means that the record has none.

    Raises: ConfigurationError: without pyarrow; CorruptRecord: naming topic, partition and offset;
        InvalidArgument: for more than 2 GiB.
    """
    columns = Columns()
    if from_offsets is None:
        for batch in batches:
            batch.add_to(columns)
    else:
        for batch, from_offset in zip(batches, from_offsets, strict=True):
            batch.add_to(columns, from_offset)
    return columns_to_arrow(columns)


def records_to_arrow(records: Sequence[Record]) -> pa.RecordBatch:
    """Return records as one record batch, columns as `to_arrow`.

    Raises: ConfigurationError: without pyarrow; InvalidArgument: for more than 2 GiB.
    """
    columns = Columns()
    columns.add_records(list(records))
    return columns_to_arrow(columns)


def columns_to_arrow(columns: Columns, names: Sequence[str] = NAMES) -> pa.RecordBatch:
    """Return filled columns as an Arrow record batch, not copied; `names` selects and orders them.

    Raises: ConfigurationError: without pyarrow.
    """
    need_arrow()
    import pyarrow as pa

    return pa.record_batch(_Exported(columns, tuple(names)))


def need_arrow() -> None:
    """Check that pyarrow is installed.

    Raises: ConfigurationError: without pyarrow.
    """
    try:
        import pyarrow  # noqa: F401  # only a check
    except ImportError as error:
        raise ConfigurationError("Arrow needs pyarrow: install aiokwire[arrow]") from error


class _Exported:
    """Exports columns to Arrow libraries: `__arrow_c_array__` returns schema and data capsules."""

    __slots__ = ("_columns", "_names")

    def __init__(self, columns: Columns, names: tuple[str, ...]) -> None:
        self._columns = columns
        self._names = names

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[CapsuleType, CapsuleType]:
        return _schema(self._names, self._columns.microseconds).__arrow_c_schema__(), export(self._columns, self._names)


@functools.cache
def _schema(names: tuple[str, ...], microseconds: bool) -> pa.Schema:
    import pyarrow as pa

    header = pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())])
    kinds = {
        "topic": pa.dictionary(pa.int32(), pa.string()),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us" if microseconds else "ms", "UTC"),
        "timestamp_type": pa.int32() if microseconds else pa.int8(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(header),
    }
    return pa.schema([pa.field(name, kinds[name]) for name in names])
