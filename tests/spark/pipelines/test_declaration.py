"""Pipelines as values: the options they pass to Spark, and invalid declarations."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step, Trigger, Watermark


def test_a_pipeline_is_built_by_chained_calls() -> None:
    pipeline = (
        Pipeline.read("orders", json="id int, at timestamp", watermark={"at": "2 hours"})
        .read("eu.rates", string=True)
        .sql("select * from orders", name="paid")
        .sql("select count(*) as n from paid")
        .write("totals", delivery="exactly-once", key="n")
        .write(parquet="lake/paid/", from_="paid")
        .write(console=True)
        .set(name="daily", bootstrap="a:1", checkpoint="c", trigger="once", spark={"x": 1})
    )
    assert [source.name for source in pipeline.sources] == ["orders", "eu_rates"]
    assert pipeline.sources[1].topic == "eu.rates"
    assert pipeline.sources[0].watermark == Watermark("at", "2 hours")
    assert [step.name for step in pipeline.steps] == ["paid", "step2"]
    assert [(sink.name, sink.from_, sink.target) for sink in pipeline.sinks] == [
        ("totals", "step2", "topic totals"),
        ("paid", "paid", "parquet lake/paid/"),
        ("console", "step2", "the console"),
    ]
    assert (pipeline.name, pipeline.bootstrap, pipeline.checkpoint) == ("daily", "a:1", "c")
    assert pipeline.trigger.arguments == {"once": True}
    assert pipeline.spark == {"x": "1"}


def test_a_pipeline_starts_from_the_class_and_continues_from_a_value() -> None:
    first = Pipeline.read("a")
    second = first.read("b")
    assert len(first.sources) == 1, "each call gives a new one"
    assert [source.name for source in second.sources] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "arguments", "ends"),
    [
        ("available-now", {"availableNow": True}, True),
        ("once", {"once": True}, True),
        ("every 10 seconds", {"processingTime": "10 seconds"}, False),
        ("Every 5m", {"processingTime": "5 minutes"}, False),
        ("every 200 ms", {"processingTime": "200 milliseconds"}, False),
        ("every 2 hours", {"processingTime": "2 hours"}, False),
    ],
)
def test_triggers(text: str, arguments: dict[str, Any], ends: bool) -> None:
    trigger = Trigger.parse(text)
    assert (trigger.arguments, trigger.ends) == (arguments, ends)


def test_a_source_becomes_options_of_sparks_reader() -> None:
    source = Source(name="orders", json="id int", options={"maxOffsetsPerTrigger": 10, "includeHeaders": True})
    assert source.spark_options("a:1") == {
        "kafka.bootstrap.servers": "a:1",
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "value.format": "json",
        "value.schema": "id int",
        "maxOffsetsPerTrigger": "10",
        "includeHeaders": "true",
    }


def test_options_of_a_source_override_its_topic_and_start() -> None:
    given = {"subscribePattern": "orders-.*", "startingTimestamp": 5, "kafka.bootstrap.servers": "b:1"}
    found = Source(name="orders", string=True, options=given).spark_options("a:1")
    assert found == {
        "kafka.bootstrap.servers": "b:1",
        "subscribePattern": "orders-.*",
        "startingTimestamp": "5",
        "value.format": "string",
    }


def test_a_sink_becomes_options_of_sparks_writer() -> None:
    sink = Sink(name="totals", from_="x", delivery="exactly-once", options={"kafka.compression.type": "lz4"})
    assert sink.spark_options("a:1") == {
        "kafka.bootstrap.servers": "a:1",
        "topic": "totals",
        "delivery": "exactly-once",
        "kafka.compression.type": "lz4",
    }
    assert Sink(name="files", from_="x", parquet="p", options={"compression": "zstd"}).spark_options("a:1") == {
        "compression": "zstd"
    }


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (Source, {"name": "a-b"}, "source 'a-b': a name is made of letters, digits and _"),
    (Source, {"name": "a", "json": " "}, "source 'a': json needs the schema of the values"),
    (Source, {"name": "a", "json": 5}, "source 'a': json needs the schema"),
    (Source, {"name": "a", "json": "x int", "string": True}, "one of json, avro and string"),
    (Source, {"name": "a", "json": "x int", "options": {"value.format": "json"}}, "set the same thing"),
    (Source, {"name": "a", "topic": ""}, "source 'a': topic must name a topic"),
    (Source, {"name": "a", "string": "yes"}, "source 'a': string must be true or false"),
    (Source, {"name": "a", "options": {"x": [1]}}, "source 'a': options: x must be a string"),
    (Source, {"name": "a", "options": 5}, "source 'a': options must be names with values"),
    (Source, {"name": "a", "watermark": "at"}, "source 'a': watermark must be one column and its delay"),
    (Source, {"name": "a", "watermark": {"at": "soon"}}, "the delay of watermark 'at' must be a duration such as"),
    (Step, {"name": "s", "sql": ""}, "step 's': sql must be a query"),
    (Step, {"name": "1s", "sql": "select 1"}, "step '1s': a name is made of"),
    (Sink, {"name": "k", "topic": "a", "parquet": "b"}, "sink 'k': choose one of topic and parquet"),
    (Sink, {"name": "k", "delivery": "twice"}, "delivery must be one of at-least-once, exactly-once, not 'twice'"),
    (Sink, {"name": "k", "mode": "apend"}, "mode must be one of append, update, complete"),
    (Sink, {"name": "k", "tasks": 0}, "tasks must be a positive number"),
    (Sink, {"name": "k", "from_": ""}, "from must not be empty"),
    (Sink, {"name": "k", "console": True, "key": "a"}, "key belongs to a topic, not to console"),
    (Sink, {"name": "k", "console": True, "delivery": "exactly-once"}, "the console shows a repeated batch again"),
    (Sink, {"name": "k", "partition_by": ["a"]}, "partition_by belongs to parquet, not to topic"),
    (Sink, {"name": "k", "parquet": "p", "partition_by": 5}, "partition_by must be column names"),
    (Sink, {"name": "k", "parquet": "p", "mode": "update"}, "files are only appended to"),
    (Pipeline, {"name": "a b"}, "pipeline: a name is made of"),
    (Pipeline, {"trigger": "now"}, "trigger must be available-now, once, or such as"),
    (Pipeline, {"bootstrap": 9092}, "bootstrap must be a string"),
]


@pytest.mark.parametrize(("kind", "given", "message"), WRONG)
def test_invalid_sources_sinks_and_steps_are_refused(kind: Any, given: dict[str, Any], message: str) -> None:
    if kind is Sink:
        given = {"from_": "x", **given}
    with pytest.raises(ConfigurationError, match=message):
        kind(**given)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Source(name="a", options={"startingOfsets": "latest"}), "source 'a': .*did you mean 'startingOffsets'"),
        (Sink(name="k", from_="a", options={"kafka.compression.typ": "lz4"}), "sink 'k': .*kafka.compression.type"),
        (Sink(name="k", from_="a", options={"topic": "b"}), "sink 'k': topic is not an option here: set it beside"),
        (Sink(name="k", from_="a", options={"checkpointLocation": "b"}), "the pipeline has a checkpoint"),
    ],
)
def test_options_that_spark_would_refuse_are_refused_before_it_starts(value: Source | Sink, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        value.spark_options("a:1")


def test_nothing_is_written_before_something_is_read() -> None:
    with pytest.raises(ConfigurationError, match="begins with a source"):
        Pipeline().write("totals")
