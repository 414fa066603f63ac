"""Time, randomness, sockets, threads and files are used through the seams only."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from tests.simulation.history import play
from tests.simulation.loop import SeamBypassed

PACKAGE = Path(__file__).parents[2] / "aiokwire"
OUTSIDE = (
    "cli/",
    "testing/",
    *(f"spark/{folder}/" for folder in ("archive", "audit", "jobs", "pipelines", "replay", "sql")),
)  # programs; none of their code runs within a client

# Calls that are allowed in the named modules only.
SEAMS = {
    r"\bimport time\b|\bfrom time import": {"clock.py"},
    r"\bto_thread\b|\brun_in_executor\b|\bThreadPool|\bThread\(|\bget_event_loop\(": {"threads.py"},
    r"\bsocket\.(socket|create_)|\bsock_(connect|recv|send)|\bopen_connection\b|\bstart_server\b": {
        "broker/acceptor.py"  # TLS, which simulated networks do not have
    },
    r"\bcreate_connection\(": {"net/dial.py"},
    r"\bcreate_server\(": {"broker/server.py"},
    r"(?<![\w.])(?<!def )(?<!int )open\(|\bshutil\.": {"broker/log/storage.py"},
    r"\bos\.(open|read|write|stat|listdir|scandir|remove|unlink|rename|replace|fsync)\(": {
        "broker/log/storage.py",
        "migration/files.py",  # source files of programs
    },
    r"\bos\.urandom|\buuid[14]\(|\bimport secrets|\brandom\.(?!Random\b)[a-z]\w*\(|\bSystemRandom": {
        "security/secret.py",
        *("outbox/leadership.py", "outbox/table.py"),  # ids of rows in a database, which is not simulated
    },
}
# Audit events of the interpreter that reveal a bypass while a history is played.
FORBIDDEN = {
    *("open", "os.listdir", "os.remove", "os.rename", "os.mkdir"),
    *("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo"),
    *("_thread.start_new_thread", "subprocess.Popen", "time.sleep"),
}


class _Watch:
    """The state of the audit hook: whether it is active, in which thread, and the events it saw."""

    installed = False
    on = False
    thread = 0
    seen: ClassVar[list[str]] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _Watch.on and event in FORBIDDEN and threading.get_ident() == _Watch.thread:
        _Watch.seen.append(f"{event} {arguments!r}")
        raise SeamBypassed(f"{event} {arguments!r}")


@contextmanager
def no_bypass() -> Iterator[None]:
    """Refuse files, sockets and threads within the block."""
    if not _Watch.installed:
        sys.addaudithook(_audit)  # cannot be removed, so it is only switched off
        _Watch.installed = True
    _Watch.seen.clear()
    _Watch.thread = threading.get_ident()  # others belong to other tests, such as PySpark's
    _Watch.on = True
    try:
        yield
    finally:
        _Watch.on = False


def _sources() -> list[Path]:
    found = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]
    return [path for path in found if not path.relative_to(PACKAGE).as_posix().startswith(OUTSIDE)]


@pytest.mark.parametrize("pattern", SEAMS)
def test_the_source_uses_only_the_seams(pattern: str) -> None:
    bypasses = []
    for path in _sources():
        name = path.relative_to(PACKAGE).as_posix()
        if name in SEAMS[pattern]:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("#", 1)[0]
            if re.search(pattern, code):
                bypasses.append(f"{name}:{number}: {line.strip()}")
    assert not bypasses


def test_a_simulated_cluster_uses_no_real_file_socket_or_thread() -> None:
    seeds = (1, 7)
    for seed in seeds:
        play(seed)  # loads the modules that are imported on first use
    for seed in seeds:
        with no_bypass():
            outcome = play(seed)
        assert not _Watch.seen
        assert not outcome.wrong, f"seed {seed}: {outcome.wrong}"


def test_the_audit_hook_detects_a_file() -> None:
    with no_bypass(), pytest.raises(SeamBypassed):
        open("nowhere")  # noqa: SIM115 - refused
