"""Keys and values as strings or by a JSON schema, and what becomes of those that cannot be decoded.

Used by the data source for the check, and by `convert` in the tasks.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import types as spark

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.spark.options import Decoding, Format, Mode

Column: TypeAlias = "pa.Array[Any]"
Coerce = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class UndecodableRecord(KafkaError):
    """A key or value is not what its format says, with `mode=failfast`."""


def check_decoding(schema: spark.StructType, decoding: Decoding) -> None:
    """Find out on the driver what a task could not decode.

    Raises: ConfigurationError: a schema has types that cannot be had from JSON.
    """
    for side, chosen in (("key", decoding.key), ("value", decoding.value)):
        if chosen is Format.JSON and side in schema.names:
            _coerce(schema[side].dataType, f"{side}.schema")


class Decoder:
    """Decodes batches of one schema."""

    def __init__(self, decoding: Decoding, schema: pa.Schema, spark_schema: spark.StructType) -> None:
        self._mode = decoding.mode
        self._bad_column = decoding.bad_record_column
        self._schema = schema
        self._sides: dict[str, Callable[[Column], tuple[Column, list[int]]]] = {}
        for side, chosen in (("key", decoding.key), ("value", decoding.value)):
            if side not in schema.names or chosen is Format.BINARY:
                continue
            if chosen is Format.STRING:
                self._sides[side] = _strings
            else:
                self._sides[side] = _Json(spark_schema[side].dataType, schema.field(side).type, side)

    def decode(self, columns: dict[str, Column], raw: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with decoded columns.

        Raises: UndecodableRecord: with `mode=failfast`, naming the record.
        """
        bad: dict[int, bytes] = {}
        for side, decode in self._sides.items():
            columns[side], rows = decode(raw.column(side))
            if rows and self._mode is Mode.FAILFAST:
                raise UndecodableRecord(_where(raw, rows[0], side))
            bad |= {row: raw.column(side)[row].as_py() for row in rows}
        if self._bad_column:
            columns[self._bad_column] = pa.array([bad.get(row) for row in range(raw.num_rows)], pa.binary())
        batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=self._schema)
        if bad and self._mode is Mode.DROPMALFORMED:
            return batch.filter(pa.array([row not in bad for row in range(batch.num_rows)], pa.bool_()))
        return batch


def _where(raw: pa.RecordBatch, row: int, side: str) -> str:
    topic, partition, offset = (raw.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return (
        f"{topic}[{partition}] at offset {offset}: cannot decode the {side} {raw.column(side)[row].as_py()!r:.99}; "
        "mode=permissive gives null, and the bytes in columnNameOfCorruptRecord"
    )


def _strings(column: Column) -> tuple[Column, list[int]]:
    """UTF-8; the rows that are not."""
    try:
        return column.cast(pa.string()), []
    except pa.ArrowInvalid:
        pass
    found: list[str | None] = []
    bad = []
    for row, value in enumerate(column.to_pylist()):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            found.append(None)
            bad.append(row)
    return pa.array(found, pa.string()), bad


class _Json:
    """Objects of one schema; fields that it does not name are left out, those that are missing are null."""

    def __init__(self, kind: spark.DataType, arrow: pa.DataType, side: str) -> None:
        self._coerce = _coerce(kind, side)
        self._arrow = arrow

    def __call__(self, column: Column) -> tuple[Column, list[int]]:
        found: list[Any] = []
        bad = []
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else self._coerce(json.loads(value)))
            except (ValueError, TypeError, ArithmeticError, RecursionError):
                found.append(None)
                bad.append(row)
        try:
            return pa.array(found, self._arrow), bad
        except (pa.ArrowInvalid, OverflowError):
            return self._one_by_one(found, bad)

    def _one_by_one(self, found: list[Any], bad: list[int]) -> tuple[Column, list[int]]:
        """Some row has a number that is too large for its type."""
        for row, value in enumerate(found):
            try:
                pa.array([value], self._arrow)
            except (pa.ArrowInvalid, OverflowError):
                found[row] = None
                bad.append(row)
        return pa.array(found, self._arrow), sorted(bad)


# --- JSON's values as Spark's types ---------------------------------------------------------------------------------


def _coerce(kind: spark.DataType, where: str) -> Coerce:
    """What makes a value of this type of a JSON value, or raises ValueError, TypeError or ArithmeticError.

    Raises: ConfigurationError: the type cannot be had from JSON.
    """
    if isinstance(kind, spark.StructType):
        return _struct({f.name: _coerce(f.dataType, f"{where}.{f.name}") for f in kind.fields})
    if isinstance(kind, spark.ArrayType):
        return _array(_coerce(kind.elementType, where))
    if isinstance(kind, spark.MapType):
        if not isinstance(kind.keyType, spark.StringType):
            raise ConfigurationError(f"{where}: the keys of a JSON map are strings, not {kind.keyType.simpleString()}")
        return _map(_coerce(kind.valueType, where))
    for known, coerce in _SIMPLE.items():
        if isinstance(kind, known):
            return _nullable(coerce)
    raise ConfigurationError(f"{where}: {kind.simpleString()} cannot be decoded from JSON")


def _nullable(coerce: Coerce) -> Coerce:
    return lambda value: None if value is None else coerce(value)


def _struct(fields: dict[str, Coerce]) -> Coerce:
    def coerce(value: Any) -> Any:
        if value is None:
            return None
        get = _expect(value, dict).get
        return {name: field(get(name)) for name, field in fields.items()}

    return coerce


def _array(element: Coerce) -> Coerce:
    return _nullable(lambda value: [element(each) for each in _expect(value, list)])


def _map(item: Coerce) -> Coerce:
    return _nullable(lambda value: [(name, item(each)) for name, each in _expect(value, dict).items()])


def _expect(value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r} is not what the schema says")
    return value


def _string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, (int, float)):  # seconds since the epoch, as in Spark
        return _EPOCH + datetime.timedelta(seconds=_expect(value, (int, float)))
    found = datetime.datetime.fromisoformat(value)
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


_SIMPLE: Final[dict[type[spark.DataType], Coerce]] = {
    spark.StringType: _string,
    spark.BooleanType: lambda value: _expect(value, bool),
    spark.DecimalType: lambda value: decimal.Decimal(str(_expect(value, (int, float, str)))),
    spark.IntegralType: lambda value: _expect(value, int),
    spark.FractionalType: lambda value: float(_expect(value, (int, float))),
    spark.TimestampType: _timestamp,
    spark.TimestampNTZType: datetime.datetime.fromisoformat,
    spark.DateType: datetime.date.fromisoformat,
    spark.BinaryType: lambda value: base64.b64decode(value, validate=True),
}
