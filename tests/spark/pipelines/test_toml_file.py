"""Pipelines that are defined in TOML and Python files."""

from __future__ import annotations

import pathlib

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.pipelines.declaration import Pipeline, Sink, Source, Step, Trigger, Watermark
from aiokwire.spark.pipelines.toml_file import load, parse

DOCUMENT = """
name = "delays"
bootstrap = "${brokers:127.0.0.1:9092}"
trigger = "every 5 seconds"
checkpoint = "${folder}/delays"

[sources.flights]
json = "carrier string, at timestamp"
watermark = { at = "2 hours" }
options = { maxOffsetsPerTrigger = 1000 }

[steps.late]
sql = "select * from flights where '$${x}' <> ''"

[sinks.totals]
delivery = "exactly-once"
key = "carrier"

[sinks.raw]
from = "flights"
parquet = "lake"
partition_by = ["carrier"]

[spark]
"spark.sql.shuffle.partitions" = 4
"""


def test_a_toml_document_and_python_define_the_same_pipeline() -> None:
    found = parse(DOCUMENT, {"folder": "c"}, {"folder": "other"})
    assert found == Pipeline(
        name="delays",
        bootstrap="127.0.0.1:9092",
        trigger=Trigger.parse("every 5 seconds"),
        checkpoint="c/delays",
        sources=(
            Source(
                name="flights",
                topic="flights",
                json="carrier string, at timestamp",
                watermark=Watermark("at", "2 hours"),
                options={"maxOffsetsPerTrigger": "1000"},
            ),
        ),
        steps=(Step(name="late", sql="select * from flights where '${x}' <> ''"),),
        sinks=(
            Sink(name="totals", from_="late", topic="totals", delivery="exactly-once", key="carrier"),
            Sink(name="raw", from_="flights", parquet="lake", partition_by=("carrier",)),
        ),
        spark={"spark.sql.shuffle.partitions": "4"},
    )


def test_parameters_default_to_environment_variables() -> None:
    assert parse(DOCUMENT, {}, {"folder": "e", "brokers": "b:1"}).bootstrap == "b:1"


WRONG = [
    ("name = 'x'\nsources = = 1", "not valid TOML: .*line 2"),
    ("nme = 'x'", "the file has no key 'nme'; did you mean 'name'"),
    ("name = 5", "name must be a string"),
    ("trigger = 5", "trigger must be available-now"),
    ("sources = 5", r"sources must be tables, as \[sources.name\]"),
    ("[sources]\na = 5", r"source 'a' must be a table, \[sources.a\]"),
    ("[sources.a]\nwatermrk = 1", "source 'a' has no key 'watermrk'; did you mean 'watermark'"),
    ("[sources.a]\nzzzzzz = 1", "source 'a' has no key 'zzzzzz'; there are topic, json"),
    ("[sources.a]\njson = ''", "source 'a': json needs the schema"),
    ("[steps.a]", "step 'a' needs sql, or file"),
    ("[steps.a]\nsql = 'x'\nfile = 'y'", "step 'a' needs sql, or file"),
    ("[steps.a]\nfile = 5", "step 'a': file must be a name"),
    ("[steps.a]\nfile = 'nowhere.sql'", "step 'a': .*nowhere.sql: No such file"),
    ("[steps.a]\nsql = 5", "step 'a': sql must be a query"),
    ("[sinks.a]\ndelivery = 'x'", "begins with a source"),
    ("[sources.b]\n[sinks.a]\ndelivry = 'x'", "sink 'a' has no key 'delivry'; did you mean 'delivery'"),
    ("[sources.b]\n[sinks.a]\nfrom = 5", "sink 'a': from must not be empty"),
    ("[sources.a]\ntopic = '${t}'", "sources.a.topic needs the parameter t: give it with --set t="),
    ("spark = 5", "spark must be names with values"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_document_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse(text)


def test_an_unknown_parameter_of_a_file_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no parameter 'foldr'; did you mean 'folder'"):
        parse(DOCUMENT, {"folder": "c", "foldr": "d"})


def test_a_file_names_the_pipeline_and_its_paths_are_relative_to_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "late.sql").write_text("select * from flights")
    path = tmp_path / "my delays.toml"
    path.write_text("[sources.flights]\n[steps.late]\nfile = 'late.sql'\n[sinks.totals]\n")
    found = load(path)
    assert found.name == "my_delays"
    assert found.steps[0].sql == "select * from flights"


def test_an_error_names_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.toml"
    with pytest.raises(ConfigurationError, match=r"p\.toml: No such file"):
        load(path)
    path.write_text("nme = 1")
    with pytest.raises(ConfigurationError, match=r"p\.toml: the file has no key 'nme'"):
        load(path)
    with pytest.raises(ConfigurationError, match=r"ends with \.toml or \.py"):
        load(tmp_path / "p.yaml")


HEAD = "from aiokwire.spark.pipelines import Pipeline\n"


def test_python_defines_a_pipeline(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "copy.py"
    path.write_text(HEAD + "pipeline = Pipeline.read('a').write('b')\n")
    assert load(path) == Pipeline.read("a").write("b").set(name="copy")


def test_python_may_take_parameters(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "copy.py"
    path.write_text(HEAD + "def pipeline(topic, to='b', brokers='x:1'):\n"
                           "    return Pipeline.read(topic).write(to).set(bootstrap=brokers)\n")  # fmt: skip
    monkeypatch.setenv("brokers", "y:1")
    found = load(path, {"topic": "a"})
    assert (found.sources[0].topic, found.sinks[0].topic, found.bootstrap) == ("a", "b", "y:1")
    with pytest.raises(ConfigurationError, match=r"needs the parameter topic"):
        load(path)
    with pytest.raises(ConfigurationError, match="no parameter 'topik'; did you mean 'topic'"):
        load(path, {"topik": "a"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "does not define 'pipeline'"),
        ("pipeline = 5", "must be a Pipeline, or a function"),
        (HEAD + "pipeline = Pipeline.read('a', json='').write('b')", "source 'a': json needs the schema"),
    ],
)
def test_wrong_python_is_refused(tmp_path: pathlib.Path, text: str, message: str) -> None:
    path = tmp_path / "p.py"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        load(path)


def test_python_without_parameters_takes_none(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(HEAD + "pipeline = Pipeline.read('a').write('b')\n")
    with pytest.raises(ConfigurationError, match=r"no parameter 'x'.*make pipeline a function"):
        load(path, {"x": "1"})


def test_placeholders_of_secrets_are_left_to_the_client() -> None:
    text = (
        "[sources.a.options]\n'kafka.sasl.jaas.config' = 'M required password=\"${env:KAFKA_PASSWORD}\";'\n[sinks.b]\n"
    )
    pipeline = parse(text, {}, {"env": "not this"})
    assert pipeline.sources[0].options["kafka.sasl.jaas.config"] == 'M required password="${env:KAFKA_PASSWORD}";'
