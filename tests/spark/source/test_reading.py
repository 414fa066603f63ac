"""Batch reads without Spark: `BatchReader.partitions` as on the driver, `read` as in the tasks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aiokwire import Producer
from aiokwire.errors import ConfigurationError, ConnectionFailed
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.batch import BatchReader
from aiokwire.spark.source.fetching import LostData
from aiokwire.spark.source.scan import ROWS_PER_BATCH
from aiokwire.spark.source.schema import arrow_schema
from tests.spark.conftest import Kafka, broker_process, columns_of

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("no_sessions")]


class Job:
    """A batch read with the given options."""

    def __init__(self, servers: str, topic: str | None, **options: str) -> None:
        named = {"kafka.bootstrap.servers": servers} | ({} if topic is None else {"subscribe": topic})
        named |= {name.replace("__", "."): text for name, text in options.items()}
        self.options = parse_source(named, streaming=False)
        columns = columns_of(self.options)
        self.reader = BatchReader(self.options, columns)
        self.schema = arrow_schema(columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for task in self.reader.partitions():
            for batch in self.reader.read(task):
                batch.validate(full=True)
                assert batch.schema.equals(self.schema)
                assert batch.num_rows
                yield batch

    def rows(self) -> list[dict[str, Any]]:
        return list(itertools.chain.from_iterable(batch.to_pylist() for batch in self.batches()))

    def offsets(self) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in self.rows()]


def numbered(count: int, start: int = 0) -> list[bytes | None]:
    return [b"%d" % number for number in range(start, start + count)]


def test_a_range_is_read_from_its_first_to_its_last_offset(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, numbered(100))
    kafka.produce(topic, numbered(50), partition=1)
    place = f'{{"{topic}":{{"0":%d,"1":%d}}}}'
    job = Job(kafka.servers, topic, startingOffsets=place % (10, -2), endingOffsets=place % (90, -1))
    assert job.offsets() == [(0, offset) for offset in range(10, 90)] + [(1, offset) for offset in range(50)]


def test_pieces_of_a_range_meet_within_a_batch(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(1000))
    job = Job(kafka.servers, topic, maxRecordsPerPartition="77")
    assert len(job.reader.partitions()) == 13
    assert [row["value"] for row in job.rows()] == numbered(1000)
    assert len(Job(kafka.servers, topic, minPartitions="7").reader.partitions()) == 7


def test_large_ranges_take_many_fetches_and_batches(kafka: Kafka) -> None:
    topic = kafka.topic()
    count = 2 * ROWS_PER_BATCH + 100
    kafka.produce(topic, [b"%06d" % number for number in range(count)])
    job = Job(kafka.servers, topic, kafka__max__partition__fetch__bytes="65536", columns="offset,value")
    rows = job.rows()
    assert [row["offset"] for row in rows] == list(range(count))
    assert rows[-1]["value"] == b"%06d" % (count - 1)
    assert max(batch.num_rows for batch in job.batches()) >= ROWS_PER_BATCH


def test_many_small_partitions_share_tasks_and_batches(kafka: Kafka) -> None:
    topic = kafka.topic(40)
    for partition in range(0, 40, 3):
        kafka.produce(topic, numbered(2), partition=partition)
    kafka.produce(topic, numbered(2), partition=1)
    kafka.produce(topic, numbered(2), partition=4)
    kafka.produce(topic, numbered(2), partition=7)
    job = Job(kafka.servers, topic)
    assert len(job.reader.partitions()) == 16
    assert len(job.rows()) == 2 * 17


def test_several_topics_are_read_by_pattern(kafka: Kafka) -> None:
    first, second = kafka.topic(), kafka.topic()
    kafka.produce(first, numbered(3))
    kafka.produce(second, numbered(2))
    named = {"kafka.bootstrap.servers": kafka.servers, "subscribePattern": f"{first}|{second}"}
    options = parse_source(named, streaming=False)
    reader = BatchReader(options, columns_of(options))
    found = [batch.column("topic").to_pylist() for task in reader.partitions() for batch in reader.read(task)]
    assert Counter(itertools.chain.from_iterable(found)) == {first: 3, second: 2}


def test_headers_are_null_where_a_record_has_none(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"a"], headers=[("trace", b"1"), ("empty", None)])
    kafka.produce(topic, [b"b"])
    kafka.produce(topic, [b"c"], headers=[("trace", b"")])
    job = Job(kafka.servers, topic, includeHeaders="true", columns="headers,value")
    assert [row["headers"] for row in job.rows()] == [
        [{"key": "trace", "value": b"1"}, {"key": "empty", "value": None}],
        None,
        [{"key": "trace", "value": b""}],
    ]


def test_times_are_resolved_to_offsets(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    for partition in (0, 1):
        for number in range(5):
            kafka.produce(topic, [b"x"], partition=partition, timestamp=1_000_000 + 1000 * number + 100 * partition)
    found = Job(kafka.servers, topic, startingTimestamp="1001050", endingTimestamp="1003100").offsets()
    assert found == [(0, 2), (0, 3), (1, 1), (1, 2)]
    by_partition = f'{{"{topic}":{{"0":1004000,"1":1003000}}}}'
    assert Job(kafka.servers, topic, startingOffsetsByTimestamp=by_partition).offsets() == [(0, 4), (1, 3), (1, 4)]


def test_a_time_after_the_last_record_is_an_error_or_the_end(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x"], timestamp=1000)
    with pytest.raises(ConfigurationError, match="has no record at that time or later"):
        Job(kafka.servers, topic, startingTimestamp="2000").rows()
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert Job(kafka.servers, topic, startingTimestamp="2000", **strategy).rows() == []


async def _transactions(servers: str, topic: str) -> None:
    async with Producer(servers, transactional_id=f"t-{topic}") as producer:
        for number in range(4):
            try:
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number, partition=0)
                    if number % 2:
                        raise _GivenUpError
            except _GivenUpError:
                pass


class _GivenUpError(Exception):
    pass


def test_read_committed_ends_after_trailing_markers(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.run(lambda: _transactions(kafka.servers, topic))
    committed = Job(kafka.servers, topic, kafka__isolation__level="read_committed")
    assert [(row["offset"], row["value"]) for row in committed.rows()] == [(0, b"0"), (4, b"2")]
    assert [row["value"] for row in Job(kafka.servers, topic).rows()] == numbered(4)
    tail = f'{{"{topic}":{{"0":5}}}}'
    assert Job(kafka.servers, topic, kafka__isolation__level="read_committed", startingOffsets=tail).rows() == []


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(kafka: Kafka, codec: str) -> None:
    topic = kafka.topic()

    async def produce() -> None:
        async with Producer(kafka.servers, compression_type=codec) as producer:
            for value in numbered(200):
                await producer.submit(topic, value, partition=0)

    kafka.run(produce)
    assert [row["value"] for row in Job(kafka.servers, topic).rows()] == numbered(200)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_a_missing_topic_is_named(kafka: Kafka) -> None:
    with pytest.raises(ConfigurationError, match="topic 'nowhere' does not exist"):
        Job(kafka.servers, "nowhere", kafka__default__api__timeout__ms="200").reader.partitions()


def test_partitions_that_the_offsets_do_not_name_are_read_from_start_to_end(kafka: Kafka) -> None:
    topic = kafka.topic(3)
    for partition in range(3):
        kafka.produce(topic, numbered(4), partition)
    places = {"startingOffsets": f'{{"{topic}":{{"1":3}}}}', "endingOffsets": f'{{"{topic}":{{"2":1}}}}'}
    rows = Job(kafka.servers, topic, **places).rows()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 0),
    ]  # fmt: skip


def test_offsets_of_a_missing_assigned_partition_are_ignored(kafka: Kafka) -> None:
    topic = kafka.topic(1)
    kafka.produce(topic, numbered(4))
    chosen = {"assign": f'{{"{topic}":[0,5]}}', "startingOffsets": f'{{"{topic}":{{"0":2,"5":7}}}}'}
    assert [row["offset"] for row in Job(kafka.servers, None, **chosen).rows()] == [2, 3]


def test_offsets_name_no_other_partition_and_times_name_each(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    everything = f'{{"{topic}":{{"0":0,"1":0}},"elsewhere":{{"0":1}}}}'
    with pytest.raises(ConfigurationError, match=r"names elsewhere\[0\], which is not read"):
        Job(kafka.servers, topic, startingOffsets=everything).reader.partitions()
    with pytest.raises(ConfigurationError, match=rf"must name every partition: {topic}\[1\] is missing"):
        Job(kafka.servers, topic, startingOffsetsByTimestamp=f'{{"{topic}":{{"0":5}}}}').reader.partitions()


def test_missing_offsets_fail_or_are_skipped(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(10))
    beyond = f'{{"{topic}":{{"0":20}}}}'
    with pytest.raises(LostData, match=rf"{topic}\[0\]: offsets 10 to 19 cannot be read: the log ends at 10"):
        Job(kafka.servers, topic, endingOffsets=beyond).rows()
    assert len(Job(kafka.servers, topic, endingOffsets=beyond, onDataLoss="skip").rows()) == 10
    assert not caplog.records
    assert len(Job(kafka.servers, topic, endingOffsets=beyond, failOnDataLoss="false").rows()) == 10
    assert "data loss" in caplog.text


def test_a_topic_recreated_after_planning_is_lost_data(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, numbered(10))
    job = Job(kafka.servers, topic)
    tasks = job.reader.partitions()
    kafka.delete(topic)
    kafka.create(topic)
    kafka.produce(topic, numbered(10))
    with pytest.raises(LostData, match="deleted and recreated"):
        list(job.reader.read(tasks[0]))


def test_a_reader_that_stops_early_leaves_the_connection_to_the_next(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x" * 1000] * 3000)
    job = Job(kafka.servers, topic, kafka__max__partition__fetch__bytes="100000")
    reading = job.reader.read(job.reader.partitions()[0])
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # Spark closes the generator
    assert len(job.rows()) == 3000


def test_a_task_waits_for_a_broker_killed_during_the_read(tmp_path: Path) -> None:
    with broker_process("--data-dir", str(tmp_path)) as servers:
        kafka = Kafka(servers)
        kafka.create("orders")
        kafka.produce("orders", [b"%d" % number + b"x" * 1000 for number in range(30_000)])
        job = Job(servers, "orders", kafka__max__partition__fetch__bytes="100000", columns="offset")
        (task,) = job.reader.partitions()
        reading = job.reader.read(task)
        first = next(reading)
    with broker_process("--data-dir", str(tmp_path), listen=servers):
        rest = list(reading)
    offsets = [offset for batch in (first, *rest) for offset in batch.column("offset").to_pylist()]
    assert offsets == list(range(30_000))


def test_an_error_names_unreachable_servers() -> None:
    job = Job("127.0.0.1:1", "orders", kafka__default__api__timeout__ms="300")
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
        job.reader.partitions()
