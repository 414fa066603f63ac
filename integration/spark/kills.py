"""SIGKILL of driver and workers at each request of the exactly-once sink: each row is stored once.

`python -m integration.spark` kills more than 200 times: at every place that `places.py` lists, with
transactions V1 and V2, on the embedded broker and on Kafka 4.3.1. It runs the sink's own classes
(`job.py`); `spark_kills.py` runs Spark.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.abc

from aiokwire import Admin
from aiokwire.broker import Broker
from aiokwire.protocol import ApiKey
from aiokwire.threads import run_in_thread
from integration.kafka import RealKafka
from integration.kafka.server import free_port
from integration.spark.account import NotExactlyOnce, check_rows, values_by_librdkafka, values_of
from integration.spark.job import FAILED, Job
from integration.spark.job import main as run_job
from integration.spark.places import ALL, BROKER, DRIVER, WORKER, Kill, places
from integration.spark.proxy import Moment, Proxy, Trap

TASKS: Final = 2
ROWS: Final = 20
_PATIENCE: Final = 60.0
_POLL: Final = 0.005
_REPORT_EVERY: Final = 20  # kills between two lines of progress
_FORKS: Final = multiprocessing.get_context("forkserver")  # preloads modules, so that a job starts in milliseconds


@dataclasses.dataclass(frozen=True)
class Setting:
    """A broker, and whether clients use transactions V2 (KIP-890) with it."""

    broker: str
    transaction_v2: bool

    def __str__(self) -> str:
        return f"{self.broker}, transactions {'V2' if self.transaction_v2 else 'V1'}"

    def kills(self) -> list[Kill]:
        return places(transaction_v2=self.transaction_v2, markers=self.broker != "embedded")


SETTINGS: Final = tuple(Setting(broker, version) for version in (True, False) for broker in ("4.3.1", "embedded"))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    setting: Setting
    kills: list[Kill]
    batches: int
    rows: int
    starts: int
    seconds: float


@contextlib.asynccontextmanager
async def broker_behind_proxy(setting: Setting) -> AsyncIterator[Proxy]:
    """Start the broker of a setting behind a proxy whose address it advertises."""
    if setting.broker == "embedded":
        port = free_port()
        proxy = Proxy(port, v1_only=not setting.transaction_v2)
        async with proxy, Broker(listen=f"127.0.0.1:{port}", advertised=proxy.address):
            yield proxy
        return
    async with Proxy(free_port(), v1_only=not setting.transaction_v2) as proxy:
        server = RealKafka(setting.broker, settings={"advertised.listeners": f"PLAINTEXT://{proxy.address}"})
        proxy.upstream = server.port
        try:
            await run_in_thread(server.start)
            yield proxy
        finally:
            await run_in_thread(server.close)


async def until(condition: Callable[[], bool], patience: float = _PATIENCE) -> None:
    """Wait for a condition on the files of another process."""
    with anyio.fail_after(patience):
        while not condition():  # noqa: ASYNC110 - no event of this process
            await anyio.sleep(_POLL)


class Query:
    """A job that is restarted until it is stopped, and that can be killed."""

    def __init__(self, job: Job, log: Path) -> None:
        self.starts = 0
        self.error: NotExactlyOnce | None = None
        self._job = job
        self._log = log
        self._process: multiprocessing.process.BaseProcess | None = None
        self._ended = anyio.Event()
        self._groups: list[int] = []

    @property
    def driver(self) -> int:
        return self._process.pid or 0 if self._process is not None else 0

    async def run(self) -> None:
        """Run the job until it stops.

        Raise NotExactlyOnce if it ends other than by a kill or a failed batch.
        """
        try:
            while True:
                self._process = process = _FORKS.Process(target=run_job, args=(self._job, str(self._log)))
                process.start()
                self.starts += 1
                self._ended = anyio.Event()
                self._groups.append(self.driver)
                await run_in_thread(process.join)
                self._ended.set()
                if process.exitcode == 0:
                    return
                if process.exitcode not in (FAILED, -signal.SIGKILL):
                    raise NotExactlyOnce(
                        f"the job ended with status {process.exitcode}: {self._log.read_text()[-2000:]}"
                    )
        finally:
            for group in self._groups:  # zombies, too
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)

    def sent_by(self, sender: str, pid: int) -> bool:
        """Whether a process has the role of `sender`."""
        if sender == BROKER:
            return True
        return pid == self.driver if sender == DRIVER else pid not in (0, self.driver) and self._leads(pid)

    def _leads(self, pid: int) -> bool:
        """Whether a process belongs to the current driver, not to an earlier one."""
        with contextlib.suppress(ProcessLookupError):
            return os.getpgid(pid) == self.driver
        return False

    async def at_a_batch(self) -> None:
        """Pause it before a batch, once it has recovered and committed a batch."""
        reached = self._job.noted() + 1
        await until(lambda: self._job.noted() >= reached)
        self._job.pause()
        await until(lambda: self._job.paused)

    def resume(self) -> None:
        self._job.resume()

    async def kill(self, whom: str, sender: int) -> None:
        """Send SIGKILL to the processes that exist, and wait until they are dead."""
        ended = self._ended
        with contextlib.suppress(ProcessLookupError):
            if whom == ALL:
                os.killpg(self.driver, signal.SIGKILL)
            else:
                os.kill(self.driver if whom == DRIVER else sender, signal.SIGKILL)
        if whom != WORKER:
            await ended.wait()


async def spring(proxy: Proxy, query: Query, kill: Kill) -> None:
    """Wait for the next batch, then until the kill has happened in it.

    Raises: NotExactlyOnce: the request was not sent.
    """
    await query.at_a_batch()
    if kill.aborting:
        await caught(proxy, query, Kill(ApiKey.PRODUCE, WORKER, Moment.AFTER, WORKER), query.resume)
        await caught(proxy, query, kill, lambda: None)
    else:
        await caught(proxy, query, kill, query.resume)


async def caught(proxy: Proxy, query: Query, kill: Kill, armed: Callable[[], None]) -> None:
    async def strike(sender: int) -> None:
        await query.kill(kill.whom, sender)

    trap = Trap(kill.api, kill.moment, strike, lambda pid: query.sent_by(kill.sender, pid), kill.nth)
    proxy.trap = trap
    armed()
    try:
        with anyio.fail_after(_PATIENCE):
            await trap.sprung.wait()
    except TimeoutError:
        raise NotExactlyOnce(f"the request was not sent: {kill}") from None


async def run(proxy: Proxy, setting: Setting, kills: Sequence[Kill]) -> Outcome:
    """Run one query, kill it at each of these places, then read and check its topic.

    Raises: NotExactlyOnce: a row is missing or stored twice.
    """
    topic, began = f"out-{uuid.uuid4().hex[:10]}", anyio.current_time()
    async with Admin(proxy.address) as admin:
        await admin.create_topic(topic, TASKS, replication_factor=1)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as logs:
        job = Job(proxy.address, topic, folder, TASKS, ROWS)
        query = Query(job, Path(logs) / "job.log")
        async with anyio.create_task_group() as group:
            group.start_soon(query.run)
            for number, kill in enumerate(kills, 1):
                await spring(proxy, query, kill)
                if number % _REPORT_EVERY == 0:
                    print(f"{setting}: {number} of {len(kills)}, {anyio.current_time() - began:.0f} s", file=sys.stderr)
            reached = job.noted() + 2  # delayed requests may arrive now
            await until(lambda: job.noted() >= reached)
            job.stop()
        batches = job.noted()
        for read in (values_of, values_by_librdkafka):
            check_rows(await read(proxy.address, topic, TASKS), batches=batches, tasks=TASKS, rows=ROWS)
    return Outcome(setting, list(kills), batches, batches * TASKS * ROWS, query.starts, anyio.current_time() - began)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table of kills by place and setting.

    Runs with a lost or duplicate row have no outcome.
    """
    names = [str(outcome.setting) for outcome in outcomes]
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        for kill in outcome.kills:
            rows[str(kill)][str(outcome.setting)] += 1
    width = max(map(len, rows), default=0)
    lines = [" " * width + "".join(f"  {name}" for name in names) + "  each row"]
    for place, counts in rows.items():
        cells = "".join(f"  {counts[name] or '-':>{len(name)}}" for name in names)
        lines.append(f"{place:<{width}}{cells}  once")
    return "\n".join(lines)


