"""`sql`: the topics that a query names become views, which read only the columns that it needs.

text -> Spark's parser: tables -> fixed offsets -> views of all columns
     -> Spark's optimizer: needed columns -> views of these, with pushdown -> the frame
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aiokwire.admin import Admin
from aiokwire.cluster import Client
from aiokwire.consumer import ConsumerConfig
from aiokwire.errors import ConfigurationError
from aiokwire.spark.compat import HAS_FILTERS
from aiokwire.spark.jobs.ranges import Scope, admin_options, explicit, find_scope
from aiokwire.spark.jobs.spark_session import ask, spark_session
from aiokwire.spark.options import parse_source
from aiokwire.spark.sql.plans import first_lines, names_in, needed_columns, physical_plan, quiet_errors
from aiokwire.spark.sql.tables import HEADERS, Table, find_tables, parse_decode, place_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OWN: Final = frozenset({"subscribe", "assign", "subscribepattern", "columns", "includeheaders", "pushdown"})
_HEADERS: Final = re.compile(rf"\b{HEADERS}\b", re.IGNORECASE)


@dataclass(frozen=True)
class TableRead:
    """The part of a topic that a query reads."""

    table: Table
    scope: Scope
    columns: tuple[str, ...]
    """The columns that it needs."""

    def __str__(self) -> str:
        offsets = f"{self.scope.size:,} offsets of {len(self.scope.end)} partitions"
        lines = [f"{self.table.name}: topic {self.table.topic}, {offsets}"]
        lines.append(f"  columns: {', '.join(self.columns) or 'none'}")
        for side, decode in (("key", self.table.key), ("value", self.table.value)):
            if side in self.columns:
                lines.append(f"  {side}: {decode}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Query:
    """A prepared query."""

    text: str
    frame: DataFrame
    """Runs when rows are requested, always over the same offsets."""
    tables: tuple[TableRead, ...]

    def explain(self) -> str:
        """Return the tables and columns read, and Spark's plan with the pushed filters."""
        return "\n".join([*map(str, self.tables), "", physical_plan(self.frame)])


def sql(
    query: str,
    *,
    bootstrap: str,
    decode: Mapping[str, str] | None = None,
    decode_keys: Mapping[str, str] | None = None,
    start: str | None = None,
    end: str | None = None,
    options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Query:
    """Prepare a query over topics: each topic that it names is a table with the source's columns.

    `decode` and `decode_keys`, by topic: `string`, `json:SCHEMA` or `avro:SCHEMA`. `start` and
    `end` are the times between which topics are read. `options` are the source's; `read_committed`
    is the default. The column `headers` exists if the query names it.

    Raises: ConfigurationError: the query cannot be parsed or does not match the tables, a topic
        does not exist, or an option is invalid; LostData: offsets that the options name are gone.
    """
    keys, values = parse_decode(decode_keys or {}), parse_decode(decode or {})
    base = base_options(bootstrap, options or {}, start, end)
    config = parse_source({**base, "subscribe": "any"}, streaming=False).consumer
    session = _own_session(spark_session("aiokwire sql", given=spark, master=master, conf=conf))
    names = names_in(session, query)
    topics = ask(config, functools.partial(_topics, config=config))
    tables = find_tables(names, topics, keys, values, headers=bool(_HEADERS.search(query)))
    scopes = {each.topic: _scope(base, each.topic) for each in tables}
    fixed = {topic: explicit(base, scope) for topic, scope in scopes.items()}
    whole = {each.topic: _load(session, {**fixed[each.topic], **each.whole_options()}) for each in tables}
    for each in tables:
        _view(each, whole[each.topic], whole[each.topic].schema, each.columns)
    needed = needed_columns(_analysed(session, query))
    for each in tables:
        wanted = needed.get(each.topic, set())
        rows = _load(session, {**fixed[each.topic], **each.read_options(wanted, pushdown=HAS_FILTERS)})
        _view(each, rows, whole[each.topic].schema, wanted)
    read = (
        TableRead(each, scopes[each.topic], tuple(name for name in each.columns if name in needed.get(each.topic, ())))
        for each in tables
    )
    return Query(query, _analysed(session, query), tuple(read))


def base_options(bootstrap: str, options: Mapping[str, str], start: str | None, end: str | None) -> dict[str, str]:
    """Return the source's options that all tables share.

    Raises: ConfigurationError: an option is one that the query determines.
    """
    for name in options:
        if name.lower() in _OWN:
            raise ConfigurationError(f"the query determines what is read: leave out the option {name}")
    places = place_options(start, end)
    defaults = {"kafka.isolation.level": "read_committed"}
    named = {name.lower() for name in options}
    found = {name: text for name, text in defaults.items() if name not in named}
    return {**found, **options, **places, "kafka.bootstrap.servers": bootstrap}


def _own_session(spark: SparkSession) -> SparkSession:
    """Return a session for the views of this query alone."""
    session = spark.newSession()
    for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
        session.conf.set(name, str(spark.conf.get(name)))
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    return session


async def _topics(client: Client, *, config: ConsumerConfig) -> Sequence[str]:
    del client  # the admin client has its own
    async with Admin(**admin_options(config)) as admin:
        return [each.name for each in await admin.list_topics(internal=True)]


def _scope(base: Mapping[str, str], topic: str) -> Scope:
    options = parse_source({**base, "subscribe": topic}, streaming=False)
    return ask(options.consumer, functools.partial(find_scope, options=options))


def _load(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    return session.read.format("aiokwire").options(**options).load()


def _view(table: Table, rows: DataFrame, kinds: StructType, read: Collection[str]) -> None:
    """Create the view of a topic, with all columns: the query may name some that its plan drops."""
    from pyspark.sql import functions as F

    columns = [
        F.col(name) if name in read else F.lit(None).cast(kinds[name].dataType).alias(name) for name in table.columns
    ]
    rows.select(*columns).createOrReplaceTempView("`" + table.name.replace("`", "``") + "`")


def _analysed(session: SparkSession, query: str) -> DataFrame:
    from pyspark.errors import PySparkException

    try:
        with quiet_errors():
            return session.sql(query)
    except PySparkException as error:
        raise ConfigurationError(f"the query does not match its tables: {first_lines(error)}") from None
