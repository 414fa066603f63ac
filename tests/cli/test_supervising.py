"""The processes of `aiokwire run`: started, restarted, replaced, stopped, killed if necessary."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.streams.buffered
import pytest

from aiokwire.cli.reloading import FileWatch, modification_times
from aiokwire.cli.supervising import Supervisor

# A process that reports over a connection to the test. Arguments: port, number, behaviour.
CHILD = """
import os, signal, socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
number, behaviour = sys.argv[2:]
def report(what):
    connection.sendall(f"{number} {what} {os.getpid()}\\n".encode())
terms = []
def on_term(*_):
    terms.append(1)
    report(f"term{len(terms)}")
    if len(terms) == (2 if behaviour == "slow" else 1):
        sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if behaviour == "stubborn" else on_term)
signal.signal(signal.SIGCONT, lambda *_: report("alive"))  # after the handlers of the signals before it
report("started")
if behaviour == "wrong":
    sys.exit(2)
while os.read(0, 100):
    pass
report("closed")
"""


class Children:
    """What the processes report, in the order of its arrival."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._received: asyncio.Queue[str] = asyncio.Queue()
        self._connected = 0
        self._ended = anyio.Event()

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        self._connected += 1
        buffered = anyio.streams.buffered.BufferedByteReceiveStream(stream)
        async with stream:
            with contextlib.suppress(anyio.IncompleteRead, anyio.BrokenResourceError):
                while True:
                    self._received.put_nowait((await buffered.receive_until(b"\n", 100)).decode())
        self._connected -= 1
        self._ended.set()

    async def ended(self) -> None:
        """Wait until everything that the processes sent has arrived."""
        while self._connected:
            self._ended = anyio.Event()
            await self._ended.wait()

    async def report(self) -> tuple[int, str, int]:
        """Return the next report: the number of the process, what it reports, its process id."""
        number, what, pid = (await self._received.get()).split()
        return int(number), what, int(pid)

    async def report_of(self, number: int) -> str:
        """Return what this process reports next; skip the reports of others."""
        while True:
            reporter, what, _ = await self.report()
            if reporter == number:
                return what

    async def started(self, *numbers: int) -> dict[int, int]:
        """Wait until these have started; return their process ids."""
        found = {}
        for _ in numbers:
            number, what, pid = await self.report()
            assert what == "started"
            found[number] = pid
        assert sorted(found) == sorted(numbers)
        return found


@asynccontextmanager
async def supervised(
    behaviours: Mapping[int, str],
    *,
    starting: Callable[[int], object] = lambda number: None,
    grace: float = 40.0,
    changed: Callable[[], Awaitable[str]] | None = None,
    status: int = 0,
) -> AsyncIterator[Children]:
    """Run a supervisor, which must end by itself after the block, with this status."""
    statuses: list[int] = []

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        children = Children(listener.extra(anyio.abc.SocketAttribute.local_port))

        def command(number: int) -> list[str]:
            starting(number)
            return [sys.executable, "-S", "-c", CHILD, str(children.port), str(number), behaviours[number]]

        async def run() -> None:
            supervisor = Supervisor(command, len(behaviours), grace=grace, changed=changed, rng=random.Random(1))
            statuses.append(await supervisor.run())

        with anyio.fail_after(40):
            async with anyio.create_task_group() as serving:
                serving.start_soon(listener.serve, children.serve)
                async with anyio.create_task_group() as supervising:
                    supervising.start_soon(run)
                    yield children
                await children.ended()
                serving.cancel_scope.cancel()
    assert statuses == [status]


def stop(signal_number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), signal_number)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_all_processes_in_order(number: int) -> None:
    async with supervised({1: "", 2: ""}) as children:
        pids = await children.started(1, 2)
        stop(number)
    assert sorted([await children.report(), await children.report()]) == [
        (1, "term1", pids[1]),
        (2, "term1", pids[2]),
    ]
    assert not any(map(is_running, pids.values()))


async def test_a_process_that_dies_is_started_again_and_the_others_continue(caplog: pytest.LogCaptureFixture) -> None:
    async with supervised({1: "", 2: ""}) as children:
        pids = await children.started(1, 2)
        os.kill(pids[2], signal.SIGKILL)
        again = await children.started(2)
        assert again[2] != pids[2]
        assert is_running(pids[1])
        stop()
    assert "process 2 ended with SIGKILL, restarting in 0." in caplog.text


