"""The topics that a query names, and the options they are read with."""

from __future__ import annotations

import re

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.options import parse_source
from aiokwire.spark.sql.plans import Names, first_lines
from aiokwire.spark.sql.query import base_options
from aiokwire.spark.sql.tables import (
    Decode,
    Table,
    find_tables,
    milliseconds,
    parse_decode,
    place_options,
)

TOPICS = ["orders", "Payments", "a.b-c", "clicks", "Clicks"]


def tables(
    *names: str | tuple[str, ...], local: frozenset[str] = frozenset(), **decode: Decode
) -> list[tuple[str, str]]:
    parts = frozenset((name,) if isinstance(name, str) else name for name in names)
    return [(each.name, each.topic) for each in find_tables(Names(parts, local), TOPICS, {}, decode, headers=False)]


def test_topics_are_found_by_name_in_any_case() -> None:
    assert tables("orders", "a.b-c", "payments") == [("a.b-c", "a.b-c"), ("orders", "orders"), ("payments", "Payments")]
    assert tables("clicks") == [("clicks", "clicks")]
    assert tables("orders", "ORDERS") == [("orders", "orders")]


def test_an_unknown_topic_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="topic 'order' does not exist; did you mean 'orders'"):
        tables("order")
    with pytest.raises(ConfigurationError, match=r"in backticks: `a\.b-c`"):
        tables(("a", "b-c"))
    with pytest.raises(ConfigurationError, match="'CLICKS' may be Clicks or clicks"):
        tables("CLICKS")
    with pytest.raises(ConfigurationError, match="Spark does not distinguish 'clicks' and 'Clicks'"):
        tables("clicks", "Clicks")
    with pytest.raises(ConfigurationError, match="the query does not name 'orders', which has a decode option"):
        tables("payments", orders=Decode("string"))


def test_tables_that_the_query_defines_and_files_are_left_to_spark() -> None:
    assert tables(("parquet", "/lake"), "totals", local=frozenset({"totals"})) == []
    assert tables("orders", local=frozenset({"orders"})) == [("orders", "orders")], (
        "a name may hide a topic of that name"
    )


def test_only_needed_columns_are_read() -> None:
    table = Table("orders", "orders", Decode("string"), Decode("json", "id int"), False)
    assert table.read_options({"value", "offset"}, pushdown=True) == {
        "subscribe": "orders", "columns": "value,offset", "pushdown": "true", "value.format": "json",
        "value.schema": "id int",
    }  # fmt: skip
    cheapest = {"subscribe": "orders", "columns": "partition", "pushdown": "false"}
    assert table.read_options((), pushdown=False) == cheapest
    for headers in (False, True):
        whole = Table("orders", "orders", Decode("string"), Decode("json", "id int"), headers)
        options = parse_source({"kafka.bootstrap.servers": "h:1", **whole.whole_options()}, streaming=False)
        assert options.columns == whole.columns
        assert ("headers" in whole.columns) == headers


def test_formats_with_and_without_a_schema() -> None:
    found = parse_decode({"a": "string", "b": "json:id int, at timestamp", "c": 'avro:{"type": "long"}'})
    assert [str(each) for each in found.values()] == ["string", "json id int, at timestamp", 'avro {"type": "long"}']
    for text, message in (
        ("text", "'text': choose from binary, string, json, avro"),
        ("json", "a=json takes a schema, as in json:id int"),
        ("string:id int", "a=string takes no schema"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            parse_decode({"a": text})


def test_times_become_options_of_the_source() -> None:
    assert place_options("1970-01-01T00:00:01", "1970-01-01T01:00:00+01:00") == {
        "startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "latest", "endingTimestamp": "0",
    }  # fmt: skip
    assert milliseconds("1500") == 1500
    with pytest.raises(ConfigurationError, match="'noon' is not a time"):
        milliseconds("noon")


def test_options_of_all_tables() -> None:
    assert base_options("h:1", {"Kafka.Isolation.Level": "read_uncommitted"}, None, None) == {
        "Kafka.Isolation.Level": "read_uncommitted", "kafka.bootstrap.servers": "h:1",
    }  # fmt: skip
    assert base_options("h:1", {}, None, None)["kafka.isolation.level"] == "read_committed"
    with pytest.raises(ConfigurationError, match="leave out the option Columns"):
        base_options("h:1", {"Columns": "value"}, None, None)


def test_errors_of_spark_are_cut_to_their_first_sentences() -> None:
    message = "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. Did you mean `y`?"
    assert first_lines(ValueError(f"{message} SQLSTATE: 42703; line 1 pos 7;\n'Project")) == message
