"""`python -m integration.bench [ROW ...]`: runs the plan, prints tables, writes JSON."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from integration.bench import franz_go
from integration.bench.meter import PARTITIONS, Figures, Job
from integration.bench.plan import (
    BEFORE,
    CLIENTS,
    FILL,
    FILLER,
    NAMES,
    SUBJECT,
    Row,
    baseline,
    order,
    rows,
    with_before,
    with_protocols,
    with_pythons,
)
from integration.bench.report import Runs, machine, show, show_overhead, summary
from integration.bench.secured import PROTOCOLS, SecuredKafka
from integration.kafka import MissingPrerequisite, RealKafka

_ROOT = Path(__file__).resolve().parents[2]
_JOB_SECONDS = 120
_WARM_UP = 100_000_000  # bytes


class Bench:
    """One run of the plan against one broker."""

    def __init__(
        self,
        bootstrap: str,
        console: Console,
        scale: float,
        before: Path | None = None,
        kafka: SecuredKafka | None = None,
        pythons: Mapping[str, Path] | None = None,
    ) -> None:
        """`kafka`: serves clients named with a protocol, such as "aiokwire+SSL".

        `pythons`: the interpreters of clients such as "aiokwire@3.13".
        """
        self._pythons = pythons or {}
        self._bootstrap = bootstrap
        self._kafka = kafka
        self._before = before
        self._console = console
        self._scale = scale
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._filled: dict[int, str] = {}  # topics that consumers read, by the size of their values

    def run(self, row: Row, repeat: int) -> Runs:
        """Run every client once per repetition, in rotating order."""
        runs: Runs = {client: [] for client in row.counts}
        for turn in range(repeat):
            for client in order(list(row.counts), turn):
                figures = self._job(row, client)
                runs[client].append(figures)
                rate = "failed" if figures is None else f"{figures.count / figures.seconds:,.0f}/s"
                self._console.print(f"[dim]{row.name}, repetition {turn + 1}: {client} {rate}[/dim]")
        return runs

    def warm_up(self, planned: Sequence[Row]) -> None:
        """Let the broker compile its hot paths for every kind of record before the first run."""
        for size, compression in sorted({(100, "none"), *((row.value_size, row.compression) for row in planned)}):
            with self._topic() as topic:
                for task in ("produce", "consume"):
                    count = _WARM_UP // size
                    self._work(Job(task, FILLER, self._bootstrap, topic, count, size, compression=compression))

    def close(self) -> None:
        """Delete the topics that the consumers read."""
        for topic in self._filled.values():
            self._delete(topic)

    def _job(self, row: Row, client: str) -> Figures | None:
        count = row.counts[client]
        if row.task in ("consume", "iterate", "arrow", "getarrow"):
            return self._work(Job(row.task, client, self._bootstrap, self._full_topic(row), count, row.value_size))
        with self._topic() as topic:
            job = Job(row.task, client, self._bootstrap, topic, count, row.value_size, row.tasks, row.compression)
            figures = self._work(job)
            if figures is None:
                return None
            stored = self._stored(topic)
            if stored < count:
                self._console.print(f"[red]{client}: the broker stored {stored:,} of {count:,} records[/red]")
                return None
            return figures

    def _work(self, job: Job) -> Figures | None:
        client, _, protocol = job.client.partition("+")
        if self._kafka is not None:
            job = replace(job, client=client, **self._kafka.way(protocol))
        interpreter = self._pythons.get(job.client, sys.executable)
        worker = [str(interpreter), "-m", "integration.bench.worker"]
        command = [str(franz_go.program())] if job.client == "franz-go" else worker
        checkout = _ROOT
        if job.client == BEFORE and self._before is not None:
            job, checkout = replace(job, client=SUBJECT), self._before
        if job.client in self._pythons:
            job = replace(job, client=SUBJECT)
        command.append(json.dumps({name: value for name, value in asdict(job).items() if value != ""}))
        try:
            done = subprocess.run(
                command, cwd=checkout, capture_output=True, text=True, timeout=_JOB_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            self._console.print(f"[red]{job.client} did not finish {job.task} within {_JOB_SECONDS} s[/red]")
            return None
        if done.returncode:
            self._console.print(f"[red]{job.client} failed:[/red]", done.stderr[-1500:], markup=False)
            return None
        return Figures(**json.loads(done.stdout))

    def _full_topic(self, row: Row) -> str:
        size = row.value_size
        if size not in self._filled:
            self._filled[size] = self._create()
            count = max(1, int(FILL * self._scale * 100 / size), *row.counts.values())
            if self._work(Job("produce", FILLER, self._bootstrap, self._filled[size], count, size)) is None:
                raise SystemExit("the topic for the consumers could not be filled")
        return self._filled[size]

    @contextmanager
    def _topic(self) -> Iterator[str]:
        name = self._create()
        try:
            yield name
        finally:
            self._delete(name)

    def _create(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:12]}"
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        return name

    def _delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)

    def _stored(self, topic: str) -> int:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": topic})
        try:
            marks = [consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=30) for n in range(PARTITIONS)]
        finally:
            consumer.close()
        return sum(high - low for low, high in marks)


@contextmanager
def broker(bootstrap: str | None) -> Iterator[str]:
    """Yield the given broker, or start a Kafka 4.3.1."""
    if bootstrap:
        yield bootstrap
        return
    with RealKafka("4.3.1", full_speed=True) as kafka:
        yield kafka.bootstrap_servers


def named(interpreters: Sequence[Path]) -> dict[str, Path]:
    """Return interpreters by the client that they are in the tables: "aiokwire@3.13"."""
    show = "import sys; print('%d.%d' % sys.version_info[:2])"
    versions = [subprocess.check_output([path, "-c", show], text=True).strip() for path in interpreters]
    return {f"{SUBJECT}@{version}": path for version, path in zip(versions, interpreters, strict=True)}


def _options() -> argparse.Namespace:
    here = [client for client in CLIENTS if client != "java" and (client != "franz-go" or franz_go.has_go())]
    parser = argparse.ArgumentParser(prog="python -m integration.bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"rows to measure, of {', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "--clients",
        default=",".join(here),
        help=f"comma-separated, of {', '.join(CLIENTS)}; franz-go needs Go (default: %(default)s)",
    )
    parser.add_argument(
        "--against", metavar="CLIENT", help="the client to compare with (default: aiokafka, if it runs)"
    )
    parser.add_argument("--bootstrap", default=os.environ.get("AIOKWIRE_BOOTSTRAP"), help="default: start Kafka 4.3.1")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the number of records (default: 1)")
    parser.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="another checkout with a compiled kernel: the client `before`, the default for --against",
    )
    parser.add_argument(
        "--python",
        type=lambda text: Path(text).absolute(),
        action="append",
        default=[],
        metavar="PATH",
        help="also aiokwire on this interpreter, which has the kernel and uvloop, as .venv-3.13/bin/python; "
        "may be repeated; the default for --against is then aiokwire on the interpreter of the bench",
    )
    parser.add_argument("--secured", action="store_true", help="each client also over SSL and SASL_SSL")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    options.rows, options.clients = options.rows or list(NAMES), options.clients.split(",")
    unknown = [name for name in options.rows if name not in NAMES]
    unknown += [name for name in options.clients if name not in CLIENTS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)} (choose from {', '.join((*NAMES, *CLIENTS))})")
    options.against = options.against or (
        BEFORE if options.before else SUBJECT if options.python else baseline(options.clients)
    )
    if options.against not in (*CLIENTS, BEFORE):
        parser.error(f"--against: unknown client {options.against}")
    if "franz-go" in options.clients:
        try:
            franz_go.program()
        except MissingPrerequisite as missing:
            parser.error(f"missing: {missing}")
    return options


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the broker ends with the run
    console = Console(width=None if sys.stdout.isatty() else 130)
    written: list[dict[str, Any]] = []
    failed = 0
    kafka = SecuredKafka() if options.secured else None
    with (
        kafka or contextlib.nullcontext(),
        broker(kafka.bootstrap_servers if kafka else options.bootstrap) as bootstrap,
    ):
        pythons = named(options.python)
        bench = Bench(bootstrap, console, options.scale, options.before, kafka, pythons)
        planned = rows(options.rows, options.clients, options.scale)
        if options.before:
            planned = [with_before(row) for row in planned]
        planned = [with_pythons(row, list(pythons)) for row in planned]
        if kafka is not None:
            planned = [with_protocols(row, PROTOCOLS) for row in planned]
        bench.warm_up(planned)
        for row in planned:
            runs = bench.run(row, options.repeat)
            results = summary(runs, row.value_size)
            failed += sum(entry["failed"] for entry in results.values())
            show(console, row, results, options.against)
            show_overhead(console, row, results)
            raw = {client: [figures and asdict(figures) for figures in list_] for client, list_ in runs.items()}
            what = {name: value for name, value in asdict(row).items() if name != "counts"}
            written.append({**what, "clients": results, "runs": raw})
        bench.close()
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "rows": written}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
