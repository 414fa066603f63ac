"""An asyncio event loop with simulated time: it jumps to the next timer when the loop is idle.

Its network is `network.Network`. Using threads, sockets or files other than by the package's seams
raises SeamBypassed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import socket
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, TypeVarTuple

import anyio
import anyio.lowlevel
import pytest
from anyio._backends._asyncio import CancelScope

if TYPE_CHECKING:
    from tests.simulation.network import Network

T = TypeVar("T")
Args = TypeVarTuple("Args")

EPOCH = 1_767_225_600.0  # the simulated wall clock at the loop's time 0
BEGINNING = 5_000.0  # the loop's clock at the start: far from 0 and from the wall clock, to expose mix-ups
SAME_MOMENT = 20_000  # turns of the loop without time passing; beyond these, a task spins
LAST_LINES = 400  # of the trace, kept for the report


class SeamBypassed(BaseException):
    """Code used a real thread, socket or file; no `except Exception` of the package hides it."""


class Standstill(BaseException):
    """The run is not over and nothing is scheduled: a task waits forever, without a deadline."""


class BusyLoop(BaseException):
    """The loop turns without time passing."""


class SimTask(asyncio.Task[Any]):
    """A task hashed by its number: anyio's sets of tasks have the same order in every run."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, number: int, **options: Any) -> None:
        self._sim_number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._sim_number


class SimLoop(asyncio.BaseEventLoop):
    """A loop with simulated time, for one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.rng = random.Random(f"loop {seed}")
        self.network: Network | None = None
        self.turns = 0
        self.lines: deque[str] = deque(maxlen=LAST_LINES)
        self.faults: list[str] = []  # calls of the exception handler: a run must have none
        self._now = BEGINNING
        self._same_moment = 0
        self._tasks = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._selector = self  # BaseEventLoop waits by calling its `select`
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._on_fault)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> SimTask:
        self._tasks += 1
        return SimTask(coro, number=self._tasks, loop=loop, **options)

    def _on_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.faults.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- time ---------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def wall_time(self) -> float:
        """The seam of `aiokwire.clock`."""
        return EPOCH + self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Advance time where BaseEventLoop would sleep, once in every turn."""
        self.turns += 1
        if timeout is None:
            raise Standstill(f"nothing is scheduled at {self._now:.3f}")
        if timeout > 0:
            self._now += timeout
            self._same_moment = 0
            return []
        self._same_moment += 1
        if self._same_moment > SAME_MOMENT:
            raise BusyLoop(f"{SAME_MOMENT} turns at {self._now:.6f}")
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: the network uses timers."""

    def _write_to_self(self) -> None:
        if threading.get_ident() != getattr(self, "_thread_id", None) and self.is_running():
            raise SeamBypassed("another thread calls into the loop")

    # --- threads ------------------------------------------------------------------------------------------------------

    async def run_in_thread(self, func: Callable[[*Args], T], *args: *Args) -> T:
        """Run `func` on the loop, later and uncancellably, in place of `aiokwire.threads`."""
        await anyio.lowlevel.checkpoint()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(self.rng.expovariate(2000))
            try:
                result = func(*args)
            finally:
                await anyio.sleep(self.rng.expovariate(5000))
        return result

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]  # refuses all
        raise SeamBypassed(f"run_in_executor({func!r})")

    # --- the network --------------------------------------------------------------------------------------------------

    async def getaddrinfo(  # type: ignore[override]  # the few arguments that the package gives
        self, host: str, port: int, **options: Any
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        assert self.network is not None
        ip = await self.network.resolve(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    async def create_connection(  # type: ignore[override]  # as above
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> tuple[Any, Any]:
        assert self.network is not None
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]  # as above
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> Any:
        assert self.network is not None
        return self.network.listen(protocol_factory, host, port, serving=options.get("start_serving", True))

    # --- the trace ----------------------------------------------------------------------------------------------------

    def note(self, *what: object) -> None:
        """Record an observable event in the trace and its hash."""
        line = f"{self._now - BEGINNING:.9f} {' '.join(map(str, what))}"
        self.lines.append(line)
        self._digest.update(line.encode())

    @property
    def trace_hash(self) -> str:
        return self._digest.hexdigest()

    @property
    def elapsed(self) -> float:
        """Return the simulated seconds since the start."""
        return self._now - BEGINNING

    def pending_timers(self) -> list[asyncio.TimerHandle]:
        """Return the timers that would still fire."""
        scheduled: list[asyncio.TimerHandle] = getattr(self, "_scheduled")  # noqa: B009 - private in typeshed
        return [handle for handle in scheduled if not handle.cancelled()]


class _Ordered(dict[CancelScope, None]):
    """The methods of a set of scopes that anyio uses, in insertion order."""

    def add(self, scope: CancelScope) -> None:
        self[scope] = None

    def remove(self, scope: CancelScope) -> None:
        del self[scope]

    def discard(self, scope: CancelScope) -> None:
        self.pop(scope, None)


@contextlib.contextmanager
def _scopes_in_order() -> Iterator[None]:
    """Order a scope's children: anyio keeps them in a set and would cancel them in random order."""
    original = CancelScope.__init__

    def ordered(scope: CancelScope, *args: Any, **options: Any) -> None:
        original(scope, *args, **options)
        scope._child_scopes = _Ordered()  # type: ignore[assignment]  # it is used as a set of these methods

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CancelScope, "__init__", ordered)
        yield


def run(loop: SimLoop, main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to the end and close the loop."""
    try:
        with _scopes_in_order():
            return loop.run_until_complete(main)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        leftovers = getattr(loop, "_ready")  # noqa: B009 - private in typeshed
        try:
            for _ in range(50):  # leftovers of a failed run end here and do not warn later
                if not leftovers:
                    break
                loop.call_soon(loop.stop)
                loop.run_forever()
        finally:
            loop.close()
