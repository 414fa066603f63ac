"""`aiokwire migrate`: what it prints, what it changes, and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aiokwire.cli.main import cli

PROGRAM = """\
from aiokafka import AIOKafkaProducer


async def main():
    producer = AIOKafkaProducer()
    batch = producer.create_batch()
    await producer.stop()
"""
MIGRATED = """\
from aiokwire import Producer


async def main():
    producer = Producer()
    batch = producer.create_batch()
    await producer.close()
"""


def migrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["migrate", *map(str, arguments)])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("app.py")
    path.write_text(PROGRAM)
    return path


def test_a_diff_is_printed_and_nothing_is_written(program: Path) -> None:
    done = migrate(program)
    assert done.exit_code == 0
    assert done.stdout.startswith("--- app.py\n+++ app.py\n@@ ")
    assert "-from aiokafka import AIOKafkaProducer\n+from aiokwire import Producer\n" in done.stdout
    assert program.read_text() == PROGRAM


def test_the_diff_can_be_applied(program: Path) -> None:
    subprocess.run(["patch", "-p0"], input=migrate(program).stdout, text=True, check=True, capture_output=True)
    assert program.read_text() == MIGRATED


def test_files_are_written_on_request_and_only_once(program: Path) -> None:
    program.chmod(0o750)
    done = migrate("--write", program)
    assert (done.exit_code, done.stdout, program.read_text()) == (0, "", MIGRATED)
    assert program.stat().st_mode & 0o777 == 0o750
    assert "1 file changed, 1 place to look at (of 1 file)" in done.stderr
    assert "0 files changed" in migrate("--write", program).stderr
    assert program.read_text() == MIGRATED


def test_what_is_left_to_do_is_reported_in_lines_of_at_most_80_columns(program: Path) -> None:
    report = migrate("--check", program).stderr
    assert report.startswith("app.py:6: create_batch: collect ProducerRecord")
    assert max(map(len, report.splitlines())) <= 80


def test_check_fails_until_nothing_would_change(program: Path) -> None:
    assert (migrate("--check", program).exit_code, program.read_text()) == (1, PROGRAM)
    migrate("--write", program)
    done = migrate("--check", program)
    assert (done.exit_code, done.stdout) == (0, "")


def test_comments_and_defaults_are_written_on_request(program: Path) -> None:
    migrate("--write", "--todo", "--keep-defaults", program)
    text = program.read_text()
    assert "    # TODO(aiokwire): create_batch: collect" in text
    assert "Producer(acks=1, linger_ms=0, batch_size=16384)" in text


def test_folders_are_searched_but_not_their_environments(program: Path) -> None:
    for name in ("package/a.py", ".venv/b.py", "env/c.py", "package/__pycache__/d.py", "package/e.txt"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM)
    Path("env/pyvenv.cfg").touch()
    done = migrate("--write", ".", program)
    assert "2 files changed" in done.stderr
    assert [Path(name).read_text() for name in ("package/a.py", ".venv/b.py", "env/c.py")] == [
        MIGRATED, PROGRAM, PROGRAM,
    ]  # fmt: skip


def test_files_that_cannot_be_read_are_named_and_the_others_are_migrated(program: Path) -> None:
    Path("broken.py").write_text("import aiokafka\nprint 'x'\n")
    Path("latin.py").write_bytes(b"import aiokafka\n# \xe9\n")
    done = migrate("--write", ".")
    assert done.exit_code == 2
    assert "error: broken.py: not a Python module: line 2" in done.stderr
    assert "error: latin.py: not utf-8: invalid continuation byte at byte 18" in done.stderr
    assert "1 file changed, 1 place to look at, 2 files not read (of 3 files)" in done.stderr.replace("\n    ", " ")
    assert program.read_text() == MIGRATED


def test_encoding_and_line_ends_are_kept(program: Path) -> None:
    program.write_bytes(b"# -*- coding: latin-1 -*-\r\n# \xe9\r\nfrom aiokafka import AIOKafkaProducer\r\n")
    migrate("--write", program)
    assert program.read_bytes() == b"# -*- coding: latin-1 -*-\r\n# \xe9\r\nfrom aiokwire import Producer\r\n"


def test_without_libcst_the_extra_is_named(program: Path) -> None:
    script = "import sys; sys.modules['libcst'] = None; from aiokwire.cli.main import cli; cli(['migrate', 'app.py'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "pip install 'aiokwire[migrate]'" in done.stderr
