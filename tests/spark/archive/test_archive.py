"""Topics as Parquet: a plain read of the files, and runs that continue an archive."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from aiokwire import Producer
from aiokwire.admin import Admin
from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError
from aiokwire.protocol.messages import delete_records
from aiokwire.spark.archive.archive import check_not_behind, check_topics, shares_of
from aiokwire.spark.archive.compact import neighbours
from aiokwire.spark.archive.layout import DAY, Layout
from aiokwire.spark.archive.manifest import Archive, DataFile
from aiokwire.spark.archive.tasks import MOST_OPEN, by_slot
from aiokwire.spark.jobs.stopping import Stop
from aiokwire.spark.pipelines import archive, ask, compact, read_archive, verify
from aiokwire.spark.source.fetching import LostData
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition
from tests.spark.archive.conftest import rows_of
from tests.spark.conftest import Kafka
from tests.spark.test_options import source

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("no_sessions")]

NOON = 20_000 * DAY + DAY // 2


def values(path: Path) -> list[tuple[int, bytes]]:
    return [(row["partition"], row["value"]) for row in rows_of(path)]


# --- decisions ------------------------------------------------------------------------------------------------------


def test_every_core_gets_a_share_of_a_large_read() -> None:
    options = source()
    large, small = Range("orders", 0, 0, 4_000_000), Range("orders", 1, 0, 10)
    assert len(shares_of([large], options, 4)) == 4
    assert shares_of([small], options, 4) == [(small,)]
    assert len(shares_of([small], source(minPartitions="3"), 4)) == 3


def test_a_recreated_topic_is_refused() -> None:
    known = Archive(1, topic_ids={"orders": "ab"})
    check_topics(known, {"orders": "ab", "other": "cd"})
    check_topics(known, {})
    with pytest.raises(ConfigurationError, match="'orders' was deleted and recreated"):
        check_topics(known, {"orders": "cd"})


def test_a_log_that_ends_before_the_archive_is_refused() -> None:
    tp = TopicPartition("orders", 0)
    check_not_behind({tp: 5}, {tp: 5})
    check_not_behind({tp: 5}, {})
    with pytest.raises(ConfigurationError, match=r"has orders\[0\] up to offset 5, but its log ends at 4"):
        check_not_behind({tp: 5}, {tp: 4})


def data(day: int, first: int, size: int) -> DataFile:
    path = f"topic=orders/date={day}/partition=0/{first}.parquet"
    return DataFile("orders", 0, first, first + 9, path, 10, size, 0, 0, 0)


def test_small_files_of_a_directory_are_merged_up_to_the_target_size() -> None:
    files = [data(1, 0, 40), data(1, 10, 40), data(2, 20, 40), data(1, 30, 40), data(1, 40, 200), data(1, 50, 10)]
    found = neighbours(files, 100)
    assert [[each.first for each in group] for group in found] == [[0, 10]]
    found = neighbours(files, 1000)
    assert [[each.first for each in group] for group in found] == [[0, 10, 30, 40, 50]]


def batch_of(times: list[int]) -> pa.RecordBatch:
    stamps = pa.array([time * 1000 for time in times], pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([pa.array(range(len(times)), pa.int64()), stamps], names=["offset", "timestamp"])


def test_a_batch_is_split_at_midnight() -> None:
    layout = Layout(False, "", "")
    batch = batch_of([DAY - 1, DAY, DAY + 5, 3, -1, -DAY, 1_763_000_000_000_000])
    found = {slot: part.column("offset").to_pylist() for slot, part in by_slot(batch, layout)}
    assert found == {0: [0, 3], 1: [1, 2], -1: [4, 5, 6]}
    assert [(slot, part.num_rows) for slot, part in by_slot(batch_of([5, 6]), layout)] == [(0, 2)]


# --- with Spark -----------------------------------------------------------------------------------------------------


def fill(kafka: Kafka, topic: str, numbers: range, **options: Any) -> None:
    """A record for each number, half a day apart, with every kind of null."""

    async def main() -> None:
        async with Producer(kafka.servers) as producer:
            for number in numbers:
                await producer.submit(
                    topic,
                    None if number % 5 == 3 else b"value %d" % number,
                    key=None if number % 3 else b"key %d" % number,
                    headers=[("a", b"%d" % number), ("b", None)] if number % 4 == 1 else [],
                    timestamp=NOON + number * DAY // 2,
                    partition=number % 2,
                    **options,
                )

    kafka.run(main)


def test_the_archive_has_the_sent_records_also_after_a_second_run(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic(2)
    fill(kafka, topic, range(40))
    path = tmp_path / "lake"
    first = archive(topic, path, bootstrap=kafka.servers, spark=spark, round_records=15, commit_group="lake")
    assert (first.records, first.rounds, first.stopped) == (40, 3, False)
    assert first.offsets == {topic: {"0": 20, "1": 20}}
    fill(kafka, topic, range(40, 50))
    second = archive(topic, path, bootstrap=kafka.servers, spark=spark, commit_group="lake")
    assert (second.records, second.rounds) == (10, 1)
    assert archive(topic, path, bootstrap=kafka.servers, spark=spark).rounds == 0
    rows = rows_of(path)
    assert [(row["partition"], row["offset"]) for row in rows] == [(p, o) for p in (0, 1) for o in range(25)]
    for row in rows:
        number = 2 * row["offset"] + row["partition"]
        assert row["value"] == (None if number % 5 == 3 else b"value %d" % number)
        assert row["key"] == (None if number % 3 else b"key %d" % number)
        pairs = [{"key": "a", "value": b"%d" % number}, {"key": "b", "value": None}]
        assert row["headers"] == (pairs if number % 4 == 1 else None)
        assert row["timestamp"].timestamp() * 1000 == NOON + number * DAY // 2
        assert row["date"] == row["timestamp"].date().isoformat()
        assert row["topic"] == topic
    frame = spark.read.parquet(str(path))
    assert frame.where(f"topic = '{topic}' and partition = 1 and date = '2024-10-05'").count() == 1
    assert frame.count() == 50
    assert kafka.run(lambda: committed(kafka.servers, "lake")) == {
        TopicPartition(topic, 0): 25,
        TopicPartition(topic, 1): 25,
    }


async def committed(servers: str, group: str) -> dict[TopicPartition, int]:
    async with Admin(servers) as admin:
        offsets = await admin.list_group_offsets(group)
    return {tp: found.offset for tp, found in offsets.items()}


def test_small_files_are_merged_and_a_corrupt_file_is_found(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    for start in range(0, 60, 20):
        kafka.produce(topic, [b"%d" % number for number in range(start, start + 20)], timestamp=NOON)
        archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark)
    before = values(tmp_path)
    compacted = compact(tmp_path, spark=spark, compression="zstd")
    assert (compacted.files_before, compacted.files_after, compacted.records) == (3, 1, 60)
    assert values(tmp_path) == before
    assert [path.name for path in tmp_path.rglob("*.parquet")] == [f"{topic}-0-{0:020}-{59:020}.parquet"]
    kafka.produce(topic, [b"60"], timestamp=NOON)
    assert archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark).records == 1
    found = verify(tmp_path, spark=spark)
    assert (found.files, found.records, found.faults, found.gaps, found.failed) == (2, 61, (), (), False)

    whole, small = sorted(tmp_path.rglob("*.parquet"))
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 1
    whole.write_bytes(data)
    small.rename(small.with_name("stray.parquet"))
    found = verify(tmp_path, spark=spark)
    assert found.failed
    faults = "\n".join(found.faults)
    assert f"{whole.name}: its checksum is not that of its manifest" in faults
    assert f"{small.name}: it is missing" in faults
    assert "stray.parquet: no manifest names it" in faults


def test_aborted_records_are_not_archived(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()

    async def main() -> None:
        async with Producer(kafka.servers, transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept", partition=0)
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send(topic, b"aborted", partition=0)
                    raise ZeroDivisionError

    kafka.run(main)
    done = archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark)
    assert (done.records, done.offsets) == (1, {topic: {"0": 4}})
    assert values(tmp_path) == [(0, b"kept")]
    assert archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark).rounds == 0


def test_files_are_rolled_by_size_and_when_too_many_days_are_open(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    days = MOST_OPEN + 4

    async def main() -> None:
        async with Producer(kafka.servers) as producer:
            for number in range(3 * days):
                await producer.submit(topic, b"%d" % number, partition=0, timestamp=NOON + number % days * DAY)

    kafka.run(main)
    done = archive(topic, tmp_path / "days", bootstrap=kafka.servers, spark=spark)
    assert done.records == 3 * days
    assert [row["offset"] for row in rows_of(tmp_path / "days")] == list(range(3 * days))
    assert verify(tmp_path / "days", spark=spark).faults == ()
    small = archive(topic, tmp_path / "small", bootstrap=kafka.servers, spark=spark, file_bytes=1, round_records=20)
    assert small.records == 3 * days
    assert [row["offset"] for row in rows_of(tmp_path / "small")] == list(range(3 * days))
    hourly = archive(topic, tmp_path / "hourly", bootstrap=kafka.servers, spark=spark, hourly=True)
    assert hourly.files >= days
    assert {row["hour"] for row in rows_of(tmp_path / "hourly")} == {12}


def test_values_are_decoded_as_the_options_ask(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b'{"n":1}', b'{"n":2}'], timestamp=NOON)
    options = {"value.format": "json", "value.schema": "n int", "includeHeaders": "false"}
    archive(topic, tmp_path, bootstrap=kafka.servers, options=options, spark=spark)
    (file,) = tmp_path.rglob("*.parquet")
    assert pq.read_schema(file).names == ["key", "value", "offset", "timestamp", "timestampType"]
    assert [row["value"] for row in rows_of(tmp_path)] == [{"n": 1}, {"n": 2}]
    with pytest.raises(ConfigurationError, match="was created with schema"):
        archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark)


def test_deleted_offsets_fail_the_run_or_are_reported_as_a_gap(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x"] * 10, timestamp=NOON)
    archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark)
    kafka.produce(topic, [b"y"] * 10, timestamp=NOON)

    async def delete(client: Client) -> None:
        partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=15)
        named = delete_records.DeleteRecordsTopic(name=topic, partitions=[partition])
        request = delete_records.DeleteRecordsRequest(topics=[named], timeout_ms=5000)
        (answer,) = (await client.request(request, timeout=5)).topics
        assert answer.partitions[0].error_code == 0

    ask(source(kafka__bootstrap__servers=kafka.servers).consumer, delete)
    with pytest.raises(LostData, match=r"offsets 10 to 14 cannot be read: the log begins at 15"):
        archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark)
    skip = {"onDataLoss": "skip"}
    assert archive(topic, tmp_path, bootstrap=kafka.servers, options=skip, spark=spark).records == 5
    assert verify(tmp_path, spark=spark).gaps == (f"{topic}[0]: 10 to 14",)


def test_a_stopped_run_keeps_its_committed_rounds_and_the_next_run_archives_the_rest(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"%d" % number for number in range(30)], timestamp=NOON)

    class AfterTwo(Stop):
        def check(self) -> None:
            if (tmp_path / "_manifests").is_dir() and read_rounds(tmp_path) == 2:
                self.request()
            super().check()

    first = archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark, round_records=10, stop=AfterTwo())
    assert (first.stopped, first.records) == (True, 20)
    assert archive(topic, tmp_path, bootstrap=kafka.servers, spark=spark).records == 10
    assert values(tmp_path) == [(0, b"%d" % number) for number in range(30)]
    assert read_archive(str(tmp_path)).ends == {TopicPartition(topic, 0): 30}


def read_rounds(path: Path) -> int:
    return len(list((path / "_manifests").glob("*.json")))


def test_options_that_an_archive_cannot_have_are_refused(tmp_path: Path) -> None:
    for options, message in (
        ({"columns": "value"}, "an archive has all columns"),
        ({"subscribePattern": "x"}, "one of subscribe, assign and subscribePattern"),
        ({"maxOffsetsPerTriger": "1"}, "did you mean"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            archive("orders", tmp_path, bootstrap="127.0.0.1:1", options=options)
    with pytest.raises(ConfigurationError, match="compression must be one of"):
        archive("orders", tmp_path, bootstrap="127.0.0.1:1", compression="brotli")
