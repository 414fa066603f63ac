"""Avro's types as Spark's (as in its own `from_avro`), and as Arrow's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import types as spark

from aiokwire.errors import ConfigurationError

_PRIMITIVE: Final[Mapping[str, type[spark.DataType]]] = {
    "boolean": spark.BooleanType,
    "int": spark.IntegerType,
    "long": spark.LongType,
    "float": spark.FloatType,
    "double": spark.DoubleType,
    "bytes": spark.BinaryType,
    "string": spark.StringType,
    "enum": spark.StringType,
    "fixed": spark.BinaryType,
}
_LOGICAL: Final[Mapping[tuple[str, str], type[spark.DataType]]] = {
    ("int", "date"): spark.DateType,
    ("long", "timestamp-millis"): spark.TimestampType,
    ("long", "timestamp-micros"): spark.TimestampType,
    ("long", "local-timestamp-millis"): spark.TimestampNTZType,
    ("long", "local-timestamp-micros"): spark.TimestampNTZType,
}
_WIDER: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


class AvroSchema(NamedTuple):
    """A schema for fastavro and for the functions of this package."""

    parsed: Any
    """For fastavro."""
    expanded: Any
    """With named types written out where they are used, except in their own definition."""


def avro_schema(text: str, where: str) -> AvroSchema:
    """Parse a schema in JSON.

    Raises: ConfigurationError: it is not an Avro schema, or fastavro is not installed.
    """
    try:
        from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema
    except ImportError:
        raise ConfigurationError("Avro needs fastavro: install aiokwire[spark]") from None
    try:
        schema = _without_times(json.loads(text))
        return AvroSchema(parse_schema(schema), expand_schema(schema))
    except (ValueError, KeyError, TypeError, SchemaParseException, UnknownType) as error:
        raise ConfigurationError(f"{where} is not an Avro schema: {type(error).__name__}: {error}") from None


def _without_times(schema: Any) -> Any:
    """Rename logical types, so that fastavro returns numbers for Arrow, not Python objects.

    `spark_type` and `reading_type` read them under the other name.
    """
    if isinstance(schema, list):
        return [_without_times(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for name in ("type", "items", "values"):
        if name in found:
            found[name] = _without_times(found[name])
    if "fields" in found and isinstance(found["fields"], list):
        found["fields"] = [_without_times(field) for field in found["fields"]]
    if found.get("logicalType") not in (None, "decimal"):
        found[MEANING] = found.pop("logicalType")
    return found


MEANING: Final = "aiokwire.logicalType"


def spark_type(schema: Any, where: str) -> spark.DataType:
    """Return the Spark type of data of a schema.

    Raises: ConfigurationError: Spark has no type for it.
    """
    schema, _ = _one_of(schema, where)
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"]
    if kind in ("record", "error"):
        fields = [(field["name"], spark_type(field["type"], f"{where}.{field['name']}")) for field in schema["fields"]]
        if not fields:
            raise ConfigurationError(f"{where}: a record without fields cannot be a column")
        return spark.StructType([spark.StructField(name, found) for name, found in fields])
    if kind == "array":
        return spark.ArrayType(spark_type(schema["items"], where))
    if kind == "map":
        return spark.MapType(spark.StringType(), spark_type(schema["values"], where))
    if isinstance(kind, (dict, list)):
        return spark_type(kind, where)
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(schema, where)
    logical = _LOGICAL.get((kind, str(schema.get(MEANING))))
    if logical is not None:
        return logical()
    if kind not in _PRIMITIVE:
        what = "null alone" if kind == "null" else f"{kind}, which contains itself,"
        raise ConfigurationError(f"{where}: {what} cannot be a column")
    return _PRIMITIVE[kind]()


def _decimal(schema: Mapping[str, Any], where: str) -> spark.DataType:
    precision = schema["precision"]
    if precision > 38:
        raise ConfigurationError(
            f"{where}: a decimal of {precision} digits cannot be a column: Spark's decimals have at most 38"
        )
    return spark.DecimalType(precision, schema.get("scale", 0))


def _one_of(schema: Any, where: str) -> tuple[Any, bool]:
    """Return the type that a union joins with null, and whether it does; other types as they are.

    Raises: ConfigurationError: it is a union of several types.
    """
    if not isinstance(schema, list):
        return schema, False
    types = [each for each in schema if each != "null"]
    if len(types) == 1:
        return types[0], True
    names = frozenset(each for each in types if isinstance(each, str))
    if len(names) == len(types) and names in _WIDER:
        return _WIDER[names], True
    raise ConfigurationError(
        f"{where}: a union of several types cannot be a column: leave the field out of the schema, or take the bytes"
    )


def reading_type(schema: Any, kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of Avro's values: `kind`, with milliseconds where Avro has them."""
    schema, _ = _one_of(schema, "")
    if isinstance(schema, str):
        return kind
    if isinstance(schema["type"], (dict, list)):
        return reading_type(schema["type"], kind)
    if isinstance(kind, pa.StructType):
        pairs = zip(schema["fields"], kind, strict=True)
        return pa.struct([field.with_type(reading_type(each["type"], field.type)) for each, field in pairs])
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(reading_type(schema["items"], kind.value_type)))
    if isinstance(kind, pa.MapType):
        make: Any = pa.map_  # accepts fields, unlike its annotation
        found: pa.DataType = make(
            kind.key_field, kind.item_field.with_type(reading_type(schema["values"], kind.item_type))
        )
        return found
    if isinstance(kind, pa.TimestampType) and str(schema.get(MEANING)).endswith("-millis"):
        return pa.timestamp("ms", kind.tz)
    return kind
