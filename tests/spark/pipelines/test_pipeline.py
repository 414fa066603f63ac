"""Whole pipelines on the embedded broker, through Spark."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from pyspark.sql import SparkSession

from aiokwire.errors import ConfigurationError, ConnectionFailed, KafkaError
from aiokwire.spark.pipelines import Pipeline, Progress, Stop, prepare, run
from aiokwire.spark.pipelines import pipeline as running
from aiokwire.spark.pipelines.pipeline import Tally
from aiokwire.spark.source import lookup
from tests.spark.conftest import Kafka, Reads

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("no_sessions")]

SCHEMA = "at timestamp, carrier string, delay int"


def hour_of(number: int) -> str:
    return f"2024-01-0{1 + number // 24}T{number % 24:02d}"


def flights(hours: range) -> list[bytes | None]:
    """Return two flights for each hour, alternating between two carriers."""
    found = [
        {"at": f"{hour_of(hour)}:{minute}:00Z", "carrier": "AB"[hour % 2], "delay": hour}
        for hour in hours
        for minute in (10, 50)
    ]
    return [json.dumps(flight).encode() for flight in found]


def totals(hours: range) -> list[dict[str, Any]]:
    """Return the totals that the pipeline should write for these hours."""
    return [
        {"key": carrier, "hour": f"{hour_of(hour)}:00:00.000Z", "carrier": carrier, "flights": 2, "mean": float(hour)}
        for hour in hours
        for carrier in "AB"[hour % 2]
    ]


def delays(source: str, sink: str, servers: str, folder: pathlib.Path) -> Pipeline:
    return (
        Pipeline.read(
            source, name="flights", json=SCHEMA, watermark={"at": "1 hour"}, options={"maxOffsetsPerTrigger": 30}
        )
        .sql(
            "select window.start as hour, carrier, count(*) as flights, avg(delay) as mean "
            "from flights group by window(at, '1 hour'), carrier",
            name="hourly",
        )
        .write(sink, name="totals", key="carrier", delivery="exactly-once")
        .write(parquet=str(folder / "lake"), name="lake", from_="flights", partition_by=("carrier",))
        .set(name="delays", bootstrap=servers, checkpoint=str(folder / "checkpoint"))
    )


def rows(read: Reads, topic: str) -> list[dict[str, Any]]:
    frame = read(topic, kafka__isolation__level="read_committed", key__format="string", value__format="string")
    return sorted(
        ({"key": row.key, **json.loads(row.value)} for row in frame.collect()), key=lambda found: str(found["hour"])
    )


def test_closed_windows_are_written_once_run_after_run(
    kafka: Kafka, spark: SparkSession, read: Reads, tmp_path: pathlib.Path
) -> None:
    source, sink = kafka.topic(2), kafka.topic(3)
    kafka.produce(source, flights(range(0, 20, 2)))
    kafka.produce(source, flights(range(1, 20, 2)), partition=1)
    pipeline = delays(source, sink, kafka.servers, tmp_path)
    first = run(pipeline, spark=spark)
    assert (first.rows_read, first.stopped, first.notes) == ({"totals": 40, "lake": 40}, False, ())
    assert first.rows_written == {"totals": 18, "lake": 40}, "19:50 closes what ended by 18:50"
    kafka.produce(source, flights(range(20, 26)))
    second = run(pipeline, spark=spark)
    assert (second.rows_read, second.rows_written["totals"]) == ({"totals": 12, "lake": 12}, 6)
    assert rows(read, sink) == totals(range(24))
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert lake.count() == 52
    assert sorted(path.name for path in (tmp_path / "lake").glob("carrier=*")) == ["carrier=A", "carrier=B"]


def test_when_one_sink_fails_the_others_end(kafka: Kafka, spark: SparkSession, tmp_path: pathlib.Path) -> None:
    source, sink = kafka.topic(1), kafka.topic(1)
    kafka.produce(source, flights(range(4)))
    pipeline = (
        Pipeline.read(source, name="flights", json=SCHEMA)
        .sql("select if(delay = 3, raise_error('too late'), carrier) as carrier from flights", name="broken")
        .write(sink, name="bad")
        .write(parquet=str(tmp_path / "lake"), name="good", from_="flights")
        .set(name="p", bootstrap=kafka.servers, checkpoint=str(tmp_path / "c"), trigger="every 1 second")
    )
    with pytest.raises(KafkaError, match=r"sink 'bad': .*too late"):
        run(pipeline, spark=spark)
    assert not spark.streams.active
    assert not spark.catalog.listTables()


class Watching(Progress):
    """Requests a stop after the first rows are written."""

    def __init__(self, stop: Stop) -> None:
        super().__init__("p", quiet=True)
        self._stop = stop
        self.notes: list[str] = []

    def update(self, done: int | None = None, total: int | None = None, note: str = "") -> None:
        if done:
            self.notes.append(note)
            self._stop.request()


def test_a_continuous_pipeline_is_stopped(
    kafka: Kafka, spark: SparkSession, read: Reads, tmp_path: pathlib.Path
) -> None:
    source, sink = kafka.topic(1), kafka.topic(2)
    kafka.produce(source, flights(range(4)))
    pipeline = (
        Pipeline.read(source, name="flights", json=SCHEMA)
        .write(sink, name="copy", delivery="exactly-once", key="carrier")
        .set(name="p", bootstrap=kafka.servers, checkpoint=str(tmp_path / "c"), trigger="every 1 hour")
    )
    stop = Stop()
    watching = Watching(stop)
    summary = run(pipeline, spark=spark, stop=stop, progress=watching)
    assert (summary.stopped, summary.rows_written) == (True, {"copy": 8})
    assert watching.notes[0] == "copy: batch 0, 8 rows written"
    assert read(sink, kafka__isolation__level="read_committed").count() == 8


def test_a_query_starts_after_the_sources_of_the_previous_query_have_started(
    kafka: Kafka, spark: SparkSession, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = kafka.topic(1)
    kafka.produce(source, flights(range(2)))
    read = Pipeline.read(source, name="flights", json=SCHEMA)
    for name in ("one", "two", "three"):
        read = read.write(parquet=str(tmp_path / name), name=name, from_="flights")
    start, doing, stop = running._start, [], Stop()

    def watched(*given: Any) -> Any:
        doing.append([query.status["message"] for query in spark.streams.active])
        return start(*given)

    monkeypatch.setattr(running, "_start", watched)
    read = read.set(name="p", bootstrap=kafka.servers, checkpoint=str(tmp_path / "c"), trigger="every 1 hour")
    run(read, spark=spark, stop=stop, progress=Watching(stop))
    assert [len(messages) for messages in doing] == [0, 1, 2]
    assert not [message for messages in doing for message in messages if message.startswith("Initializing")]


def test_missing_topics_are_reported_before_spark_starts(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lookup, running):
        monkeypatch.setattr(module, "TOPIC_PATIENCE", 0.3)
    source, sink = kafka.topic(1), kafka.topic(1)
    good = Pipeline.read(source, name="a").set(name="p", bootstrap=kafka.servers)
    with pytest.raises(ConfigurationError, match="source 'nowhere': topic 'nowhere' does not exist"):
        prepare(good.read("nowhere").write(sink))
    with pytest.raises(
        ConfigurationError, match=r"sink 'gone': topic 'gone' does not exist: .*topics create gone --partitions 4"
    ):
        prepare(good.write("gone"))
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1\b"):
        prepare(
            good.write(sink, options={"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": 500})
        )
    found = prepare(good.write(sink))
    assert found.seen is not None
    assert found.seen.partitions == {sink: 1}
    assert found.seen.clusters["a"]


def test_a_checkpoint_of_another_pipeline_is_refused(kafka: Kafka, spark: SparkSession, tmp_path: pathlib.Path) -> None:
    source, sink = kafka.topic(1), kafka.topic(1)
    pipeline = (
        Pipeline.read(source, name="a").write(sink).set(name="p", bootstrap=kafka.servers, checkpoint=str(tmp_path))
    )
    kafka.produce(source, flights(range(2)))
    once = run(pipeline.set(trigger="once"), spark=spark)
    assert (once.batches, once.rows_written) == ({sink: 1}, {sink: 4})
    again = run(pipeline, spark=spark)
    assert (again.batches, again.rows_read) == ({sink: 0}, {sink: 0})
    with pytest.raises(ConfigurationError, match="belongs to the pipeline 'p', not to 'q'"):
        run(pipeline.set(name="q"), spark=spark)


# --- decisions --------------------------------------------------------------------------------------------------------


def progress_of(batch: int, read: int, written: int | None, *, work: bool = True) -> dict[str, Any]:
    observed = {} if written is None else {"rows": {"rows": written}}
    durations = {"addBatch": 5} if work else {"latestOffset": 1}
    return {"batchId": batch, "numInputRows": read, "observedMetrics": observed, "durationMs": durations}


def test_batches_are_counted_once() -> None:
    tally = Tally()
    assert (tally.last, tally.batches) == (None, 0)
    for each in (progress_of(3, 5, 4), progress_of(4, 6, None), progress_of(3, 5, 4), progress_of(5, 0, 9, work=False)):
        tally.add(each)
    assert (tally.last, tally.batches, tally.rows_read, tally.rows_written) == (4, 2, 11, 4)


def test_the_last_of_several_settings_is_used(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "copy.toml"
    path.write_text("[sources.a]\n[sinks.b]\n[spark]\nx = 1\n'spark.sql.shuffle.partitions' = 7\n")
    found = prepare(path, brokers=False)
    pipeline = found.pipeline
    assert (pipeline.name, pipeline.bootstrap, pipeline.checkpoint) == ("copy", "127.0.0.1:9092", "checkpoints/copy")
    assert found.settings(None, {"x": "2"}) == {"spark.sql.shuffle.partitions": "7", "x": "2"}
    given = prepare(path, bootstrap="b:1", checkpoint="c", trigger="once", brokers=False).pipeline
    assert (given.bootstrap, given.checkpoint, given.trigger.text) == ("b:1", "c", "once")
    plain = prepare(Pipeline.read("a").write("b"), brokers=False)
    assert plain.pipeline.name == "pipeline"
    monkeypatch.delenv("MASTER", raising=False)
    assert set(plain.settings("local[2]")) == {"spark.sql.shuffle.partitions"}
    assert plain.settings("spark://m:7077") == {}
