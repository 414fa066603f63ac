"""Spark's own Kafka source and ours: equal rows and offsets, and a shared checkpoint."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from aiokwire import Admin, Producer
from aiokwire.clock import wall_ms
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.kafka import MissingPrerequisite, libs

pytestmark = pytest.mark.timeout(300)

JARS = "spark-4.2.0"
START = wall_ms() - 3_600_000  # recent enough that retention keeps the records


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
    """Return the rows ordered by partition, and in the order of the frame within a partition."""
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


def test_the_rows_are_equal(spark: SparkSession, modern_broker: BrokerUnderTest) -> None:
    topic = modern_broker.create("rows")
    for codec in ("none", "lz4"):
        asyncio.run(fill(modern_broker.bootstrap_servers, topic, codec))
    theirs, ours = both(spark, options(modern_broker, topic))
    found = rows(ours)
    assert len(found) == 2 * 40 * PARTITIONS
    assert [(row.partition, row.offset) for row in found] == sorted((row.partition, row.offset) for row in found)
    assert found == rows(theirs)


def test_the_rows_of_several_topics_are_equal_without_headers(
    spark: SparkSession, modern_broker: BrokerUnderTest
) -> None:
    topics = [modern_broker.create("several") for _ in range(2)]
    for topic in topics:
        asyncio.run(fill(modern_broker.bootstrap_servers, topic))
    pattern = {"subscribePattern": "|".join(topics), "includeHeaders": "false"}
    given = {name: text for name, text in options(modern_broker, "").items() if name != "subscribe"} | pattern
    theirs, ours = both(spark, given)
    assert "headers" not in ours.columns
    assert len(rows(ours)) == 2 * 40 * PARTITIONS
    assert rows(ours) == rows(theirs)
    wanted = {topics[0]: [0, 2], topics[1]: [3]}
    del given["subscribePattern"]
    theirs, ours = both(spark, given | {"assign": json.dumps(wanted)})
    assert {(row.topic, row.partition) for row in rows(ours)} == {(t, n) for t, found in wanted.items() for n in found}
    assert rows(ours) == rows(theirs)


def test_the_rows_of_log_append_times_and_of_a_truncated_log_are_equal(
    spark: SparkSession, modern_broker: BrokerUnderTest
) -> None:
    servers, topic = modern_broker.bootstrap_servers, f"late-{uuid.uuid4().hex[:8]}"

    async def prepare() -> None:
        async with Admin(servers) as admin:
            configs = {"message.timestamp.type": "LogAppendTime"}
            await admin.create_topic(topic, PARTITIONS, replication_factor=1, configs=configs)
        await fill(servers, topic)

    asyncio.run(prepare())
    client = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    for deleted in client.delete_records([confluent_kafka.TopicPartition(topic, 1, 17)]).values():
        assert deleted.result(30).low_watermark == 17
    theirs, ours = both(spark, options(modern_broker, topic))
    assert {row.timestampType for row in rows(ours)} == {1}
    assert len(rows(ours)) == 40 * PARTITIONS - 17
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
def test_the_rows_are_equal_by_option(spark: SparkSession, embedded: BrokerUnderTest, more: dict[str, str]) -> None:
    topic = embedded.create("part")
    asyncio.run(fill(embedded.bootstrap_servers, topic))
    theirs, ours = both(spark, options(embedded, topic, **more))
    assert ours.count() > 0
    key = ("partition", "offset")
    assert ours.orderBy(*key).collect() == theirs.orderBy(*key).collect()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_gaps_of_transactions_are_equal(
    spark: SparkSession, modern_broker: BrokerUnderTest, isolation: str
) -> None:
    topic = modern_broker.create("gaps")
    asyncio.run(transact(modern_broker.bootstrap_servers, topic))
    theirs, ours = both(spark, options(modern_broker, topic, kafka__isolation__level=isolation))
    assert len(rows(ours)) == (20 if isolation == "read_committed" else 30)
    assert rows(ours) == rows(theirs)


def test_the_offsets_are_equal(spark: SparkSession, modern_broker: BrokerUnderTest, tmp_path: Path) -> None:
    topic = modern_broker.create("text")
    asyncio.run(fill(modern_broker.bootstrap_servers, topic))
    asyncio.run(transact(modern_broker.bootstrap_servers, topic))

    def run(source: str, **more: str) -> tuple[list[str], int]:
        """Return each microbatch's offsets in the order of writing, and the number of rows."""
        checkpoint = tmp_path / uuid.uuid4().hex
        given = options(modern_broker, topic, **{"startingOffsets": "earliest", **more})
        frame = spark.readStream.format(source).options(**given).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        taken = sum(progress["numInputRows"] for progress in query.recentProgress)
        log = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        # PySpark writes JSON with spaces, Spark without
        return [json.dumps(json.loads(path.read_text().splitlines()[-1])) for path in log], taken

    theirs, ours = run("kafka"), run("aiokwire")
    assert ours == theirs
    start = json.dumps({topic: {"0": 3, "1": -2, "2": -1, "3": 39}})
    resumed = [run(source, startingOffsets=start) for source in ("kafka", "aiokwire")]
    assert resumed[0] == resumed[1]
    assert resumed[1][1] < ours[1]
    assert run("aiokwire", startingOffsets=theirs[0][-1])[1] == run("kafka", startingOffsets=ours[0][-1])[1] == 0


def test_the_written_records_are_equal(spark: SparkSession, modern_broker: BrokerUnderTest) -> None:
    frame = spark.range(200).selectExpr(
        "case when id % 5 = 0 then null else cast(concat('key ', id % 17) as binary) end as key",
        "case when id % 7 = 0 then null else cast(concat('value ', id) as binary) end as value",
        "case when id % 5 = 0 or id % 3 = 0 then cast(id % 4 as int) end as partition",
        "case when id % 4 = 1 then array(named_struct('key', 'a', 'value', cast(cast(id as string) as binary)), "
        "named_struct('key', 'a', 'value', cast(null as binary))) end as headers",
    )
    found = []
    for sink in ("kafka", "aiokwire"):
        topic = modern_broker.create("written")
        servers = {"kafka.bootstrap.servers": modern_broker.bootstrap_servers}
        frame.write.format(sink).mode("append").options(**servers, topic=topic).save()
        read, _ = both(spark, options(modern_broker, topic))
        kept = read.select("partition", "key", "value", "headers").collect()
        found.append(sorted(kept, key=lambda row: (row.partition, row.key or b"", row.value or b"", str(row.headers))))
    assert len(found[1]) == 200
    assert found[1] == found[0]


def test_a_query_resumes_with_the_other_source_from_its_checkpoint(
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
