"""`python -m integration.spark.bench`: our source and sink compared with spark-sql-kafka.

One broker, one SparkSession (local[2]) and the same topics for all. In each repetition every
contender takes its turn, in rotating order; the results are medians, and the medians of the ratios
within a repetition.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from integration.bench.__main__ import broker
from integration.bench.plan import order
from integration.bench.report import machine
from integration.kafka import libs
from integration.spark.bench_cases import CASES, NAMES, Actions, Case
from integration.spark.bench_topics import Topics
from integration.spark.spark_kills import descendants

Seconds = dict[str, list[float]]


class Times(NamedTuple):
    """Wall and CPU seconds of Spark's processes, by contender and repetition."""

    wall: Seconds
    cpu: Seconds


def cpu_seconds(root: int) -> float:
    """Return the CPU seconds of a process and all its descendants, ended ones included."""
    used = 0
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            used += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


def run(actions: Actions, case: Case, jvm: int, options: argparse.Namespace, console: Console) -> tuple[Times, int]:
    """Return the times of Spark, whose JVM has this process id, and the number of rows of a turn.

    A failed turn of Spark's own connector is printed, and counts as infinitely long: its producer
    sometimes expires batches after two minutes. A failed turn of ours fails the benchmark.
    """
    repeat, warm_up = options.repeat, options.warm_up
    seconds: Seconds = {contender.name: [] for contender in case.contenders}
    cpu: Seconds = {contender.name: [] for contender in case.contenders}
    by_name = {contender.name: contender for contender in case.contenders}
    rows = 0
    for turn in range(warm_up + repeat):
        for name in order(list(seconds), turn):
            action = actions.turn(case, by_name[name])
            before, start = cpu_seconds(jvm), time.perf_counter()
            try:
                rows = action()
                took = time.perf_counter() - start
            except (PySparkException, Py4JJavaError) as error:
                if by_name[name].format != "kafka":
                    raise
                took = math.inf
                console.print(f"[red]{case.name}: {name} failed: {str(error).splitlines()[0]}[/red]")
            used = cpu_seconds(jvm) - before
            actions.after()
            if turn >= warm_up:
                seconds[name].append(took)
                cpu[name].append(used)
            phase = "warm-up" if turn < warm_up else f"repetition {turn - warm_up + 1}"
            console.print(f"[dim]{case.name}, {phase}: {name} {rows / took / 1e6:.2f} M/s[/dim]")
    return Times(seconds, cpu), rows


def summary(case: Case, times: Times, rows: int) -> dict[str, dict[str, Any]]:
    """Return rows per second, CPU per million rows, and ratios to the baseline, by contender.

    The ratios are those of wall time and of CPU time.
    """
    return {
        name: {
            "rows_per_second": statistics.median(rows / each for each in taken),
            "slowest": rows / max(taken),
            "fastest": rows / min(taken),
            "ratio": statistics.median(
                1.0 if ours == theirs else theirs / ours  # both may have failed
                for ours, theirs in zip(taken, times.wall[case.against], strict=True)
            ),
            "cpu_per_million": statistics.median(times.cpu[name]) / rows * 1e6,
            "cpu_ratio": statistics.median(
                theirs / ours for ours, theirs in zip(times.cpu[name], times.cpu[case.against], strict=True)
            ),
        }
        for name, taken in times.wall.items()
    }


def show(console: Console, case: Case, results: dict[str, dict[str, Any]], rows: int) -> None:
    """Print the table of a case."""
    table = Table(title=f"{case.name}: {case.title}, {rows:,} rows", title_justify="left")
    table.add_column("")
    for name in ("M rows/s", "slowest to fastest", f"x {case.against}", "CPU s/M rows", "x by CPU"):
        table.add_column(name, justify="right")
    for name, entry in results.items():
        extremes = f"{entry['slowest'] / 1e6:.2f} to {entry['fastest'] / 1e6:.2f}"
        cpu = f"{entry['cpu_per_million']:.2f}", f"{entry['cpu_ratio']:.2f}"
        table.add_row(name, f"{entry['rows_per_second'] / 1e6:.2f}", extremes, f"{entry['ratio']:.2f}", *cpu)
    console.print(table)


@contextlib.contextmanager
def session() -> Iterator[SparkSession]:
    """Start Spark as a user does, with the jars of spark-sql-kafka and spark-avro."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = sorted(jar for name in ("spark-4.2.0", "spark-avro-4.1.1") for jar in libs(name).glob("*.jar"))
    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .appName("aiokwire compared with spark-sql-kafka")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars", ",".join(map(str, jars)))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.spark.bench", description=__doc__)
    parser.add_argument("--cases", default="", help=f"comma-separated, of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--only", default="", help="comma-separated prefixes of the contenders' names (default: all)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--warm-up", type=int, default=2, help="repetitions that are not measured (default: %(default)s)"
    )
    parser.add_argument("--records", type=int, default=3_000_000, help="records of a topic (default: %(default)s)")
    parser.add_argument("--bootstrap", default=os.environ.get("AIOKWIRE_BOOTSTRAP"), help="default: start Kafka 4.3.1")
    parser.add_argument("--json", type=Path, default=Path("build/spark-bench.json"), help="default: %(default)s")
    return parser.parse_args()


def chosen(names: str, only: str) -> list[Case]:
    """Return the cases of these names or groups, with these contenders."""
    wanted = [name for name in names.split(",") if name] or list(NAMES)
    unknown = set(wanted) - set(NAMES)
    if unknown:
        raise SystemExit(f"unknown case {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    cases = [case for case in CASES if case.name in wanted or case.group in wanted]
    starts = tuple(only.split(","))
    limited = [
        case._replace(contenders=tuple(c for c in case.contenders if c.name.startswith(starts))) for case in cases
    ]
    return [
        case if case.against in [c.name for c in case.contenders] else case._replace(against=case.contenders[0].name)
        for case in limited
        if case.contenders
    ]


def measure(spark: SparkSession, bootstrap: str, cases: Sequence[Case], options: argparse.Namespace) -> dict[str, Any]:
    """Run and print the cases in turn."""
    console = Console()
    gateway: Any = spark.sparkContext._gateway
    jvm: int = gateway.proc.pid
    topics = Topics(bootstrap, options.records)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="aiokwire-spark-bench-") as scratch:
        actions = Actions(spark, topics, Path(scratch) / "out")
        for case in cases:
            times, rows = run(actions, case, jvm, options, console)
            results[case.name] = {"title": case.title, "rows": rows, "contenders": summary(case, times, rows)}
            show(console, case, results[case.name]["contenders"], rows)
    topics.close()
    return results


def main() -> int:
    options = _options()
    cases = chosen(options.cases, options.only)
    with broker(options.bootstrap) as bootstrap, session() as spark:
        results = measure(spark, bootstrap, cases, options)
    where = {**machine(), "pyspark": pyspark.__version__}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"machine": where, "cases": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
