"""A blocking connection that returns the bytes of each exchange.

It is opened again when it breaks.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from types import TracebackType
from typing import Self, TypeVar

from aiokwire.protocol import Request, Response, decode_response, encode_request
from aiokwire.protocol.messages import api_versions

R = TypeVar("R", bound=Response)

_SECONDS = 20
# Kafka 0.8.2 has no ApiVersions; it supports these (its own RequestKeys).
SERVED_BY_0_8 = {
    0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0), 8: (0, 1), 9: (0, 1), 10: (0, 0),
}  # fmt: skip


class NoAnswer(Exception):
    """The broker closed the connection, or did not respond."""


class Asker:
    """Sends requests to one broker."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None
        self._correlation_id = 0
        self.served = self._ask_what_is_served()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def exchange(self, request: Request, version: int) -> tuple[bytes, bytes]:
        """Send a request; return its frame and that of its response, without their sizes.

        Raises:
            NoAnswer: there was no response.
        """
        self._correlation_id += 1
        frame = b"".join(encode_request(request, version, self._correlation_id, "golden"))
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_SECONDS)
        try:
            self._socket.sendall(frame)
            (size,) = struct.unpack(">i", self._read(4))
            answer = self._read(size)
        except OSError as error:
            self._close()
            raise NoAnswer(str(error) or type(error).__name__) from error
        return frame[4:], answer

    def ask(self, request: Request[R], version: int) -> R:
        """Send a request and return the decoded response."""
        kind: type[R] = request.RESPONSE  # type: ignore[assignment]  # each request names its own response
        return decode_response(self.exchange(request, version)[1], kind, version)

    def newest(self, kind: type[Request]) -> int:
        """Return the newest version that both sides support."""
        return min(self.served[kind.API][1], kind.VERSIONS.max)

    def _ask_what_is_served(self) -> dict[int, tuple[int, int]]:
        try:
            answer = self.ask(api_versions.ApiVersionsRequest(), 0)
        except NoAnswer:
            return SERVED_BY_0_8
        return {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        deadline = time.perf_counter() + _SECONDS
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part or time.perf_counter() > deadline:
                raise ConnectionResetError("closed by the broker" if not part else "too slow")
            data += part
        return bytes(data)

    def _close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None
