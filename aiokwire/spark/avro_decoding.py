"""A column of Avro: one datum a record, bare or behind the id of its schema. Needs fastavro.

A record that begins with a zero byte and four bytes of a schema's id, as registries have it, is read by that schema;
the schema of the columns then says what becomes of it, by Avro's own rules for readers and writers.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from aiokwire.errors import KafkaError
from aiokwire.spark.avro_types import avro_schema, reading_type
from aiokwire.spark.columns import Column, Faults, column_of
from aiokwire.spark.decoding_options import Side
from aiokwire.spark.registry import UnknownSchema, registry_of

MAGIC: Final = b"\0"
FRAME: Final = 5  # the zero byte and the id

Adapt = Callable[[Any], Any]


class AvroDecoder:
    """Data of one schema, or of any that can be read by it."""

    def __init__(self, side: Side, arrow: pa.DataType, name: str) -> None:
        import fastavro

        self._read: Callable[..., Any] = fastavro.schemaless_reader
        self._reader, expanded = avro_schema(side.schema, f"{name}.schema")
        self._registry = registry_of(side)
        self._writer = self._reader
        if side.writer_schema:
            self._writer = avro_schema(side.writer_schema, f"{name}.schema.writer").parsed
        self._by_id: dict[int, Any] = {}
        self._adapt = _adapter(expanded)
        self._arrow = arrow
        self._reading = reading_type(expanded, arrow)

    def __call__(self, column: Column) -> tuple[Column, Faults]:
        """The data, and why rows have none.

        Raises: ConnectionFailed: the registry does not answer.
        """
        found: list[Any] = []
        faults: Faults = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else self._datum(value))
            except KafkaError:
                raise
            except Exception as error:  # whatever fastavro raises for bytes that are no datum
                found.append(None)
                faults[row] = f"{type(error).__name__}: {error}"
        return column_of(found, self._make, faults), faults

    def _make(self, found: list[Any]) -> Column:
        column: Any = pa.array(found, self._reading)
        made: Column = column if self._reading.equals(self._arrow) else column.cast(self._arrow)
        return made

    def _datum(self, value: bytes) -> Any:
        stream = io.BytesIO(value)
        writer = self._writer
        if self._registry is not None:
            stream.seek(FRAME)
            writer = self._written_by(value)
        found = self._read(stream, writer, None if writer is self._reader else self._reader)
        left = len(value) - stream.tell()
        if left:
            raise ValueError(f"{left} bytes are left behind the datum")
        return found if self._adapt is None or found is None else self._adapt(found)

    def _written_by(self, value: bytes) -> Any:
        """Raises: ValueError: no schema is named, or the registry has none of that id."""
        if len(value) < FRAME or not value.startswith(MAGIC):
            raise ValueError("it does not begin with a zero byte and a schema's id")
        assert self._registry is not None
        number = int.from_bytes(value[1:FRAME], "big")
        found = self._by_id.get(number)
        if found is None:
            try:
                found = avro_schema(self._registry.schema(number), f"the schema {number}").parsed
                if found == self._reader:
                    found = self._reader
            except (UnknownSchema, ValueError) as error:
                found = ValueError(str(error))
            self._by_id[number] = found
        if isinstance(found, ValueError):
            raise found
        return found


def _adapter(schema: Any) -> Adapt | None:
    """What makes lists of pairs of maps, as Arrow takes them; None where there is none."""
    if isinstance(schema, list):
        adapters = [each for each in map(_adapter, schema) if each is not None]
        return adapters[0] if adapters else None
    if isinstance(schema, str):
        return None
    kind = schema["type"]
    if isinstance(kind, (dict, list)):
        return _adapter(kind)
    if kind == "map":
        return _of_map(_adapter(schema["values"]))
    if kind == "array":
        return _of_array(_adapter(schema["items"]))
    if kind in ("record", "error"):
        return _of_record({field["name"]: _adapter(field["type"]) for field in schema["fields"]})
    return None


def _of_map(item: Adapt | None) -> Adapt:
    if item is None:
        return lambda found: list(found.items())
    return lambda found: [(name, None if each is None else item(each)) for name, each in found.items()]


def _of_array(element: Adapt | None) -> Adapt | None:
    if element is None:
        return None
    return lambda found: [None if each is None else element(each) for each in found]


def _of_record(fields: dict[str, Adapt | None]) -> Adapt | None:
    chosen = {name: adapt for name, adapt in fields.items() if adapt is not None}
    if not chosen:
        return None

    def adapt(found: dict[str, Any]) -> dict[str, Any]:
        for name, each in chosen.items():
            if found[name] is not None:
                found[name] = each(found[name])
        return found

    return adapt
