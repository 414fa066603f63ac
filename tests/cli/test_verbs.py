"""Every verb against a real broker process: its output and its exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aiokwire.cli.bench import Result as Figures
from aiokwire.cli.bench import show
from aiokwire.cli.main import cli

Run = Callable[..., Result]


def test_topics_are_listed_described_and_deleted(run: Run, topic: str) -> None:
    listed = [json.loads(line) for line in run("topics", "list", "--json").stdout.splitlines()]
    assert {"name": topic, "partitions": 2, "internal": False} in listed
    described = json.loads(run("topics", "describe", topic, "--json").stdout)
    assert [row["end"] for row in described["partitions"]] == [0, 0]
    deleted = run("topics", "delete", "--yes", topic)
    assert (deleted.exit_code, deleted.stdout) == (0, f"deleted {topic}\n")
    assert run("topics", "describe", topic).exit_code == 1


def test_a_topic_is_created_with_its_settings(run: Run) -> None:
    created = run("topics", "create", "short-lived", "-p", "1", "--config", "retention.ms=1000")
    assert created.exit_code == 0, created.output
    described = json.loads(run("topics", "describe", "short-lived", "--json").stdout)
    assert described["configs"] == {"retention.ms": "1000"}


def test_creating_an_existing_topic_is_an_error_unless_allowed(run: Run, topic: str) -> None:
    refused = run("topics", "create", topic)
    assert refused.exit_code == 1
    assert "TOPIC_ALREADY_EXISTS" in refused.stderr
    assert run("topics", "create", topic, "--if-not-exists").exit_code == 0


def test_lines_are_produced_and_consumed_in_order(run: Run, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text("k:1\nk:2\r\nk:\nk:4")
    sent = run("produce", topic, source, "--key-separator", ":", "--header", "from=test", "--compression", "zstd")
    assert (sent.exit_code, sent.stderr) == (0, f"4 records sent to {topic}\n")
    printed = run("consume", topic, "--exit-at-end", "--format", "%k=%s %h\\n")
    assert printed.stdout == "k=1 from=test\nk=2 from=test\nk= from=test\nk=4 from=test\n"


def test_produce_reads_the_json_that_consume_prints(run: Run, topic: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.json"
    lines.write_text(
        '{"key": "a", "value": {"n": 1}, "partition": 1, "headers": {"h": "1"}}\n'
        '{"key": "a", "value": null, "partition": 1}\n'
    )
    assert run("produce", topic, "--json", lines).exit_code == 0
    printed = run("consume", topic, "-e", "--json").stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [(row["partition"], row["key"], row["value"]) for row in rows] == [(1, "a", '{"n":1}'), (1, "a", None)]
    again = tmp_path / "again.json"
    again.write_text(printed)
    assert run("produce", topic, "--json", again).exit_code == 0
    assert len(run("consume", topic, "-e", "--json").stdout.splitlines()) == 4


def test_a_whole_file_is_one_record(run: Run, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").write_bytes(b"")
    assert run("produce", topic, "--whole", "-p", "0", tmp_path / "a", tmp_path / "b").exit_code == 0
    assert run("consume", topic, "-e", "-f", "%S;").stdout == "8;0;"


def test_consume_starts_at_the_given_offset_or_time(run: Run, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text("\n".join(str(number) for number in range(10)))
    assert run("produce", topic, source, "-p", "1").exit_code == 0
    options = ("-e", "-f", "%s ")
    assert run("consume", topic, "--from", "7", "-p", "1", *options).stdout == "7 8 9 "
    assert run("consume", topic, "--from", "-2", *options).stdout == "8 9 "
    assert run("consume", topic, "--from", "end", *options).stdout == ""
    assert run("consume", topic, "--from", "2001-01-01T00:00", *options).stdout == "0 1 2 3 4 5 6 7 8 9 "
    assert run("consume", topic, "--from", "2099-01-01T00:00", *options).stdout == ""
    assert run("consume", topic, "--max", "3", "-f", "%s ").stdout == "0 1 2 "


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("consume", "no-such-topic"), "no-such-topic"),
        (("consume", "orders", "-p", "9"), "has partitions 0 to 2, not 9"),
        (("consume", "orders", "-f", "%q"), "no directive %q"),
        (("consume", "orders", "--set", "fetch_max_byte=1"), "did you mean 'fetch_max_bytes'"),
        (("topics", "list", "-b", "127.0.0.1:1"), "127.0.0.1:1"),
        (("topics", "list", "-b", "a:b:c"), "a:b:c"),
        (("topics", "create", "bad name"), "bad name"),
        (("broker", "--set", "num_partition=3"), "did you mean"),
        (("broker", "--listen", "nowhere"), "nowhere"),
        (("bench", "produce", "orders", "-n", "10", "-z", "brotli"), "brotli"),
    ],
)
def test_an_error_is_one_line(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("error: ")
    assert complaint in result.stderr
    assert "Traceback" not in result.output


def test_a_record_that_is_too_large_fails_and_the_records_before_it_are_delivered(
    run: Run, topic: str, tmp_path: Path
) -> None:
    source = tmp_path / "lines"
    source.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\n")
    result = run("produce", topic, source)
    assert result.exit_code == 1
    assert "max_request_size" in result.stderr
    assert run("consume", topic, "-e").stdout == "small\n"


def test_bench_reports_its_rate(run: Run, topic: str) -> None:
    produced = json.loads(run("bench", "produce", topic, "-n", "5000", "--json").stdout)
    assert produced["records"] == 5000
    awaited = json.loads(run("bench", "produce", topic, "-n", "200", "--tasks", "20", "--json").stdout)
    assert awaited["latency_ms"]["p50"] > 0
    consumed = json.loads(run("bench", "consume", topic, "--json").stdout)
    assert consumed["records"] == 5202  # includes the record that each produce run sends first
    assert "records/s" in run("bench", "consume", topic).stdout


def test_bench_prints_large_figures_without_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    show("produce t", Figures(1_000_000, 100_000_000, 0.852256, 0.9, 150.25, {"p50": 1.25}), as_json=False)
    printed = capsys.readouterr().out
    assert "1,173,356 " in printed
    assert "1.250" in printed
    assert "150.250" not in printed


def test_produce_reads_standard_input(bootstrap: str, run: Run, topic: str) -> None:
    command = [sys.executable, "-m", "aiokwire", "produce", topic, "-p", "0", "-b", bootstrap]
    done = subprocess.run(command, input=b"a\nb", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, f"2 records sent to {topic}\n".encode())
    assert run("consume", topic, "-e").stdout == "a\nb\n"


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_a_waiting_consumer_cleanly(
    bootstrap: str, run: Run, topic: str, tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    source = tmp_path / "lines"
    source.write_text("ready\n")
    assert run("produce", topic, source).exit_code == 0
    command = [sys.executable, "-m", "aiokwire", "consume", topic, "-b", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (status, b"")


def test_help_lists_every_verb_and_loads_none_of_them() -> None:
    script = (
        "import sys; sys.argv = ['aiokwire', '--help']\n"
        "from aiokwire.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'rich' not in sys.modules and 'aiokwire.broker' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert all(verb in done.stdout for verb in ("broker", "topics", "produce", "consume", "bench", "demo"))


def test_members_of_a_group_resume_at_the_committed_offset(run: Run, topic: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number}\n" for number in range(10)))
    assert run("produce", topic, lines, "-p", "0").exit_code == 0
    options = ("--group", "readers", "-f", "%s ")
    assert run("consume", topic, "--max", "4", *options).stdout == "0 1 2 3 "
    assert run("consume", topic, "--max", "6", *options).stdout == "4 5 6 7 8 9 "
    wrong = run("consume", topic, "--group", "readers", "-p", "0")
    assert "a group assigns partitions" in wrong.stderr


def test_the_bootstrap_servers_may_be_given_at_every_level(bootstrap: str, topic: str) -> None:
    for arguments in (
        ("-b", bootstrap, "topics", "list"),
        ("topics", "-b", bootstrap, "list"),
        ("topics", "list", "-b", bootstrap),
        ("-b", "127.0.0.1:1", "topics", "list", "--bootstrap", bootstrap),
    ):
        result = CliRunner().invoke(cli, list(arguments), env={"AIOKWIRE_BOOTSTRAP": "127.0.0.1:2"})
        assert result.exit_code == 0, result.output
        assert f"{topic}\t2\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("topic", "list"), "Did you mean 'topics'?"),
        (("topics", "descibe"), "Did you mean 'describe'?"),
        (("groups", "zzz"), "Commands: delete, describe, list, reset."),
    ],
)
def test_the_error_for_a_mistyped_verb_names_the_nearest_one(run: Run, arguments: tuple[str, ...], hint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert hint in result.stderr


def test_without_a_terminal_tables_are_tab_separated_lines(run: Run, topic: str) -> None:
    lines = run("topics", "describe", topic).stdout.splitlines()
    assert lines[0].split("\t") == ["topic", "partition", "leader", "replicas", "in_sync", "begin", "end"]
    assert lines[1].split("\t") == [topic, "0", "1", "[1]", "[1]", "0", "0"]


def test_a_topic_is_created_with_configs_in_either_spelling(run: Run) -> None:
    configs = ("--set", "retention.ms=60000", "--set", "segment_bytes=1048576")
    assert run("topics", "create", "spelled", *configs).exit_code == 0
    described = json.loads(run("topics", "describe", "spelled", "--json").stdout)
    assert described["configs"] == {"retention.ms": "60000", "segment.bytes": "1048576"}


def test_consume_reads_several_topics_and_patterns(run: Run, tmp_path: Path) -> None:
    for name in ("many-a", "many-b", "other-c"):
        (tmp_path / name).write_text(f"{name}\n")
        assert run("topics", "create", name, "-p", "1").exit_code == 0
        assert run("produce", name, tmp_path / name).exit_code == 0
    assert sorted(run("consume", "many-a", "other-c", "-e").stdout.split()) == ["many-a", "other-c"]
    assert sorted(run("consume", "^many-.*", "-e").stdout.split()) == ["many-a", "many-b"]
    assert sorted(run("consume", "^many-.*", "-e", "-g", "pattern-readers").stdout.split()) == ["many-a", "many-b"]
    assert "no topic matches '^nothing.*'" in run("consume", "^nothing.*", "-e").stderr
    assert "is not a regular expression" in run("consume", "^(", "-e").stderr


def test_a_member_stops_at_the_end_that_the_log_had_when_it_was_assigned(run: Run, topic: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{number}\n" for number in range(10)))
    assert run("produce", topic, lines).exit_code == 0
    first = run("consume", topic, "--group", "to-the-end", "--exit-at-end", "-f", "%s ")
    assert sorted(map(int, first.stdout.split())) == list(range(10))
    again = run("consume", topic, "--group", "to-the-end", "--exit-at-end", "-f", "%s ")
    assert (again.exit_code, again.stdout) == (0, "")
