"""A streaming query of Spark, from topic to topic, exactly once; `spark_kills.py` kills it.

`python -m integration.spark.query JSON` prints its JVM's process id, and restarts the query after
each failure, as a supervisor does; once the file `stop` exists, it processes the remaining input
and ends.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


@dataclasses.dataclass(frozen=True)
class Copy:
    """The topics and the checkpoint of the query."""

    servers: str
    source: str
    topic: str
    folder: str

    @property
    def checkpoint(self) -> str:
        return str(pathlib.Path(self.folder) / "checkpoint")

    def committed(self) -> int:
        """Return the number of batches that Spark has noted as done."""
        return len([path for path in pathlib.Path(self.checkpoint, "commits").glob("*") if path.name.isdecimal()])

    def is_past(self, batches: int) -> bool:
        """Whether it has committed more than `batches`."""
        return self.committed() > batches

    @property
    def stop_file(self) -> pathlib.Path:
        return pathlib.Path(self.folder) / "stop"


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder
    made: SparkSession = (
        builder.master("local[2]")
        .appName("copies rows until it is killed")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def start(spark: SparkSession, copy: Copy) -> StreamingQuery:
    servers = copy.servers
    source = spark.readStream.format("aiokwire").option("kafka.bootstrap.servers", servers)
    frame = source.option("subscribe", copy.source).option("startingOffsets", "earliest").load()
    return (
        frame.selectExpr("value")
        .writeStream.format("aiokwire")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.batch.size", "200")  # so that a task sends several requests
        .option("topic", copy.topic)
        .option("delivery", "exactly-once")
        .option("sink.id", copy.topic)
        .option("checkpointLocation", copy.checkpoint)
        .start()
    )


def run(spark: SparkSession, copy: Copy) -> None:
    while True:
        try:
            query = start(spark, copy)
            print("started", query.runId, flush=True)
            while not query.awaitTermination(1):
                if copy.stop_file.exists():
                    query.processAllAvailable()
                    query.stop()
                    return
        except StreamingQueryException as error:
            print("failed", str(error).splitlines()[0], flush=True)


def main() -> None:
    spark = session()
    gateway: Any = spark.sparkContext._gateway
    print("jvm", gateway.proc.pid, flush=True)
    run(spark, Copy(**json.loads(sys.argv[1])))


if __name__ == "__main__":
    main()
