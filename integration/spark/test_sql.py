"""`aiokwire spark sql` on the flights: a join with the airlines, and a stopped query."""

from __future__ import annotations

import asyncio
import collections
import json
import pathlib
import signal
from typing import Any, NamedTuple

import pytest

from aiokwire import Producer
from aiokwire.cli.demo.flights import load_flights
from aiokwire.clock import wall_ms
from integration.conftest import BrokerUnderTest
from integration.spark.process import run, stopped

pytestmark = pytest.mark.timeout(600)

FLIGHTS = 60_000
FLIGHT = "id int, carrier string, arr_delay int"


class Topics(NamedTuple):
    servers: str
    flights: str
    airlines: str
    rows: list[dict[str, Any]]
    names: dict[str, str]
    begin: int
    """The time of the first flight's record; each further record is a millisecond later."""


@pytest.fixture(scope="module")
def topics(modern_broker: BrokerUnderTest) -> Topics:
    flights, airlines = modern_broker.create("sql.flights"), modern_broker.create("sql.airlines")
    keys, values, names = load_flights()
    servers = modern_broker.bootstrap_servers
    begin = wall_ms() - 3_600_000  # within the retention of brokers

    async def send() -> None:
        async with Producer(servers) as producer:
            for at, (key, value) in enumerate(zip(keys[:FLIGHTS], values[:FLIGHTS], strict=True)):
                await producer.submit(flights, value, key=key, timestamp=begin + at)
            for code, name in names.items():
                await producer.submit(airlines, name.encode(), key=code.encode())

    asyncio.run(send())
    return Topics(servers, flights, airlines, [json.loads(value) for value in values[:FLIGHTS]], names, begin)


def test_topics_are_joined_and_only_needed_columns_are_read(topics: Topics, tmp_path: pathlib.Path) -> None:
    query = f"""
        select a.value as airline, count(*) as flights, sum(f.value.arr_delay) as minutes
        from `{topics.flights}` f join `{topics.airlines}` a on f.value.carrier = a.key
        where f.timestamp >= timestamp_millis({topics.begin + FLIGHTS // 2}) and f.value.arr_delay is not null
        group by a.value order by a.value"""
    decode = ("-d", f"{topics.flights}=json:{FLIGHT}", "-d", f"{topics.airlines}=string")
    keys = ("--decode-key", f"{topics.airlines}=string")
    command = ("sql", query, "-b", topics.servers, *decode, *keys)
    ended = run(tmp_path, *command, "--format", "json")
    assert ended.status == 0, ended.errors
    flights: collections.Counter[str] = collections.Counter()
    minutes: collections.Counter[str] = collections.Counter()
    for row in topics.rows[FLIGHTS // 2 :]:
        if row["arr_delay"] is not None:
            flights[topics.names[row["carrier"]]] += 1
            minutes[topics.names[row["carrier"]]] += row["arr_delay"]
    expected = [{"airline": name, "flights": flights[name], "minutes": minutes[name]} for name in sorted(flights)]
    assert [json.loads(line) for line in ended.out.splitlines()] == expected


def test_an_interrupted_query_leaves_no_partial_file(topics: Topics, tmp_path: pathlib.Path) -> None:
    rows = tmp_path / "rows.csv"
    command = (
        "sql",
        f"select * from `{topics.flights}`",
        "-b",
        topics.servers,
        "--format",
        "csv",
        "--output",
        str(rows),
    )
    slow = ("-o", "maxRecordsPerPartition=25")  # thousands of tasks
    unfinished = tmp_path / "rows.csv.part"
    ended = stopped(
        tmp_path,
        *command,
        *slow,
        by=signal.SIGINT,
        when=lambda _output: unfinished.exists() and unfinished.stat().st_size > 0,
    )
    assert ended.status == 130, ended.errors
    assert "Traceback" not in ended.errors
    assert not rows.exists()
    assert not unfinished.exists()
