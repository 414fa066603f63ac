"""Loopback ports for listeners that stop and start again, and for addresses without a listener."""

from __future__ import annotations

import socket
import sys
from typing import Self


class ReservedPort:
    """A port reserved for the test until it is released, even while nothing listens on it.

    A socket is bound to the port and never listens. Connections are refused, listeners with
    SO_REUSEADDR (asyncio and uvloop set it) may start and stop, and the kernel gives the port to no
    other socket: not to a listener that binds port 0, nor to a client, which could connect to
    itself there. Systems other than Linux do not let two sockets share a port this way; there the
    port is only likely to stay free.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self.release()

    def release(self) -> None:
        """Release the port."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
