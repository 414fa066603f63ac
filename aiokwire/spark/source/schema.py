"""The source's columns and their types: spark-sql-kafka's, and those of decoded keys and values.

Used by the data source, which passes DDL to Spark and receives it parsed, and by the tasks.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.avro_types import avro_schema, spark_type
from aiokwire.spark.decode.options import Decoding, Format, Side
from aiokwire.spark.options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def ddl(columns: Sequence[str], decoding: Decoding) -> str:
    """Return the columns as Spark's DDL.

    Raises: ConfigurationError: a schema is invalid. Spark checks those that are DDL.
    """
    types = _TYPES | {name: _type(name, side) for name, side in decoding.sides}
    parts = [f"`{name}` {types[name]}" for name in columns]
    if decoding.bad_record_column:
        parts.append(f"`{decoding.bad_record_column.replace('`', '``')}` binary")
    return ", ".join(parts)


def _type(name: str, side: Side) -> str:
    if side.format is Format.AVRO:
        where = f"{name}.schema"
        return str(spark_type(avro_schema(side.schema, where).expanded, where).simpleString())
    if side.format is not Format.JSON:
        return str(side.format.value)
    if not side.schema.startswith("{"):
        return f"struct<{side.schema}>"
    try:
        return str(StructType.fromJson(json.loads(side.schema)).simpleString())
    except Exception as error:  # PySpark raises various types for other documents
        raise ConfigurationError(f"{name}.schema is not a schema in Spark's JSON: {error}") from None


def check_schema(given: StructType, options: SourceOptions) -> None:
    """Check the columns of a user's `schema()`: only options choose the columns of this source.

    Raises: ConfigurationError: they differ; the message names both.
    """
    own = {name: _TYPES[name] for name in options.columns}
    for name, side in options.decoding.sides:
        if name in own:
            own[name] = "struct" if side.format is Format.JSON else _type(name, side)
    if options.decoding.bad_record_column:
        own[options.decoding.bad_record_column] = "binary"
    found = {field.name: field.dataType.simpleString() for field in given.fields}
    found |= {name: "struct" for name, kind in own.items() if kind == "struct" and _is_struct(given, name)}
    if list(found.items()) != list(own.items()):
        columns = ", ".join(f"{name} {kind}" for name, kind in own.items())
        raise ConfigurationError(
            f"the columns of this source are {columns}, not {given.simpleString()}: leave out schema(), and choose "
            "with columns, includeHeaders, key.format and value.format"
        )


def _is_struct(given: StructType, name: str) -> bool:
    return name in given.names and isinstance(given[name].dataType, StructType)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires for these columns."""
    convert: Any = to_arrow_schema
    if "timezone" in inspect.signature(convert).parameters:
        found: pa.Schema = convert(schema, timezone="UTC")
    else:
        found = convert(schema)  # PySpark before 4.2 always uses UTC
    return found
