"""Between clients and a broker, frame by frame: stops a request or its answer until something was done about it.

The broker advertises the proxy's address, so that everything passes here, also what it asks of itself. `Trap` says
which request is waited for, and at which moment of it; who armed it is told the process that sent the request.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from aiokwire.protocol import ApiKey, decode_response, encode_response
from aiokwire.protocol.messages import api_versions
from integration.kafka.server import free_port

FEATURE: Final = "transaction.version"
_HEAD: Final = struct.Struct(">hhi")
_LONGEST: Final = 2**31
_LATE_SECONDS: Final = 20.0  # a request that is to be late comes at the latest then


class Moment(enum.Enum):
    """Of a request whose sender dies."""

    BEFORE = "before"  # the broker never gets it
    AFTER = "after"  # it took place, and the answer is lost
    LATE = "late"  # the broker gets it when the next one has asked for a producer id, and was answered


@dataclasses.dataclass
class Trap:
    """Waits for the `nth` request of a kind from now on, of a process that `whose` accepts."""

    api: ApiKey
    moment: Moment
    spring: Callable[[int], Awaitable[None]]
    """Called with the process id of the sender, which may be gone; what was stopped goes on when it is done."""
    whose: Callable[[int], bool] = lambda pid: True
    nth: int = 1
    sprung: anyio.Event = dataclasses.field(default_factory=anyio.Event)


@dataclasses.dataclass
class _Asked:
    api: int
    version: int
    trap: Trap | None = None
    sender: int = 0


class Proxy:
    """`async with Proxy(port_of_the_broker) as proxy`; one trap at a time."""

    def __init__(self, upstream: int, *, first_protocol: bool = False) -> None:
        """`first_protocol` hides from clients that the broker knows a newer one of transactions than the first."""
        self.port = free_port()
        self.trap: Trap | None = None
        self.upstream = upstream
        self._first_protocol = first_protocol
        self._identified = anyio.Event()  # set, and replaced, when somebody was given a producer id
        self._group: anyio.abc.TaskGroup | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def address(self) -> str:
        """What the broker has to advertise."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Proxy:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self.port)
        self._stack.push_async_callback(listener.aclose)  # when nobody serves it any more
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        self._group.start_soon(listener.serve, self._serve)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._group is not None
        self._group.cancel_scope.cancel()
        await self._stack.aclose()

    async def _serve(self, client: anyio.abc.SocketStream) -> None:
        peer = client.extra(anyio.abc.SocketAttribute.remote_port)
        asked: deque[_Asked] = deque()
        with contextlib.suppress(OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            async with client, await anyio.connect_tcp("127.0.0.1", self.upstream) as broker:
                with contextlib.suppress(anyio.ClosedResourceError):
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._requests, client, broker, asked, peer, group.cancel_scope)
                        group.start_soon(self._answers, client, broker, asked, group.cancel_scope)

    async def _requests(
        self,
        client: anyio.abc.SocketStream,
        broker: anyio.abc.SocketStream,
        asked: deque[_Asked],
        peer: int,
        both: anyio.CancelScope,
    ) -> None:
        source = BufferedByteReceiveStream(client)
        with contextlib.suppress(OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            while True:
                frame = await _frame(source)
                api, version, _ = _HEAD.unpack_from(frame, 4)
                one = _Asked(api, version)
                trap = self._caught(one, peer)
                if trap is not None and trap.moment is Moment.AFTER:
                    one.trap = trap
                elif trap is not None:
                    next_one = self._identified
                    await _spring(trap, one.sender)
                    if trap.moment is Moment.BEFORE:
                        break
                    with anyio.move_on_after(_LATE_SECONDS):
                        await next_one.wait()
                asked.append(one)
                await broker.send(frame)
        both.cancel()

    async def _answers(
        self,
        client: anyio.abc.SocketStream,
        broker: anyio.abc.SocketStream,
        asked: deque[_Asked],
        both: anyio.CancelScope,
    ) -> None:
        source = BufferedByteReceiveStream(broker)
        with contextlib.suppress(OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            while True:
                frame = await _frame(source)
                one = asked.popleft()
                if one.trap is not None:
                    await _spring(one.trap, one.sender)
                    break
                if one.api == ApiKey.API_VERSIONS and self._first_protocol:
                    frame = _without_second(frame, one.version)
                await client.send(frame)
                if one.api == ApiKey.INIT_PRODUCER_ID:
                    self._identified.set()
                    self._identified = anyio.Event()
        both.cancel()

    def _caught(self, one: _Asked, peer: int) -> Trap | None:
        """The trap, when this is what it waits for."""
        trap = self.trap
        if trap is None or one.api != trap.api:
            return None
        one.sender = process_of(peer, self.port)
        if not trap.whose(one.sender):
            return None
        trap.nth -= 1
        if trap.nth:
            return None
        self.trap = None
        return trap


async def _spring(trap: Trap, sender: int) -> None:
    with anyio.CancelScope(shield=True):  # the connection ends with its process
        await trap.spring(sender)
        trap.sprung.set()


async def _frame(source: BufferedByteReceiveStream) -> bytes:
    size = await source.receive_exactly(4)
    return size + await source.receive_exactly(int.from_bytes(size))


def _without_second(frame: bytes, version: int) -> bytes:
    """An answer to ApiVersions, as a broker gives it whose cluster runs the first protocol of transactions."""
    answer = decode_response(memoryview(frame)[4:], api_versions.ApiVersionsResponse, version)
    for feature in answer.finalized_features:
        if feature.name == FEATURE:
            feature.max_version_level = min(feature.max_version_level, 1)
    (correlation,) = struct.unpack_from(">i", frame, 4)
    return b"".join(encode_response(answer, version, correlation))


def process_of(port: int, to: int) -> int:
    """The process that has a loopback connection from one port to another, 0 when it is gone; Linux only."""
    inode = ""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{port:04X}") and fields[2].endswith(f":{to:04X}"):
            inode = fields[9]
    if inode in ("", "0"):
        return 0
    wanted = f"socket:[{inode}]"
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(folder / entry) == wanted:
                        return int(folder.parent.name)
    return 0
