"""Loopback ports for listeners that stop and start again, and for addresses on which nobody listens."""

from __future__ import annotations

import socket
import sys
from typing import Self


class ReservedPort:
    """A port that stays the test's own until it is released, also while nothing listens on it.

    A socket is bound to it and never listens: connections are refused, a listener with SO_REUSEADDR (asyncio's and
    uvloop's have it) may come and go, and the kernel gives the port to no other socket: neither to one that binds port
    0, nor to a client, which could even connect to itself there. Systems other than Linux do not let two sockets share
    a port so; there it is only likely to stay free.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self.release()

    def release(self) -> None:
        """Give the port back."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
