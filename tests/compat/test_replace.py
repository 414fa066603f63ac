"""A program imports this package as `aiokafka`, unchanged."""

from __future__ import annotations

import pathlib
import subprocess
import sys

PROGRAM = """
import sys
import aiokafka, aiokafka.errors
from aiokafka import AIOKafkaProducer, TopicPartition, helpers
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.consumer.consumer import AIOKafkaConsumer
import aiokwire.compat.aiokafka as compat

assert aiokafka is compat and aiokafka.errors is compat.errors
assert compat.__spec__.name == "aiokwire.compat.aiokafka"
assert AIOKafkaProducer is compat.AIOKafkaProducer and AIOKafkaConsumer is compat.AIOKafkaConsumer
try:
    import aiokafka.conn
except ModuleNotFoundError as error:
    assert error.name == "aiokafka.conn" and "internal to aiokafka" in str(error), error
else:
    raise AssertionError("aiokafka.conn was found")
print(__name__, sys.argv[1:])
"""


def run(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "aiokwire.compat.aiokafka", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_a_program_runs_with_its_arguments(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("run", "program.py", "-x", "1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ ['-x', '1']\n"), done.stderr


def test_a_module_runs_with_its_arguments(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("run", "-m", "program", "y", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ ['y']\n"), done.stderr


def test_a_program_finds_modules_beside_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "settings.py").write_text("NAME = 'beside'")
    (tmp_path / "app" / "main.py").write_text("import settings, aiokafka; print(settings.NAME, aiokafka.__version__)")
    done = run("run", "app/main.py", cwd=tmp_path)
    assert done.stdout == "beside 0.14.0\n", done.stderr


def test_without_a_program_the_usage_is_shown(tmp_path: pathlib.Path) -> None:
    done = run("program.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "usage: python -m aiokwire.compat.aiokafka run" in done.stderr


def test_the_original_cannot_be_replaced_after_its_import(tmp_path: pathlib.Path) -> None:
    code = "import aiokafka\nfrom aiokwire.compat.aiokafka.replace import replace_aiokafka\nreplace_aiokafka()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "aiokafka was imported before it could be replaced" in done.stderr
