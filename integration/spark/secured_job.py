"""A driver on a broker with TLS and logins, for `test_secured.py`: sources, sinks and pipelines.

`python -m integration.spark.secured_job FILE` reads its work, which has passwords, from a file. It
prints a line of JSON for each step, and waits before its end until the file `stop` exists.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from aiokwire.errors import KafkaError
from aiokwire.spark.pipelines import Progress, Stop, archive, prepare, spark_session, sql
from integration.spark.cluster import wait_until
from integration.spark.driver import PATIENCE

ROWS: Final = 20
SERVERS: Final = "kafka.bootstrap.servers"
UI: Final = ("environment", "jobs", "stages", "executors", "sql?details=true&planDescription=true&length=1000")
PAGES: Final = ("SQL", "environment", "StreamingQuery")
DECLARED: Final = """
name = "${prefix}loud"
[sources.rows]
topic = "${prefix}rows"
string = true
[steps.counted]
sql = "select upper(value) as value from rows"
[sinks.loud]
from = "counted"
topic = "${prefix}loud"
delivery = "exactly-once"
"""

Options = dict[str, str]


@dataclasses.dataclass(frozen=True)
class Work:
    """The topics, options and directory of the job."""

    conf: Options
    folder: str
    prefix: str
    """Of topics and sinks."""
    good: Options
    wrong: Options
    """With a wrong password."""
    logins: dict[str, Options]
    """Other ways to log in, by name."""

    @property
    def place(self) -> Path:
        return Path(self.folder)

    @property
    def stop_file(self) -> Path:
        return self.place / "stop"


class Job:
    """The steps of the job."""

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._spark = spark
        self._work = work

    def read(self, options: Options) -> DataFrame:
        rows = self._spark.read.format("aiokwire").options(**options)
        return rows.option("subscribe", f"{self._work.prefix}rows").load()

    def write(self, options: Options, topic: str) -> None:
        rows = self._spark.range(ROWS, numPartitions=2).selectExpr("cast(id as string) as value")
        rows.write.format("aiokwire").mode("append").options(**options).option(
            "topic", self._work.prefix + topic
        ).save()

    def copy(self, source: Options, sink: Options, topic: str) -> StreamingQuery:
        """Copy the rows to a topic as a stream, and return the ended query."""
        rows = self._spark.readStream.format("aiokwire").options(**source).option("startingOffsets", "earliest")
        frame = rows.option("subscribe", f"{self._work.prefix}rows").load().selectExpr("value")
        writer = frame.writeStream.format("aiokwire").options(**sink).option("topic", self._work.prefix + topic)
        checkpoint = str(self._work.place / "checkpoints" / topic)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(int(PATIENCE))
        finally:
            query.stop()
        return query

    def exactly_once(self, topic: str, options: Options, *, run: str = "") -> Options:
        """Return the options of an exactly-once sink, of `df.write` if it has a run."""
        found = {**options, "delivery": "exactly-once", "sink.id": self._work.prefix + topic}
        return found | ({"run.id": run} if run else {})

    def archived(self, options: Options, folder: str) -> int:
        bootstrap, others = options[SERVERS], without_servers(options)
        path = str(self._work.place / folder)
        return archive(f"{self._work.prefix}rows", path, bootstrap=bootstrap, options=others, spark=self._spark).records

    # the steps

    def batches(self) -> None:
        good = self._work.good
        self.write(good, "rows")
        self.write(self.exactly_once("batch", good, run="1"), "batch")
        rows = self.read(good)
        report("read", rows.count())
        for mode in ("extended", "formatted", "cost"):
            rows.explain(mode)

    def streams(self) -> None:
        good = self._work.good
        for topic, sink in (("stream", good), ("once", self.exactly_once("once", good))):
            query = self.copy(good, sink, topic)
            query.explain(True)
            progress: Any = query.lastProgress
            print("progress", " ".join(progress.json.split()), query.status)
            report(topic, progress.numInputRows)

    def pipelines(self) -> None:
        work = self._work
        report("archived", self.archived(work.good, "lake"))
        servers, connection = work.good[SERVERS], without_servers(work.good)
        query = sql(f"select count(*) as rows from `{work.prefix}rows`", bootstrap=servers, options=connection)
        query.frame.explain("extended")
        report("sql", query.frame.collect()[0].rows)
        declared = work.place / "loud.toml"
        declared.write_text(DECLARED)
        prepared = prepare(
            declared,
            parameters={"prefix": work.prefix},
            bootstrap=servers,
            checkpoint=str(work.place / "checkpoints" / "loud"),
            connection=connection,
        )
        print(prepared.explain(self._spark, plan=True))
        report("run", prepared.run(self._spark, Stop(), Progress("loud", quiet=True)).rows_read)

    def logins(self) -> None:
        for name, options in self._work.logins.items():
            report(name, self.read(options).count())

    def refused(self) -> None:
        """Run each kind of job with a wrong password."""
        good, wrong = self._work.good, self._work.wrong
        self._refused("batch source", lambda: self.read(wrong).count())
        self._refused("stream source", lambda: self.copy(wrong, good, "refused-1"))
        self._refused("batch sink", lambda: self.write(wrong, "batch"))
        self._refused("exactly-once batch sink", lambda: self.write(self.exactly_once("x", wrong, run="2"), "batch"))
        self._refused("stream sink", lambda: self.copy(good, wrong, "refused-2"))
        once = self.exactly_once("x", wrong)
        self._refused("exactly-once stream sink", lambda: self.copy(good, once, "refused-3"))
        self._refused("archive", lambda: self.archived(wrong, "refused-4"))

    def _refused(self, name: str, job: Callable[[], object]) -> None:
        began = time.perf_counter()
        try:
            job()
        except (PySparkException, KafkaError) as error:
            report(f"refused {name}", [round(time.perf_counter() - began, 1), str(error)])

    def ui(self) -> None:
        """Save what Spark's user interface shows."""
        context = self._spark.sparkContext
        folder = self._work.place / "ui"
        folder.mkdir()
        api = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
        for name in UI:
            save(f"{api}/{name}", folder / name.partition("?")[0])
        for name in PAGES:
            save(f"{context.uiWebUrl}/{name}/", folder / f"{name}.html")


def without_servers(options: Options) -> Options:
    return {name: value for name, value in options.items() if name != SERVERS}


def save(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=60) as page:
        path.write_bytes(page.read())


def report(what: str, found: object) -> None:
    print(json.dumps({what: found}), flush=True)


def main(work: Work) -> None:
    settings = dict(work.conf)
    spark = spark_session("secured", master=settings.pop("spark.master"), conf=settings)
    spark.sparkContext.setLogLevel("INFO")
    job = Job(spark, work)
    for step in (job.batches, job.streams, job.pipelines, job.logins, job.refused, job.ui):
        began = time.perf_counter()
        step()
        report(f"seconds of {step.__name__}", round(time.perf_counter() - began, 1))
    report("done", True)
    wait_until(work.stop_file.exists, PATIENCE, "the file stop")
    spark.stop()


if __name__ == "__main__":
    main(Work(**json.loads(Path(sys.argv[1]).read_text())))
