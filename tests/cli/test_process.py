"""The process of a verb: closed descriptors, output that cannot be written, and early Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _shell(script: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell script, in which `"$@"` is the command line with the arguments."""
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "aiokwire", *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_verb_works_with_closed_standard_descriptors(bootstrap: str, closed: str) -> None:
    listed = _shell(f'"$@" {closed}', "topics", "list", "-b", bootstrap)
    assert (listed.returncode, listed.stderr) == (0, b"")
    assert (b"orders" in listed.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_produce_without_standard_input_sends_nothing(bootstrap: str) -> None:
    sent = _shell('"$@" <&-', "produce", "orders", "-b", bootstrap)
    assert (sent.returncode, sent.stderr) == (0, b"0 records sent to orders\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("topics", "create", "full-stdout", "--if-not-exists"),
        ("consume", "full-stdout-source", "-e"),
        ("broker", "--listen", "127.0.0.1:0"),
        ("--help",),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_the_error_of_a_full_standard_output_is_one_line(bootstrap: str, arguments: tuple[str, ...]) -> None:
    if arguments[0] == "consume":
        assert _shell('echo x | "$@"', "produce", "full-stdout-source", "-b", bootstrap).returncode == 0
    given = arguments if arguments[0] in ("broker", "--help") else (*arguments, "-b", bootstrap)
    for buffering in ("", "1"):
        failed = _shell(f'PYTHONUNBUFFERED={buffering} "$@" >/dev/full', *given)
        assert (failed.returncode, failed.stderr) == (1, b"error: standard output: No space left on device\n")


def test_a_reader_that_stops_reading_ends_a_verb_without_an_error(bootstrap: str) -> None:
    """The verb writes after its reader left: `true` ends at once, the output comes at the end."""
    listed = _shell('{ "$@"; echo "status $?" >&2; } | true', "topics", "list", "-b", bootstrap)
    assert listed.stderr == b"status 0\n"


@pytest.mark.parametrize("module", ["aiokwire.cli.main", "aiokwire.cli.topics", "aiokwire.cli.standard"])
def test_ctrl_c_during_the_imports_has_the_status_of_ctrl_c(module: str) -> None:
    script = f"""
import sys
sys.argv = ["aiokwire", "topics", "list"]
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from aiokwire.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_the_end_of_an_outage_is_logged_like_its_beginning() -> None:
    script = """
import logging
from aiokwire.cli.main import cli
cli(["demo", "--help"], standalone_mode=False)
for name in ("aiokwire.cluster.nodes", "aiokwire.cluster"):
    logging.getLogger(name).info("connected again")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stderr.count(b"connected again") == 1
    assert b"aiokwire.cluster.nodes" in done.stderr
