"""A driver on a cluster, for `test_cluster.py`: batches, an archive, and a stream.

`python -m integration.spark.cluster_job JSON` prints its results, a line of JSON for each step.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from aiokwire.spark.pipelines import archive
from integration.spark.cluster import CONF
from integration.spark.query import Copy, run


@dataclasses.dataclass(frozen=True)
class Work:
    """The topics and the directory of the job."""

    master: str
    servers: str
    source: str
    batch: str
    stream: str
    folder: str

    def copy(self) -> Copy:
        """Return the stream from topic to topic, exactly once."""
        return Copy(self.servers, self.source, self.stream, self.folder)


def session(master: str) -> SparkSession:
    builder: Any = SparkSession.builder
    for name, value in CONF.items():
        builder = builder.config(name, value)
    made: SparkSession = builder.master(master).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def places(_: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Return the paths of an executor's Python and of its aiokwire."""
    import aiokwire

    yield sys.executable, aiokwire.__file__


def main(work: Work) -> None:
    spark = session(work.master)
    report("executors", spark.sparkContext.parallelize(range(4), 4).mapPartitions(places).collect())
    source = spark.read.format("aiokwire").option("kafka.bootstrap.servers", work.servers)
    rows = source.option("subscribe", work.source).load()
    report("read", rows.count())
    sink = rows.select("value").write.format("aiokwire").mode("append")
    sink.option("kafka.bootstrap.servers", work.servers).option("topic", work.batch).save()
    report("archived", archive(work.source, f"{work.folder}/lake", bootstrap=work.servers, spark=spark).records)
    report("streaming", 0)
    run(spark, work.copy())
    report("streamed", work.copy().committed())
    spark.stop()


def report(what: str, found: object) -> None:
    print(json.dumps({what: found}), flush=True)


if __name__ == "__main__":
    main(Work(**json.loads(sys.argv[1])))
