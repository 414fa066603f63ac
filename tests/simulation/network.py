"""A network in memory: connections with latency, bandwidth, back-pressure and failures.

Bytes are copied only when the window lets them leave the transport's buffer, as in uvloop and
newer asyncio, so reusing a buffer too early corrupts data. Each transport runs its protocol in the
context it was made in, as asyncio does.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import errno
import os
import socket
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.loop import SimLoop

HERE: contextvars.ContextVar[str] = contextvars.ContextVar("simulated host", default="10.9.9.9")


@dataclasses.dataclass
class Weather:
    """How the network behaves now. Sizes are in bytes, times in seconds, chances from 0 to 1."""

    latency: tuple[float, float] = (0.0001, 0.002)
    bandwidth: float = 1e9
    segment: tuple[int, int] = (1, 60_000)
    window: int = 65_536
    refuse: float = 0.0
    unresolved: float = 0.0
    cut: float = 0.0  # chance of a connection to break after some bytes
    cut_after: int = 30_000  # bytes, at most


def _os_error(kind: type[OSError], number: int) -> OSError:
    return kind(number, os.strerror(number))


class SimServer(asyncio.AbstractServer):
    """One listening address."""

    def __init__(self, network: Network, factory: Callable[[], Any], place: tuple[str, int], *, serving: bool) -> None:
        self._network = network
        self.factory = factory
        self.place = place
        self.serving = serving
        self.context = contextvars.copy_context()

    @property
    def sockets(self) -> list[SimServer]:
        return [self]

    def getsockname(self) -> tuple[str, int]:
        return self.place

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    async def start_serving(self) -> None:
        self.serving = True

    def is_serving(self) -> bool:
        return self.serving

    def close(self) -> None:
        self.serving = False
        self._network.forget(self)

    async def serve_forever(self) -> None:
        raise NotImplementedError("the broker does not use it")

    async def wait_closed(self) -> None:
        """Return at once: `close` takes no time."""


class SimTransport(asyncio.Transport):
    """One end of a connection."""

    peer: SimTransport

    def __init__(self, network: Network, number: int, host: str, addresses: tuple[Any, Any], context: Any) -> None:
        super().__init__({"sockname": addresses[0], "peername": addresses[1]})
        self._network = network
        self._loop = network.loop
        self.number = number
        self.host = host
        self.context = context
        self.protocol: Any = None
        self.closing = False
        self.lost = False  # connection_lost is due or done
        self.dead = False  # the host died: no more bytes leave
        self.sent_to_dead_process = False
        self.broken = False  # no more bytes get through; the reset is on its way
        self.cut_after: int | None = None  # bytes that still leave before the connection breaks
        self._out: deque[memoryview] = deque()
        self._out_size = 0
        self._outstanding = 0  # bytes that the peer has not taken yet
        self._writing_paused = False
        self._high, self._low = 65_536, 16_384
        self._flight: deque[bytes | OSError | None] = deque()  # bytes, the end (None), a reset
        self._held = 0  # arrivals held by a partition of the network
        self._last_arrival = 0.0
        self._inbox: deque[bytes] = deque()
        self._peer_ended = False
        self._reading = True

    def __repr__(self) -> str:
        return f"<SimTransport {self.number} at {self.host}>"

    # --- what a protocol calls ----------------------------------------------------------------------------------------

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self.closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 65_536 if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._out_size

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self.closing or self.lost:
            return
        for data in list_of_data:
            view = memoryview(data).cast("B")
            if len(view):
                self._out.append(view)
                self._out_size += len(view)
        self._push()
        if self._out_size > self._high and not self._writing_paused and not self.lost:
            self._writing_paused = True
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._deliver, context=self.context)

    def is_reading(self) -> bool:
        return self._reading and not self.closing

    def close(self) -> None:
        if self.closing:
            return
        self.closing = True
        if not self._out:
            self._send_end()

    def abort(self) -> None:
        self.closing = True
        if not self.lost:
            self._send(_os_error(ConnectionResetError, errno.ECONNRESET))
            self.lose(None)

    # --- out ----------------------------------------------------------------------------------------------------------

    def _send_end(self) -> None:
        if self.lost:
            return
        # The operating system sends a reset when a program closes with unread bytes.
        self._send(_os_error(ConnectionResetError, errno.ECONNRESET) if self._inbox else None)
        self.lose(None)

    def _push(self) -> None:
        weather = self._network.weather
        while self._out and self._outstanding < weather.window and not self.lost and not self.broken:
            view = self._out[0]
            size = min(len(view), weather.window - self._outstanding, self._loop.rng.randint(*weather.segment))
            broken = self.cut_after is not None and size >= self.cut_after
            if self.cut_after is not None:
                size = min(size, self.cut_after)
                self.cut_after -= size
            if size:
                self._send(bytes(view[:size]))
                self._outstanding += size
                self._out_size -= size
                if size == len(view):
                    self._out.popleft()
                else:
                    self._out[0] = view[size:]
            if broken:
                self._network.break_connection(self)
        if self.closing and not self._out:
            self._send_end()

    def _send(self, item: bytes | OSError | None) -> None:
        if self.dead:
            return
        weather = self._network.weather
        size = len(item) if isinstance(item, bytes) else 0
        delay = self._loop.rng.uniform(*weather.latency) + size / weather.bandwidth
        self._last_arrival = max(self._last_arrival + size / weather.bandwidth, self._loop.time() + delay)
        self._flight.append(item)
        self._loop.call_at(self._last_arrival, self._arrive, context=self.peer.context)

    def _acknowledged(self, size: int) -> None:
        self._network.events += 1
        self._outstanding -= size
        if self.lost:
            return
        self._push()
        if self._writing_paused and self._out_size <= self._low and not self.lost:
            self._writing_paused = False
            self.protocol.resume_writing()

    # --- in -----------------------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """Move the next item in flight to the other end."""
        self._network.events += 1
        if self._network.separated(self.host, self.peer.host):
            self._held += 1
            return
        item = self._flight.popleft()
        if self.peer.dead:
            self.sent_to_dead_process = True
            self._network.reset_for_dead_process(self)
        else:
            self.peer._take(item)

    def release(self) -> None:
        """Release held items: the partition of the network has ended."""
        held, self._held = self._held, 0
        for _ in range(held):
            self._loop.call_soon(self._arrive, context=self.peer.context)

    def _take(self, item: bytes | OSError | None) -> None:
        if isinstance(item, OSError):
            self._network.loop.note("reset", self.number)
            self.closing = True
            self.lose(item)
        elif self.lost:
            if item is not None:
                self._send(_os_error(ConnectionResetError, errno.ECONNRESET))
        elif item is None:
            self._peer_ended = True
            self._deliver()
        else:
            self._inbox.append(item)
            self._deliver()

    def _deliver(self) -> None:
        while self._inbox and self._reading and not self.closing:
            data = self._inbox.popleft()
            if isinstance(self.protocol, asyncio.BufferedProtocol):
                buffer = memoryview(self.protocol.get_buffer(-1))
                size = min(len(buffer), len(data))
                buffer[:size] = data[:size]
                if size < len(data):
                    self._inbox.appendleft(data[size:])
                self._consumed(data[:size])
                self.protocol.buffer_updated(size)
            else:
                self._consumed(data)
                self.protocol.data_received(data)
        if self._peer_ended and self._reading and not self.closing and not self.protocol.eof_received():
            self.close()

    def _consumed(self, data: bytes) -> None:
        self._loop.note("in", self.number, len(data), zlib.crc32(data))
        latency = self._loop.rng.uniform(*self._network.weather.latency)
        self._loop.call_later(latency, self.peer._acknowledged, len(data), context=self.peer.context)

    # --- the end ------------------------------------------------------------------------------------------------------

    def lose(self, error: OSError | None) -> None:
        """End this end of the connection."""
        if self.lost:
            return
        self.lost = self.closing = True
        self._out.clear()
        self._out_size = 0
        self._loop.call_soon(self._report_lost, error, context=self.context)

    def _report_lost(self, error: OSError | None) -> None:
        self._network.gone(self)
        if self.protocol is not None:
            self.protocol.connection_lost(error)


class Network:
    """Hosts by their IP address, names, and the faults between them."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        loop.network = self
        self.weather = Weather()
        self.names: dict[str, str] = {}
        self.transports: dict[int, SimTransport] = {}  # both ends of each connection, until each is gone
        self._servers: dict[tuple[str, int], SimServer] = {}
        self._silent: set[str] = set()  # hosts without power
        self._walls: set[frozenset[str]] = set()  # pairs of hosts that do not reach each other
        self._waiting: list[asyncio.Future[None]] = []  # attempts to connect without a response
        self.events = 0  # arrivals, and acknowledgements that free window
        self._numbers = 0
        self._ports = 40_000

    # --- the loop's side ----------------------------------------------------------------------------------------------

    async def resolve(self, name: str) -> str:
        """Return the address of a name, after a moment."""
        await self._pass_a_moment()
        ip = self.names.get(name)
        if ip is None or self.loop.rng.random() < self.weather.unresolved:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ip

    async def connect(self, factory: Callable[[], Any], ip: str, port: int) -> tuple[SimTransport, Any]:
        """As `loop.create_connection`."""
        here = HERE.get()
        await self._pass_a_moment()
        while ip in self._silent or self.separated(here, ip):
            waiter = self.loop.create_future()
            self._waiting.append(waiter)
            await waiter
        server = self._servers.get((ip, port))
        if server is None or not server.serving or self.loop.rng.random() < self.weather.refuse:
            raise _os_error(ConnectionRefusedError, errno.ECONNREFUSED)
        self._numbers += 2
        self._ports += 1
        mine, theirs = (here, self._ports), server.place
        near = SimTransport(self, self._numbers, here, (mine, theirs), contextvars.copy_context())
        far = SimTransport(self, self._numbers + 1, ip, (theirs, mine), server.context)
        near.peer, far.peer = far, near
        for end in (near, far):
            self.transports[end.number] = end
        if self.loop.rng.random() < self.weather.cut:
            self.loop.rng.choice((near, far)).cut_after = self.loop.rng.randint(0, self.weather.cut_after)
        near.protocol, far.protocol = factory(), server.context.run(server.factory)
        self.loop.note("connect", near.number, here, ip)
        far.context.run(far.protocol.connection_made, far)
        near.protocol.connection_made(near)
        return near, near.protocol

    def listen(self, factory: Callable[[], Any], ip: str, port: int, *, serving: bool) -> SimServer:
        """As `loop.create_server`."""
        if port == 0:
            self._ports += 1
            port = self._ports
        if (ip, port) in self._servers:
            raise _os_error(OSError, errno.EADDRINUSE)
        server = self._servers[(ip, port)] = SimServer(self, factory, (ip, port), serving=serving)
        return server

    async def _pass_a_moment(self) -> None:
        done = self.loop.create_future()
        timer = self.loop.call_later(self.loop.rng.uniform(*self.weather.latency), _set, done)
        try:
            await done
        finally:
            timer.cancel()

    # --- the transports' side -----------------------------------------------------------------------------------------

    def separated(self, one: str, other: str) -> bool:
        """Return whether two hosts cannot reach each other now."""
        return frozenset((one, other)) in self._walls

    def forget(self, server: SimServer) -> None:
        """Remove a closed server."""
        if self._servers.get(server.place) is server:
            del self._servers[server.place]

    def gone(self, transport: SimTransport) -> None:
        """Remove an end of a connection whose protocol has been notified."""
        self.transports.pop(transport.number, None)

    def reset_for_dead_process(self, sender: SimTransport) -> None:
        """Reset a connection to a dead process, if its host has power."""
        if sender.peer.host not in self._silent and not sender.lost:
            self.loop.call_later(0.001, sender._take, _os_error(ConnectionResetError, errno.ECONNRESET))

    def break_connection(self, transport: SimTransport) -> None:
        """Break a connection: each end receives a reset after the bytes in flight to it."""
        for end in (transport, transport.peer):
            if not end.broken:
                end.broken = True
                end._send(_os_error(ConnectionResetError, errno.ECONNRESET))

    # --- faults -------------------------------------------------------------------------------------------------------

    def break_some(self, chance: float) -> None:
        """Break some connections at once."""
        for transport in list(self.transports.values()):
            if transport.number % 2 == 0 and self.loop.rng.random() < chance:
                self.break_connection(transport)

    def separate(self, one: str, other: str) -> None:
        """Separate two hosts: what they send is held until `join`."""
        self._walls.add(frozenset((one, other)))

    def join(self) -> None:
        """Let every host reach every other one again."""
        self._walls.clear()
        self._retry_connects()
        for transport in list(self.transports.values()):
            transport.release()

    def kill(self, ip: str, *, silent: bool) -> None:
        """Kill the programs of a host; its system resets their connections unless `silent`."""
        for place in [place for place in self._servers if place[0] == ip]:
            del self._servers[place]
        if silent:
            self._silent.add(ip)
        for transport in list(self.transports.values()):
            if transport.host == ip and not transport.dead:
                if not silent and not transport.lost:
                    transport._send(_os_error(ConnectionResetError, errno.ECONNRESET))
                transport.dead = True
                transport.lose(_os_error(ConnectionResetError, errno.ECONNRESET))

    def power_on(self, ip: str) -> None:
        """Bring a silent host back, without its connections."""
        self._silent.discard(ip)
        self._retry_connects()
        for transport in list(self.transports.values()):
            if transport.peer.host == ip and transport.peer.dead and transport.sent_to_dead_process:
                self.reset_for_dead_process(transport)

    def _retry_connects(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _set(waiter)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
