"""The record kernel alone: µs per 100-byte record to append, decode, and convert with Arrow.

`python -m integration.bench.kernel` prints a table with the targets and exits with status 1 if one
is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from aiokwire.records import BatchBuilder, Columns, Record, read_batches, rows_of
from aiokwire.types import Compression

RECORDS = 9_000  # in one batch of about 1 MB
SECONDS = 0.4  # for each row of the table
VALUE = b"x" * 100
NOW = 1_700_000_000_000


class Result(NamedTuple):
    """A row: the best of many rounds, because other work on the machine only adds time."""

    name: str
    microseconds: float
    target: float | None


def best(round_: Callable[[], object], records: int = RECORDS, seconds: float = SECONDS) -> float:
    """Return the time of the fastest round, in µs per record."""
    fastest = float("inf")
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        round_()
        stop = time.perf_counter()
        fastest = min(fastest, stop - start)
        if stop > end:
            return fastest / records * 1e6


def fill(builder: BatchBuilder) -> None:
    builder.reset()
    append = builder.append
    for _ in range(RECORDS):
        append(NOW, None, VALUE)


def fill_keyed(builder: BatchBuilder) -> None:
    builder.reset()
    append = builder.append
    headers = [("trace", b"0123456789abcdef")]
    for _ in range(RECORDS):
        append(NOW, b"some-key", VALUE, headers)


def sealed(*, keyed: bool = False, compression: Compression = Compression.NONE) -> bytes:
    builder = BatchBuilder(2, 4 << 20)
    (fill_keyed if keyed else fill)(builder)
    return bytes(builder.seal(compression=compression))


def arrow(*, keyed: bool = False) -> pa.RecordBatch:
    """Return the same records as columns, as Spark passes them."""
    columns: dict[str, pa.Array[Any]] = {"value": pa.array([VALUE] * RECORDS, pa.binary())}
    if keyed:
        pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
        columns["key"] = pa.array([b"some-key"] * RECORDS, pa.binary())
        columns["headers"] = pa.array([[("trace", b"0123456789abcdef")]] * RECORDS, pa.list_(pair))
    return pa.record_batch(columns)


def encode(batch: pa.RecordBatch, compression: Compression = Compression.NONE) -> None:
    rows_of(batch).encode(4, NOW, batch_size=4 << 20, compression=compression)


def measure() -> list[Result]:
    builder = BatchBuilder(2, 4 << 20)
    plain, keyed, packed = sealed(), sealed(keyed=True), sealed(compression=Compression.LZ4)

    def to_columns(data: bytes) -> None:
        columns = Columns()
        for batch in read_batches(data, "bench", 0):
            batch.add_to(columns)

    def records(data: bytes) -> list[Record]:
        return read_batches(data, "bench", 0)[0].records()

    def values(data: bytes) -> list[bytes | None]:
        return read_batches(data, "bench", 0)[0].values()

    rows = [
        Result("append (from Python, call included)", best(lambda: fill(builder)), 0.12),
        Result("append with key and one header", best(lambda: fill_keyed(builder)), None),
        Result("decode to objects", best(lambda: records(plain)), 0.10),
        Result("decode to values", best(lambda: values(plain)), None),
        Result("decode to Arrow's buffers", best(lambda: to_columns(plain)), 0.04),
        Result("objects with key and one header", best(lambda: records(keyed)), None),
        Result("Arrow with key and one header", best(lambda: to_columns(keyed)), None),
        Result("objects from lz4", best(lambda: records(packed)), None),
        Result("check CRC and headers only", best(lambda: read_batches(plain, "bench", 0)), None),
    ]
    columns, columns_keyed = arrow(), arrow(keyed=True)
    rows += [
        Result("encode from Arrow, 4 partitions", best(lambda: encode(columns)), 0.20),
        Result("from Arrow with key and one header", best(lambda: encode(columns_keyed)), None),
        Result("from Arrow to lz4", best(lambda: encode(columns, Compression.LZ4)), None),
    ]
    alive = [records(plain) for _ in range(110)]
    rows.append(Result("objects with a million records alive", best(lambda: records(plain)), 0.10))
    del alive
    return rows


def main() -> int:
    missed = False
    for row in measure():
        target = "" if row.target is None else f"  target {row.target:.2f}"
        verdict = "" if row.target is None else ("  ok" if row.microseconds <= row.target else "  MISSED")
        missed = missed or verdict.strip() == "MISSED"
        print(f"{row.name:40} {row.microseconds:7.4f} µs per record{target}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
