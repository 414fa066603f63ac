"""Streams: the reader as Spark's driver calls it, then one whole query through Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from aiokwire import Admin, Consumer
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.fetching import LostData
from aiokwire.spark.source.stream import StreamReader
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka, columns_of

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("no_sessions")]


class Query:
    """A stream's reader, driven as Spark drives it."""

    def __init__(self, servers: str, topic: str, **options: str) -> None:
        named = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"} | options
        parsed = parse_source(named, streaming=True)
        self.reader = StreamReader(parsed, columns_of(parsed))
        self.at: dict[str, Any] = {}

    def begin(self) -> dict[str, Any]:
        self.at = self.reader.initialOffset()
        return self.at

    def step(self) -> list[bytes | None]:
        """Run one microbatch and return its values."""
        end = self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        end = json.loads(json.dumps(end))
        tasks = self.reader.partitions(self.at, end) if end != self.at else []
        values: list[bytes | None] = []
        for task in tasks:
            for batch in self.reader.read(task):
                values += batch.column("value").to_pylist()
        if end != self.at:
            self.reader.commit(end)
        self.at = end
        return values


def numbered(count: int, start: int = 0) -> list[bytes | None]:
    return [b"%d" % number for number in range(start, start + count)]


def test_a_stream_advances_by_microbatches(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    query = Query(kafka.servers, topic)
    assert query.begin() == {topic: {"0": 0, "1": 0}}
    assert query.step() == []
    kafka.produce(topic, numbered(3))
    kafka.produce(topic, numbered(2, 10), partition=1)
    assert query.step() == numbered(3) + numbered(2, 10)
    assert query.at == {topic: {"0": 3, "1": 2}}
    assert query.reader.reportLatestOffset() == query.at
    assert query.reader.latestOffset(query.at, ReadAllAvailable()) is query.at, "nothing new"


def test_a_stream_starts_at_the_end_and_repeats_its_start(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(5))
    query = Query(kafka.servers, topic, startingOffsets="latest")
    assert query.begin() == {topic: {"0": 5}}
    kafka.produce(topic, numbered(1))
    assert query.begin() == {topic: {"0": 5}}


def test_a_microbatch_takes_at_most_max_offsets_per_trigger(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, numbered(90))
    kafka.produce(topic, numbered(10), partition=1)
    query = Query(kafka.servers, topic, maxOffsetsPerTrigger="20")
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(20)
    query.begin()
    assert [len(query.step()) for _ in range(6)] == [20] * 5 + [0]


def test_a_microbatch_takes_at_most_max_bytes_per_trigger(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x" * 993] * 100)
    query = Query(kafka.servers, topic, maxBytesPerTrigger="30k")
    assert query.reader.getDefaultReadLimit() == ReadMaxBytes(30 * 1024)
    query.begin()
    sizes = []
    while values := query.step():
        sizes.append(len(values))
    assert sum(sizes) == 100
    assert all(25 <= size <= 31 for size in sizes[:-1]), sizes


def test_a_microbatch_waits_for_min_offsets_per_trigger(kafka: Kafka) -> None:
    topic = kafka.topic()
    query = Query(kafka.servers, topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    query.begin()
    kafka.produce(topic, numbered(3))
    assert len(query.step()) == 3, "the first one does not wait"
    kafka.produce(topic, numbered(9))
    assert query.step() == []
    kafka.produce(topic, numbered(1))
    assert len(query.step()) == 10


def test_available_now_ends_at_the_offsets_of_its_start(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(10))
    query = Query(kafka.servers, topic, maxOffsetsPerTrigger="4", minOffsetsPerTrigger="4")
    query.reader.prepareForTriggerAvailableNow()
    query.begin()
    kafka.produce(topic, numbered(10))
    assert [len(query.step()) for _ in range(4)] == [4, 4, 2, 0]


def test_new_partitions_are_read_from_their_start(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(1))
    query = Query(kafka.servers, topic, startingOffsets="latest")
    query.begin()

    async def grow() -> None:
        async with Admin(kafka.servers) as admin:
            await admin.create_partitions({topic: 2})

    kafka.run(grow)
    kafka.produce(topic, numbered(2), partition=1)
    assert query.step() == numbered(2)
    assert query.at == {topic: {"0": 1, "1": 2}}


def recreate(kafka: Kafka, topic: str, count: int) -> None:
    kafka.delete(topic)
    kafka.create(topic)
    kafka.produce(topic, numbered(count, 100))


def test_a_recreated_topic_is_detected(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(5))
    query = Query(kafka.servers, topic)
    query.begin()
    query.step()
    recreate(kafka, topic, 8)
    with pytest.raises(LostData, match="deleted and recreated"):
        query.step()


def test_a_recreated_topic_is_read_from_its_start_when_losses_are_reported(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(5))
    query = Query(kafka.servers, topic, onDataLoss="report")
    query.begin()
    query.step()
    recreate(kafka, topic, 8)
    assert query.step() == numbered(8, 100)
    assert query.step() == []


def test_a_topic_recreated_between_two_runs_is_detected_by_its_id(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(5))
    query = Query(kafka.servers, topic, trackTopicIds="true")
    query.begin()
    query.step()
    recreate(kafka, topic, 8)
    again = Query(kafka.servers, topic, trackTopicIds="true")
    again.at = query.at
    with pytest.raises(LostData, match="deleted and recreated"):
        again.step()


def test_a_truncated_log_is_lost_data(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(3))
    query = Query(kafka.servers, topic)
    query.at = {topic: {"0": 9}}
    with pytest.raises(LostData, match="the log ends at 3"):
        query.step()
    lenient = Query(kafka.servers, topic, onDataLoss="skip")
    lenient.at = {topic: {"0": 9}}
    assert lenient.step() == numbered(3)


def test_lag_tools_see_the_committed_offsets(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(7))
    query = Query(kafka.servers, topic, commitGroup=f"lag-{topic}")
    query.begin()
    query.step()

    async def committed() -> dict[str, int]:
        async with Consumer(bootstrap_servers=kafka.servers, group_id=f"lag-{topic}") as consumer:
            found = await consumer.committed(TopicPartition(topic, 0))
            return {str(tp): offset.offset for tp, offset in found.items() if offset is not None}

    assert kafka.run(committed) == {f"{topic}[0]": 7}


def test_a_restarted_query_resumes_at_its_checkpoint(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, numbered(30))
    kafka.produce(topic, numbered(20), partition=1)

    def run() -> int:
        frame = (
            spark.readStream.format("aiokwire")
            .option("kafka.bootstrap.servers", kafka.servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "25")
            .load()
        )
        out = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = out.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination(60)
        return spark.read.parquet(str(tmp_path / "out")).count()

    assert run() == 50
    kafka.produce(topic, numbered(3))
    assert run() == 53
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"))
    assert json.loads(offsets[-1].read_text().splitlines()[-1]) == {topic: {"0": 33, "1": 20}}
