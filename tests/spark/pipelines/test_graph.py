"""Whether the parts of a pipeline fit together."""

from __future__ import annotations

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline
from aiokwire.spark.pipelines.graph import check, find, ordered, upstream

BASE = Pipeline.read("orders", json="id int").set(name="p", bootstrap="a:1")


def test_steps_are_sorted_behind_the_tables_they_read() -> None:
    pipeline = (
        BASE.sql("select * from middle join ORDERS using (id)", name="late")
        .sql("select * from early", name="middle")
        .sql("select * from orders", name="early")
        .write("totals", from_="late")
    )
    check(pipeline)
    assert [step.name for step in ordered(pipeline)] == ["early", "middle", "late"]


def test_a_sink_names_its_source_in_any_case() -> None:
    check(BASE.write("copy", from_="ORDERS"))


def test_the_parts_upstream_of_a_sink_are_found() -> None:
    pipeline = (
        BASE.read("rates").read("unused")
        .sql("select * from orders", name="a")
        .sql("select * from a join rates on true", name="b")
        .sql("select * from unused", name="c")
    )  # fmt: skip
    assert [each.name for each in upstream("b", pipeline)] == ["orders", "rates", "a", "b"]


WRONG = [
    (Pipeline(), "the pipeline has no source"),
    (BASE, "the pipeline has no sink"),
    (BASE.read("Orders").write("t"), "the name 'Orders' is used twice: each source or step needs its own"),
    (BASE.sql("select 1 from orders", name="orders").write("t"), "the name 'orders' is used twice"),
    (BASE.write("t").write("T"), "the name 'T' is used twice: each sink"),
    (BASE.sql("select * from ordrs", name="s").write("t"), "step 's' reads from 'ordrs', .* did you mean 'orders'"),
    (BASE.sql("select * from xyz", name="s").write("t"), "there are orders, s; write a table of Spark's catalog"),
    (BASE.sql("select * from s", name="s").write("t"), "the steps form a cycle: s -> s"),
    (
        BASE.sql("select * from b", name="a").sql("select * from a join orders", name="b").write("t"),
        "the steps form a cycle: [ab] -> [ab] -> [ab]",
    ),
    (BASE.write("t", from_="ordrs"), "sink 't' is from 'ordrs', which is not a source or step: did you mean 'orders'"),
    (BASE.write("orders"), "sink 'orders' writes to the topic 'orders', which source 'orders' reads"),
    (BASE.write(parquet="a", name="x").write(parquet="a/", name="y"), "sinks 'x' and 'y' write to one folder"),
    (BASE.write("t", options={"kafka.acks": "5"}), "sink 't'"),
    (BASE.read("b", options={"maxOffsetsPerTrigger": 0}).write("t"), "source 'b': maxOffsetsPerTrigger"),
]


@pytest.mark.parametrize(("pipeline", "message"), WRONG)
def test_inconsistent_pipelines_are_refused(pipeline: Pipeline, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check(pipeline)


def test_names_are_found_in_any_case() -> None:
    assert find("ORDERS", ["orders"]) == "orders"
    assert find("order", ["orders"]) is None
