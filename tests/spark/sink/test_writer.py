"""Frames and streams that Spark writes to the embedded broker, and frames that are refused."""

from __future__ import annotations

import datetime
import json
import pathlib
import shutil
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StringType, StructType

from aiokwire import Consumer, ConsumerRecord, Producer
from aiokwire.errors import ConfigurationError
from aiokwire.records import murmur2
from aiokwire.spark import AiokwireSource, compat, one_owner
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka

pytestmark = pytest.mark.timeout(300)
needs_stream_writes = pytest.mark.skipif(not compat.HAS_STREAM_WRITES, reason="streams are written from PySpark 4.1 on")


class Writes:
    """Writes of a frame, and reads of the result; option names have underscores for dots."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def options(self, topic: str | None, options: dict[str, Any]) -> dict[str, str]:
        named = {name.replace("__", "."): str(value) for name, value in options.items()}
        if topic is not None:
            named["topic"] = topic
        return {"kafka.bootstrap.servers": self._kafka.servers, **named}

    def batch(self, frame: DataFrame, topic: str | None = None, mode: str = "append", **options: Any) -> None:
        frame.write.format("aiokwire").mode(mode).options(**self.options(topic, options)).save()

    def stream(self, frame: DataFrame, topic: str, checkpoint: pathlib.Path, **options: Any) -> None:
        """Run once over the available input."""
        given = {"checkpointLocation": str(checkpoint), **self.options(topic, options)}
        query = frame.writeStream.format("aiokwire").options(**given).trigger(availableNow=True).start()
        query.awaitTermination()

    def committed(self, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
        """Return all records that a read_committed consumer reads, by partition and offset."""

        async def main() -> list[ConsumerRecord[bytes, bytes]]:
            options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
            async with Producer(self._kafka.servers) as producer:
                places = [TopicPartition(topic, number) for number in range(await producer.partitions_for(topic))]
            async with Consumer(topic, bootstrap_servers=self._kafka.servers, **options) as consumer:
                ends = await consumer.end_offsets(places)
                found: list[ConsumerRecord[bytes, bytes]] = []
                while [place for place in places if await consumer.position(place) < ends[place]]:
                    found += await consumer.getmany(timeout=0.05)
                return sorted(found, key=lambda record: (record.partition, record.offset))

        return self._kafka.run(main)

    def values(self, topic: str) -> list[bytes | None]:
        return sorted((record.value for record in self.committed(topic)), key=str)


@pytest.fixture
def writes(kafka: Kafka) -> Writes:
    return Writes(kafka)


# --- at least once ----------------------------------------------------------------------------------------------------


def test_every_column_arrives(spark: SparkSession, kafka: Kafka, writes: Writes) -> None:
    topic = kafka.topic(3)
    time = datetime.datetime(2023, 11, 14, 22, 13, 20, 123_456)
    rows = [
        Row(
            key="k",
            value=b"v",
            headers=[Row(key="h", value=b"1"), Row(key="i", value=None)],
            partition=2,
            timestamp=time,
        ),
        Row(key=None, value=None, headers=None, partition=1, timestamp=time),
    ]
    headers = "headers array<struct<key: string, value: binary>>"
    schema = f"key string, value binary, {headers}, partition int, timestamp timestamp"
    writes.batch(spark.createDataFrame(rows, schema), topic)
    empty, full = writes.committed(topic)
    assert (full.partition, full.key, full.value, full.headers) == (2, b"k", b"v", (("h", b"1"), ("i", None)))
    assert (empty.partition, empty.key, empty.value, empty.headers) == (1, None, None, ())
    assert full.timestamp == 1_700_000_000_123


def test_rows_are_written_by_key_to_the_topics_they_name(spark: SparkSession, kafka: Kafka, writes: Writes) -> None:
    topics = [kafka.topic(4), kafka.topic(1)]
    frame = spark.range(30_000, numPartitions=3).select(
        f.when(f.col("id") % 3 == 0, topics[1]).otherwise(topics[0]).alias("topic"),
        (f.col("id") % 100).cast("string").alias("key"),
        f.col("id").cast("string").alias("value"),
    )
    writes.batch(frame, kafka__compression__type="lz4")
    first, second = (writes.committed(topic) for topic in topics)
    assert sorted(int(record.value or b"") for record in first + second) == list(range(30_000))
    assert {int(record.value or b"") % 3 for record in second} == {0}
    assert all(record.partition == (murmur2(record.key or b"") & 0x7FFFFFFF) % 4 for record in first)


@needs_stream_writes
def test_a_stream_is_written(spark: SparkSession, kafka: Kafka, writes: Writes, tmp_path: pathlib.Path) -> None:
    topic = kafka.topic(2)
    writes.stream(source(spark, tmp_path, 4), topic, tmp_path / "checkpoint")
    assert writes.values(topic) == wanted(4)


STRINGS = StructType().add("value", StringType())
REFUSED = [
    ({"topc": "t"}, STRINGS, "did you mean 'topic'"),
    ({"topic": "t"}, StructType().add("value", IntegerType()), "value must be string or binary, not int"),
    ({}, STRINGS, "no topic"),
    ({"topic": "t", "delivery": "exactly-once"}, STRINGS, "needs the options sink.id"),
]


@pytest.mark.parametrize(("options", "schema", "message"), REFUSED)
def test_options_and_frames_that_cannot_be_written_are_refused(
    options: dict[str, str], schema: StructType, message: str
) -> None:
    """Creates the writer as Spark's planner does."""
    named = {"kafka.bootstrap.servers": "127.0.0.1:1"} | options
    with pytest.raises(ConfigurationError, match=message):
        AiokwireSource(named).writer(schema, overwrite=False)
    if compat.HAS_STREAM_WRITES:
        with pytest.raises(ConfigurationError):
            AiokwireSource(named).streamWriter(schema, overwrite=False)