async def test_a_process_that_does_not_stop_is_killed_after_the_grace_period(caplog: pytest.LogCaptureFixture) -> None:
    async with supervised({1: "stubborn", 2: ""}, grace=0.2, status=1) as children:
        pids = await children.started(1, 2)
        stop()
    assert not is_running(pids[1])
    assert f"process 1 (pid {pids[1]}) is still running 0.2 s after SIGTERM: killing it" in caplog.text


async def test_a_second_signal_is_passed_on() -> None:
    async with supervised({1: "slow"}) as children:
        await children.started(1)
        stop()
        assert (await children.report())[1] == "term1"
        stop()
        assert (await children.report())[1] == "term2"


async def test_a_process_that_starts_during_the_stop_ends_and_the_others_receive_one_signal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "aiokwire.cli.run")
    starts: list[int] = []

    def starting(number: int) -> None:
        starts.append(number)
        if len(starts) == 3:
            stop()

    async with supervised({1: "slow", 2: ""}, starting=starting) as children:
        pids = await children.started(1, 2)
        os.kill(pids[2], signal.SIGKILL)
        assert await children.report_of(1) == "term1"
        while caplog.text.count("started") < 3:
            await anyio.lowlevel.checkpoint()
        os.kill(pids[1], signal.SIGCONT)
        assert await children.report_of(1) == "alive"
        stop()
        assert await children.report_of(1) == "term2"


async def test_a_process_that_cannot_be_started_as_configured_ends_all() -> None:
    async with supervised({1: "wrong", 2: ""}, status=2):
        pass


async def test_a_cancelled_supervisor_leaves_no_process() -> None:
    with anyio.CancelScope() as scope:
        async with supervised({1: "stubborn", 2: ""}) as children:
            pids = await children.started(1, 2)
            scope.cancel()
    assert not any(map(is_running, pids.values()))


class Changes:
    """Reports a change whenever the test makes one."""

    def __init__(self) -> None:
        self._made = anyio.Event()

    def make(self) -> None:
        self._made.set()

    async def wait(self) -> str:
        await self._made.wait()
        self._made = anyio.Event()
        return "service.py"


async def test_a_change_replaces_all_processes(caplog: pytest.LogCaptureFixture) -> None:
    changes = Changes()
    async with supervised({1: "", 2: ""}, changed=changes.wait) as children:
        before = await children.started(1, 2)
        changes.make()
        reports = [await children.report() for _ in range(4)]
        after = {number: pid for number, what, pid in reports if what == "started"}
        assert {(number, pid) for number, what, pid in reports if what == "term1"} == set(before.items())
        assert after.keys() == before.keys()
        assert not set(after.values()) & set(before.values())
        stop()
    assert "service.py changed: restarting 2 process(es)" in caplog.messages


async def test_a_process_that_cannot_be_started_waits_for_a_change() -> None:
    changes, behaviours = Changes(), {1: "wrong"}
    async with supervised(behaviours, changed=changes.wait) as children:
        await children.started(1)
        await children.ended()
        behaviours[1] = ""
        changes.make()
        await children.started(1)
        stop()


# --- files ------------------------------------------------------------------------------------------------------------


async def test_a_changed_added_or_deleted_file_is_a_change() -> None:
    a, b = Path("a.py"), Path("b.py")
    looks = iter([{a: 1, b: 1}, {a: 1, b: 1}, {a: 1, b: 2}, {b: 2}])
    watch = FileWatch(Path(), lambda _: next(looks))
    with anyio.fail_after(30):
        assert [await watch.changed() for _ in range(2)] == ["b.py", "a.py"]


def test_only_python_files_outside_generated_folders_are_watched(tmp_path: Path) -> None:
    for name in ("service.py", "package/module.py", "notes.txt", ".venv/x.py", "__pycache__/y.py", "venv/z.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    found = {str(path.relative_to(tmp_path)) for path in modification_times(tmp_path)}
    assert found == {"service.py", "package/module.py"}
