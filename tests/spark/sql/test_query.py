"""Queries over topics: Spark's parsed and optimized plans, and the rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from aiokwire import Producer
from aiokwire.cli.main import cli
from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines import Query, sql
from aiokwire.spark.sql.plans import names_in, needed_columns
from tests.spark.conftest import Kafka

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("no_sessions")]


class Queries:
    """Queries on the tests' session."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._spark = spark
        self._servers = servers

    def __call__(self, query: str, **options: Any) -> Query:
        return sql(query, bootstrap=self._servers, spark=self._spark, **options)

    def rows(self, query: str, **options: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self(query, **options).frame.collect()]


@pytest.fixture
def queries(spark: SparkSession, servers: str) -> Queries:
    return Queries(spark, servers)


@pytest.fixture(scope="module")
def orders(servers: str) -> str:
    """Produce twenty orders to two partitions, one second apart; every tenth is not JSON."""
    kafka = Kafka(servers)
    name = "sql.orders-1"
    kafka.create(name, 2)

    async def main() -> None:
        async with Producer(servers) as producer:
            for number in range(20):
                value = b"{" if number % 10 == 9 else b'{"id":%d,"of":"%s"}' % (number, b"ab"[number % 2 :][:1])
                await producer.send(
                    name, value, key=b"k%d" % (number % 4), partition=number % 2, timestamp=1_000_000 + 1000 * number,
                    headers=[("n", b"%d" % number)],
                )  # fmt: skip

    kafka.run(main)
    return name


def test_sparks_parser_finds_the_tables_of_a_query(spark: SparkSession) -> None:
    names = names_in(
        spark,
        "with t as (select * from `a.b`), u as (select 1) select (select max(x) from c), 'from d' as e /* from f */ "
        "from t join u on t.k in (select k from g.h) where exists (select 1 from `i-j`) union all select * from k",
    )
    assert names.tables == {("a.b",), ("t",), ("u",), ("c",), ("g", "h"), ("i-j",), ("k",)}
    assert names.local == {"t", "u"}
    assert names_in(spark, "select 1").tables == frozenset()
    with pytest.raises(ConfigurationError, match=r"cannot be parsed: .*PARSE_SYNTAX_ERROR"):
        names_in(spark, "select * form t")
    for action in ("drop table t", "insert into t select 1", "create view v as select 1", "show tables"):
        with pytest.raises(ConfigurationError, match="only queries can be run here"):
            names_in(spark, action)


@pytest.fixture(scope="module")
def needed(spark: SparkSession, servers: str, orders: str) -> Callable[[str], list[str]]:
    """Return the sorted columns that a query over the table `orders` needs."""
    session = spark.newSession()
    options = {"kafka.bootstrap.servers": servers, "subscribe": orders}
    session.read.format("aiokwire").options(**options).load().createOrReplaceTempView("orders")
    return lambda query: sorted(needed_columns(session.sql(query))[orders])


def test_only_columns_that_the_plan_uses_are_needed(needed: Callable[[str], list[str]]) -> None:
    everything = ["key", "offset", "partition", "timestamp", "timestampType", "topic", "value"]
    for query, columns in (
        ("select count(*) from orders", []),
        ("select value from orders", ["value"]),
        ("select partition, max(offset) from orders group by partition", ["offset", "partition"]),
        ("select v from (select upper(string(key)) as k, value as v from orders)", ["value"]),
        ("select value from orders where timestamp > '2000-01-01'", ["timestamp", "value"]),
        ("select topic from orders limit 3", ["topic"]),
        ("select value from orders order by offset", ["offset", "value"]),
        ("select distinct key from orders", ["key"]),
        ("select key, row_number() over (partition by partition order by offset) from orders",
         ["key", "offset", "partition"]),
        ("select * from orders", everything),
        ("select * from orders union all select * from orders", everything),
        ("select key from orders union all select string(offset) from orders", ["key", "offset"]),
        ("select a.value from orders a join orders b on a.offset = b.offset where b.key is not null",
         ["key", "offset", "value"]),
        ("select count(*) from orders where offset = (select max(offset) from orders where key is not null)",
         ["key", "offset"]),
        ("select 1 from orders where exists (select 1 from orders b where b.topic = 'x')", ["topic"]),
        ("with a as (select partition as p from orders) select count(*) from a x, a y where x.p < y.p", ["partition"]),
    ):  # fmt: skip
        assert needed(query) == columns, query


