"""The source's columns and their types: spark-sql-kafka's, and what keys and values are decoded to.

Used by the data source, which tells Spark the columns as DDL and gets them back parsed, and by the tasks.
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
    """The columns that these options give, in Spark's words.

    Raises: ConfigurationError: a schema cannot be read. Those that are DDL themselves are Spark's to read.
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
    except Exception as error:  # whatever PySpark raises for a document that is not its own
        raise ConfigurationError(f"{name}.schema is no schema: {error}") from None


def check_schema(given: StructType, options: SourceOptions) -> None:
    """Refuse columns that a user gave and that are not the source's: what it has is told by options.

    Raises: ConfigurationError: naming both.
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
    """Exactly what Spark expects of Arrow batches of these columns."""
    convert: Any = to_arrow_schema
    if "timezone" in inspect.signature(convert).parameters:
        found: pa.Schema = convert(schema, timezone="UTC")
    else:
        found = convert(schema)  # PySpark before 4.2 has times in UTC in any case
    return found
