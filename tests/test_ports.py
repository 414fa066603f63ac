"""Reserved ports: no other socket gets them while their listener is stopped."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys

import pytest

from tests.ports import ReservedPort


def discard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def test_a_listener_can_stop_and_start_on_a_reserved_port() -> None:
    with ReservedPort() as port:
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port.number)
            server = await asyncio.start_server(discard, "127.0.0.1", port.number)
            _, writer = await asyncio.open_connection("127.0.0.1", port.number)
            writer.transport.abort()
            server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a port be kept for a listener to come")
async def test_a_reserved_port_is_unavailable_to_other_sockets() -> None:
    with ReservedPort() as port, socket.socket() as stranger:
        with pytest.raises(OSError, match=r"in use") as caught:
            stranger.bind(("127.0.0.1", port.number))
        assert caught.value.errno == errno.EADDRINUSE
