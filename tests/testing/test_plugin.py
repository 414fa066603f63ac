"""The pytest plugin, and the examples of its documentation, in a pytest of their own as a user has it."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from aiokwire.broker import Broker
from aiokwire.testing import plugin

ROOT = pathlib.Path(__file__).parents[2]
QUIET = ("-p", "no:anyio", "-p", "no:cacheprovider")
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_pytest(where: pathlib.Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "--rootdir", str(where), str(where), *options]
    loaded = ["-p", plugin.__name__] if "aiokwire" not in _installed_plugins() else []
    done = subprocess.run(
        [*command, *loaded], cwd=ROOT, capture_output=True, text=True, timeout=18, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _installed_plugins() -> set[str]:
    """As pytest looks for them: in every distribution, whichever of one name is found first."""
    from importlib.metadata import distributions

    return {point.name for found in distributions() for point in found.entry_points if point.group == "pytest11"}


def test_the_examples_of_the_documentation_run(tmp_path: pathlib.Path) -> None:
    examples = EXAMPLE.findall((ROOT / "docs" / "testing.md").read_text())
    tests = [example for example in examples if "def test_" in example]
    assert len(tests) >= 4
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    said = run_pytest(tmp_path, "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function", *QUIET)
    assert f"{sum(example.count('async def test_') for example in tests)} passed" in said


def test_the_plugin_loads_no_broker_until_a_test_asks_for_one() -> None:
    script = (
        "import sys, aiokwire.testing.plugin\n"
        "heavy = [name for name in sys.modules if name.startswith(('aiokwire.broker', 'aiokwire.protocol'))]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=15, cwd=ROOT)


async def test_the_fixtures_broker_serves_and_keeps_a_journal(kafka_broker: Broker) -> None:
    assert kafka_broker.bootstrap_servers == kafka_broker.address(1)
    assert len(kafka_broker.journal) == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    import aiokwire.testing

    with pytest.raises(AttributeError, match="Kafak"):
        aiokwire.testing.Kafak  # noqa: B018 - the look-up raises
