"""Worker processes with key order through restarts, SIGKILLs and outages of the broker.

`python -m integration.chaos.worker` runs at full size; `test_worker.py` is a small run. It exits
with status 1 if a record was not handled, if two records of a key overlapped or changed places, if
a finished record was handled again without a reason, or if dead letters are not complete; with
`--delivery exactly-once` if an effect is missing or occurs twice; with `at-most-once` if a record
was handled twice, or more were lost than the processes held at kills and outages.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import logging
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from array import array
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import uvloop

from aiokwire import Consumer, Producer, TopicPartition
from aiokwire.admin import Admin, NewTopic
from aiokwire.cluster import LATEST
from integration.chaos import diagnosis
from integration.chaos.faults import Fault, Kind, inflict
from integration.chaos.rolling import SOON_BROKER
from integration.chaos.worker_process import (
    AT_MOST_ONCE,
    AT_MOST_ONCE_RECORDS,
    EVENT,
    EXACTLY_ONCE,
    Event,
    Job,
    is_rejected,
)
from integration.embedded import at_full_speed
from integration.kafka import KafkaServer

AT_LEAST_ONCE: Final = "at-least-once"
PARTITIONS: Final = 12
PROCESSES: Final = 3
# A record that finished this long (seconds) before its process was killed, or its broker was away, may be handled
# again: the interval of commits, and the time of one.
UNCOMMITTED: Final = 3.0
# After an outage, members whose sessions expired meanwhile may lose partitions (seconds).
AFTERMATH: Final = 12.0
PATIENCE: Final = 240.0
# After this time (seconds) without progress the processes write their state to files.
STALLED: Final = 20.0


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run."""

    records: int = 2_000_000
    keys: int = 10_000
    delivery: str = AT_LEAST_ONCE
    protocol: str = "classic"
    restarts: int = 6
    kills: int = 6
    broker_faults: int = 4
    concurrency: int = 64
    longest_ms: int = 5
    seed: int = 1

    def faults(self, rng: random.Random) -> list[str]:
        """Return the disturbances in random order."""
        found = ["restart"] * self.restarts + ["kill"] * self.kills + ["broker"] * self.broker_faults
        rng.shuffle(found)
        return found


@dataclasses.dataclass(slots=True)
class Outcome:
    """The result of a run."""

    records: int = 0
    seconds: float = 0.0
    again: int = 0  # finished records that were handled again, with a reason
    unfinished: int = 0  # attempts that ended early
    lost: int = 0  # with at-most-once
    dead_letters: int = 0
    stalls: int = 0  # times without progress for `STALLED` seconds
    wrong: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.records:,} records in {self.seconds:.1f} s; {self.unfinished:,} attempts cut off, {self.again:,} "
            f"finished records handled again, all of them not committed before a kill or an outage; "
            f"{self.dead_letters:,} dead letters; {self.lost:,} records lost"
        )


