"""`aiokwire spark run` reports a wrong pipeline in one line, before it starts Spark."""

from __future__ import annotations

import pathlib

import pytest
from click.testing import CliRunner, Result

from aiokwire.cli.spark.run import command


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("[sources.a]\n[sinks.b]\ndelivry = 1", [], "error: {path}: sink 'b' has no key 'delivry'; did you mean"),
        ("[sources.a]\ntopic = '${t}'\n[sinks.b]", [], "error: {path}: sources.a.topic needs the parameter t"),
        ("[sources.a]\n[sinks.b]", ["--set", "t=1"], "error: {path}: the file has no parameter 't'"),
        ("[sources.a]\n[sinks.b]", ["--trigger", "now"], "error: trigger must be available-now, once, or such as"),
        ("[sources.a]\n[steps.s]\nsql = 'select * from b'\n[sinks.b]", [], "error: step 's' reads from 'b', which is"),
        ("[sources.a]\n[sinks.b]", ["-b", "127.0.0.1:1"], "127.0.0.1:1"),
    ],
)
def test_a_wrong_pipeline_is_reported_at_once(
    tmp_path: pathlib.Path, text: str, arguments: list[str], message: str
) -> None:
    path = tmp_path / "p.toml"
    options = "\n[sources.a.options]\n'kafka.default.api.timeout.ms' = 300" if "-b" in arguments else ""
    path.write_text(text + options)
    result = invoke(str(path), *arguments)
    assert result.exit_code == 1
    assert message.format(path=path) in result.stderr
    assert result.stderr.count("\n") == 1, "one line"
    assert result.stdout == ""


def test_a_parameter_is_a_pair() -> None:
    result = invoke("p.toml", "--set", "broken")
    assert result.exit_code == 2
    assert "'broken' is not NAME=VALUE" in result.stderr


def test_a_file_of_java_has_the_login_of_all_topics(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\ndefault.api.timeout.ms=300\nclient.id=from-the-file\n")
    path = tmp_path / "p.toml"
    path.write_text("[sources.a]\n[sinks.b]\n")
    result = invoke(str(path), "--command-config", str(file))
    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.stderr


def test_a_variable_that_is_not_an_option_is_reported(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOKWIRE_SASL_MECHANISMUS", "PLAIN")
    path = tmp_path / "p.toml"
    path.write_text("[sources.a]\n[sinks.b]\n")
    result = invoke(str(path))
    assert (result.exit_code, "AIOKWIRE_SASL_MECHANISMUS is not an option" in result.stderr) == (2, True)
