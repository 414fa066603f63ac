"""`aiokwire exporter` and `aiokwire broker --metrics`, scraped over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.cli import exporter
from aiokwire.cli.metrics_server import parse_address, serve_metrics
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConfigurationError
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.threads import run_in_thread
from aiokwire.types import TopicPartition
from tests.metric_values import value_of


def scrape(url: str) -> dict[str, float]:
    """Return the sum of each series' values, by its name."""
    with urllib.request.urlopen(url, timeout=30) as response:
        text = response.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


async def committed(broker: Broker, group: str, offset: int) -> None:
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.alter_group_offsets(group, {TopicPartition("t", 0): offset})


async def test_a_round_measures_the_lag_of_the_groups_whose_name_matches() -> None:
    async with Broker(topics={"t": 1}) as broker, Admin(broker.bootstrap_servers) as admin:
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send_many("t", [b"x"] * 10)
        await committed(broker, "billing", 4)
        await committed(broker, "other", 1)
        lags = exporter.GroupLags(admin, re.compile("bill.*"))
        await lags.measure(10)
        found = lags.metrics()
        assert value_of(found, exporter.LAG, name="billing", id="0") == 6
        assert value_of(found, exporter.COMMITTED) == 4
        assert value_of(found, exporter.END) == 10
        assert value_of(found, exporter.GROUPS) == 1
        assert value_of(found, exporter.FAILURES) == 0


async def test_a_group_that_cannot_be_read_is_left_out_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    async with Broker(topics={"t": 1}) as broker, Admin(broker.bootstrap_servers) as admin:
        await committed(broker, "g", 0)
        lags = exporter.GroupLags(admin, re.compile(".*"))
        broker.faults.on(ApiKey.OFFSET_FETCH).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        await lags.measure(10)
        assert value_of(lags.metrics(), exporter.FAILURES) == 1
        assert "group 'g': not measured" in capsys.readouterr().err
        broker.faults.clear_rules()
        await lags.measure(10)
        assert value_of(lags.metrics(), exporter.LAG, name="g") == 0


async def test_metrics_are_served_over_http() -> None:
    async with Broker(topics={"t": 1}) as broker:
        async with serve_metrics("127.0.0.1:0", broker) as url:
            found = await run_in_thread(scrape, url)
        assert found["kafka_server_topic_count"] >= 1


@pytest.mark.parametrize("text", ["9308", "localhost", "localhost:http", "localhost:70000", ""])
def test_an_address_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="write HOST:PORT"):
        parse_address(text)


def test_ipv6_addresses_stand_in_brackets() -> None:
    assert parse_address("[::1]:9308") == ("::1", 9308)


async def test_a_port_that_is_taken_is_named() -> None:
    async with Broker() as broker:
        with pytest.raises(ConfigurationError, match=f"cannot serve metrics on 127.0.0.1:{broker.port}"):
            async with serve_metrics(f"127.0.0.1:{broker.port}", broker):
                pass


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "aiokwire", *arguments], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert running.stdout is not None
    try:
        yield running
    finally:
        running.terminate()
        assert running.wait(20) == 0
        running.stdout.close()


def url_of(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("serving metrics at "):
            return line.removeprefix("serving metrics at ").strip()
    raise AssertionError("it ended without serving")


def test_the_broker_command_serves_the_metrics_of_the_broker() -> None:
    with process("broker", "--listen", "127.0.0.1:0", "--topic", "t:2", "--metrics", "127.0.0.1:0") as running:
        assert scrape(url_of(running))["kafka_server_topic_count"] == 1


def test_the_exporter_serves_until_it_is_stopped(bootstrap: str) -> None:
    with process("exporter", "-b", bootstrap, "--listen", "127.0.0.1:0") as running:
        found = scrape(url_of(running))
        assert found["kafka_exporter_failure_total"] == 0
        assert found["kafka_connection_count"] >= 1
