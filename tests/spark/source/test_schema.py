from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StructType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.options import Decoding
from aiokwire.spark.options import SourceOptions, parse_source
from aiokwire.spark.source.schema import check_schema, ddl
from tests.spark.conftest import columns_of

SERVERS = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}


def options(**given: str) -> SourceOptions:
    return parse_source(SERVERS | {name.replace("__", "."): text for name, text in given.items()}, streaming=False)


def _shape(given: dict[str, str]) -> tuple[tuple[str, ...], Decoding]:
    parsed = parse_source(SERVERS | given, streaming=None)
    return parsed.columns, parsed.decoding


def test_columns_are_declared_to_spark_as_ddl() -> None:
    assert ddl(*_shape({"columns": "value,timestampType", "includeHeaders": "true"})) == (
        "`value` binary, `timestampType` int, `headers` array<struct<key:string,value:binary>>"
    )
    decoded = {
        "columns": "key,value",
        "key.format": "string",
        "value.format": "json",
        "value.schema": "a int, b string",
    }
    assert ddl(*_shape(decoded | {"columnNameOfCorruptRecord": "b`d"})) == (
        "`key` string, `value` struct<a int, b string>, `b``d` binary"
    )


def test_a_schema_may_be_given_as_sparks_json() -> None:
    schema = StructType().add("a", IntegerType())
    decoded = {"columns": "value", "value.format": "json", "value.schema": schema.json()}
    assert ddl(*_shape(decoded)) == "`value` struct<a:int>"
    with pytest.raises(ConfigurationError, match=r"value\.schema is not a schema"):
        ddl(*_shape(decoded | {"value.schema": '{"type":"struct"}'}))


def test_the_columns_parsed_by_spark_equal_those_of_the_source() -> None:
    plain = options(includeHeaders="true")
    check_schema(columns_of(plain), plain)
    decoded = options(value__format="json", value__schema="a int", columnNameOfCorruptRecord="_bad")
    check_schema(columns_of(decoded, value=StructType().add("a", IntegerType())), decoded)


@pytest.mark.parametrize("given", [StructType().add("value", IntegerType()), StructType()])
def test_a_user_defined_schema_is_refused(given: StructType) -> None:
    with pytest.raises(ConfigurationError, match=r"leave out schema\(\)"):
        check_schema(given, options())
