"""The cost of exactly-once: microbatches of the same rows with either delivery guarantee.

`python -m integration.spark.delivery` starts Kafka 4.3.1 (or `--broker embedded`) and prints a line
for each shape: the median time of a microbatch with both guarantees, and the median ratio of
consecutive ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import uuid
from typing import Any, Final

import anyio
from pyspark.sql import DataFrame, SparkSession

from aiokwire import Admin
from aiokwire.spark import one_owner
from integration.embedded import at_full_speed

LEVELS: Final = ("at-least-once", "exactly-once")
TASKS: Final = 2
_WARM: Final = 2
"""The first microbatches of a query start processes and compile code: they are not measured."""


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    made: SparkSession = (
        builder.master(f"local[{TASKS}]")
        .appName("what exactly-once costs")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", str(TASKS))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def rows(spark: SparkSession, count: int, *, keyed: bool) -> DataFrame:
    """Return a stream with microbatches of `count` rows with values of 100 bytes."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", count).option("numPartitions", TASKS)
    value = "lpad(cast(value as string), 100, '0') as value"
    return source.load().selectExpr(*(["cast(value as string) as key"] if keyed else []), value)


def take(frame: DataFrame, servers: str, topic: str, level: str, batches: int) -> list[int]:
    """Return the milliseconds of each microbatch of one query."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            frame.writeStream.format("aiokwire")
            .option("kafka.bootstrap.servers", servers)
            .option("kafka.compression.type", "lz4")
            .option("topic", topic)
            .option("delivery", level)
            .option("checkpointLocation", checkpoint)
            .option("sink.id" if level == LEVELS[1] else "kafka.client.id", f"sink-{uuid.uuid4().hex[:8]}")
            .start()
        )
        try:
            found: dict[int, int] = {}
            while len(found) < batches + _WARM:
                for progress in query.recentProgress:
                    if progress["numInputRows"]:
                        found[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
                query.awaitTermination(1)
        finally:
            query.stop()
    return [found[number] for number in sorted(found)][_WARM:]


def compare(
    spark: SparkSession, servers: str, topic: str, count: int, *, keyed: bool, turns: int, batches: int
) -> dict[str, Any]:
    """Alternate between both guarantees; every second turn starts with the other one."""
    times: dict[str, list[float]] = {level: [] for level in LEVELS}
    ratios: list[float] = []
    for turn in range(turns):
        medians: dict[str, float] = {}
        for level in LEVELS[:: 1 if turn % 2 == 0 else -1]:
            frame = rows(spark, count, keyed=keyed)
            if keyed and level == LEVELS[1]:
                frame = one_owner(frame, TASKS)
            taken = take(frame, servers, topic, level, batches)
            medians[level] = statistics.median(taken)
            times[level] += taken
        ratios.append(medians[LEVELS[1]] / medians[LEVELS[0]])
    found = {level: statistics.median(times[level]) for level in LEVELS}
    return {"rows": count, "keyed": keyed, **found, "ratio": statistics.median(ratios), "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="4.3.1")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--keyed", action="store_true")
    options = parser.parse_args()
    with at_full_speed(options.broker) as server:
        spark = session()

        async def create(topic: str) -> None:
            async with Admin(server.bootstrap_servers) as admin:
                await admin.create_topic(topic, TASKS, replication_factor=1, configs={"retention.bytes": "100000000"})

        for count in options.rows:
            topic = f"out-{count}"
            anyio.run(create, topic)
            print(
                json.dumps(
                    compare(
                        spark,
                        server.bootstrap_servers,
                        topic,
                        count,
                        keyed=options.keyed,
                        turns=options.turns,
                        batches=options.batches,
                    )
                ),
                flush=True,
            )
        spark.stop()


if __name__ == "__main__":
    main()
