"""Logins from Spark, and that no plan, checkpoint, event log or error shows their passwords."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from aiokwire.broker import Listener
from aiokwire.spark import compat
from aiokwire.spark.options import parse_sink, parse_source
from aiokwire.spark.pipelines import Pipeline
from aiokwire.spark.pipelines.explain import as_text
from aiokwire.testing import ThreadedBroker

PASSWORD = "s3cr3t-wonder"
MOST_LOGINS = 3  # of a task, and of the abort of its batch
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

Options = dict[str, str]


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    listener = Listener(protocol="SASL_PLAINTEXT", mechanisms=["SCRAM-SHA-512"])
    with ThreadedBroker(listeners=[listener], users={"alice": PASSWORD}) as broker:
        broker.create_topic("orders", 2)
        broker.create_topic("copies", 2)
        yield broker


def login(broker: ThreadedBroker, password: str = PASSWORD) -> Options:
    return {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{SCRAM} required username="alice" password="{password}";',
    }


def event_log(spark: SparkSession) -> str:
    folder = pathlib.Path(urlsplit(spark.sparkContext.getConf().get("spark.eventLog.dir") or "").path)
    return "".join(path.read_text(errors="replace") for path in sorted(folder.rglob("events_*")))


@pytest.mark.timeout(180)
def test_spark_logs_in_and_shows_no_password(
    spark: SparkSession, broker: ThreadedBroker, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = login(broker)
    rows = spark.range(6).selectExpr("cast(id as string) as value")
    rows.write.format("aiokwire").mode("append").options(**options, topic="orders").save()
    read = spark.read.format("aiokwire").options(**options, subscribe="orders").load()
    assert read.count() == 6
    for mode in ("extended", "formatted", "cost"):
        read.explain(mode=mode)
    if compat.HAS_STREAM_READS:
        _copy(spark, options, tmp_path / "checkpoint")
        assert len(broker.records("copies")) == 6
    shown = capfd.readouterr()
    assert "aiokwire" in shown.out, "the plans were printed"
    log = event_log(spark)
    assert "SparkListenerSQLExecutionStart" in log
    for text in (shown.out, shown.err, log):
        assert PASSWORD not in text
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes(), path


def _copy(spark: SparkSession, options: Options, checkpoint: pathlib.Path) -> None:
    source = spark.readStream.format("aiokwire").options(**options, subscribe="orders", startingOffsets="earliest")
    sink = source.load().selectExpr("value").writeStream.format("aiokwire").options(**options, topic="copies")
    exactly_once = {"delivery": "exactly-once", "sink.id": "copies", "checkpointLocation": str(checkpoint)}
    query = sink.options(**exactly_once).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
        query.explain(True)
        assert PASSWORD not in str(query.lastProgress)
    finally:
        query.stop()


class Jobs:
    """Jobs of each kind; a stream copies `orders` to `copies`."""

    def __init__(self, spark: SparkSession, good: Options, bad: Options, folder: pathlib.Path) -> None:
        self._spark = spark
        self._good = good
        self._bad = bad
        self._folder = folder
        self._rows = spark.range(2).selectExpr("cast(id as string) as value")

    def batch_source(self) -> None:
        self._spark.read.format("aiokwire").options(**self._bad, subscribe="orders").load().count()

    def stream_source(self) -> None:
        self._stream(self._bad, self._good)

    def batch_sink(self, **options: str) -> None:
        writer = self._rows.coalesce(1).write.format("aiokwire").mode("append")
        writer.options(**self._bad, topic="copies", **options).save()

    def batch_sink_exactly_once(self) -> None:
        self.batch_sink(**EXACTLY_ONCE, **{"run.id": "1"})

    def stream_sink(self) -> None:
        self._stream(self._good, self._bad)

    def stream_sink_exactly_once(self) -> None:
        self._stream(self._good, self._bad, **EXACTLY_ONCE)

    def _stream(self, source: Options, sink: Options, **options: str) -> None:
        self._rows.write.format("aiokwire").mode("append").options(**self._good, topic="orders").save()
        orders = self._spark.readStream.format("aiokwire").options(**source, subscribe="orders")
        rows = orders.option("startingOffsets", "earliest").load().selectExpr("value").coalesce(1)
        writer = rows.writeStream.format("aiokwire").options(**sink, topic="copies", **options)
        query = writer.option("checkpointLocation", str(self._folder)).trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(100)
        finally:
            query.stop()


EXACTLY_ONCE = {"delivery": "exactly-once", "sink.id": "copies"}
JOBS = [
    Jobs.batch_source,
    Jobs.batch_sink,
    Jobs.batch_sink_exactly_once,
    *([Jobs.stream_source] if compat.HAS_STREAM_READS else []),
    *([Jobs.stream_sink, Jobs.stream_sink_exactly_once] if compat.HAS_STREAM_READS else []),
]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_a_refused_password_is_one_sentence_after_a_few_logins(
    spark: SparkSession,
    broker: ThreadedBroker,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    job: Callable[[Jobs], None],
) -> None:
    wrong = "wrong-" + PASSWORD
    with caplog.at_level("INFO", "aiokwire.broker"), pytest.raises(PySparkException) as raised:
        job(Jobs(spark, login(broker), login(broker, wrong), tmp_path))
    message = str(raised.value)
    assert message.count("AuthenticationFailed") == 1
    assert "the login by SCRAM-SHA-512 failed" in message
    assert "Traceback" not in message
    assert PASSWORD not in message
    failed = [record for record in caplog.records if "at listener" in record.getMessage()]
    assert 1 <= len(failed) <= MOST_LOGINS


def test_parsed_options_hide_secrets(broker: ThreadedBroker) -> None:
    for parsed in (
        parse_source({**login(broker), "subscribe": "orders"}, streaming=False),
        parse_sink({**login(broker), "topic": "copies"}),
    ):
        assert "sasl_plain_password=***" in repr(parsed)
        assert PASSWORD not in repr(parsed)


def test_a_drawing_of_a_pipeline_hides_secrets(broker: ThreadedBroker) -> None:
    pipeline = Pipeline(name="copy").read("orders", options=login(broker)).write("copies", options=login(broker))
    drawing = as_text(pipeline, {})
    assert drawing.count("kafka.sasl.jaas.config = ***") == 2
    assert PASSWORD not in drawing
