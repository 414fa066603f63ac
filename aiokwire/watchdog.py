"""Detects a blocked event loop: how long, and by which line. Runs beside it (`threads.run_beside`).

The thread pings the loop and checks one threshold later: without a response, it keeps the stack of
the loop's thread. The loop itself reports the block once it runs again: the thread must not log,
since the code that blocks the loop may hold a lock of the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import anyio

logger: logging.Logger = logging.getLogger(__name__)

THRESHOLD: Final = 1.0  # seconds; shorter blocks are not reported
MAX_FRAMES: Final = 40
_OWN: Final = (str(Path(__file__).parent), "<")  # "<frozen ...>" and the like
_STDLIB: Final = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_LIBRARIES: Final = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
# The end of the last block that was logged: several consumers of one loop log it once.
_logged: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()


class Frame(NamedTuple):
    """One line of a stack."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclasses.dataclass(frozen=True, slots=True)
class BlockedLoop:
    """A period in which the event loop was blocked by one callback or step of a task."""

    seconds: float
    """At least this long, at most a second longer."""
    where: Frame | None
    """The innermost line of the program's own code. None: the watchdog was blocked, too, as when the process is
    suspended, or when a library computes without releasing the interpreter's lock."""
    stack: tuple[Frame, ...]
    """The innermost line last."""

    def __str__(self) -> str:
        if self.where is None:
            return (
                f"the event loop was blocked for {self.seconds:.1f} s, and so was every other thread: the process was "
                "suspended, starved of CPU, or in a library that holds the interpreter's lock"
            )
        return f"the event loop was blocked for {self.seconds:.1f} s at {self.where}: do such work in a thread"


class Watchdog:
    """Watches the loop on which it is created."""

    def __init__(
        self,
        on_blocked: Callable[[BlockedLoop], None],
        *,
        on_delay: Callable[[float], None] | None = None,
        threshold: float = THRESHOLD,
    ) -> None:
        """`on_blocked` runs on the watched loop as it resumes after `threshold` seconds or more,
        `on_delay` with the seconds that each ping took to reach it."""
        self._on_blocked = on_blocked
        self._on_delay = on_delay
        self._asked = 0.0  # when the last ping was sent; written by the thread
        self._threshold = threshold
        self._here = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._clock = self._here.time  # the thread's loop's, once it runs: that of a blocked loop may not advance
        self._answered: float | None = None  # when the loop responded to the last ping; written by both loops
        # The start and the stack of a block: written by the thread, taken by the watched loop.
        self._noticed: tuple[float, tuple[Frame, ...]] | None = None

    async def run(self) -> None:
        """Watch until cancelled, from another loop; returns at once on the watched loop itself."""
        there = asyncio.get_running_loop()
        if there is self._here:
            return
        self._clock = there.time
        with contextlib.suppress(RuntimeError):  # the watched loop was closed
            while True:
                await self._ping()

    async def _ping(self) -> None:
        """Ping the loop, and wait for its response.

        Raises: RuntimeError: the loop is closed.
        """
        self._asked = asked = self._clock()
        self._answered = None
        self._here.call_soon_threadsafe(self._answer)
        await anyio.sleep(self._threshold)
        if self._answered is not None and self._answered - asked < self._threshold:
            return
        late = self._clock() - asked >= 2 * self._threshold  # this thread was blocked, too
        self._noticed = asked, () if late or self._answered is not None else self._look()
        if self._answered is not None:  # the loop responded before the line above
            self._here.call_soon_threadsafe(self._report, self._answered)
        while self._answered is None and not self._here.is_closed():  # noqa: ASYNC110 - an Event belongs to one loop
            await anyio.sleep(self._threshold)

    def _look(self) -> tuple[Frame, ...]:
        frame = sys._current_frames().get(self._thread)  # the documented way to get another thread's stack
        return stack_of(frame)

    # --- on the watched loop ------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        self._answered = now = self._clock()
        if self._on_delay is not None:
            self._on_delay(max(0.0, now - self._asked))
        self._report(now)

    def _report(self, until: float) -> None:
        noticed, self._noticed = self._noticed, None
        if noticed is None:
            return
        since, stack = noticed
        blocked = BlockedLoop(until - since, own_frame(stack), stack)
        if until - _logged.get(self._here, float("-inf")) > self._threshold:
            logger.warning("%s", blocked)
        _logged[self._here] = until
        self._on_blocked(blocked)


def stack_of(frame: FrameType | None) -> tuple[Frame, ...]:
    """Return the innermost frames of a stack, the innermost last. Reads no source file."""
    frames: list[Frame] = []
    while frame is not None and len(frames) < MAX_FRAMES:
        code = frame.f_code
        frames.append(Frame(code.co_filename, frame.f_lineno, code.co_qualname))
        frame = frame.f_back
    return tuple(reversed(frames))


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of the program's own code; without one, the innermost outside of
    Python and this package; else the innermost."""
    foreign = [frame for frame in stack if not frame.file.startswith(_OWN) and not _is_stdlib(frame.file)]
    program = [frame for frame in foreign if not frame.file.startswith(_LIBRARIES)]
    innermost = program or foreign or stack  # the application itself may be installed among the libraries
    return innermost[-1] if innermost else None


def _is_stdlib(file: str) -> bool:
    return file.startswith(_STDLIB) and not file.startswith(_LIBRARIES)  # libraries may be installed within
