"""Records as tables and back, and errors that Spark raises before a query starts."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructType, TimestampType

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink
from aiokwire.spark.pipelines.frames import as_records, as_table, tables, timestamp_column, verdict
from aiokwire.spark.pipelines.pipeline import prepare

SCHEMA = (
    StructType().add("At", TimestampType()).add("n", IntegerType()).add("w", StructType().add("start", StringType()))
)
ORDERS = Pipeline.read("orders", json="id int, at timestamp, timestamp string").set(bootstrap="127.0.0.1:1")


def test_the_column_of_a_watermark() -> None:
    assert timestamp_column(SCHEMA, "at", "source 'a'") == "At"
    window = StructType().add("w", StructType().add("start", TimestampType()).add("end", TimestampType()))
    assert timestamp_column(window, "w", "step 's'") == "w"
    for name, message in (
        ("n", "'n' is int: convert it"),
        ("w", "'w' is struct"),
        ("a", "did you mean 'At'"),
        ("zz", "timestamps are At"),
    ):
        with pytest.raises(ConfigurationError, match=f"source 'a': .*{message}"):
            timestamp_column(SCHEMA, name, "source 'a'")


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("[X.Y] It is wrong. SQLSTATE: 42KDE; line 1 pos 7;\n'Project", "It is wrong. (line 1 pos 7)"),
        ("[X] It is wrong. SQLSTATE: 42KDE", "It is wrong."),
        ("plain\nmore", "plain"),
        ("", "Spark gives no reason"),
        ("Traceback (most recent call last):\n  File\naiokwire.errors.ConfigurationError: no such\n", "no such"),
    ],
)
def test_an_error_of_spark_becomes_one_sentence(message: str, wanted: str) -> None:
    assert verdict(message) == wanted


pytestmark = pytest.mark.timeout(120)


def test_fields_are_columns_and_hide_those_of_the_record(spark: SparkSession) -> None:
    frame = spark.sql("select named_struct('id', 1, 'Offset', 'x') as value, 7L as offset, 0 as partition")
    found = as_table(frame)
    assert found.columns == ["id", "Offset", "record_offset", "partition"]
    assert found.collect()[0].asDict() == {"id": 1, "Offset": "x", "record_offset": 7, "partition": 0}
    plain = spark.sql("select 'x' as value, 7L as offset")
    assert as_table(plain).columns == ["value", "offset"]


def records(spark: SparkSession, query: str, **sink: str) -> dict[str, object]:
    found = as_records(spark.sql(query), Sink(name="t", from_="x", **sink))  # type: ignore[arg-type]  # texts only
    return {name: value for name, value in found.collect()[0].asDict().items() if value is not None or name == "key"}


def test_columns_other_than_value_become_json(spark: SparkSession) -> None:
    found = records(spark, "select 'AA' as carrier, null as n, 3 as partition, 'k' as key")
    assert (found["key"], found["partition"]) == ("k", 3)
    assert json.loads(str(found["value"])) == {"carrier": "AA", "n": None}


def test_a_key_is_a_column_or_an_expression_and_stays_in_the_value(spark: SparkSession) -> None:
    found = records(spark, "select 'AA' as carrier, 5 as n", key="n + 1")
    assert found == {"key": "6", "value": '{"carrier":"AA","n":5}'}
    assert records(spark, "select 5 as n, 'old' as key", key="n")["key"] == "5"
    assert records(spark, "select 5 as n", key="struct(n)")["key"] == '{"n":5}'


def test_a_value_stays_as_it_is_unless_it_is_nested(spark: SparkSession) -> None:
    assert records(spark, "select 'x' as value, 5 as other")["value"] == "x"
    assert records(spark, "select X'01' as value")["value"] == b"\x01"
    assert records(spark, "select named_struct('a', 1) as value")["value"] == '{"a":1}'
    assert records(spark, "select 5 as value")["value"] == "5"


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        ("select 'k' as key, 3 as partition", None, "every column is another part of a record"),
        ("select 'x' as value, 'p' as partition", None, "partition must be int, not string"),
        ("select 5 as n", "carier", "`carier` cannot be resolved"),
    ],
)
def test_rows_that_cannot_become_records_are_refused(
    spark: SparkSession, query: str, key: str | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"sink 't': .*{message}"):
        as_records(spark.sql(query), Sink(name="t", from_="x", key=key))


def test_sources_and_steps_are_tables_while_the_pipeline_is_built(spark: SparkSession) -> None:
    pipeline = ORDERS.sql("select id, record_timestamp from ORDERS", name="ids").write("t")
    with tables(spark, pipeline) as found:
        assert list(found) == ["orders", "ids"]
        assert found["ids"].columns == ["id", "record_timestamp"]
        again = tables(spark, pipeline)
        with pytest.raises(ConfigurationError, match="source 'orders': the Spark session has a table of that name"):
            again.__enter__()
        assert spark.catalog.tableExists("orders"), "the first context's table stays"
    assert not spark.catalog.tableExists("orders")


WRONG = [
    (ORDERS.sql("select idd from orders").write("t"), "step 'step1': .*`idd` cannot be resolved. Did you mean .*`id`"),
    (ORDERS.sql("selec 1 from orders").write("t"), "step 'step1': Syntax error at or near 'selec'"),
    (ORDERS.sql("select 1").write("t"), "step 'step1' reads no source"),
    (Pipeline.read("o", json="id nonsense").write("t"), "source 'o': "),
    (Pipeline.read("o", json="id int", watermark={"id": "1 hour"}).write("t"), "'id' is int"),
    (ORDERS.sql("select id, count(*) as n from orders group by id").write("t"), "sink 't': .*append.*watermark"),
]


@pytest.mark.parametrize(("pipeline", "message"), WRONG)
def test_errors_of_spark_are_raised_before_any_query_starts(
    spark: SparkSession, pipeline: Pipeline, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        prepare(pipeline, bootstrap="127.0.0.1:1", brokers=False).explain(spark)
    assert not spark.catalog.listTables()
    assert not spark.streams.active


def test_a_pipeline_is_drawn_with_its_columns_and_plans(spark: SparkSession) -> None:
    pipeline = ORDERS.sql("select id from orders where id > 3", name="ids").write("t")
    drawn = prepare(pipeline, brokers=False).explain(spark, plan=True)
    assert "columns: id int\n" in drawn
    assert "id int, at timestamp, timestamp string, key binary, topic string, partition int" in drawn
    assert "sink t\n" in drawn
    assert "Filter" in drawn
