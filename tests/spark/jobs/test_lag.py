"""The lag of a query, read from the files of its checkpoint and of spark-sql-kafka's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from aiokwire.cli.main import cli
from aiokwire.errors import ConfigurationError
from aiokwire.spark import compat
from aiokwire.spark.jobs.lag import Position
from aiokwire.spark.pipelines import PartitionLag, lag, read_positions
from aiokwire.types import TopicPartition
from tests.spark.conftest import Kafka


def checkpoint(folder: Path, ends: list[list[str]], *, done: int) -> Path:
    """Write a checkpoint with the end of each microbatch by source.

    The first `done` are finished.
    """
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for number, sources in enumerate(ends):
        (folder / "offsets" / str(number)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *sources]))
        (folder / "offsets" / f".{number}.crc").write_bytes(b"\0")
        if number < done:
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder


def test_a_query_is_at_the_end_of_its_last_finished_batch(tmp_path: Path) -> None:
    ends = [['{"orders":{"0":3,"1":5}}'], ['{"orders":{"0":9,"1":5}}'], ['{"orders":{"0":12,"1":5}}']]
    found = read_positions(checkpoint(tmp_path, ends, done=2))
    orders = {TopicPartition("orders", 0): 9, TopicPartition("orders", 1): 5}
    assert found == [Position("", 0, 1, orders)]


def test_sources_other_than_kafka_and_the_entry_of_topic_ids_are_ignored(tmp_path: Path) -> None:
    ids = '{"@aiokwire":{"ids":{"a":"00"},"v":1},"a":{"0":7}}'
    found = read_positions(checkpoint(tmp_path, [["-", "12", '{"logOffset":3}', ids]], done=1))
    assert found == [Position("", 3, 0, {TopicPartition("a", 0): 7})]


def test_an_error_names_a_directory_that_is_not_a_checkpoint(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigurationError, match=f"'{place}' is not the checkpoint of a streaming query"):
            read_positions(place)


def test_the_lag_command_shows_each_query_of_a_pipeline(kafka: Kafka, tmp_path: Path) -> None:
    topic = kafka.topic(2)
    kafka.produce(topic, [b"x"] * 10, 0)
    checkpoint(tmp_path / "fast", [[json.dumps({topic: {"0": 10, "1": 0}})]], done=1)
    checkpoint(tmp_path / "slow", [[json.dumps({topic: {"0": 4, "7": 3}})]], done=1)
    checkpoint(tmp_path / "begun", [[json.dumps({topic: {"0": 4}})]], done=0)
    (tmp_path / "_other").mkdir()
    command = ["spark", "lag", str(tmp_path), "-b", kafka.servers]
    shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines() == [
        "query\tsource\tbatch\ttopic\tpartition\tposition\tend\tlag",
        f"begun\t0\t-1\t{topic}\t0\t-\t10\t-",
        f"fast\t0\t0\t{topic}\t0\t10\t10\t0",
        f"fast\t0\t0\t{topic}\t1\t0\t0\t0",
        f"slow\t0\t0\t{topic}\t0\t4\t10\t6",
        f"slow\t0\t0\t{topic}\t7\t3\t-\t-",
    ]
    rows = [json.loads(line) for line in CliRunner().invoke(cli, [*command, "--json"]).output.splitlines()]
    assert [row["lag"] for row in rows] == [None, 0, 0, 6, None]
    assert CliRunner().invoke(cli, [*command, "--max-lag", "6"]).exit_code == 0
    assert CliRunner().invoke(cli, [*command, "--max-lag", "5"]).exit_code == 1


@pytest.mark.timeout(120)
@pytest.mark.skipif(not compat.HAS_STREAM_READS, reason="streams are read from PySpark 4.2 on")
def test_a_checkpoint_and_its_query_report_the_same_lag(kafka: Kafka, spark: SparkSession, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [b"x"] * 10)
    reader = spark.readStream.format("aiokwire").option("kafka.bootstrap.servers", kafka.servers)
    frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    query = frame.writeStream.format("noop").queryName("copy").option("checkpointLocation", str(tmp_path))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination(60)
    kafka.produce(topic, [b"x"] * 3)
    assert lag(tmp_path, bootstrap=kafka.servers) == [PartitionLag("", 0, 0, topic, 0, 10, 13)]
    (found,) = lag(running, bootstrap=kafka.servers)
    assert (found.query, found.position, found.lag) == ("copy", 10, 3)
