"""A column of Avro: one datum per record, optionally prefixed by its schema's id. Needs fastavro.

With a registry, a record begins with a zero byte and the four bytes of its schema's id: it is read
by that schema and resolved to the schema of the columns by Avro's rules.

    flat schema, the writer's the same          -> kernel -> Arrow
    others, and each row that the kernel refuses -> fastavro -> Python values -> Arrow

fastavro decides on rows that the kernel refuses, so that rows and errors are the same either way.
"""

from __future__ import annotations

import functools
import io
import logging
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from aiokwire.errors import KafkaError
from aiokwire.records import AvroPlan
from aiokwire.spark.decode.avro_plan import FlatSchema, NotFlat, flat_schema, run_plan, schema_ids
from aiokwire.spark.decode.avro_types import AvroSchema, avro_schema, reading_type
from aiokwire.spark.decode.columns import Column, Faults, column_of
from aiokwire.spark.decode.options import Side
from aiokwire.spark.decode.registry import UnknownSchema, registry_of

MAGIC: Final = b"\0"
FRAME: Final = 5  # the zero byte and the id

Adapt = Callable[[Any], Any]

logger: logging.Logger = logging.getLogger(__name__)


@functools.cache  # log once for each schema, not for each plan
def _log_slow(option: str, reason: str) -> None:
    logger.warning(
        "%s: %s: fastavro decodes the records individually, about 100,000 per second and core; flat records whose "
        "writer's schema is the reader's are decoded many times as fast",
        option,
        reason,
    )


def log_if_slow(side: Side, option: str) -> None:
    """Log a schema whose records the kernel cannot decode.

    Raises: ConfigurationError: a schema is invalid.
    """
    try:
        reader = flat_schema(avro_schema(side.schema, option).expanded)
        if side.writer_schema and flat_schema(avro_schema(side.writer_schema, option).expanded) != reader:
            raise NotFlat(f"{option}.writer differs from {option}")
    except NotFlat as error:
        _log_slow(option, str(error))


class AvroDecoder:
    """Decodes data of one schema, or of schemas that Avro resolves to it."""

    def __init__(self, side: Side, arrow: pa.DataType, name: str) -> None:
        import fastavro

        self._read: Callable[..., Any] = fastavro.schemaless_reader
        reader = avro_schema(side.schema, f"{name}.schema")
        self._reader, expanded = reader
        self._registry = registry_of(side)
        self._flat = _flat(reader)
        self._writer = self._reader
        is_own = True
        if side.writer_schema:
            writer = avro_schema(side.writer_schema, f"{name}.schema.writer")
            self._writer, is_own = writer.parsed, self._is_own(writer)
        # None: fastavro decodes all records
        self._plan: AvroPlan | None = self._flat.plan() if self._flat is not None and is_own else None
        self._by_id: dict[int, Any] = {}
        self._own_ids: list[int] = []
        self._adapt = _adapter(expanded)
        self._arrow = arrow
        self._reading = reading_type(expanded, arrow)

    def __call__(self, column: Column) -> tuple[Column, Faults]:
        """Decode a column; return the reason for each row that does not decode.

        Raises: ConnectionFailed: the registry does not respond.
        """
        if self._plan is None or self._flat is None:
            return self._one_by_one(column)
        if self._registry is not None:
            self._look_up(schema_ids(column))
        ids = None if self._registry is None else self._own_ids
        decoded, refused = run_plan(self._plan, column, self._arrow, is_record=bool(self._flat.name), ids=ids)
        return self._with_refused(decoded, column, refused) if refused else (decoded, {})

    def _with_refused(self, decoded: Column, column: Column, refused: list[int]) -> tuple[Column, Faults]:
        """Replace the rows that the kernel refused by fastavro's results."""
        found, faults = self._one_by_one(column.take(pa.array(refused, pa.int64())))
        if found.null_count < len(found):
            places = np.arange(len(decoded))
            places[refused] = np.arange(len(decoded), len(decoded) + len(found))
            decoded = pa.concat_arrays([decoded, found]).take(pa.array(places, pa.int64()))
        return decoded, {refused[row]: reason for row, reason in faults.items()}

    def _one_by_one(self, column: Column) -> tuple[Column, Faults]:
        found: list[Any] = []
        faults: Faults = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else self._datum(value))
            except KafkaError:
                raise
            except Exception as error:  # fastavro raises various types for invalid bytes
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
            raise ValueError(f"{left} bytes follow the datum")
        return found if self._adapt is None or found is None else self._adapt(found)

    def _written_by(self, value: bytes) -> Any:
        """Raises: ValueError: no schema is named, or the registry does not have it."""
        if len(value) < FRAME or not value.startswith(MAGIC):
            raise ValueError("it does not begin with a zero byte and a schema's id")
        number = int.from_bytes(value[1:FRAME], "big")
        self._look_up([number])
        found = self._by_id[number]
        if isinstance(found, ValueError):
            raise found
        return found

    def _look_up(self, numbers: list[int]) -> None:
        """Load the schemas of these ids that are not loaded yet."""
        assert self._registry is not None
        for number in numbers:
            if number not in self._by_id:
                try:
                    schema = avro_schema(self._registry.schema(number), f"the schema {number}")
                except (UnknownSchema, ValueError) as error:
                    self._by_id[number] = ValueError(str(error))
                    continue
                self._by_id[number] = self._reader if schema.parsed == self._reader else schema.parsed
                if self._is_own(schema):
                    self._own_ids.append(number)

    def _is_own(self, writer: AvroSchema) -> bool:
        """Whether the columns' schema reads data of this schema as its own."""
        return self._flat is not None and self._flat == _flat(writer)


def _flat(schema: AvroSchema) -> FlatSchema | None:
    try:
        return flat_schema(schema.expanded)
    except NotFlat:
        return None


def _adapter(schema: Any) -> Adapt | None:
    """Return a function that converts maps to lists of pairs for Arrow; None without maps."""
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
