"""SIGKILL of Spark's JVM and Python processes at the sink's requests: each row is stored once.

`python -m integration.spark.spark_kills` runs a streaming query (`query.py`) on the embedded broker
and on Kafka 4.3.1, kills it at all of `places()`, restarts it from its checkpoint if the JVM died,
and compares the committed rows with the input.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import functools
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from aiokwire import Admin, Producer
from aiokwire.protocol import ApiKey
from integration.spark.account import NotExactlyOnce, check_copies, values_by_librdkafka, values_of
from integration.spark.kills import SETTINGS, Outcome, Setting, run_all, show, until
from integration.spark.places import ALL, DRIVER, WORKER, Kill
from integration.spark.proxy import Moment, Proxy, Trap
from integration.spark.query import Copy

PARTITIONS: Final = 2
ROWS: Final = 40
"""The rows of each feed: one or two microbatches."""
_PATIENCE: Final = 90.0
_STEPS: Final = (
    (ApiKey.INIT_PRODUCER_ID, DRIVER),
    (ApiKey.OFFSET_FETCH, DRIVER),
    (ApiKey.PRODUCE, WORKER),
    (ApiKey.TXN_OFFSET_COMMIT, DRIVER),
    (ApiKey.END_TXN, DRIVER),
)


def places() -> list[Kill]:
    """Return kills of the Python process at each step, of the JVM alone, and of all."""
    own = [Kill(api, sender, moment, WORKER) for api, sender in _STEPS for moment in Moment]
    own += [Kill(ApiKey.PRODUCE, WORKER, moment, WORKER, 3) for moment in Moment]
    jvm = [Kill(api, sender, Moment.AFTER, DRIVER) for api, sender in _STEPS]
    jvm.append(Kill(ApiKey.PRODUCE, WORKER, Moment.LATE, DRIVER))
    return [
        *own,
        *jvm,
        Kill(ApiKey.PRODUCE, WORKER, Moment.BEFORE, ALL),
        Kill(ApiKey.END_TXN, DRIVER, Moment.LATE, ALL),
    ]


def descendants(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = collections.defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Query:
    """The process of `query.py`, restarted after each kill."""

    def __init__(self, copy: Copy, log: Path) -> None:
        self.starts = 0
        self.failures = 0
        self._copy = copy
        self._log = log
        self._jvm = 0
        self._ended = anyio.Event()
        self._process: anyio.abc.Process | None = None

    async def run(self) -> None:
        """Run the process until it stops; raise NotExactlyOnce if it ends other than by a kill."""
        command = [sys.executable, "-m", "integration.spark.query", json.dumps(dataclasses.asdict(self._copy))]
        while True:
            self._ended, self._jvm = anyio.Event(), 0
            with self._log.open("ab") as log:
                process = self._process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=log)
            self.starts += 1
            try:
                await self._follow(process)
                status = await process.wait()
            finally:
                kill(*descendants(process.pid))
            self._ended.set()
            if status == 0:
                return
            if status != -signal.SIGKILL:
                raise NotExactlyOnce(f"the query's process ended with status {status}: {self._log.read_text()[-3000:]}")

    async def _follow(self, process: anyio.abc.Process) -> None:
        assert process.stdout is not None
        rest = ""
        async for text in TextReceiveStream(process.stdout):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                what, _, value = line.partition(" ")
                if what == "jvm":
                    self._jvm = int(value)
                elif what == "failed":
                    self.failures += 1

    async def kill(self, whom: str, sender: int) -> None:
        """Kill the sender; or the JVM and its parent program; or these with all descendants."""
        process, ended = self._process, self._ended
        if whom == WORKER or process is None:
            kill(sender)
            return
        kill(*(descendants(process.pid) if whom == ALL else ()), process.pid, self._jvm)
        await ended.wait()


class Feed:
    """The input of the query."""

    def __init__(self, producer: Producer[bytes, bytes], topic: str) -> None:
        self.values: list[str] = []
        self._producer = producer
        self._topic = topic

    async def more(self) -> None:
        for number in range(ROWS):
            value = f"row {len(self.values)}"
            await self._producer.submit(self._topic, value.encode(), partition=number % PARTITIONS)
            self.values.append(value)
        await self._producer.flush()


async def spring(proxy: Proxy, query: Query, feed: Feed, one: Kill) -> None:
    """Feed rows to the query, and wait until the kill has happened.

    Raises: NotExactlyOnce: the request was not sent.
    """

    async def strike(sender: int) -> None:
        await query.kill(one.whom, sender)

    trap = Trap(one.api, one.moment, strike, lambda pid: pid not in (0, os.getpid()), one.nth)
    proxy.trap = trap
    await feed.more()
    try:
        with anyio.fail_after(_PATIENCE):
            await trap.sprung.wait()
    except TimeoutError:
        raise NotExactlyOnce(f"the request was not sent: {one}") from None


async def run(proxy: Proxy, setting: Setting, kills: Sequence[Kill], seconds: float = math.inf) -> Outcome:
    """Run one query and kill it at these places, until `seconds` have passed.

    Raises: NotExactlyOnce: a row is missing or stored twice.
    """
    name, began = uuid.uuid4().hex[:10], anyio.current_time()
    async with Admin(proxy.address) as admin:
        for topic in (f"in-{name}", f"out-{name}"):
            await admin.create_topic(topic, PARTITIONS, replication_factor=1)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as logs:
        copy = Copy(proxy.address, f"in-{name}", f"out-{name}", folder)
        query = Query(copy, Path(logs) / "query.log")
        async with Producer(proxy.address) as producer, anyio.create_task_group() as group:
            feed = Feed(producer, copy.source)
            group.start_soon(query.run)
            for number, one in enumerate(kills, 1):
                if anyio.current_time() - began > seconds:
                    kills = kills[: number - 1]
                    break
                done = copy.committed()
                await spring(proxy, query, feed, one)
                await until(functools.partial(copy.is_past, done), _PATIENCE)  # it has recovered
                print(f"{anyio.current_time() - began:6.1f} s  {number:3d}  {one}", flush=True)
            await feed.more()
            copy.stop_file.touch()
        batches = copy.committed()
        for read in (values_of, values_by_librdkafka):
            check_copies(await read(proxy.address, copy.topic, PARTITIONS), feed.values)
    return Outcome(setting, list(kills), batches, len(feed.values), query.starts, anyio.current_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", choices=("embedded", "4.3.1"), help="run on this broker only")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no kill after this time on a broker")
    options = parser.parse_args()
    settings = [setting for setting in SETTINGS if setting.transaction_v2 and options.broker in (None, setting.broker)]
    outcomes = anyio.run(run_all, settings, lambda proxy, one: run(proxy, one, places(), options.seconds))
    show(outcomes, "kills of Spark", options.json)


if __name__ == "__main__":
    main()
