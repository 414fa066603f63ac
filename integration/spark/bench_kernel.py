"""`python -m integration.spark.bench_kernel`: the work of a task without Spark, in one thread.

Reading: from a broker's responses over a socket to the Arrow batches for Spark. Writing: from Arrow
batches to record batches. Prints million records per second of wall time and of this process's CPU,
the best of the rounds, with the targets; exits with status 1 if one is missed. The broker runs in
another process, whose CPU is not included.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import types as spark
from rich.console import Console
from rich.table import Table

from aiokwire.records import rows_of
from aiokwire.spark.options import SourceOptions, parse_source
from aiokwire.spark.session import Session, session_for
from aiokwire.spark.source.convert import Converter
from aiokwire.spark.source.fetching import Piece
from aiokwire.spark.source.planning import Range
from aiokwire.spark.source.scan import Scan, arrow_batches
from aiokwire.types import Compression
from integration.bench.__main__ import broker
from integration.spark.bench_topics import PARTITIONS, Topics, values

_COLUMNS = {
    "key": spark.BinaryType(),
    "value": spark.BinaryType(),
    "topic": spark.StringType(),
    "partition": spark.IntegerType(),
    "offset": spark.LongType(),
    "timestamp": spark.TimestampType(),
    "timestampType": spark.IntegerType(),
}
_ENCODED = 500_000
_NOW = 1_700_000_000_000


class Result(NamedTuple):
    """Million records per second."""

    name: str
    clock: float
    cpu: float
    target: float | None = None


def best(name: str, round_: Callable[[], int], rounds: int, target: float | None = None) -> Result:
    """Return the fastest round by wall and by CPU time, after one warm-up round."""
    clock = cpu = 0.0
    round_()
    for _ in range(rounds):
        start, start_cpu = time.perf_counter(), time.process_time()
        records = round_()
        clock = max(clock, records / (time.perf_counter() - start) / 1e6)
        cpu = max(cpu, records / (time.process_time() - start_cpu) / 1e6)
    return Result(name, clock, cpu, target)


class Task:
    """A task of the source over all partitions of a topic."""

    def __init__(self, bootstrap: str, topic: str, records: int, columns: tuple[str, ...] = tuple(_COLUMNS)) -> None:
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "columns": ",".join(columns)}
        self.options: SourceOptions = parse_source(given, streaming=False)
        self._schema = spark.StructType([spark.StructField(name, _COLUMNS[name]) for name in columns])
        self._ranges = [Range(topic, partition, 0, records // PARTITIONS) for partition in range(PARTITIONS)]
        self._records = records

    def receive(self) -> int:
        """Receive batches and check their checksums."""
        return self._all(sum(batch.count for batch in piece.batches) for piece in self._pieces())

    def decode(self) -> int:
        """Receive, and convert to Spark's batches."""
        converter = Converter(self.options, self._schema)
        return self._all(batch.num_rows for batch in arrow_batches(self._pieces(), converter.new_columns, converter))

    def _pieces(self) -> Iterator[Piece]:
        session: Session = session_for(self.options.consumer)
        return Scan(session, self.options, self._ranges, {}).pieces()

    def _all(self, counts: Iterator[int]) -> int:
        seen = sum(counts)
        if seen != self._records:
            raise SystemExit(f"{seen} of {self._records} records were read")
        return seen


def reading(bootstrap: str, topics: dict[str, tuple[str, int]], rounds: int) -> Iterator[Result]:
    plain, lz4 = Task(bootstrap, *topics["plain"]), Task(bootstrap, *topics["lz4"])
    value = Task(bootstrap, *topics["plain"], columns=("value",))
    yield best("fetch and check", plain.receive, rounds)
    yield best("fetch, check, all columns to Arrow", plain.decode, rounds, 10.0)
    yield best("fetch, check, columns=value to Arrow", value.decode, rounds, 10.0)
    yield best("fetch lz4, check, all columns to Arrow", lz4.decode, rounds)


def writing(rounds: int) -> Iterator[Result]:
    contents = values(100, 0.5)
    rows = (contents * (_ENCODED // len(contents) + 1))[:_ENCODED]
    plain: dict[str, pa.Array[Any]] = {"value": pa.array(rows, pa.binary())}
    keyed = {**plain, "key": pa.array([b"key-%d" % number for number in range(_ENCODED)], pa.binary())}
    for name, columns, codec, target in (
        ("encode from Arrow, 4 partitions", plain, Compression.NONE, 5.0),
        ("encode from Arrow, partition by key", keyed, Compression.NONE, 5.0),
        ("encode from Arrow to lz4, 4 partitions", plain, Compression.LZ4, None),
    ):
        batches = pa.Table.from_pydict(columns).to_batches(10_000)  # Spark's size
        yield best(name, lambda batches=batches, codec=codec: _encode(batches, codec), rounds, target)  # type: ignore[misc]  # a lambda's defaults have no types


def _encode(batches: list[pa.RecordBatch], codec: Compression) -> int:
    for batch in batches:
        rows_of(batch).encode(PARTITIONS, _NOW, compression=codec)
    return sum(batch.num_rows for batch in batches)


def show(console: Console, results: list[Result]) -> bool:
    """Print the table; return whether all targets are met by CPU time."""
    table = Table(title="the kernel beside Spark, 100-byte values, one thread", title_justify="left")
    table.add_column("")
    for name in ("M/s", "M/CPU s", "target"):
        table.add_column(name, justify="right")
    met = True
    for result in results:
        target = ""
        if result.target is not None:
            fits = result.cpu >= result.target
            met = met and fits
            target = f"{result.target:.0f} {'ok' if fits else 'MISSED'}"
        table.add_row(result.name, f"{result.clock:.2f}", f"{result.cpu:.2f}", target)
    console.print(table)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.spark.bench_kernel", description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000, help="records of a topic (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bootstrap", default=os.environ.get("AIOKWIRE_BOOTSTRAP"), help="default: start Kafka 4.3.1")
    options = parser.parse_args()
    with broker(options.bootstrap) as bootstrap:
        topics = Topics(bootstrap, options.records)
        filled = {kind: topics.filled(kind) for kind in ("plain", "lz4")}
        results = [*reading(bootstrap, filled, options.rounds), *writing(options.rounds)]
        topics.close()
    return 0 if show(Console(), results) else 1


if __name__ == "__main__":
    sys.exit(main())
