"""Flat Avro schemas as plans of the kernel, and the decoded columns as Arrow arrays.

A schema is flat if it is a record of primitive, enum, fixed and decimal fields, each optionally in
a union with null; or one such type. `from_avro` decodes other schemas with fastavro.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from aiokwire.records import AvroField, AvroPlan, AvroRows, framed_ids
from aiokwire.spark.decode.avro_types import MEANING
from aiokwire.spark.decode.columns import Column

_MILLIS: Final = ("timestamp-millis", "local-timestamp-millis")
_PRIMITIVE: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
_Union: TypeAlias = tuple[Any, int, int]


class NotFlat(Exception):
    """A schema has no plan; the message gives the reason."""


@dataclasses.dataclass(frozen=True)
class FlatSchema:
    """The parts of a schema that decide how data are read: equal ones share a plan."""

    name: str
    """The record's full name; empty for a datum that is not a record."""
    fields: tuple[tuple[str, str, AvroField], ...]
    """The field's name, its type's name if any, and its encoding."""
    branches: int = 0
    null_branch: int = -1

    def plan(self) -> AvroPlan:
        """Return the plan for the kernel."""
        return AvroPlan([field for _, _, field in self.fields], branches=self.branches, null_branch=self.null_branch)


def flat_schema(expanded: Any) -> FlatSchema:
    """Reduce a schema to the parts that decide how data are read: no documentation, no defaults.

    Raises: NotFlat: the message names the field and its type.
    """
    kind, branches, null_branch = _union(expanded, "the datum")
    if not isinstance(kind, dict) or kind["type"] != "record":
        name, field = _field(expanded, "the datum")
        return FlatSchema("", (("", name, field),))
    names = [field["name"] for field in kind["fields"]]
    if len(set(names)) < len(names):
        raise NotFlat("two fields have the same name")
    fields = tuple((field["name"], *_field(field["type"], f"field {field['name']!r}")) for field in kind["fields"])
    return FlatSchema(kind["name"], fields, branches, null_branch)


def _union(schema: Any, where: str) -> _Union:
    """Return the type other than null, the count of types, and the index of null."""
    if not isinstance(schema, list):
        return schema, 0, -1
    types = [each for each in schema if each != "null"]
    if len(types) != 1 or len(schema) > 2:
        raise NotFlat(f"{where} is a union of several types")
    return types[0], len(schema), schema.index("null") if "null" in schema else -1


def _field(schema: Any, where: str) -> tuple[str, AvroField]:
    schema, branches, null_branch = _union(schema, where)
    if isinstance(schema, str):
        schema = {"type": schema}
    while set(schema) == {"type"} and isinstance(schema["type"], dict):
        schema = schema["type"]
    name, field = _encoding(schema, where)
    return name, field._replace(branches=branches, null_branch=null_branch)


def _encoding(schema: Mapping[str, Any], where: str) -> tuple[str, AvroField]:
    kind = schema["type"]
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        limit = 10 ** schema["precision"]
        if kind == "bytes":
            return f"decimal({schema['precision']},{schema.get('scale', 0)})", AvroField("decimal", limit=limit)
        name = f"{schema['name']} decimal({schema['precision']},{schema.get('scale', 0)})"
        return name, AvroField("fixed-decimal", size=schema["size"], limit=limit)
    if kind == "enum":
        return schema["name"], AvroField("enum", symbols=tuple(schema["symbols"]))
    if kind == "fixed":
        return schema["name"], AvroField("fixed", size=schema["size"])
    if kind not in _PRIMITIVE:
        what = kind if isinstance(kind, str) else "nested"
        raise NotFlat(f"{where} is of type {what}")
    logical = str(schema.get(MEANING, ""))
    return logical, AvroField("millis" if kind == "long" and logical in _MILLIS else kind)


# --- running a plan ---------------------------------------------------------------------------------------------------


def schema_ids(column: Column) -> list[int]:
    """Return the ids of the schemas that a column's values name."""
    validity, offsets, data = column.buffers()
    return framed_ids(offsets, data, validity, column.offset, len(column)) if offsets is not None else []


def run_plan(
    plan: AvroPlan, column: Column, kind: pa.DataType, *, is_record: bool, ids: list[int] | None
) -> tuple[Column, list[int]]:
    """Decode a column to a type; return it with the refused rows, which are null in it."""
    validity, offsets, data = column.buffers()
    if offsets is None:  # a column without rows
        return pa.array([], kind), []
    found = plan.decode(offsets, data, validity, column.offset, len(column), ids)
    return (_records(found, len(column), kind) if is_record else _array(found, 0, len(column), kind)), found.refused


def _records(found: AvroRows, rows: int, kind: Any) -> Column:
    children = [_array(found, index, rows, field.type) for index, field in enumerate(kind)]
    made: Column = pa.Array.from_buffers(kind, rows, [_buffer(found.validity)], found.nulls, children=children)
    return made


def _array(found: AvroRows, index: int, rows: int, kind: pa.DataType) -> Column:
    validity, offsets, data, nulls = found.columns[index]
    buffers = [_buffer(validity), *([] if offsets is None else [_buffer(offsets)]), _buffer(data)]
    made: Column = pa.Array.from_buffers(kind, rows, buffers, nulls)
    return made


def _buffer(memory: Any) -> Any:
    return None if memory is None else pa.py_buffer(memory)
