"""The start of Spark's Python processes: no archive of sources, preloaded modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aiokwire.spark.jobs.spark_session import home_without_zip


def test_spark_home_is_the_installed_pyspark_without_its_archive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with home_without_zip():
        home = Path(os.environ["SPARK_HOME"])
        assert (home / "jars").is_dir()
        assert (home / "bin" / "spark-submit").is_file()
        assert not list(home.rglob("pyspark.zip"))
    assert "SPARK_HOME" not in os.environ


def test_a_configured_spark_home_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with home_without_zip():
        assert os.environ["SPARK_HOME"] == "/opt/spark"


@pytest.mark.timeout(60)
def test_the_daemon_preloads_the_modules_of_tasks_and_starts_no_thread() -> None:
    code = (
        "import threading, sys, aiokwire.spark.daemon;"
        "needed = ['pyarrow', 'pyspark.worker', 'aiokwire.spark.source.scan', 'aiokwire.spark.sink.writing'];"
        "print([name for name in needed if name not in sys.modules], threading.active_count())"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.split("\n")[0] == "[] 1"
