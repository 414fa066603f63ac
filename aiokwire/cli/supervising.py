"""Supervises the processes of `aiokwire run`: restarts those that end, and stops all of them.

Each has a pipe as its standard input and stops when that is closed, so that none outlives its
supervisor. Each has its own session: Ctrl-C in a terminal reaches only the supervisor.
"""

from __future__ import annotations

import contextlib
import logging
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import anyio
import anyio.abc

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time

logger: logging.Logger = logging.getLogger("aiokwire.cli.run")

# The pause before a process that ended is started again (seconds).
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
# A process that ran for this long has not failed at its start: the next pause is the first again.
STEADY: Final = 60.0
# The status of a process that cannot be started as it is configured; another attempt would fail, too.
USAGE: Final = 2
# How long to wait for a process after SIGKILL.
KILL_TIMEOUT: Final = 10.0

_ORDERLY: Final = (0, -signal.SIGTERM)  # the second: before its handler of SIGTERM was in place


class Supervisor:
    """Keeps `count` processes of a command running until it is stopped.

    Args:
        command: returns the command of process 1, 2, ...
        count: the number of processes.
        grace: seconds between SIGTERM and SIGKILL.
        changed: waits until the processes must be replaced; None: never. With it, a process that
            cannot be started is started again only after a change.
        rng: varies the pauses.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        count: int,
        *,
        grace: float,
        changed: Callable[[], Awaitable[str]] | None = None,
        rng: random.Random,
    ) -> None:
        self._command = command
        self._count = count
        self._grace = grace
        self._changed = changed
        self._rng = rng
        self._running: dict[int, anyio.abc.Process] = {}
        self._stopping = anyio.Event()
        self._replacing = anyio.Event()  # set when the processes that were started before it are replaced
        self._status = 0

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, or until a process cannot be started; return the status.

        It is 0 if all processes ended in order, 1 if one had to be killed or failed while it
        stopped, 2 if one cannot be started. A second signal is passed on to the processes.
        """
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_on_signals, signals)
                if self._changed is not None:
                    tasks.start_soon(self._replace_on_changes, self._changed)
                try:
                    async with anyio.create_task_group() as processes:
                        for number in range(1, self._count + 1):
                            processes.start_soon(self._keep_running, number)
                finally:
                    await self._kill_all()
                tasks.cancel_scope.cancel()
        return self._status

    async def _stop_on_signals(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            if self._stopping.is_set():
                logger.warning("received %s again: forwarding it to %d process(es)", number.name, len(self._running))
                for process in self._running.values():
                    _terminate(process)
            self._stop()

    async def _replace_on_changes(self, changed: Callable[[], Awaitable[str]]) -> None:
        while True:
            what = await changed()
            if self._stopping.is_set():
                return
            logger.warning("%s changed: restarting %d process(es)", what, self._count)
            replacing, self._replacing = self._replacing, anyio.Event()
            replacing.set()

    async def _keep_running(self, number: int) -> None:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, rng=self._rng)
        while not self._stopping.is_set():
            replacing = self._replacing
            started = loop_time()
            status = await self._run_once(number, replacing)
            if self._stopping.is_set():
                self._status = self._status or (0 if status in _ORDERLY else 1)
                return
            if replacing.is_set():
                continue
            if status == USAGE and self._changed is None:
                self._give_up()
                return
            if loop_time() - started >= STEADY:
                backoff.reset()
            await self._pause(number, status, backoff, replacing)

    async def _run_once(self, number: int, replacing: anyio.Event) -> int:
        """Start a process and wait for its end; return its status, negative for a signal."""
        process = await anyio.open_process(
            self._command(number), stdin=subprocess.PIPE, stdout=None, stderr=None, start_new_session=True
        )
        async with process, anyio.create_task_group() as tasks:
            self._running[number] = process
            logger.info("process %d (pid %d) started", number, process.pid)
            tasks.start_soon(self._end_when, replacing, number, process)
            try:
                status = await process.wait()
            finally:
                del self._running[number]
            tasks.cancel_scope.cancel()
        return status

    async def _end_when(self, replacing: anyio.Event, number: int, process: anyio.abc.Process) -> None:
        """Terminate a process that must be replaced or stopped; kill it after the grace period."""
        await replacing.wait()
        _terminate(process)
        await anyio.sleep(self._grace)
        if process.returncode is not None:  # it ended in this turn of the loop
            return
        logger.error(
            "process %d (pid %d) is still running %g s after SIGTERM: killing it; its unfinished records are "
            "delivered again",
            number,
            process.pid,
            self._grace,
        )
        process.kill()

    def _give_up(self) -> None:
        """Stop, because a process cannot be started as it is configured."""
        self._status = USAGE
        self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        self._replacing.set()

    async def _pause(self, number: int, status: int, backoff: Backoff, replacing: anyio.Event) -> None:
        """Wait before a restart; with `changed`, after a failed start until there is a change."""
        if status == USAGE:
            logger.warning("process %d could not be started: waiting for a change", number)
            await replacing.wait()
            return
        pause = backoff.next()
        logger.warning("process %d ended with %s, restarting in %.1f s", number, _described(status), pause)
        with anyio.move_on_after(pause):
            await replacing.wait()

    async def _kill_all(self) -> None:
        """Leave none behind after an error or a cancellation."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(KILL_TIMEOUT):
            for process in list(self._running.values()):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


def _terminate(process: anyio.abc.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()


def _described(status: int) -> str:
    return f"status {status}" if status >= 0 else signal.Signals(-status).name
