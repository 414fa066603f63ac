"""Errors as users see them: invalid options through Spark, and brokers that stop and restart."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from aiokwire.errors import ConnectionFailed, RequestTimedOut
from aiokwire.spark import compat
from aiokwire.spark.options import parse_source
from aiokwire.spark.source.batch import BatchReader
from tests.spark.conftest import Kafka, Reads, broker_process, columns_of

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("no_sessions")]


def numbered(count: int) -> list[bytes | None]:
    return [b"%d" % number + b"x" * 1000 for number in range(count)]


# --- through Spark: the message of its exception ----------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an unknown option": ({"startingOfset": "earliest"}, "did you mean 'startingOffsets'"),
    "a value that cannot be": ({"minPartitions": "some"}, "minPartitions must be a positive number, not 'some'"),
    "a missing topic": (
        {"subscribe": "nowhere", "kafka.default.api.timeout.ms": "200"},
        "ConfigurationError.* topic 'nowhere' does not exist",
    ),
    "offsets beyond the log": ({"endingOffsets": '{"TOPIC":{"0":9}}'}, "LostData.* the log ends at 2"),
    "an undecodable record": (
        {"value.format": "string", "mode": "failfast"},
        r"UndecodableRecord.* at offset 1: cannot decode the value b'\\xff'",
    ),
    "a schema file that is not there": (
        {"value.format": "avro", "value.schema": "@/no/such/order.avsc"},
        r"value\.schema: cannot read the file '/no/such/order\.avsc'",
    ),
    "no broker": (
        {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "300"},
        r"ConnectionFailed.*127\.0\.0\.1:1",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_sparks_exception_shows_our_error(kafka: Kafka, read: Reads, case: str) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"good", b"\xff"])
    options, message = WRONG[case]
    given = {"subscribe": topic} | {name: text.replace("TOPIC", topic) for name, text in options.items()}
    with pytest.raises(PySparkException, match=f"(?s){message}"):
        read(**given).collect()


def test_an_invalid_option_is_one_sentence_at_load(kafka: Kafka, read: Reads) -> None:
    """Raised at load, not at the first action, and without a Python traceback."""
    for options, message in (
        ({"maxBytesPerPartition": "much"}, "maxBytesPerPartition must be a size such as 67108864"),
        ({"startingOffsets": "{"}, "startingOffsets must look like"),
        ({"kafka.fetch.max.bytes": "-x"}, "kafka.fetch.max.bytes must be a number"),
        ({"assign": '{"orders":[0]}'}, "one of subscribe, assign and subscribePattern must be set"),
    ):
        with pytest.raises(PySparkException, match=f"aiokwire.errors.ConfigurationError: {message}") as caught:
            read("orders", **options)
        assert "Traceback" not in str(caught.value)


def test_a_missing_topic_is_one_sentence(kafka: Kafka, read: Reads) -> None:
    with pytest.raises(PySparkException, match="ConfigurationError: topic 'nowhere' does not exist") as caught:
        read("nowhere", kafka__default__api__timeout__ms="200").collect()
    assert "Traceback" not in str(caught.value)


def start(spark: SparkSession, servers: str, topic: str, folder: Path, **options: str) -> None:
    frame = spark.readStream.format("aiokwire").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    out = frame.options(**options).load().writeStream.format("noop").trigger(availableNow=True)
    out.option("checkpointLocation", str(folder)).start().awaitTermination(60)


@pytest.mark.skipif(not compat.HAS_STREAM_READS, reason="streams are read from PySpark 4.2 on")
def test_an_invalid_option_of_a_stream_is_not_buried_by_spark(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    topic = kafka.topic()
    for options, message in (
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "must not be more than maxOffsetsPerTrigger"),
        ({"endingOffsets": "latest"}, "endingOffsets has no meaning in a stream"),
    ):
        with pytest.raises(PySparkException, match=f"aiokwire.errors.ConfigurationError: .*{message}") as caught:
            start(spark, kafka.servers, topic, tmp_path, **options)
        assert "UnboundLocalError" not in str(caught.value)
        assert "Traceback" not in str(caught.value)


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_undecodable_records_are_dead_lettered_and_the_job_continues(kafka: Kafka, read: Reads) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), {"id": 42})
    kafka.produce(topic, [out.getvalue(), b"\xff\xff", None])
    options = {"value.format": "avro", "value.schema": json.dumps(ORDER), "deadLetterTopic": dead}
    rows = read(topic, **options).select("offset", "value.id").collect()
    assert [tuple(row) for row in rows] == [(0, 42), (1, None), (2, None)]
    (letter,) = read(dead, includeHeaders="true").collect()
    assert letter.value == b"\xff\xff"
    assert {header.key: bytes(header.value) for header in letter.headers}["aiokwire.dead.offset"] == b"1"


@pytest.mark.skipif(not compat.HAS_STREAM_READS, reason="streams are read from PySpark 4.2 on")
def test_a_stream_survives_undecodable_records_and_ends_with_lost_data(
    kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    topic, dead = kafka.topic(), kafka.topic()
    kafka.produce(topic, [b'{"id":1}', b"{"])
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "columns": "value",
        "value.format": "json",
        "value.schema": "id int",
        "mode": "dropmalformed",
        "deadLetterTopic": dead,
    }

    def run() -> None:
        frame = spark.readStream.format("aiokwire").option("kafka.bootstrap.servers", kafka.servers)
        out = frame.options(**options).load().select("value.id").writeStream.format("parquet")
        out = out.option("checkpointLocation", str(tmp_path / "checkpoint"))
        out.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination(60)

    run()
    assert [row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [1]
    kafka.delete(topic)
    kafka.create(topic)
    with pytest.raises(PySparkException, match=rf"(?s)LostData.*{topic}\[0\]: .*the log ends at 0"):
        run()


# --- brokers ----------------------------------------------------------------------------------------------------------


def job(servers: str, **options: str) -> BatchReader:
    named = {"kafka.bootstrap.servers": servers, "subscribe": "orders", "columns": "offset"} | options
    parsed = parse_source(named, streaming=False)
    return BatchReader(parsed, columns_of(parsed))


def test_a_read_waits_for_a_broker_that_starts_later(kafka: Kafka, tmp_path: Path) -> None:
    """A failed plan does not affect the next one, which Spark makes when the action is repeated."""
    with broker_process("--data-dir", str(tmp_path)) as servers:
        Kafka(servers).create("orders")
        Kafka(servers).produce("orders", numbered(3))
    reader = job(servers, **{"kafka.default.api.timeout.ms": "300"})
    with pytest.raises(ConnectionFailed):
        reader.partitions()
    with broker_process("--data-dir", str(tmp_path), listen=servers):
        (task,) = reader.partitions()
        assert sum(batch.num_rows for batch in reader.read(task)) == 3


def test_a_task_without_a_broker_fails_and_names_its_position(tmp_path: Path) -> None:
    with broker_process() as servers:
        Kafka(servers).create("orders")
        Kafka(servers).produce("orders", numbered(3000))
        patience = {"kafka.default.api.timeout.ms": "500", "kafka.request.timeout.ms": "500"}
        reader = job(servers, **{"kafka.max.partition.fetch.bytes": "100000"}, **patience)
        (task,) = reader.partitions()
        reading = reader.read(task)
    with pytest.raises(RequestTimedOut, match=r"reading orders\[0\] at offset \d+"):
        list(reading)


def test_a_task_that_reaches_no_broker_names_the_servers(tmp_path: Path) -> None:
    with broker_process() as servers:
        Kafka(servers).create("orders")
        Kafka(servers).produce("orders", numbered(3))
        (task,) = job(servers).partitions()
    fresh = job(servers, **{"kafka.default.api.timeout.ms": "300"})
    with pytest.raises(ConnectionFailed, match=servers):
        list(fresh.read(task))
