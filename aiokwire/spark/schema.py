"""The source's columns and their types: spark-sql-kafka's, and what keys and values are decoded to.

Used by the data source (Spark's types) and by `convert` (Arrow's).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decoding import schema_of
from aiokwire.spark.options import Decoding, SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa

_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
}


def spark_schema(columns: Sequence[str], decoding: Decoding) -> StructType:
    """The columns that these options give.

    Raises: ConfigurationError: a schema of keys or values cannot be read.
    """
    types = dict(_TYPES)
    types["key"] = schema_of("key", decoding.key, decoding.key_schema)
    types["value"] = schema_of("value", decoding.value, decoding.value_schema)
    fields = [StructField(name, types[name]) for name in columns]
    if decoding.bad_record_column:
        fields.append(StructField(decoding.bad_record_column, BinaryType()))
    return StructType(fields)


def check_schema(given: StructType, options: SourceOptions) -> None:
    """Refuse columns that a user gave and that are not the source's: what it has is told by options.

    Raises: ConfigurationError: naming both.
    """
    own = spark_schema(options.columns, options.decoding)
    if [(f.name, f.dataType) for f in given.fields] != [(f.name, f.dataType) for f in own.fields]:
        raise ConfigurationError(
            f"the columns of this source are {own.simpleString()}, not {given.simpleString()}: leave out schema(), and "
            "choose with columns, includeHeaders, key.format and value.format"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Exactly what Spark expects of Arrow batches of these columns."""
    convert: Any = to_arrow_schema
    if "timezone" in inspect.signature(convert).parameters:
        found: pa.Schema = convert(schema, timezone="UTC")
    else:
        found = convert(schema)  # PySpark before 4.2 has times in UTC in any case
    return found
