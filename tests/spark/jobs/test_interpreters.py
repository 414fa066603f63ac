"""The Python that Spark starts: chosen from settings and environment, or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.jobs.spark_session import check_driver_python, choose_python, warn_of_driver_python
from aiokwire.spark.pipelines import archive, run, sql


def test_the_interpreter_comes_from_the_setting_then_the_environment_then_the_driver(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(sys.executable)
    first, second = str(tmp_path / "a"), str(tmp_path / "b")
    assert choose_python({}, {}, sys.executable) == sys.executable
    assert choose_python({"PYSPARK_PYTHON": first}, {}, sys.executable) == first
    assert choose_python({"PYSPARK_PYTHON": first}, {"spark.pyspark.python": second}, sys.executable) == second


def test_a_packed_environment_must_exist_in_the_drivers_directory_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"PYSPARK_PYTHON": "./environment/bin/python"}
    with pytest.raises(ConfigurationError, match=r"PYSPARK_PYTHON=\./environment/bin/python cannot be run in /"):
        choose_python(environment, {}, sys.executable)
    with pytest.raises(ConfigurationError, match=r"spark\.pyspark\.python=nowhere cannot be run"):
        choose_python({}, {"spark.pyspark.python": "nowhere"}, sys.executable)
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").symlink_to(sys.executable)
    assert choose_python(environment, {}, sys.executable) == "./environment/bin/python"


def test_a_notebook_server_is_not_a_python_for_data_sources() -> None:
    with pytest.raises(
        ConfigurationError, match=r"PYSPARK_DRIVER_PYTHON=/usr/bin/jupyter-lab: .* DATA_SOURCE_NOT_FOUND"
    ):
        choose_python({"PYSPARK_DRIVER_PYTHON": "/usr/bin/jupyter-lab"}, {}, sys.executable)
    check_driver_python({"PYSPARK_DRIVER_PYTHON": sys.executable})


def test_a_warning_names_a_driver_python_that_executors_would_run(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"PYSPARK_PYTHON": "./environment/bin/python", "PYSPARK_DRIVER_PYTHON": "/driver/bin/python"}
    warn_of_driver_python(environment, "local[2]")
    warn_of_driver_python({"PYSPARK_PYTHON": "python3"}, "spark://master:7077")
    assert not caplog.messages
    warn_of_driver_python(environment, "spark://master:7077")
    assert caplog.messages[0].startswith("PYSPARK_DRIVER_PYTHON=/driver/bin/python: executors run")


def test_spark_connect_is_refused_before_any_broker_is_asked(tmp_path: Path) -> None:
    """Uses a stand-in for Connect's session: importing the real class needs a gRPC library."""
    session: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    declared = tmp_path / "copy.toml"
    declared.write_text('[sources.a]\n[sinks.b]\nfrom = "a"\n')
    unreachable = "127.0.0.1:1"
    with pytest.raises(ConfigurationError, match="aiokwire archive does not run on Spark Connect"):
        archive("orders", tmp_path / "lake", bootstrap=unreachable, spark=session)
    with pytest.raises(ConfigurationError, match="aiokwire sql does not run on Spark Connect"):
        sql("select * from orders", bootstrap=unreachable, spark=session)
    with pytest.raises(ConfigurationError, match="aiokwire run does not run on Spark Connect"):
        run(declared, bootstrap=unreachable, checkpoint=str(tmp_path / "checkpoint"), spark=session)
