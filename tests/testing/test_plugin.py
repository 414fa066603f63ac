"""The pytest plugin and its documentation's examples, in a separate pytest as a user has it."""

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
# kafka-python reads its resources in a way that Python 3.11 warns of.
LEGACY = ("kafka.protocol.schemas.load_json", "importlib.resources._legacy")
PEERS = tuple(word for module in LEGACY for word in ("-W", f"ignore::DeprecationWarning:{module}"))
AUTO = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_pytest(where: pathlib.Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "--rootdir", str(where), str(where), *options]
    loaded = ["-p", plugin.__name__] if "aiokwire" not in _installed_plugins() else []
    done = subprocess.run(
        [*command, *loaded], cwd=ROOT, capture_output=True, text=True, timeout=90, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _installed_plugins() -> set[str]:
    """As pytest looks for them: in every distribution, whichever of one name is found first."""
    from importlib.metadata import distributions

    return {point.name for found in distributions() for point in found.entry_points if point.group == "pytest11"}


@pytest.mark.timeout(120)
def test_the_examples_of_the_documentation_run(tmp_path: pathlib.Path) -> None:
    examples = EXAMPLE.findall((ROOT / "docs" / "testing.md").read_text())
    tests = [example for example in examples if "def test_" in example]
    assert len(tests) >= 4
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    output = run_pytest(tmp_path, *AUTO, *QUIET, *PEERS)
    assert f"{sum(example.count('def test_') for example in tests)} passed" in output


SHAPES = """
import aiokwire
import pytest
from aiokwire.testing import ApiKey, Broker, ThreadedBroker


def test_a_blocking_test_has_a_broker_in_a_thread_with_faults(kafka_broker):
    assert isinstance(kafka_broker, ThreadedBroker)
    kafka_broker.create_topic("t", 2)
    held = kafka_broker.faults.on(ApiKey.METADATA).hold()
    assert held.hits == 0
    kafka_broker.faults.clear_rules()
    with pytest.raises(aiokwire.RequestTimedOut, match="topic 't' has 0 of 1"):
        kafka_broker.wait_for_records("t", 1, timeout=0.01)
    assert kafka_broker.faults.leader("t", 0) == 1


@pytest.mark.parametrize("turn", ["first turn", "second"])
async def test_topics_are_of_one_test_each(kafka_topic, kafka_producer, kafka_session_broker, turn):
    async with kafka_producer() as producer:
        await producer.send(kafka_topic, b"v")
    assert len(kafka_session_broker.records(kafka_topic)) == 1


async def test_clients_go_to_the_tests_own_broker(kafka_broker, kafka_bootstrap_servers, kafka_producer):
    assert isinstance(kafka_broker, Broker)
    assert kafka_bootstrap_servers == kafka_broker.bootstrap_servers
    await kafka_broker.create_topic("t", 1)
    async with kafka_producer() as producer:
        await producer.send("t", b"v")
    assert len(await kafka_broker.wait_for_records("t", 1)) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_loop_of_the_module_has_its_broker(kafka_broker):
    await kafka_broker.create_topic("t", 1)
    async with aiokwire.Producer(kafka_broker.bootstrap_servers) as producer:
        await producer.send("t", b"v")
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_fixtures_serve_tests_of_every_shape(tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_shapes.py").write_text(SHAPES)
    assert "5 passed" in run_pytest(tmp_path, *AUTO, *QUIET, *options)


def test_the_plugin_loads_no_broker_until_a_test_asks_for_one() -> None:
    script = (
        "import sys, aiokwire.testing.plugin\n"
        "heavy = [name for name in sys.modules if name.startswith(('aiokwire.broker', 'aiokwire.protocol'))]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=ROOT)


async def test_the_fixtures_broker_serves_and_keeps_a_journal(kafka_broker: Broker) -> None:
    assert kafka_broker.bootstrap_servers == kafka_broker.address(1)
    assert len(kafka_broker.journal) == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    import aiokwire.testing

    with pytest.raises(AttributeError, match="Kafak"):
        aiokwire.testing.Kafak  # type: ignore[attr-defined]  # noqa: B018 - the lookup raises
