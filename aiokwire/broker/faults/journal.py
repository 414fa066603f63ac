"""The journal: the last requests received, for tests of clients. Bounded in requests and bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import anyio

from aiokwire.broker.dispatch import Call
from aiokwire.clock import loop_time
from aiokwire.protocol import ApiKey, Request, decode_request

R = TypeVar("R", bound=Request[Any])

MAX_BYTES = 1 << 26  # of requests that are kept; the oldest are dropped first
PATIENCE = 5.0  # seconds that a test waits for a request by default


class JournalEntry:
    """One request as received; decoded at first use."""

    __slots__ = ("_frame", "_request", "api", "client_id", "connection", "node", "time", "version")

    def __init__(self, call: Call, frame: bytes, time: float) -> None:
        self.api: ApiKey = ApiKey(call.api)
        self.version: int = call.version
        self.node: int = call.node.id
        self.client_id: str | None = call.client_id
        self.connection: int = call.connection_id
        self.time: float = time  # of the loop
        self._frame = frame
        self._request: Request[Any] | None = None

    @property
    def request(self) -> Request[Any]:
        """The request, with its records as the client sent them."""
        if self._request is None:
            self._request = decode_request(self._frame, trailing=True)[1]
        return self._request

    @property
    def size(self) -> int:
        """Bytes of the request with its header."""
        return len(self._frame)

    def __repr__(self) -> str:
        return f"<{self.api.name} v{self.version} at node {self.node} from {self.client_id!r}, {self.size} bytes>"


class Journal:
    """The last requests received, the oldest first, handled or not. Owned by `Interceptor`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[JournalEntry] = deque()
        self._bytes = 0
        self._arrival = anyio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[JournalEntry]:
        return iter(list(self._entries))

    def add(self, call: Call, frame: bytearray) -> None:
        """Append a request before it is handled, which changes its records in place."""
        self._entries.append(JournalEntry(call, bytes(frame), loop_time()))
        self._bytes += len(frame)
        while len(self._entries) > self._limit or (self._bytes > MAX_BYTES and len(self._entries) > 1):
            self._bytes -= self._entries.popleft().size
        self._arrival.set()
        self._arrival = anyio.Event()

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._bytes = 0

    def of(self, api: ApiKey | type[Request[Any]], *, node: int | None = None) -> list[JournalEntry]:
        """Return the entries of one API, or only those of one node."""
        key = api if isinstance(api, ApiKey) else api.API
        return [one for one in self._entries if one.api == key and (node is None or one.node == node)]

    def requests(self, kind: type[R], *, node: int | None = None) -> list[R]:
        """Return the requests of one type, or only those of one node."""
        return [cast("R", entry.request) for entry in self.of(kind, node=node)]

    async def wait_for(
        self, predicate: Callable[[JournalEntry], bool], timeout: float = PATIENCE, *, count: int = 1
    ) -> list[JournalEntry]:
        """Return the matching entries once there are `count` of them.

        Raises: TimeoutError: not within `timeout` seconds; the message names the last requests.
        """
        try:
            with anyio.fail_after(timeout):
                while len(found := [one for one in self._entries if predicate(one)]) < count:
                    await self._arrival.wait()
                return found
        except TimeoutError:
            last = ", ".join(f"{one.api.name}@{one.node}" for one in list(self._entries)[-10:]) or "nothing"
            raise TimeoutError(
                f"fewer than {count} such request(s) within {timeout} s; the last ones: {last}"
            ) from None
