"""The cases of the Spark benchmark, each with its contenders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from integration.spark.bench_limit import Limit
from integration.spark.bench_topics import ORDER, PARTITIONS, Topics, values

TUNED: Final = {
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.max.poll.records": "5000",
    "kafka.receive.buffer.bytes": "4194304",
}
_BATCHED: Final = {"kafka.linger.ms": "20", "kafka.batch.size": "262144"}
_LZ4: Final = {"kafka.compression.type": "lz4"}
_ROWS: Final = 1_000  # different rows of the frame that is written

Turn = Callable[[], int]
"""One measured action; returns its number of rows."""


class Contender(NamedTuple):
    """A format and its options."""

    name: str
    format: str
    options: dict[str, str]


JVM: Final = Contender("spark-sql-kafka", "kafka", {})
JVM_TUNED: Final = Contender("spark-sql-kafka tuned", "kafka", TUNED)
OURS: Final = Contender("aiokwire", "aiokwire", {})
LIMIT: Final = Contender("limit: batches made before", "limit", {})


class Case(NamedTuple):
    """A table of the report; `kind` names the topic that it reads."""

    name: str
    group: str
    title: str
    task: str
    against: str
    contenders: tuple[Contender, ...]
    kind: str = "plain"


_VALUE: Final = {"columns": "value"}
_READERS: Final = (JVM, JVM_TUNED, OURS)
_VALUES: Final = (JVM, JVM_TUNED, Contender("aiokwire columns=value", "aiokwire", _VALUE))
_DECODERS: Final = (
    JVM,
    JVM_TUNED,
    Contender("aiokwire and Spark's from_avro", "aiokwire", _VALUE),
    Contender("aiokwire", "aiokwire", {**_VALUE, "value.format": "avro", "value.schema": json.dumps(ORDER)}),
)
_WRITERS: Final = (
    JVM,
    Contender("spark-sql-kafka linger, batch", "kafka", _BATCHED),
    Contender("spark-sql-kafka linger, batch, lz4", "kafka", {**_BATCHED, **_LZ4}),
    OURS,
    Contender("aiokwire lz4", "aiokwire", _LZ4),
)
_ARCHIVERS: Final = (
    JVM_TUNED,
    OURS._replace(name="aiokwire, df.write.parquet"),
    OURS._replace(name="aiokwire, archive", format="archive"),
)

CASES: Final = (
    Case("read-plain", "read", "noop read, uncompressed", "read", JVM_TUNED.name, (*_READERS, LIMIT)),
    Case("read-lz4", "read", "noop read, lz4", "read", JVM_TUNED.name, _READERS, "lz4"),
    Case(
        "value-plain",
        "value",
        "count and sum(length(value)), uncompressed",
        "sum",
        JVM_TUNED.name,
        (*_VALUES, LIMIT._replace(options=_VALUE)),
    ),
    Case("value-lz4", "value", "count and sum(length(value)), lz4", "sum", JVM_TUNED.name, _VALUES, "lz4"),
    Case("write-plain", "write", "write, no keys", "write", _WRITERS[2].name, _WRITERS),
    Case("write-keyed", "write", "write, with keys", "write-keyed", _WRITERS[2].name, _WRITERS),
    Case("archive", "archive", "to Parquet (snappy)", "archive", JVM_TUNED.name, _ARCHIVERS),
    Case("small", "other", "noop read, batches of 10 records", "read", JVM_TUNED.name, _READERS, "small"),
    Case(
        "headers",
        "other",
        "noop read, two headers each, includeHeaders",
        "headers",
        JVM_TUNED.name,
        _READERS,
        "headers",
    ),
    Case("random", "other", "noop read, 1 KiB random values", "read", JVM_TUNED.name, _READERS, "random"),
    Case("zstd", "other", "noop read, zstd", "read", JVM_TUNED.name, _READERS, "zstd"),
    Case("avro", "avro", "noop read, Avro of eight fields", "avro", JVM_TUNED.name, _DECODERS, "avro"),
)
NAMES: Final = tuple(dict.fromkeys(name for case in CASES for name in (case.group, case.name)))


class Actions:
    """Prepares the turns of cases, for one session and broker."""

    def __init__(self, spark: SparkSession, topics: Topics, scratch: Path) -> None:
        spark.dataSource.register(Limit)
        self._spark = spark
        self._topics = topics
        self._scratch = scratch
        self._frames: dict[bool, DataFrame] = {}

    def turn(self, case: Case, contender: Contender) -> Turn:
        """Prepare a turn and return the action to measure."""
        if case.task.startswith("write"):
            return self._write(contender, keyed=case.task == "write-keyed")
        topic, count = self._topics.filled(case.kind)
        if contender.format == "archive":
            return self._archive(topic, count)
        if contender.format == "limit":
            options = {**contender.options, "rows": str(count), "tasks": str(PARTITIONS)}
        else:
            options = {**contender.options, "subscribe": topic, "startingOffsets": "earliest"}
            options["kafka.bootstrap.servers"] = self._topics.bootstrap
        if case.task == "headers":
            options["includeHeaders"] = "true"
        frame = self._spark.read.format(contender.format).options(**options).load()
        if case.task == "avro":
            decoded = (
                frame
                if "value.format" in options
                else frame.select(from_avro("value", json.dumps(ORDER)).alias("value"))
            )
            frame = decoded.select("value.*")
        return {
            "read": lambda: self._noop(frame, count),
            "avro": lambda: self._noop(frame, count),
            "headers": lambda: self._noop(frame, count),
            "sum": lambda: self._sum(frame, count),
            "archive": lambda: self._parquet(frame, count),
        }[case.task]

    def after(self) -> None:
        """Remove the results of the turn."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _noop(self, frame: DataFrame, count: int) -> int:
        frame.write.format("noop").mode("overwrite").save()
        return count

    def _sum(self, frame: DataFrame, count: int) -> int:
        found: Any = frame.agg(f.count("*"), f.sum(f.length("value"))).first()
        if found[0] != count:
            raise SystemExit(f"{found[0]} of {count} rows were read")
        return count

    def _parquet(self, frame: DataFrame, count: int) -> int:
        frame.write.mode("overwrite").parquet(str(self._scratch / "parquet"))
        return count

    def _archive(self, topic: str, count: int) -> Turn:
        from aiokwire.spark.pipelines import archive

        def turn() -> int:
            done = archive(topic, self._scratch / "archive", bootstrap=self._topics.bootstrap, spark=self._spark)
            if done.records != count:
                raise SystemExit(f"{done.records} of {count} records were archived")
            return count

        return turn

    def _write(self, contender: Contender, *, keyed: bool) -> Turn:
        frame, count = self._rows(keyed), self._topics.records
        topic = self._topics.create("out")

        def turn() -> int:
            writer = frame.write.format(contender.format).mode("append").options(**contender.options)
            writer.option("kafka.bootstrap.servers", self._topics.bootstrap).option("topic", topic).save()
            return count

        return turn

    def _rows(self, keyed: bool) -> DataFrame:
        """Return the frame to write, in memory."""
        if keyed not in self._frames:
            contents = self._spark.createDataFrame(
                [(n, v) for n, v in enumerate(values(100, 0.5))], "n int, value binary"
            )
            numbers = self._spark.range(0, self._topics.records, 1, PARTITIONS)
            rows = numbers.join(f.broadcast(contents), f.col("id") % _ROWS == f.col("n"))
            key = [f.col("id").cast("string").alias("key")] if keyed else []
            frame = rows.select(*key, "value").cache()
            frame.count()
            self._frames[keyed] = frame
        return self._frames[keyed]
