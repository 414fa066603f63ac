"""A proxy before a broker that holds a request or its response until a callback has run.

The broker advertises the proxy's address, so that all requests pass through it, including those
that the broker sends to itself. `Trap` selects a request and the moment; its callback receives the
process id of the sender.
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
_LATE_SECONDS: Final = 20.0  # the longest delay of a late request


class Moment(enum.Enum):
    """The moment of a request at which its sender dies."""

    BEFORE = "before"  # the broker does not receive it
    AFTER = "after"  # it takes effect, and the response is lost
    LATE = "late"  # the broker receives it after the next client has got its producer id


@dataclasses.dataclass
class Trap:
    """Waits for the next `nth` request of an API from a process that `whose` accepts."""

    api: ApiKey
    moment: Moment
    spring: Callable[[int], Awaitable[None]]
    """Called with the process id of the sender, which may be dead.

    The request is released when it returns.
    """
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

    def __init__(self, upstream: int, *, v1_only: bool = False) -> None:
        """`v1_only` hides the broker's support of transactions V2 from clients."""
        self.port = free_port()
        self.trap: Trap | None = None
        self.upstream = upstream
        self._v1_only = v1_only
        self._identified = anyio.Event()  # set, and replaced, when a client gets a producer id
        self._group: anyio.abc.TaskGroup | None = None
        self._stack = contextlib.AsyncExitStack()

    @property
    def address(self) -> str:
        """The address that the broker must advertise."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Proxy:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=self.port)
        self._stack.push_async_callback(listener.aclose)  # after the tasks that serve it
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
                if one.api == ApiKey.API_VERSIONS and self._v1_only:
                    frame = _without_v2(frame, one.version)
                await client.send(frame)
                if one.api == ApiKey.INIT_PRODUCER_ID:
                    self._identified.set()
                    self._identified = anyio.Event()
        both.cancel()

    def _caught(self, one: _Asked, peer: int) -> Trap | None:
        """Return the trap if it waits for this request."""
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


def _without_v2(frame: bytes, version: int) -> bytes:
    """Return an ApiVersions response without transactions V2."""
    answer = decode_response(memoryview(frame)[4:], api_versions.ApiVersionsResponse, version)
    for feature in answer.finalized_features:
        if feature.name == FEATURE:
            feature.max_version_level = min(feature.max_version_level, 1)
    (correlation,) = struct.unpack_from(">i", frame, 4)
    return b"".join(encode_response(answer, version, correlation))


def process_of(port: int, to: int) -> int:
    """Return the process with a loopback connection between two ports, 0 if it is dead.

    Linux only.
    """
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
