"""Runs the main loops of published applications, unchanged, on `aiokwire.compat.aiokafka`.

    python -m integration.compat.programs
    python -m integration.compat.programs 4.3.1 faust

Each program runs as `python -m aiokwire.compat.aiokafka run PROGRAM` against a broker of its own on
port 9092, where they all look for it. A check in `program_checks` observes in the broker what the
program did; then the program is interrupted, and must end without a complaint about something that
was left open. The second argument selects programs by a part of their names.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from integration.compat import program_checks as checks
from integration.compat.aiokafka_suite import server_named
from integration.compat.environment import python_with
from integration.compat.faststream_suite import PACKAGES, PORT
from integration.compat.program_checks import Check, Running
from integration.compat.sources import AIOKAFKA, FASTSTREAM, copied, unpacked

SECONDS: Final = 90.0


@dataclass(frozen=True)
class Program:
    """An application's program, and how its effect is observed."""

    project: str
    arguments: tuple[str, ...]
    topics: tuple[str, ...]
    check: Check

    @property
    def name(self) -> str:
        """The project and the program."""
        return f"{self.project} {self.arguments[-1]}"


def _aiokafka(script: str, topic: str, check: Check) -> Program:
    return Program("aiokafka", (script,), (topic,), check)


def _faststream(module: str, topics: tuple[str, ...], check: Check) -> Program:
    return Program("faststream", ("-m", "faststream", "run", f"{module}:app"), topics, check)


PROGRAMS: Final = (
    _aiokafka("simple_produce.py", "test-topic", checks.produces),
    _aiokafka("idempotent_produce.py", "test-topic", checks.produces),
    _aiokafka("batch_produce.py", "my_topic", checks.produces_batches),
    _aiokafka("transactional_produce.py", "test-topic", checks.aborts_a_transaction),
    _aiokafka("simple_consumer.py", "my_topic", checks.prints_what_is_sent),
    _aiokafka("local_state_consumer.py", "test", checks.counts_keys_as_a_member),
    _faststream("ack_after_process", ("test",), checks.commits_after_processing),
    _faststream("batch_publish_3", ("test", "response"), checks.answers_in_batches),
)


def _aiokafka_home() -> tuple[Path, Path]:
    return Path(sys.executable), copied(unpacked(AIOKAFKA), "aiokafka-programs") / "examples"


def _faststream_home() -> tuple[Path, Path]:
    folder = copied(unpacked(FASTSTREAM), "faststream-programs")
    return python_with(*PACKAGES, name="faststream"), folder / "examples" / "kafka"


# By project: the interpreter, and the directory of the programs.
HOMES: Final[dict[str, Callable[[], tuple[Path, Path]]]] = {
    "aiokafka": _aiokafka_home,
    "faststream": _faststream_home,
}


def check_port_is_free() -> None:
    """Raises: SystemExit: another process listens where the programs expect the broker."""
    with closing(socket.socket()) as probe:
        if probe.connect_ex(("127.0.0.1", PORT)) == 0:
            sys.exit(f"port {PORT} of 127.0.0.1 is in use, and the programs have that address: end what listens on it")


async def observed(program: Program, broker: str, home: tuple[Path, Path]) -> str:
    """Run a program; return what its check observed.

    Raises: AssertionError, TimeoutError: it did something else.
    """
    python, folder = home
    command = [str(python), "-m", "aiokwire.compat.aiokafka", "run", *program.arguments]
    check_port_is_free()
    with closing(server_named(broker, PORT)) as server:
        server.start()
        async with Running(command, folder, server.bootstrap_servers, program.topics) as running:
            with anyio.fail_after(SECONDS):
                found = await program.check(running)
            await running.end()
    return found


def result_of(program: Program, broker: str, home: tuple[Path, Path]) -> tuple[str, bool]:
    """Return a line of the table, and whether the program passed."""
    try:
        return f"| {program.name} | {anyio.run(observed, program, broker, home)} | passed |", True
    except (AssertionError, TimeoutError) as error:
        print(*getattr(error, "__notes__", ()), file=sys.stderr)  # what the program printed
        return f"| {program.name} | {str(error) or f'not what was expected in {SECONDS:.0f} s'} | failed |", False


def run(broker: str, selected: str) -> int:
    """Run the programs whose names contain `selected`; return 1 if one failed."""
    chosen = [program for program in PROGRAMS if selected in program.name]
    homes = {project: HOMES[project]() for project in {program.project for program in chosen}}
    print("| program | observed | result |\n|---|---|---|", flush=True)
    passed = []
    for program in chosen:
        line, ok = result_of(program, broker, homes[program.project])
        print(line, flush=True)
        passed.append(ok)
    return 0 if chosen and all(passed) else 1


def main(arguments: Sequence[str]) -> int:
    """Run as the module's docstring shows."""
    broker, selected = (*arguments, "", "")[:2]
    return run(broker or "embedded", selected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
