"""`python -m integration.bench.workers`: the worker and other ways to call handlers, in one run.

Clients take turns within each repetition; each is a process of its own, in an environment of its
own, with a group of its own. `--kills` measures what each repeats after SIGKILL instead.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console

from integration.bench.__main__ import broker
from integration.bench.plan import order
from integration.bench.report import machine
from integration.bench.workers.environments import ROOT, command_of
from integration.bench.workers.kills import Outcome, kill_one
from integration.bench.workers.meter import Figures, Job
from integration.bench.workers.plan import BARE, CLIENTS, Case, cases
from integration.bench.workers.report import show, show_kills, summary
from integration.bench.workers.topics import Topics
from integration.kafka import MissingPrerequisite

_JOB_SECONDS: Final = 90
T = TypeVar("T", int, float)

# The trial of `--kills`: some records take much longer than the others and hold back what is committed.
_KILL: Final = {"handler_ms": 10.0, "concurrency": 16, "slow_every": 1000, "slow_ms": 2000.0}
_KILL_RECORDS: Final = 30_000
_KILL_KEYS: Final = 1_000
_KILL_AFTER: Final = (5.0, 8.0)  # seconds


class Bench:
    """One run against one broker."""

    def __init__(self, bootstrap: str, console: Console, options: argparse.Namespace) -> None:
        self._bootstrap = bootstrap
        self._console = console
        self._options = options
        self._topics = Topics(bootstrap)

    def measure(self, case: Case) -> dict[str, list[Figures | None]]:
        """Run every client once per repetition, in rotating order."""
        topic = self._topics.filled(self._options.records, case.keys)
        clients = self._options.clients
        runs: dict[str, list[Figures | None]] = {client: [] for client in clients}
        for turn in range(self._options.repeat):
            for client in order(list(clients), turn):
                figures = self._run(self._job(client, topic, case.handler_ms, case.concurrency))
                runs[client].append(figures)
                rate = "failed" if figures is None else f"{figures.count / figures.seconds:,.0f}/s"
                self._console.print(f"[dim]{case.title}, repetition {turn + 1}: {client} {rate}[/dim]")
        return runs

    def kill(self, rng: random.Random) -> dict[str, list[Outcome]]:
        """Kill every client once per repetition, at the same times."""
        topic = self._topics.filled(_KILL_RECORDS, _KILL_KEYS)
        times = [rng.uniform(*_KILL_AFTER) for _ in range(self._options.repeat)]
        found: dict[str, list[Outcome]] = {}
        for client in self._options.clients:
            if client == BARE:
                continue
            for after in times:
                job = Job(
                    client, self._bootstrap, topic, uuid.uuid4().hex, records=_KILL_RECORDS, **_KILL  # type: ignore[arg-type]
                )  # fmt: skip
                outcome = kill_one(job, after)
                found.setdefault(client, []).append(outcome)
                self._console.print(f"[dim]{client}, killed after {after:.1f} s: {outcome}[/dim]")
        return found

    def _job(self, client: str, topic: str, handler_ms: float, concurrency: int) -> Job:
        return Job(
            client,
            self._bootstrap,
            topic,
            uuid.uuid4().hex,
            handler_ms,
            concurrency,
            sys.maxsize if client == BARE else self._options.records,
            warm_up=self._options.warm_up,
            seconds=self._options.seconds,
        )

    def _run(self, job: Job) -> Figures | None:
        try:
            done = subprocess.run(
                command_of(job), cwd=ROOT, capture_output=True, text=True, timeout=_JOB_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            self._console.print(f"[red]{job.client} did not finish within {_JOB_SECONDS} s[/red]")
            return None
        if done.returncode or not done.stdout.strip():
            self._console.print(f"[red]{job.client} failed:[/red]", done.stderr[-1500:], markup=False)
            return None
        return Figures(**json.loads(done.stdout.strip().splitlines()[-1]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.workers", description=__doc__)
    parser.add_argument("--clients", type=_names, default=CLIENTS, help=f"comma-separated, of {', '.join(CLIENTS)}")
    parser.add_argument(
        "--handlers", type=_list_of(float), default=[0, 1, 10], metavar="MS,...", help="times they wait"
    )
    parser.add_argument("--concurrency", type=_list_of(int), default=[1, 64, 1000], metavar="N,...")
    parser.add_argument("--keys", type=_list_of(int), default=[1000], metavar="N,...")
    parser.add_argument("--records", type=int, default=1_000_000, help="in each topic (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds from the first record to the window")
    parser.add_argument("--seconds", type=float, default=2.0, help="the window (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--kills", action="store_true", help="kill each client, and count what it repeats")
    parser.add_argument("--seed", type=int, default=1, help="of the times of the kills")
    parser.add_argument("--bootstrap", help="default: start Kafka 4.3.1")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    return parser.parse_args()


def _names(given: str) -> tuple[str, ...]:
    unknown = [name for name in given.split(",") if name not in CLIENTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)} (choose from {', '.join(CLIENTS)})")
    return tuple(given.split(","))


def _list_of(kind: Callable[[str], T]) -> Callable[[str], list[T]]:
    return lambda given: [kind(each) for each in given.split(",")]


def _measure(bench: Bench, console: Console, options: argparse.Namespace) -> list[dict[str, Any]]:
    written = []
    for case in cases(options.handlers, options.concurrency, options.keys):
        entries = summary(bench.measure(case))
        show(console, case, entries)
        written.append({**asdict(case), "clients": {name: asdict(entry) for name, entry in entries.items()}})
    return written


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the broker ends with the run
    console = Console(width=None if sys.stdout.isatty() else 130)
    try:
        with broker(options.bootstrap) as bootstrap:
            bench = Bench(bootstrap, console, options)
            if options.kills:
                outcomes = bench.kill(random.Random(options.seed))
                show_kills(console, outcomes)
                written = [{"client": name, "kills": list(map(asdict, each))} for name, each in outcomes.items()]
            else:
                written = _measure(bench, console, options)
    except MissingPrerequisite as missing:
        console.print(f"missing: {missing}", markup=False)
        return 1
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "results": written}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
