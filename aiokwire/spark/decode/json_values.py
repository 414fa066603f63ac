"""Conversion of single JSON values to Spark's types. Used by `from_json`."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import types as spark

from aiokwire.errors import ConfigurationError

Coerce = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def coerce_for(kind: spark.DataType, where: str) -> Coerce:
    """Return a converter to this type, which raises ValueError, TypeError or ArithmeticError.

    Raises: ConfigurationError: JSON cannot be decoded to the type.
    """
    if isinstance(kind, spark.StructType):
        return _struct({f.name: coerce_for(f.dataType, f"{where}.{f.name}") for f in kind.fields})
    if isinstance(kind, spark.ArrayType):
        return _array(coerce_for(kind.elementType, where))
    if isinstance(kind, spark.MapType):
        if not isinstance(kind.keyType, spark.StringType):
            raise ConfigurationError(f"{where}: the keys of a JSON map are strings, not {kind.keyType.simpleString()}")
        return _map(coerce_for(kind.valueType, where))
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
        raise TypeError(f"{value!r:.99} does not match the schema")
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
