"""An event loop with virtual time: it jumps to the next timer when nothing else can happen.

Connections within the loop use socket pairs, on which data arrives at once: when no socket is
ready, no data is in flight, and the clock may jump. Other sockets and threads run in real time:
while one is in use, the clock does too.
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, TypeVarTuple, cast

import anyio
import anyio.lowlevel
import anyio.to_thread

T = TypeVar("T")
Args = TypeVarTuple("Args")
Place = tuple[str, int]

# Seconds between two rounds of the periodic work of clients and broker: a jump over an hour has 60 of them.
BACKGROUND_PAUSE: Final = 60.0
_FIRST_PORT: Final = 49_152  # of the clients' ends, which have no port


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose clock is advanced by the loop itself: sleeping takes no time.

    Pass it as a `loop_factory` to `asyncio.Runner` or pytest-asyncio, or call
    `run_in_virtual_time`. Timers fire in their order, timeouts of code that only computes never
    fire. `time.time()`, `time.monotonic()` and `datetime.now()` are not virtual; `wall_time()` is.
    """

    def __init__(self) -> None:
        self._waiter = _Waiter(self, selectors.DefaultSelector())
        super().__init__(cast("selectors.BaseSelector", self._waiter))
        self._now = 0.0
        self._began = time.time()  # noqa: TID251 - where the virtual wall clock starts
        self._servers: list[asyncio.Server] = []
        self._accepting: dict[Place, tuple[asyncio.Server, Callable[[], Any]]] = {}
        self._ends: dict[int, asyncio.BaseTransport] = {}  # of connections within the loop, by descriptor
        self._calls = 0  # in threads
        self._ports = _FIRST_PORT
        self._limiter: anyio.CapacityLimiter | None = None

    # --- time ---------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual time in seconds, 0 at the start."""
        return self._now

    def wall_time(self) -> float:
        """Return virtual seconds since the epoch; `aiokwire.clock` reads it for timestamps."""
        return self._began + self._now

    def background_pause(self, seconds: float) -> float:
        """Make the pause of periodic work longer, see `aiokwire.clock.background_pause`."""
        return max(seconds, BACKGROUND_PAUSE)

    def advance(self, seconds: float) -> None:
        """Move the clock; for the loop itself."""
        self._now += seconds

    def real_work(self) -> str | None:
        """Return the work outside the loop, during which time must not jump; None without any."""
        calls = self._calls + (self._limiter.borrowed_tokens if self._limiter is not None else 0)
        if calls:
            return f"{calls} call(s) in threads"
        sockets = self._waiter.registered - self._own_descriptors()
        return f"{len(sockets)} open socket(s) or pipe(s) to outside of the loop" if sockets else None

    def _own_descriptors(self) -> set[int]:
        own = {self._ssock.fileno()}  # type: ignore[attr-defined]  # wakes the loop from threads
        self._ends = {number: end for number, end in self._ends.items() if not end.is_closing()}
        listening = (one.fileno() for server in self._servers for one in server.sockets)
        return own.union(self._ends, listening)

    # --- threads ------------------------------------------------------------------------------------------------------

    async def run_in_thread(self, func: Callable[[*Args], T], *args: *Args) -> T:
        """Run `func` on the loop, in place of `aiokwire.threads`."""
        await anyio.lowlevel.checkpoint()
        return func(*args)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # its variadic types
        """Run `func` in a thread; the clock runs in real time until it returns."""
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._calls += 1
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _future: asyncio.Future[Any]) -> None:
        self._calls -= 1

    async def shutdown_default_executor(self, *timeout: Any) -> None:
        """End the threads; the clock runs in real time until they have ended."""
        self._calls += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._calls -= 1

    def watch_threads(self) -> None:
        """Also watch the threads of `anyio.to_thread`; called in a task of the loop."""
        self._limiter = anyio.to_thread.current_default_thread_limiter()

    # --- connections --------------------------------------------------------------------------------------------------

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        """Listen as any loop, and for connections within the loop without the network."""
        server = await super().create_server(protocol_factory, host, port, **options)
        self._servers = [one for one in self._servers if one.sockets] + [server]
        if options.get("ssl") is None:
            for one in server.sockets:
                self._accepting[one.getsockname()[:2]] = server, protocol_factory
        return server

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        """Connect to a server of this loop by a socket pair, to any other one by the network."""
        server, accept = self._accepting.get((host, port), (None, None))
        if server is None or accept is None or not server.is_serving() or options.get("ssl") is not None:
            return await super().create_connection(protocol_factory, host, port, **options)
        self._ports += 1
        near, far = _pair((host, self._ports), (host, port))
        transport, _ = await self.connect_accepted_socket(accept, far)
        self._ends[far.fileno()] = transport
        transport, protocol = await super().create_connection(protocol_factory, sock=near)
        self._ends[near.fileno()] = transport
        return transport, protocol


class _Waiter:
    """The selector of the loop: where the loop would wait, the clock is advanced instead."""

    def __init__(self, loop: VirtualTimeLoop, selector: selectors.BaseSelector) -> None:
        self._loop = loop
        self._selector = selector

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)

    @property
    def registered(self) -> set[int]:
        """The descriptors that the loop waits for."""
        return {key.fd for key in self._selector.get_map().values()}

    def select(self, timeout: float | None = None) -> list[Any]:
        """Return the ready descriptors; without any, advance the clock by `timeout` seconds."""
        events = self._selector.select(0)
        if events or timeout == 0:
            return events
        if timeout is None or self._loop.real_work() is not None:
            return self._wait(timeout)
        self._loop.advance(timeout)
        return []

    def _wait(self, timeout: float | None) -> list[Any]:
        began = time.perf_counter()
        events = self._selector.select(timeout)
        elapsed = time.perf_counter() - began
        self._loop.advance(elapsed if timeout is None or events else max(elapsed, timeout))
        return events


class _End(socket.socket):
    """One end of a connection within the loop, with the addresses that the network would give."""

    addresses: tuple[Place, Place]

    def getsockname(self) -> Place:
        return self.addresses[0]

    def getpeername(self) -> Place:
        return self.addresses[1]

    def setsockopt(self, level: int, *arguments: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *arguments)


def _pair(near: Place, far: Place) -> tuple[_End, _End]:
    """Return both ends of a connection between these addresses."""
    ends = []
    for one, addresses in zip(socket.socketpair(), ((near, far), (far, near)), strict=True):
        end = _End(one.family, one.type, one.proto, one.detach())
        end.addresses = addresses
        end.setblocking(False)
        ends.append(end)
    return ends[0], ends[1]


def run_in_virtual_time(main: Callable[[*Args], Coroutine[Any, Any, T]], *args: *Args) -> T:
    """Run a coroutine function on a `VirtualTimeLoop`, for tests without pytest-asyncio."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main(*args))
