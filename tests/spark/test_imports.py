"""Each of the Python processes that Spark starts for a job loads only the modules it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

READ = "AiokwireSource({'subscribe': 't', 'kafka.bootstrap.servers': 'h:1'}).schema()"
WRITE = (
    "AiokwireSource({'topic': 't', 'kafka.bootstrap.servers': 'h:1'})"
    ".writer(StructType([StructField('value', BinaryType())]), False)"
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("work", "unwanted"),
    [
        (READ, ("aiokwire.producer", "aiokwire.consumer.consumer", "aiokwire.group.classic", "aiokwire.admin")),
        (WRITE, ("aiokwire.consumer", "aiokwire.group", "aiokwire.admin", "aiokwire.spark.source.scan")),
    ],
    ids=["read", "write"],
)
def test_a_planner_loads_only_the_client_it_needs(work: str, unwanted: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom pyspark.sql.types import *\nfrom aiokwire.spark import AiokwireSource\n"
        f"{work}\nprint(sorted(name for name in sys.modules if name.startswith({unwanted!r})))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[]"
