"""Arrow arrays as input of `ArrowRows`: the supported types, and their buffers.

Copies only dictionaries (decoded) and types of another layout (views, fixed sizes, small numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.records._rows import ArrowRows

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.records._rows import BytesParts, ListParts, NumberParts

COLUMNS = ("key", "value", "headers", "timestamp", "partition")
# Units of a timestamp for one millisecond; below 0: milliseconds for one unit.
_PER_MS = {"s": -1000, "ms": 1, "us": 1000, "ns": 1_000_000}


def rows_of(batch: pa.RecordBatch) -> ArrowRows:
    """Return the records of an Arrow record batch. Every column is optional.

    `key` and `value`: binary or text; `headers`: lists of (name, value); `timestamp`: a timestamp,
    or milliseconds since 1970; `partition`: a whole number. A null is a null key or value, no
    headers, no given timestamp or partition.

    Raises: InvalidArgument: a column has another name or type; ConfigurationError: without pyarrow.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ConfigurationError("Arrow needs pyarrow: install aiokwire[arrow]") from error
    names = batch.schema.names
    for name in names:
        if name not in COLUMNS:
            raise InvalidArgument(f"column {name!r} is not a field of a record: those are {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise InvalidArgument(f"the data has {names.count(name)} columns named {name!r}: keep one")
    columns: dict[str, Any] = {}
    for name, array in zip(names, batch.columns, strict=True):
        plain = _plain(array)
        if pa.types.is_null(plain.type):
            continue
        if name == "timestamp":
            columns["timestamp"], columns["per_ms"] = _timestamps(plain)
        else:
            columns[name] = _PARTS[name](name, plain)
    return ArrowRows(batch.num_rows, **columns)


def _plain(array: Any) -> Any:
    """Return an array without dictionary, run-end and extension types."""
    import pyarrow as pa

    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        import pyarrow.compute as pc

        array = pc.run_end_decode(array)  # type: ignore[attr-defined]  # the stubs lack it
    return array


def _bytes(name: str, array: Any) -> BytesParts:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
    elif pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    elif pa.types.is_null(kind):
        array = array.cast(pa.binary())
    kind = array.type
    large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    if not large and not pa.types.is_binary(kind) and not pa.types.is_string(kind):
        raise InvalidArgument(f"{name} must be binary or text, not {kind}: cast it")
    validity, offsets, data = array.buffers()
    return validity, offsets, array.offset, data, large


def _headers(name: str, array: Any) -> tuple[ListParts, int, BytesParts, BytesParts]:
    import pyarrow as pa

    kind = array.type
    large = pa.types.is_large_list(kind)
    if not (large or pa.types.is_list(kind)) or not _is_pair(kind.value_type):
        raise InvalidArgument(f"{name} must be lists of structs (name: text, value: binary), not {kind}")
    validity, offsets = array.buffers()[:2]
    # `flatten` of a struct makes the parts of a null null
    names, contents = (_plain(part) for part in _plain(array.values).flatten())
    if not (pa.types.is_string(names.type) or pa.types.is_large_string(names.type)):
        names = names.cast(pa.string())
    lists = (validity, offsets, array.offset, large)
    return lists, len(names), _bytes("the names of headers", names), _bytes("the values of headers", contents)


def _is_pair(kind: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        return False
    names = _value_type(kind.field(0).type)
    return bool(pa.types.is_string(names) or pa.types.is_large_string(names) or pa.types.is_string_view(names))


def _value_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _timestamps(array: Any) -> tuple[NumberParts, int]:
    import pyarrow as pa

    kind = array.type
    if not pa.types.is_timestamp(kind) and not pa.types.is_int64(kind):
        raise InvalidArgument(f"timestamp must be a timestamp or milliseconds as int64, not {kind}: cast it")
    per_ms = _PER_MS[kind.unit] if pa.types.is_timestamp(kind) else 1
    validity, data = array.buffers()
    return (validity, array.offset, data, True), per_ms


def _numbers(name: str, array: Any) -> NumberParts:
    import pyarrow as pa

    kind = array.type
    if not pa.types.is_integer(kind):
        raise InvalidArgument(f"{name} must be a whole number, not {kind}: cast it")
    if not pa.types.is_int32(kind) and not pa.types.is_int64(kind):
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidArgument(f"{name}: {error}") from error
    validity, data = array.buffers()
    return validity, array.offset, data, pa.types.is_int64(array.type)


_PARTS: dict[str, Callable[[str, Any], object]] = {
    "key": _bytes,
    "value": _bytes,
    "headers": _headers,
    "partition": _numbers,
}
