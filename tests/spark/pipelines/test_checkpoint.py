"""The owner of a checkpoint: the decisions, and the files through Spark."""

from __future__ import annotations

import json
import pathlib

import pytest
from pyspark.sql import SparkSession

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.checkpoint import Folder, changes, claim, made_of, owner_id
from aiokwire.spark.pipelines.declaration import Pipeline

PIPELINE = (
    Pipeline.read("orders", json="id int")
    .read("rates")
    .sql("select * from orders", name="a")
    .write("totals")
    .set(name="p")
)
CLUSTERS = {"orders": "c1", "rates": "c1"}


def made(pipeline: Pipeline = PIPELINE, clusters: dict[str, str | None] | None = None) -> dict[str, object]:
    return made_of(pipeline.sinks[0], pipeline, {**CLUSTERS, **(clusters or {})})


def test_a_checkpoint_without_an_owner_is_free_unless_a_query_has_used_it() -> None:
    assert owner_id(None, "p", "c", is_spark=False) is None
    with pytest.raises(ConfigurationError, match="c has the checkpoint of a query outside of pipelines"):
        owner_id(None, "p", "c", is_spark=True)


def test_a_checkpoint_of_another_pipeline_is_refused() -> None:
    assert owner_id({"pipeline": "p", "id": "7"}, "p", "c", is_spark=True) == "7"
    with pytest.raises(ConfigurationError, match="c belongs to the pipeline 'q', not to 'p'"):
        owner_id({"pipeline": "q", "id": "7"}, "p", "c", is_spark=True)


def test_only_the_sources_and_steps_of_a_sink_are_compared() -> None:
    assert made()["reads"] == {"orders": {"topic": "orders", "cluster": "c1"}}
    pattern = Pipeline.read("x", name="o").set(name="p").sources[0]
    chosen = Pipeline(sources=(type(pattern)(name="o", options={"subscribePattern": "o.*"}),)).write("t", from_="o")
    assert made_of(chosen.sinks[0], chosen, {})["reads"] == {"o": {"topic": "o.*", "cluster": None}}


def test_changed_steps_are_noted_and_whitespace_is_ignored() -> None:
    same = PIPELINE.read("z").set()
    assert changes("totals", made(), made(same), "c") == []
    spaced = Pipeline.read("orders").sql("select *\n  from orders", name="a").write("totals")
    assert changes("totals", made(), made(spaced), "c") == []
    other = Pipeline.read("orders").sql("select id from orders", name="a").write("totals")
    assert changes("totals", made(), made(other), "c")[0].startswith("sink totals: the steps a have changed")


def test_other_sources_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="for cluster 'c1', and source 'orders' reads cluster 'c2'"):
        changes("totals", made(), made(clusters={"orders": "c2"}), "c")
    assert changes("totals", made(), made(clusters={"orders": None}), "c") == [], (
        "an old broker does not report its cluster id"
    )
    moved = Pipeline.read("orders2", name="orders").sql("select * from orders", name="a").write("totals")
    with pytest.raises(ConfigurationError, match="for topic 'orders', and source 'orders' reads topic 'orders2'"):
        changes("totals", made(), made(moved), "c")
    joined = Pipeline.read("orders").read("rates").sql("select * from orders join rates", name="a").write("totals")
    with pytest.raises(ConfigurationError, match="when it did not read source 'rates'"):
        changes("totals", made(), made(joined), "c")
    with pytest.raises(ConfigurationError, match="when it also read source 'rates'"):
        changes("totals", made(joined), made(), "c")


@pytest.mark.timeout(120)
def test_a_checkpoint_keeps_its_id_when_it_is_moved(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "c"
    assert claim(Folder(spark, str(place)), PIPELINE, CLUSTERS, fresh_id="1") == ("1", [])
    assert json.loads((place / "pipeline.json").read_text()) == {"pipeline": "p", "id": "1"}
    place = place.rename(tmp_path / "d")
    more = PIPELINE.write("more", from_="rates")
    assert claim(Folder(spark, f"file:{place}"), more, CLUSTERS, fresh_id="2") == ("1", [])
    assert (place / "sink-more.json").exists()
    with pytest.raises(ConfigurationError, match="belongs to the pipeline 'p'"):
        claim(Folder(spark, str(place)), PIPELINE.set(name="q"), CLUSTERS, fresh_id="2")
    (place / "pipeline.json").write_text("{")
    (place / ".pipeline.json.crc").unlink()
    with pytest.raises(ConfigurationError, match=r"pipeline\.json is corrupt"):
        claim(Folder(spark, str(place)), PIPELINE, CLUSTERS, fresh_id="2")
    (tmp_path / "e" / "totals" / "metadata").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="a query outside of pipelines"):
        claim(Folder(spark, str(tmp_path / "e")), PIPELINE, CLUSTERS, fresh_id="2")