def summary(outcome: Outcome) -> dict[str, object]:
    """Return the outcome as JSON values."""
    return {
        "setting": str(outcome.setting),
        "kills": [str(kill) for kill in outcome.kills],
        "batches": outcome.batches,
        "rows": outcome.rows,
        "starts": outcome.starts,
        "seconds": round(outcome.seconds, 1),
        "lost": 0,
        "duplicates": 0,
    }


async def run_all(settings: Sequence[Setting], one: Callable[[Proxy, Setting], Awaitable[Outcome]]) -> list[Outcome]:
    """Run the settings in turn, each on its own broker."""
    outcomes = []
    for setting in settings:
        async with broker_behind_proxy(setting) as proxy:
            found = await one(proxy, setting)
        outcomes.append(found)
        print(
            f"{setting}: {len(found.kills)} kills, {found.starts} starts, {found.batches} batches, {found.rows} rows, "
            f"{found.seconds:.0f} s: each once, as aiokwire and confluent-kafka read them",
            flush=True,
        )
    return outcomes


def show(outcomes: Sequence[Outcome], kills: str, path: Path | None) -> None:
    """Print the table, and write JSON to `path`; `kills` names the kind of kills."""
    print(table(outcomes))
    print(f"{sum(len(outcome.kills) for outcome in outcomes)} {kills}: no row lost, no duplicates")
    if path is not None:
        path.write_text(json.dumps([summary(outcome) for outcome in outcomes], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", choices=("embedded", "4.3.1"), help="run on this broker only")
    parser.add_argument("--repeat", type=int, default=1, help="kills at each place")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    settings = [setting for setting in SETTINGS if options.broker in (None, setting.broker)]
    outcomes = anyio.run(run_all, settings, lambda proxy, one: run(proxy, one, one.kills() * options.repeat))
    show(outcomes, "kills", options.json)


_FORKS.set_forkserver_preload(["integration.spark.job", "integration.spark.kills"])
