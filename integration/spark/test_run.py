"""`aiokwire spark run` on the flights: stopped by SIGTERM, killed within a transaction, restarted.

Each row is once.
"""

from __future__ import annotations

import asyncio
import json
import pathlib
import signal
from typing import Any

import pytest

from aiokwire import Admin, Consumer, Producer
from aiokwire.cli.demo.flights import load_flights
from aiokwire.cli.spark.demo.direct import compare, compute, read_hour
from aiokwire.cluster import LATEST
from aiokwire.types import TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.spark.process import Verb, summary

pytestmark = pytest.mark.timeout(600)

FLIGHTS = 30_000
DECLARED = """
bootstrap = "${brokers}"
checkpoint = "${checkpoint}"

[sources.flights]
topic = "${source}"
json = "id int, time_hour timestamp, carrier string, arr_delay int"
watermark = { time_hour = "7 days" }
options = { maxOffsetsPerTrigger = 3000, commitGroup = "${source}-lag" }

[steps.hourly]
sql = '''
select window.start as hour, carrier,
       count(*) as flights, count(arr_delay) as arrived, coalesce(sum(arr_delay), 0) as minutes
from flights group by window(time_hour, '1 hour'), carrier
'''

[sinks.hours]
from = "hourly"
topic = "${hours}"
key = "carrier"
delivery = "exactly-once"

[sinks.copy]
from = "flights"
topic = "${copy}"
delivery = "exactly-once"
"""


async def send(servers: str, topic: str, flights: list[dict[str, Any]]) -> None:
    async with Producer(servers) as producer:
        for flight in flights:
            key = flight["tailnum"] or str(flight["id"])
            await producer.submit(topic, json.dumps(flight).encode(), key=key.encode())


async def first_rows(run: Verb, servers: str, topic: str, isolation: str, *, at_end: bool) -> None:
    """Wait until a reader sees the first row of all rows, or of those from now on."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    start = "latest" if at_end else "earliest"
    async with Consumer(
        bootstrap_servers=servers, partitions=places, isolation_level=isolation, auto_offset_reset=start
    ) as consumer:
        for place in places:
            await consumer.position(place)
        async with asyncio.timeout(300):
            while not await consumer.getmany(timeout=1):
                run.check()


async def committed(servers: str, topic: str) -> list[bytes]:
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = []
    async with Consumer(
        bootstrap_servers=servers, partitions=places, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        ends = await consumer.end_offsets(places)
        while [place for place in places if await consumer.position(place) < ends[place]]:
            found += [record.value or b"" for record in await consumer.getmany(max_records=10_000, timeout=0.2)]
    return found


async def in_open_transactions(servers: str, *topics: str) -> int:
    """Return the number of offsets that read_committed readers cannot read yet."""
    places = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
    async with Admin(servers) as admin:
        ends = [
            await admin.list_offsets(dict.fromkeys(places, LATEST), isolation_level=isolation)
            for isolation in ("read_uncommitted", "read_committed")
        ]
    return sum(ends[0][place].offset - ends[1][place].offset for place in places)


def test_a_stopped_and_killed_run_resumes_without_loss_or_duplicates(
    modern_broker: BrokerUnderTest, tmp_path: pathlib.Path
) -> None:
    servers = modern_broker.bootstrap_servers
    flights = sorted(
        (json.loads(value) for value in load_flights().values), key=lambda flight: str(flight["time_hour"])
    )
    del flights[FLIGHTS:]
    source, hours, copy = (modern_broker.create(name) for name in ("flights", "hours", "copy"))
    asyncio.run(send(servers, source, flights))
    declared = tmp_path / "flights.toml"
    declared.write_text(DECLARED)
    parameters = {"source": source, "hours": hours, "copy": copy, "brokers": servers}
    parameters["checkpoint"] = str(tmp_path / "checkpoint")
    command = ["run", str(declared)]
    for name, value in parameters.items():
        command += ["--set", f"{name}={value}"]

    with Verb(tmp_path, *command, "--json") as run:
        asyncio.run(first_rows(run, servers, copy, "read_committed", at_end=False))
        run.signal(signal.SIGTERM)
        ended = run.end()
        assert ended.status == 0, ended.errors
        first = json.loads(ended.out)
        assert first["stopped"]
        read = first["rows_read"]
        assert 0 < read["copy"] < FLIGHTS
        assert len(asyncio.run(committed(servers, copy))) == read["copy"]
        assert not asyncio.run(in_open_transactions(servers, copy, hours)), "no transaction is left open"

    with Verb(tmp_path, *command, "--json") as run:
        asyncio.run(first_rows(run, servers, copy, "read_uncommitted", at_end=True))
        run.kill()
        assert run.end().status == -signal.SIGKILL

    rest = summary(tmp_path, *command)
    assert not rest["stopped"]
    assert rest["rows_read"]["copy"] <= FLIGHTS - read["copy"]

    ids = sorted(json.loads(value)["id"] for value in asyncio.run(committed(servers, copy)))
    assert ids == sorted(flight["id"] for flight in flights)
    found = compare(compute(flights), map(read_hour, asyncio.run(committed(servers, hours))))
    assert found.same, found
    assert found.expected > 1000