def test_a_topic_is_not_overwritten(spark: SparkSession, writes: Writes) -> None:
    """Spark's exception contains the error message."""
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        writes.batch(spark.createDataFrame([], "value string"), "t", mode="overwrite")


# --- exactly once -----------------------------------------------------------------------------------------------------


def source(spark: SparkSession, folder: pathlib.Path, batches: int, first: int = 0) -> DataFrame:
    """Return a stream of files with ten rows each, one file for each microbatch."""
    files = folder / "files"
    files.mkdir(exist_ok=True)
    for number in range(first, first + batches):
        lines = [json.dumps({"key": f"k{row % 3}", "value": f"{number}-{row}"}) for row in range(10)]
        (files / f"{number}.json").write_text("\n".join(lines))
    return (
        spark.readStream.schema("key string, value string").option("maxFilesPerTrigger", "1").json(str(files))
    )  # fmt: skip


def wanted(batches: int) -> list[bytes]:
    return sorted(f"{number}-{row}".encode() for number in range(batches) for row in range(10))


@needs_stream_writes
def test_each_microbatch_is_one_transaction(
    spark: SparkSession, kafka: Kafka, writes: Writes, tmp_path: pathlib.Path
) -> None:
    topic = kafka.topic(3)
    frame = one_owner(source(spark, tmp_path, 2), 3)
    writes.stream(frame, topic, tmp_path / "checkpoint", delivery="exactly-once")
    assert writes.values(topic) == wanted(2)
    for record in writes.committed(topic):
        assert record.partition == (murmur2(record.key or b"") & 0x7FFFFFFF) % 3
    # a batch whose commit Spark has forgotten is not written again
    last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    frame = one_owner(source(spark, tmp_path, 1, first=2), 3)
    writes.stream(frame, topic, tmp_path / "checkpoint", delivery="exactly-once")
    assert writes.values(topic) == wanted(3)
    # a new checkpoint numbers its batches from 0: they are other batches than those written before
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="the checkpoint is new"):
        writes.stream(frame, topic, tmp_path / "checkpoint", delivery="exactly-once")
    assert writes.values(topic) == wanted(3)


def test_two_owners_are_refused(spark: SparkSession, kafka: Kafka, writes: Writes) -> None:
    topic = kafka.topic(1)
    frame = spark.range(100, numPartitions=2).select(f.lit("k").alias("key"), f.col("id").cast("string").alias("value"))
    with pytest.raises(PySparkException, match="one_owner"):
        writes.batch(frame, topic, delivery="exactly-once", sink__id="two", run__id="1")
    assert writes.values(topic) == []


def test_a_repeated_run_of_a_batch_job_writes_once(spark: SparkSession, kafka: Kafka, writes: Writes) -> None:
    """The rows have no key: each task owns a partition."""
    topic = kafka.topic(2)
    frame = spark.range(100, numPartitions=2).select(f.col("id").cast("string").alias("value"))
    for run, times in (("monday", 1), ("monday", 1), ("tuesday", 2)):
        writes.batch(frame, topic, delivery="exactly-once", sink__id="jobs", run__id=run)
        assert len(writes.values(topic)) == 100 * times
    assert {record.partition for record in writes.committed(topic)} == {0, 1}


def test_a_failed_job_commits_nothing(spark: SparkSession, kafka: Kafka, writes: Writes) -> None:
    topic = kafka.topic(2)
    broken = f.when(f.col("id") == 99, f.raise_error(f.lit("broken"))).otherwise(f.col("id").cast("string"))
    frame = spark.range(100, numPartitions=2).select(broken.alias("value"))
    with pytest.raises(PySparkException, match="broken"):
        writes.batch(frame, topic, delivery="exactly-once", sink__id="fails", run__id="1")
    assert writes.values(topic) == []
