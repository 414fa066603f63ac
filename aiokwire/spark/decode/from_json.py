"""A column of JSON: decoded by Arrow if its result is certain to equal Python's, else by value.

Arrow's parser takes a whole batch and is several times as fast, but it reads a stream of documents,
not a list of values, and differs from Python in what it accepts. `_parsed` therefore returns None
whenever it might differ from `json_values`, which costs only time.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json
from pyspark.sql import types as spark

from aiokwire.spark.decode.columns import Column, Faults, column_of
from aiokwire.spark.decode.json_values import coerce_for

# A batch that Arrow does not parse is retried in pieces of this many rows.
PIECE: Final = 1024

# Illegal outside of strings: a second document after the first (a null would even end the process), and Arrow's
# spelling of infinity.
_SUSPICIOUS: Final = r"\}[ \t\r]*(null|\{)|[:,\[][ \t\r]*-?Inf"


class JsonDecoder:
    """Decodes objects of one schema; unknown fields are dropped, missing ones are null."""

    def __init__(self, kind: spark.DataType, arrow: pa.DataType, side: str) -> None:
        self._coerce = coerce_for(kind, side)
        self._arrow = arrow
        self._readable = _readable(arrow) if isinstance(arrow, pa.StructType) and arrow.num_fields else None

    def __call__(self, column: Column) -> tuple[Column, Faults]:
        """Decode a column; return the reason for each row that does not decode."""
        if self._readable is not None:
            found = self._at_once(column)
            if found is not None:
                return found, {}
            if len(column) > PIECE:
                return self._in_pieces(column)
        return self._one_by_one(column)

    def _in_pieces(self, column: Column) -> tuple[Column, Faults]:
        found: list[Column] = []
        faults: Faults = {}
        for start in range(0, len(column), PIECE):
            piece, bad = self(column.slice(start, PIECE))
            found.append(piece)
            faults |= {start + row: reason for row, reason in bad.items()}
        return pa.concat_arrays(found), faults

    def _one_by_one(self, column: Column) -> tuple[Column, Faults]:
        found: list[Any] = []
        faults: Faults = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else self._coerce(json.loads(value)))
            except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
                found.append(None)
                faults[row] = f"{type(error).__name__}: {error}"
        return column_of(found, lambda values: pa.array(values, self._arrow), faults), faults

    def _at_once(self, column: Column) -> Column | None:
        assert self._readable is not None
        try:
            present = column.drop_null().cast(pa.string())
            parsed = _parsed(present, self._readable)
            if parsed is None:
                return None
            objects: Column = _finish(parsed, self._arrow)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None  # a value does not match the schema
        if not column.null_count:
            return objects
        valid = column.is_valid()
        places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), pa.scalar(1, pa.int64()))
        spread: Column = objects.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
        return spread


def _parsed(text: Column, kind: pa.StructType) -> Column | None:
    """Parse texts to objects; None if the parser might not return exactly one for each.

    Each text begins a document, and the checks exclude a second one in it: if there are as many
    documents as texts, each text is one document.
    """
    if not len(text):
        return pa.nulls(0, kind)
    if not pc.all(pc.starts_with(text, "{")).as_py():
        return None
    joined: Any = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text), "\n")
    if pc.count_substring(joined, "\n")[0].as_py() != len(text) - 1:
        return None  # a text of several lines
    if pc.match_substring_regex(joined, _SUSPICIOUS)[0].as_py():
        return None
    data = joined[0].as_buffer()
    source: Any = pa.BufferReader(data)
    table = arrow_json.read_json(
        source,
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=pa.schema(list(kind)), newlines_in_values=False, unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != len(text):
        return None
    (objects,) = table.select([field.name for field in kind]).to_struct_array().chunks
    found: Column = objects
    return found


# --- types ----------------------------------------------------------------------------------------------------------


def _readable(kind: pa.DataType) -> Any:
    """Return the type for Arrow's parser, with strings for times; None where it would differ."""
    if isinstance(kind, pa.StructType):
        names = [field.name for field in kind]
        types = [_readable(field.type) for field in kind]
        if len(set(names)) < len(names) or not names or None in types:
            return None
        return pa.struct([field.with_type(each) for field, each in zip(kind, types, strict=True)])
    if isinstance(kind, pa.ListType):
        element = _readable(kind.value_type)
        return None if element is None else pa.list_(kind.value_field.with_type(element))
    if kind.equals(pa.timestamp("us", "UTC")) or pa.types.is_date32(kind):
        return pa.string()
    if pa.types.is_float32(kind):
        return pa.float64()  # rounded again afterwards, as a Python float is
    same = pa.types.is_boolean(kind) or pa.types.is_signed_integer(kind)
    return kind if same or pa.types.is_float64(kind) or pa.types.is_string(kind) else None


def _finish(found: Any, kind: pa.DataType) -> Any:
    """Convert parsed values to the wanted type.

    Raises: ArrowInvalid: a string is not a time.
    """
    if found.type.equals(kind):
        return found
    if isinstance(kind, pa.StructType):
        fields = [_finish(found.field(index), field.type) for index, field in enumerate(kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=found.is_null())
    if isinstance(kind, pa.ListType):
        values = _finish(found.values, kind.value_type)
        return pa.ListArray.from_arrays(found.offsets, values, type=kind, mask=found.is_null())
    if not pa.types.is_string(found.type):
        return found.cast(kind)
    if pc.any(pc.starts_with(found, "0000")).as_py():
        raise pa.ArrowInvalid("Python has no year 0")
    return _times(found) if pa.types.is_timestamp(kind) else found.cast(kind)


def _times(found: Any) -> Any:
    """Parse times, all with an offset from UTC, or all without."""
    try:
        return found.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return found.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