def test_a_query_returns_the_rows_of_the_topic(queries: Queries, orders: str) -> None:
    decode = {orders: "json:id int, of string"}
    keys = {orders: "string"}
    query = queries(
        f"with good as (select key, value.* from `{orders}` where value is not null) "
        "select key, count(*), sum(id) from good group by key order by key",
        decode=decode,
        decode_keys=keys,
    )
    counted = [tuple(row) for row in query.frame.collect()]
    assert counted == [("k0", 5, 40), ("k1", 4, 36), ("k2", 5, 50), ("k3", 4, 36)]
    assert [each.columns for each in query.tables] == [("key", "value")]
    headers = f"select string(headers[0].value) from `{orders}` where offset = 3 order by 1"
    assert queries.rows(headers) == [("6",), ("7",)]
    early = f"select count(*), count(value) from `{orders}` where timestamp < timestamp'1970-01-01T00:16:45'"
    assert queries.rows(early) == [(5, 5)]


def test_conditions_become_seeks(queries: Queries, orders: str) -> None:
    query = queries(f"select value from `{orders}` where offset >= 8 and partition = 1")
    assert [row.value for row in query.frame.collect()] == [b'{"id":17,"of":"b"}', b"{"]
    explained = query.explain()
    assert explained.startswith(
        f"{orders}: topic {orders}, 20 offsets of 2 partitions\n  columns: value, partition, offset\n  value: binary\n"
    )
    pushed = [line for line in explained.splitlines() if "PushedFilters" in line]
    assert len(pushed) == 1, explained
    assert "offset" in pushed[0]
    assert "partition" in pushed[0]


def test_only_records_between_two_times_are_read(queries: Queries, orders: str) -> None:
    times = {"start": "1970-01-01T00:16:45", "end": "1970-01-01T00:16:50"}
    assert queries.rows(f"select count(*), min(timestamp), max(offset) from `{orders}`", **times)[0][::2] == (5, 4)
    assert queries.rows(f"select count(*) from `{orders}`", start="2100-01-01") == [(0,)]


def test_two_runs_of_a_query_see_the_same_offsets(kafka: Kafka, queries: Queries) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"1"])
    query = queries(f"select count(*) from `{topic}`")
    kafka.produce(topic, [b"2"])
    assert [tuple(row) for row in query.frame.collect()] == [(1,)]
    assert queries.rows(f"select count(*) from `{topic}`") == [(2,)]


def test_an_invalid_query_is_an_error_of_one_line(queries: Queries, orders: str, tmp_path: Path) -> None:
    for query, message in (
        (f"select valu from `{orders}`", "does not match its tables: .*`valu` cannot be resolved.*`value`"),
        ("select 1 from nowhere", "topic 'nowhere' does not exist"),
        ("select 1 from sql.`orders-1`", r"in backticks: `sql\.orders-1`"),
    ):
        with pytest.raises(ConfigurationError, match=message) as failed:
            queries(query)
        assert "\n" not in str(failed.value)


# --- the command ------------------------------------------------------------------------------------------------------


def run(servers: str, *arguments: str) -> Any:
    return CliRunner().invoke(cli, ["spark", "sql", "-b", servers, *arguments])


def test_the_command_writes_tables_lines_and_files(
    servers: str, orders: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)  # all tests share the session
    query = f"select key, offset, headers, value.id from `{orders}` where partition = 0 order by offset"
    decode = ("--decode", f"{orders}=json:id int")
    shown = run(servers, query, *decode, "--limit", "2")
    assert shown.exit_code == 0, shown.output
    assert "k2" in shown.stdout
    assert "there are more" in shown.stderr
    lines = run(servers, query, *decode, "--format", "json").stdout.splitlines()
    assert len(lines) == 10
    assert json.loads(lines[1]) == {"key": "k2", "offset": 1, "headers": [{"key": "n", "value": "2"}], "id": 2}
    file = tmp_path / "rows.csv"
    assert run(servers, query, *decode, "--format", "csv", "--output", str(file)).exit_code == 0
    rows = list(csv.reader(io.StringIO(file.read_text())))
    assert rows[:2] == [["key", "offset", "headers", "id"], ["k0", "0", '[{"key":"n","value":"0"}]', "0"]]
    place = tmp_path / "parquet"
    parquet = ("--format", "parquet", "--output", str(place))
    assert run(servers, query, *decode, *parquet).exit_code == 0
    assert spark.read.parquet(str(place)).count() == 10
    again = run(servers, query, *decode, *parquet)
    assert (again.exit_code, again.stderr.splitlines()[-1]) == (
        1, f"error: {place} exists: choose another path",
    )  # fmt: skip
    explained = run(servers, query, *decode, "--explain")
    assert "columns: key, value, partition, offset, headers" in explained.stdout
    wrong = run(servers, query, "--explain")
    assert wrong.exit_code == 1
    assert "SQLQueryContextLogger" not in wrong.stderr
    assert wrong.stderr.splitlines()[-1].startswith("error: the query does not match its tables: ")
