"""Spark's own Kafka source and ours on the same topics: the same rows and offsets, and a checkpoint that moves."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from aiokwire import Producer
from aiokwire.clock import wall_ms
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.kafka import MissingPrerequisite, libs

pytestmark = pytest.mark.timeout(300)

JARS = "spark-4.2.0"
START = wall_ms() - 3_600_000  # not so long ago that retention takes it away


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    try:
        jars = libs(JARS)
    except MissingPrerequisite as missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"missing: {missing}")
    builder: Any = SparkSession.builder
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            builder.master("local[2]")
            .appName("aiokwire beside spark-sql-kafka")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.jars", ",".join(map(str, sorted(jars.glob("*.jar")))))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def options(broker: BrokerUnderTest, topic: str, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "includeHeaders": "true"}
    return given | {name.replace("__", "."): text for name, text in more.items()}


def both(spark: SparkSession, given: dict[str, str]) -> tuple[DataFrame, DataFrame]:
    theirs, ours = (spark.read.format(name).options(**given).load() for name in ("kafka", "aiokwire"))
    assert ours.schema == theirs.schema
    return theirs, ours


def rows(frame: DataFrame) -> list[Row]:
    """In the order of the partitions; within one, as they came."""
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition))


async def fill(servers: str, topic: str, codec: str = "none") -> None:
    async with Producer(servers, compression_type=codec) as producer:
        for partition in range(PARTITIONS):
            for number in range(40):
                await producer.submit(
                    topic,
                    None if number % 7 == 3 else b"value %d" % number,
                    key=None if number % 3 else b"key %d" % number,
                    headers=[("a", b"%d" % number), ("a", None), ("\u00e4", b"")] if number % 4 == 1 else [],
                    timestamp=START + 1_000 * number,
                    partition=partition,
                )
            await producer.flush()


class _GivenUpError(Exception):
    pass


async def transact(servers: str, topic: str) -> None:
    async with Producer(servers, transactional_id=f"id-{topic}") as producer:
        for turn in range(6):
            try:
                async with producer.transaction():
                    for number in range(5):
                        await producer.send(topic, b"%d %d" % (turn, number), partition=turn % 2)
                    if turn % 3 == 1:
                        raise _GivenUpError
            except _GivenUpError:
                pass


def test_the_rows_are_the_same(spark: SparkSession, modern_broker: BrokerUnderTest) -> None:
    topic = modern_broker.create("rows")
    for codec in ("none", "lz4"):
        asyncio.run(fill(modern_broker.bootstrap_servers, topic, codec))
    theirs, ours = both(spark, options(modern_broker, topic))
    assert len(rows(ours)) == 2 * 40 * PARTITIONS
    assert rows(ours) == rows(theirs)


@pytest.mark.parametrize(
    "more",
    [
        {"startingTimestamp": str(START + 5_500), "endingTimestamp": str(START + 20_000)},
        {"minPartitions": "7"},
        {"maxRecordsPerPartition": "9"},
    ],
    ids=["times", "minPartitions", "maxRecordsPerPartition"],
)
def test_the_rows_are_the_same_by_option(spark: SparkSession, embedded: BrokerUnderTest, more: dict[str, str]) -> None:
    topic = embedded.create("part")
    asyncio.run(fill(embedded.bootstrap_servers, topic))
    theirs, ours = both(spark, options(embedded, topic, **more))
    assert ours.count() > 0
    key = ("partition", "offset")
    assert ours.orderBy(*key).collect() == theirs.orderBy(*key).collect()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_gaps_of_transactions_are_the_same(
    spark: SparkSession, modern_broker: BrokerUnderTest, isolation: str
) -> None:
    topic = modern_broker.create("gaps")
    asyncio.run(transact(modern_broker.bootstrap_servers, topic))
    theirs, ours = both(spark, options(modern_broker, topic, kafka__isolation__level=isolation))
    assert len(rows(ours)) == (20 if isolation == "read_committed" else 30)
    assert rows(ours) == rows(theirs)


def test_a_checkpoint_moves_and_the_query_goes_on(
    spark: SparkSession, modern_broker: BrokerUnderTest, tmp_path: Path
) -> None:
    topic = modern_broker.create("moves")
    checkpoint, out = tmp_path / "checkpoint", tmp_path / "out"

    def run(source: str) -> dict[str, dict[str, int]]:
        given = options(modern_broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="100")
        frame = spark.readStream.format(source).options(**given).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(out))
        assert query.awaitTermination(120)
        newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        found: dict[str, dict[str, int]] = json.loads(newest.read_text().splitlines()[-1])
        return found

    asyncio.run(fill(modern_broker.bootstrap_servers, topic))
    assert run("kafka") == {topic: {str(partition): 40 for partition in range(PARTITIONS)}}
    asyncio.run(fill(modern_broker.bootstrap_servers, topic))
    assert run("aiokwire") == {topic: {str(partition): 80 for partition in range(PARTITIONS)}}
    asyncio.run(fill(modern_broker.bootstrap_servers, topic))
    assert run("kafka") == {topic: {str(partition): 120 for partition in range(PARTITIONS)}}, "and back"
    found = [(row.partition, row.offset) for row in spark.read.parquet(str(out)).collect()]
    assert sorted(found) == [(partition, offset) for partition in range(PARTITIONS) for offset in range(120)]
