"""An executor without aiokwire: the task's error names the missing package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import Kafka, broker_process

# Executors have this module in their environment, the driver's planners do not.
_SITE = """
import os, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("aiokwire", "pyspark_aiokwire"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if "SPARK_EXECUTOR_DIRS" in os.environ:
    sys.meta_path.insert(0, Without())
"""


@pytest.mark.timeout(400)
def test_the_error_of_an_executor_without_aiokwire_names_the_package(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with broker_process() as servers:
        kafka = Kafka(servers)
        kafka.create("orders")
        kafka.produce("orders", [b"paid"])
        job = [sys.executable, "-m", "integration.spark.bare_executor", servers, "orders"]
        environment = os.environ | {"PYSPARK_PYTHON": str(python)}
        run = subprocess.run(job, env=environment, capture_output=True, text=True, timeout=350, check=False)
    assert "ModuleNotFoundError: No module named 'aiokwire'" in run.stdout, run.stderr