class Process:
    """One process of the worker, with its journal."""

    def __init__(self, process: anyio.abc.Process, journal: Path) -> None:
        self.process = process
        self.journal = journal
        self.killed_at = float("inf")

    async def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        if self.process.returncode is None:
            self.process.terminate()
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()

    async def kill(self) -> None:
        """Send SIGKILL."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        self.killed_at = time.perf_counter()


class Run:
    """One run against one broker."""

    def __init__(self, server: KafkaServer, plan: Plan, folder: Path) -> None:
        self._server = server
        self._plan = plan
        self._folder = folder
        self._rng = random.Random(plan.seed)
        name = uuid.uuid4().hex[:8]
        self._group, self._source, self._target = f"chaos-{name}", f"in-{name}", f"out-{name}"
        self._running: list[Process] = []
        self._all: list[Process] = []
        self._outages: list[tuple[float, float]] = []
        self._is_away = False  # the broker
        self.outcome = Outcome(plan.records)

    async def run(self) -> Outcome:
        """Run, and check."""
        began = time.perf_counter()
        await self._prepare()
        async with AsyncExitStack() as stack:
            stack.callback(self._kill_all)
            for _ in range(PROCESSES):
                await self._start()
            async with anyio.create_task_group() as watching:
                watching.start_soon(self._diagnose)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._produce)
                    await self._disturb()
                await self._finish()
                watching.cancel_scope.cancel()
        self.outcome.seconds = time.perf_counter() - began
        await self._check()
        return self.outcome

    async def _prepare(self) -> None:
        async with Admin(self._server.bootstrap_servers) as admin:
            names = (self._source, self._target, f"{self._source}.dlq")
            (await admin.create_topics([NewTopic(each, PARTITIONS) for each in names])).check()

    async def _produce(self) -> None:
        keys = [b"key-%d" % number for number in range(self._plan.keys)]
        async with Producer(self._server.bootstrap_servers, delivery_timeout_ms=300_000) as producer:
            for number in range(self._plan.records):
                await producer.submit(self._source, b"%d" % number, keys[number % len(keys)])

    # --- processes and faults -----------------------------------------------------------------------------------------

    async def _start(self) -> None:
        journal = self._folder / f"{len(self._all)}.journal"
        journal.touch()
        plan = self._plan
        job = Job(
            self._server.bootstrap_servers,
            self._group,
            self._source,
            self._target,
            str(journal),
            plan.delivery,
            plan.protocol,
            plan.concurrency,
            plan.longest_ms,
        )
        command = [sys.executable, "-m", "integration.chaos.worker_process", json.dumps(dataclasses.asdict(job))]
        with journal.with_suffix(".stderr").open("wb") as errors:
            process = await anyio.open_process(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self._running.append(Process(process, journal))
        self._all.append(self._running[-1])

    def _kill_all(self) -> None:
        for each in self._running:
            if each.process.returncode is None:
                each.process.kill()

    async def _disturb(self) -> None:
        """Spread the disturbances over the run, by the number of handled records."""
        faults = self._plan.faults(self._rng)
        for number, fault in enumerate(faults):
            await self._reach(int(self._plan.records * (number + self._rng.uniform(0.3, 1.0)) / (len(faults) + 1)))
            if fault == "broker":
                began = time.perf_counter()
                kind = self._rng.choice([Kind.KILL, Kind.STOP, Kind.FREEZE])
                self._note(f"broker: {kind.value}")
                self._is_away = True
                await inflict(self._server, Fault(kind, 0, 0.0, self._rng.uniform(0.2, 2.0)))
                self._is_away = False
                self._outages.append((began, time.perf_counter()))
                self._note("the broker is back")
                continue
            victim = self._running.pop(self._rng.randrange(len(self._running)))
            self._note(f"{fault} of {victim.journal.stem}")
            if fault == "kill":
                await victim.kill()
            else:
                self._note_status(victim, await victim.stop())
            await self._start()

    def _note(self, event: str) -> None:
        """Record a fault and its time, next to the logs of the processes."""
        now = datetime.datetime.now().astimezone().isoformat(" ", "milliseconds")
        with (self._folder / "faults.txt").open("a") as file:
            file.write(f"{now} {event}\n")

    async def _reach(self, records: int) -> None:
        """Wait until about this number of records was handled."""
        with anyio.move_on_after(PATIENCE):
            while self._journaled() < 2 * records:  # noqa: ASYNC110 - other processes make the progress
                await anyio.sleep(0.05)
            return
        self.outcome.wrong.append(f"{records:,} records were not handled within {PATIENCE:.0f} s of the last fault")

    async def _diagnose(self) -> None:
        """Have the processes write down their state when there is no progress."""
        seen, since = (-1, 0), time.perf_counter()
        while True:
            await anyio.sleep(1)
            now, journaled = time.perf_counter(), self._journaled()
            if self._is_away or (journaled, len(self._all)) != seen:
                seen, since = (journaled, len(self._all)), now
            elif now - since > STALLED:
                since = now
                self.outcome.stalls += 1
                print(f"no progress for {STALLED:.0f} s after {journaled:,} events: {self._folder}/*.state", flush=True)
                for each in self._running:
                    if each.journal.with_suffix(".state").exists():  # it handles the signal
                        each.process.send_signal(diagnosis.SIGNAL)

    def _journaled(self) -> int:
        """Return the number of events in all journals."""
        return sum(each.journal.stat().st_size for each in self._all) // EVENT.size

    async def _finish(self) -> None:
        """Wait until everything is committed, then stop the processes."""
        with anyio.move_on_after(PATIENCE) as scope:
            async with Admin(self._server.bootstrap_servers) as admin:
                while not await self._is_all_committed(admin):  # noqa: ASYNC110 - as above
                    await anyio.sleep(0.2)
        if scope.cancelled_caught:
            self.outcome.wrong.append(f"the group did not commit everything within {PATIENCE:.0f} s")
        for each in self._running:
            self._note_status(each, await each.stop())

    async def _is_all_committed(self, admin: Admin) -> bool:
        partitions = [TopicPartition(self._source, number) for number in range(PARTITIONS)]
        ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
        committed = await admin.list_group_offsets(self._group)
        return all((place := committed.get(tp)) is not None and place.offset >= ends[tp].offset for tp in partitions)

    def _note_status(self, process: Process, status: int) -> None:
        had_begun = process.journal.stat().st_size > 0
        if status != 0 and (had_begun or status != -signal.SIGTERM):  # it was still importing
            errors = process.journal.with_suffix(".stderr").read_text()[-1500:]
            self.outcome.wrong.append(f"a process ended with status {status} after SIGTERM: {errors}")

    # --- the check ----------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        rejected = {number for number in range(self._plan.records) if is_rejected(number)}
        await self._check_dead_letters(rejected)
        if self._plan.delivery == EXACTLY_ONCE:
            await self._check_effects(rejected)
        elif self._plan.delivery == AT_MOST_ONCE:
            self._check_losses()
        else:
            self._check_journals()

    async def _check_dead_letters(self, rejected: set[int]) -> None:
        found: Counter[int] = Counter()
        async for record in self._records_of(f"{self._source}.dlq"):
            found[int(record[1])] += 1
        self.outcome.dead_letters = len(found)
        if found.keys() != rejected and self._plan.delivery != AT_MOST_ONCE:
            self.outcome.wrong.append(
                f"dead letters: {len(rejected - found.keys())} are missing, {len(found.keys() - rejected)} unexpected"
            )
        if found.keys() - rejected:
            self.outcome.wrong.append(f"{len(found.keys() - rejected)} dead letters of records that were not rejected")
        if self._plan.delivery != AT_LEAST_ONCE and found.total() != len(found):
            self.outcome.wrong.append(f"{found.total() - len(found)} dead letters occur twice")

    async def _check_effects(self, rejected: set[int]) -> None:
        seen: Counter[int] = Counter()
        last: dict[bytes, int] = {}
        disordered = 0
        async for key, value in self._records_of(self._target):
            number = int(value)
            seen[number] += 1
            disordered += last.get(key, -1) >= number
            last[key] = number
        twice = sum(1 for count in seen.values() if count > 1)
        missing = self._plan.records - len(rejected) - len(seen)
        if twice or missing or disordered:
            self.outcome.wrong.append(f"effects: {missing} missing, {twice} twice, {disordered} out of order")

    async def _records_of(self, topic: str) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield key and value of each visible record, when no transaction is open."""
        await self._until_stable(topic)
        async with Consumer(
            bootstrap_servers=self._server.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            await consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
                for record in await consumer.getmany(timeout=1):
                    yield record.key or b"", record.value or b""

    async def _until_stable(self, topic: str) -> None:
        """Wait until the transactions of killed processes have timed out."""
        times = {TopicPartition(topic, number): LATEST for number in range(PARTITIONS)}
        with anyio.fail_after(PATIENCE):
            async with Admin(self._server.bootstrap_servers) as admin:
                while True:
                    stable = await admin.list_offsets(times, isolation_level="read_committed")
                    ends = await admin.list_offsets(times)
                    if all(stable[tp].offset == ends[tp].offset for tp in times):
                        return
                    await anyio.sleep(0.2)

    def _check_journals(self) -> None:
        count, outcome = self._plan.records, self.outcome
        started, done = array("d", [float("inf")]) * count, array("d", [float("inf")]) * count
        finished_by: list[list[tuple[float, Process]]] = [[] for _ in range(count)]
        attempts = ends = 0
        for process in self._all:
            for at, number, event in EVENT.iter_unpack(_whole(process.journal.read_bytes())):
                if event == Event.STARTED:
                    attempts += 1
                    started[number] = min(started[number], at)
                    continue
                ends += 1
                if event != Event.FAILED:
                    done[number] = min(done[number], at)
                    finished_by[number].append((at, process))
        outcome.unfinished = attempts - ends
        missing = sum(1 for at in done if at == float("inf"))
        if missing:
            outcome.wrong.append(f"{missing:,} records were never handled to their end")
        keys = self._plan.keys
        overlaps = sum(1 for number in range(keys, count) if started[number] < done[number - keys])
        if overlaps:
            outcome.wrong.append(f"{overlaps:,} records started before the one before them of the same key ended")
        for number, finishes in enumerate(finished_by):
            finishes.sort(key=lambda each: each[0])
            for at, process in finishes[:-1]:
                if self._may_repeat(at, process):
                    outcome.again += 1
                elif len(outcome.wrong) < 10:
                    outcome.wrong.append(f"record {number} finished, and was handled again without a reason")

    def _check_losses(self) -> None:
        """Check at-most-once: no record is handled twice, and only kills and outages lose some."""
        started: Counter[int] = Counter()
        for process in self._all:
            for _, number, event in EVENT.iter_unpack(_whole(process.journal.read_bytes())):
                started[number] += event == Event.STARTED
        twice = sum(1 for count in started.values() if count > 1)
        if twice:
            self.outcome.wrong.append(f"{twice} records were handled twice")
        self.outcome.lost = self._plan.records - len(started)
        accidents = self._plan.kills + PROCESSES * self._plan.broker_faults
        if self.outcome.lost > accidents * 2 * AT_MOST_ONCE_RECORDS:
            self.outcome.wrong.append(f"{self.outcome.lost:,} records were lost by {accidents} kills and losses")

    def _may_repeat(self, at: float, process: Process) -> bool:
        """Whether what finished at this time may not have been committed."""
        if at >= process.killed_at - UNCOMMITTED:
            return True
        return any(began - UNCOMMITTED <= at <= ended + AFTERMATH for began, ended in self._outages)


def _whole(data: bytes) -> bytes:
    return data[: len(data) // EVENT.size * EVENT.size]


async def run(server: KafkaServer, plan: Plan) -> Outcome:
    """Run the plan and return the result. The files of the processes are kept after an error or a
    stall."""
    folder = Path(tempfile.mkdtemp(prefix="aiokwire-worker-"))
    outcome = await Run(server, plan, folder).run()
    if outcome.wrong:
        outcome.wrong.append(f"the journals, logs and states of the processes are in {folder}")
    elif not outcome.stalls:
        shutil.rmtree(folder)
    return outcome


def main() -> int:
    """Run at full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.worker", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    for field in dataclasses.fields(Plan):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    broker = given.pop("broker")
    plan = Plan(**given)
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # outages of the broker are expected
    print(f"{broker}: {plan}", flush=True)
    with at_full_speed(broker, settings=SOON_BROKER) as server:
        outcome = uvloop.run(run(server, plan))
    print(outcome)
    for fault in outcome.wrong:
        print(f"WRONG: {fault}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
