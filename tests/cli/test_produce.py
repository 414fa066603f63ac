"""`aiokwire produce`: separators, inputs, and what it prints when it cannot go to their end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("separator", "line", "printed"),
    [
        ("§", "k§v", "k|v"),
        ("\\", "k\\v", "k|v"),
        ("\\t", "k\tv\tw", "k|v\tw"),
        ("\\x3a", "k:v", "k|v"),
    ],
    ids=["not-ascii", "backslash", "tab", "hexadecimal"],
)
def test_keys_are_split_at_any_separator(
    run: Run, topic: str, tmp_path: Path, separator: str, line: str, printed: str
) -> None:
    source = tmp_path / "lines"
    source.write_text(f"{line}\n")
    sent = run("produce", topic, source, "-K", separator)
    assert (sent.exit_code, sent.stderr) == (0, f"1 record sent to {topic}\n")
    assert run("consume", topic, "-e", "-f", "%k|%s").stdout == printed


def test_an_empty_separator_is_refused(run: Run, topic: str) -> None:
    refused = run("produce", topic, "-K", "")
    assert refused.exit_code == 2
    assert "the separator must not be empty" in refused.stderr


def test_keys_and_headers_of_the_shell_need_not_be_utf8(run: Run, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text("v\n")
    assert run("produce", topic, source, "-k", "\udcff", "-H", "h=\udcfe").exit_code == 0
    assert run("consume", topic, "-e", "-f", "%k %h").stdout_bytes == b"\xff h=\xfe"


@pytest.mark.parametrize("options", [(), ("--whole",)])
def test_a_device_is_read_to_its_end(bootstrap: str, topic: str, options: tuple[str, ...]) -> None:
    sent = f"{len(options)} record{'' if options else 's'} sent to {topic}\n".encode()
    for files, standard_input in ((), subprocess.DEVNULL), (("/dev/null",), subprocess.PIPE):
        command = [sys.executable, "-m", "aiokwire", "produce", topic, *files, *options, "-b", bootstrap]
        done = subprocess.run(command, stdin=standard_input, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, sent)


def test_a_dash_is_standard_input(bootstrap: str, topic: str, run: Run) -> None:
    command = [sys.executable, "-m", "aiokwire", "produce", topic, "-", "-b", bootstrap]
    done = subprocess.run(command, input=b"a\n", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, f"1 record sent to {topic}\n".encode())
    assert run("consume", topic, "-e").stdout == "a\n"


def test_the_records_before_a_bad_line_are_counted(run: Run, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text("a:1\nb:2\nc\nd:4\n")
    result = run("produce", topic, source, "-K", ":")
    complaint = f"error: {source}:3: the line does not contain the key separator ':': 'c'\n"
    assert (result.exit_code, result.stderr) == (1, f"2 records sent to {topic}\n{complaint}")
    assert run("consume", topic, "-e", "-f", "%s ").stdout in ("1 2 ", "2 1 ")


def test_the_error_for_a_partition_that_does_not_exist_names_the_line(run: Run, topic: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.write_text('{"value": "x"}\n{"value": "y", "partition": 9}\n')
    result = run("produce", topic, "--json", source)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"1 record sent to {topic}\nerror: {source}:2: partition 9")


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """Restore SIGINT: background jobs of a shell ignore it, and so do their child processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_of_the_input_is_a_failure_with_a_summary(
    bootstrap: str, topic: str, sent: signal.Signals, status: int
) -> None:
    produce = [sys.executable, "-m", "aiokwire", "produce", topic, "-b", bootstrap, "--set", "linger_ms=0"]
    consume = [sys.executable, "-m", "aiokwire", "consume", topic, "-b", bootstrap, "-c", "1"]
    with subprocess.Popen(produce, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        arrived = subprocess.run(consume, capture_output=True, timeout=60, check=True)
        assert arrived.stdout == b"first\n"
        process.send_signal(sent)
        assert process.wait(60) == status
        assert process.stderr.read() == f"1 record sent to {topic}\n".encode()


def test_reading_stops_at_the_first_record_that_is_not_delivered() -> None:
    """Standard input stays open: the failure ends the command."""
    serve = [sys.executable, "-m", "aiokwire", "broker", "--listen", "127.0.0.1:0", "--topic", "t"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        server = broker.stdout.readline().removeprefix("listening on ").strip()
        timeouts = ("--set", "delivery.timeout.ms=1000", "--set", "request.timeout.ms=500")
        produce = [sys.executable, "-m", "aiokwire", "produce", "t", "-b", server, *timeouts]
        with subprocess.Popen(produce, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(b"first\n")
            process.stdin.flush()
            consume = [sys.executable, "-m", "aiokwire", "consume", "t", "-c", "1", "-b", server]
            subprocess.run(consume, capture_output=True, timeout=60, check=True)
            broker.kill()
            broker.wait(60)
            process.stdin.write(b"second\n")
            process.stdin.flush()
            assert process.wait(60) == 1
            errors = process.stderr.read()
    assert b"\n1 record sent to t\nerror: 1 record was not delivered: " in errors
    assert b"Traceback" not in errors
