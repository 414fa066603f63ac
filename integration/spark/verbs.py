"""Verbs of `aiokwire spark` as processes that are stopped and killed in the middle, on the flights of the demo."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from aiokwire import Admin, Consumer, Producer
from aiokwire.cli.demo.flights import load_flights
from aiokwire.types import TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest

# So many of them, one each three seconds from here on: five days.
BEGIN: Final = 1_356_998_400_000  # 2013-01-01
COUNT: Final = 120_000
PATIENCE: Final = 180.0
_LOOK: Final = 0.02

flights = functools.cache(load_flights)


async def create(broker: BrokerUnderTest, topic: str) -> None:
    """A topic that keeps records of long ago."""
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topic(topic, PARTITIONS, configs={"retention.ms": "-1"}, replication_factor=1)


async def send(broker: BrokerUnderTest, topic: str, numbers: range) -> None:
    """These flights; the keys choose the partitions."""
    found = flights()
    async with Producer(broker.bootstrap_servers, compression_type="lz4", linger_ms=20) as producer:
        for number in numbers:
            await producer.submit(topic, found.values[number], key=found.keys[number], timestamp=BEGIN + 3000 * number)


async def read(broker: BrokerUnderTest, topic: str) -> list[tuple[int, int]]:
    """Partition and number of each flight that is committed, in the order of each partition."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ends = await consumer.end_offsets(places)
        found: list[tuple[int, int]] = []
        while [place for place in places if await consumer.position(place) < ends[place]]:
            records = await consumer.getmany(timeout=0.05)
            found += [(record.partition, number_of(record.value or b"")) for record in records]
    return found


def number_of(value: bytes) -> int:
    """Which flight it is."""
    return int(value[len(b'{"id":') : value.index(b",")])


def start(*arguments: str) -> subprocess.Popen[str]:
    """A verb, beginning."""
    command = [sys.executable, "-m", "aiokwire", "spark", *arguments, "--master", "local[2]", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str], *, how: signal.Signals | None = None, when: Callable[[], bool]) -> int:
    """Signal a verb when something is so, and wait for its end; its exit status."""
    while not when():
        try:
            status = process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"it ended with {status} before that: {process.communicate()[1][-2000:]}")
    if how is not None:
        process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    return process.returncode


def run(*arguments: str) -> dict[str, Any]:
    """A verb from beginning to end; its summary."""
    process = start(*arguments)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors[-2000:]
    summary: dict[str, Any] = json.loads(out)
    return summary


def rounds(path: Path) -> int:
    """How many rounds of an archive are committed."""
    return len(list((path / "_manifests").glob("[0-9]*.json")))
