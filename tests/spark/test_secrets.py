"""Logins from Spark, and that no plan, checkpoint, event log or error shows their passwords."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from aiokwire.broker import Listener
from aiokwire.spark import compat
from aiokwire.spark.options import parse_sink, parse_source
from aiokwire.spark.pipelines import Pipeline
from aiokwire.spark.pipelines.explain import as_text
from aiokwire.testing import ThreadedBroker

PASSWORD = "s3cr3t-wonder"
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


@pytest.mark.timeout(120)
def test_a_refused_password_is_not_in_the_error(spark: SparkSession, broker: ThreadedBroker) -> None:
    options = login(broker, "wrong-" + PASSWORD)
    with pytest.raises(Exception, match=r"(?i)authentication|login|password") as raised:
        spark.read.format("aiokwire").options(**options, subscribe="orders").load().count()
    assert PASSWORD not in str(raised.value)


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
