"""`aiokwire broker` as a process: the line it prints when it is ready, and how it stops."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from aiokwire.cli.main import cli


@contextmanager
def _started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "aiokwire", "broker", "--listen", "127.0.0.1:0", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def test_the_broker_prints_one_line_of_json_when_ready_and_stops_when_stdin_closes() -> None:
    with _started("--ready-json", "--exit-with-stdin", "--nodes", "2", "--set", "node.id=5") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        ready = json.loads(process.stdout.readline())
        assert (ready["event"], ready["pid"]) == ("ready", process.pid)
        assert [node["id"] for node in ready["nodes"]] == [5, 6]
        assert ready["bootstrap_servers"] == ",".join(node["address"] for node in ready["nodes"])
        assert ready["nodes"][0]["address"] == f"127.0.0.1:{ready['port']}"
        assert len(ready["cluster_id"]) == 22
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stdout.read() == ""


def test_sigterm_stops_the_broker_while_stdin_is_open() -> None:
    with _started("--ready-json", "--exit-with-stdin") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready"
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize("name", ["log.retention.hour", "log_retention_hour"])
def test_the_error_for_a_mistyped_config_names_the_nearest_one(name: str) -> None:
    result = CliRunner().invoke(cli, ["broker", "--listen", "127.0.0.1:0", "--set", f"{name}=1"])
    assert result.exit_code == 1
    assert "did you mean 'log.retention.hours'" in result.stderr


def test_an_option_of_the_command_is_not_a_config() -> None:
    result = CliRunner().invoke(cli, ["broker", "--set", "nodes=3"])
    assert result.exit_code == 2
    assert "nodes is not a broker config" in result.stderr


def test_help_shows_nodes_configs_and_journal() -> None:
    result = CliRunner().invoke(cli, ["broker", "--help"])
    for option in ("--nodes", "--set", "--journal", "--ready-json", "--exit-with-stdin", "--apply-retention"):
        assert option in result.output


def test_the_broker_prints_the_bound_address_and_that_of_the_clients() -> None:
    with _started("--listen", "0.0.0.0:0", "--exit-with-stdin") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"listening on 0\.0\.0\.0:(\d+), clients connect to 127\.0\.0\.1:(\d+)\n", line)
        assert found is not None, line
        assert found[1] == found[2]


@pytest.mark.parametrize("option", ["--listen", "--advertised"])
def test_a_broker_refuses_more_nodes_than_there_are_ports(option: str) -> None:
    """Regression: the ports wrapped around to 0 and 1."""
    result = CliRunner().invoke(cli, ["broker", "--listen", "127.0.0.1:0", option, "127.0.0.1:65535", "--nodes", "3"])
    assert result.exit_code == 1
    assert "127.0.0.1:65535 with 3 nodes needs the ports 65535 to 65537" in result.stderr


def test_a_topic_is_named_once() -> None:
    result = CliRunner().invoke(cli, ["broker", "--listen", "127.0.0.1:0", "--topic", "a:1", "--topic", "a:3"])
    assert result.exit_code == 2
    assert "--topic names a twice" in result.stderr


def test_an_unknown_host_is_reported_without_the_number_of_the_error() -> None:
    result = CliRunner().invoke(cli, ["broker", "--listen", "no host:0"])
    assert result.exit_code == 1
    assert "the host cannot be resolved (" in result.stderr
    assert "Errno" not in result.stderr


def test_a_secure_broker_names_its_client_properties_and_reuses_them(tmp_path: Path) -> None:
    data_dir, contents = str(tmp_path / "data"), []
    for _ in range(2):
        with _started("--secure", "--ready-json", "--exit-with-stdin", "--data-dir", data_dir) as process:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            properties = Path(ready["client_properties"])
            contents.append(properties.read_text())
            process.send_signal(signal.SIGHUP)  # reads the certificates; does not stop it
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(20) == 0
    assert contents[0] == contents[1]
    assert "security.protocol=SASL_SSL\n" in contents[0]


def test_a_secure_broker_in_memory_leaves_no_file() -> None:
    with _started("--secure", "--exit-with-stdin") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("SASL_SSL: listening on 127.0.0.1:")
        properties = Path(process.stdout.readline().rpartition(" ")[2].strip())
        password = re.search(r'password="([^"]+)"', properties.read_text())
        assert password is not None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
        assert password[1] not in process.stdout.read()
    assert not properties.exists()


@pytest.mark.parametrize(
    "arguments", [["--secure-dir", "x"], ["--secure", "--set", "listeners=PLAINTEXT://127.0.0.1:0"]]
)
def test_contradictory_options_of_security_are_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, ["broker", *arguments])
    assert result.exit_code == 2
    assert "--secure" in result.output


def test_listeners_of_kafkas_config_replace_the_default_address() -> None:
    settings = ["listeners=A://127.0.0.1:0,B://127.0.0.1:0", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"]
    process = subprocess.Popen(
        [sys.executable, "-m", "aiokwire", "broker", "--exit-with-stdin", "--set", settings[0], "--set", settings[1]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    output, _ = process.communicate(timeout=20)
    assert [line.partition(":")[0] for line in output.splitlines()] == ["A", "B"]
