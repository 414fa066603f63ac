"""Row 4 of the services: what a real Prometheus reads, and every query of the dashboard."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

import aiokwire
from aiokwire.admin import ClientQuotaEntity, NewTopic
from aiokwire.telemetry.prometheus import name_of
from integration.conftest import lacking
from integration.kafka import MissingPrerequisite
from integration.kafka.server import free_port
from integration.monitoring.prometheus import Prometheus, program, prometheus
from tests import metrics_page

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "docs" / "grafana-dashboard.json"
SECONDS = 60
# Gauges with this suffix have the names of OpenTelemetry; for promtool it is a matter of style.
SUFFIX = 'should not have "_count" suffix'


class Monitored(NamedTuple):
    """The three scraped processes, by the name of their job, and the Prometheus server."""

    server: Prometheus
    targets: dict[str, str]


@contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a module of Python; yields the first line of its output."""
    process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def prepare(servers: str) -> None:
    """Create a topic for small records only, and throttle a client."""
    async with aiokwire.Admin(servers) as admin:
        small = NewTopic("small", 1, configs={"max.message.bytes": 1_000})
        (await admin.create_topics([small, NewTopic("orders", 4), NewTopic("bulk", 1)])).check()
        await admin.alter_client_quotas({ClientQuotaEntity(client_id="throttled"): {"producer_byte_rate": 1_000}})


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    try:
        program("prometheus")
    except MissingPrerequisite as missing:
        lacking(str(missing))
    servers = f"127.0.0.1:{free_port()}"
    targets = {"broker": f"127.0.0.1:{free_port()}", "exporter": f"127.0.0.1:{free_port()}"}
    with ExitStack() as stack:
        line = stack.enter_context(
            running("aiokwire", "broker", "--listen", servers, "--metrics", targets["broker"], "--ready-json")
        )
        assert json.loads(line)["event"] == "ready"
        anyio.run(prepare, servers)
        targets["service"] = stack.enter_context(running("integration.monitoring.service", servers))
        stack.enter_context(
            running("aiokwire", "exporter", "-b", servers, "--listen", targets["exporter"], "--interval", "1")
        )
        server = stack.enter_context(prometheus(tmp_path_factory.mktemp("prometheus"), targets))
        yield Monitored(server, targets)


def expressions() -> list[str]:
    """Return every query of the dashboard, as Grafana sends it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [one.replace("$__rate_interval", "30s").replace("$client", ".*") for one in found]


def test_every_target_is_scraped_without_an_error(monitored: Monitored) -> None:
    for job in monitored.targets:
        assert monitored.server.wait_for(f'up{{job="{job}"}} == 1'), job
    active = monitored.server.get("targets")["activeTargets"]
    assert [one["lastError"] for one in active] == ["", "", ""]


@pytest.mark.parametrize("expression", expressions())
def test_every_query_of_the_dashboard_returns_data(monitored: Monitored, expression: str) -> None:
    assert monitored.server.wait_for(expression, SECONDS), expression


def test_types_and_descriptions_are_those_of_the_page(monitored: Monitored) -> None:
    assert monitored.server.wait_for('kafka_consumer_group_lag{messaging_consumer_group_name="billing"}')
    found = monitored.server.get("metadata")
    checked = 0
    for metric in metrics_page.ALL:
        name = name_of(metric)
        for each in found.get(name, found.get(f"{name}_total", ())):  # the first one is OpenMetrics' name of a counter
            assert (each["type"], each["help"]) == (metric.kind, metric.description)
            checked += 1
    assert checked > 50


def test_promtool_accepts_what_each_process_serves(monitored: Monitored) -> None:
    for at in monitored.targets.values():
        with urllib.request.urlopen(f"http://{at}/metrics") as answer:
            text = answer.read()
        done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, check=False)
        lines = done.stderr.decode().splitlines()
        complaints = [line for line in lines if not line.startswith("python_") and not line.endswith(SUFFIX)]
        assert complaints == []
