"""A scripted peer: a real listener on loopback whose half of the conversation the test writes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import pytest

from aiokwire.async_library import start_soon
from aiokwire.net import Address
from aiokwire.protocol import ApiKey, Request, RequestHeader, Response, decode_request, encode_response
from aiokwire.protocol.messages import api_versions
from tests.ports import ReservedPort


class Talk:
    """One accepted connection, seen from the peer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def read(self) -> tuple[RequestHeader, Request]:
        """The next request."""
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return decode_request(await self.reader.readexactly(size))

    async def answer(self, header: RequestHeader, response: Response, version: int | None = None) -> None:
        """The response to a request, in its version unless another is given."""
        chunks = encode_response(response, header.api_version if version is None else version, header.correlation_id)
        self.writer.write(b"".join(chunks))
        await self.writer.drain()

    async def shake_hands(self, *offered: tuple[int, int, int]) -> None:
        """Respond to ApiVersions: (api key, oldest, newest), by default this API and Metadata."""
        header, _ = await self.read()
        await self.answer(header, versions_response(*offered))

    async def until_closed(self) -> None:
        """Read until the other side hangs up."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass

    def hang_up(self) -> None:
        self.writer.transport.abort()


def versions_response(*offered: tuple[int, int, int], error_code: int = 0) -> api_versions.ApiVersionsResponse:
    ranges = offered or ((ApiKey.API_VERSIONS, 0, 4), (ApiKey.METADATA, 0, 13))
    return api_versions.ApiVersionsResponse(
        error_code=error_code,
        api_keys=[api_versions.ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges],
    )


Script = Callable[[Talk], Awaitable[None]]
Serve = Callable[..., AbstractAsyncContextManager[Address]]


@asynccontextmanager
async def _serve(
    *scripts: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """Listen; each connection runs the next script, and the last script serves all further ones."""
    accepted = 0

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: Script) -> None:
        try:
            await script(Talk(reader, writer))
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client hung up
        finally:
            writer.transport.abort()

    async with anyio.create_task_group() as group:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal accepted
            script = scripts[min(accepted, len(scripts) - 1)]
            accepted += 1
            start_soon(group, run, reader, writer, script)

        server = await asyncio.start_server(accept, host, 0, ssl=tls)
        try:
            yield Address(host, server.sockets[0].getsockname()[1])
        finally:
            server.close()
            group.cancel_scope.cancel()


@pytest.fixture
def serve() -> Serve:
    return _serve


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port without a listener."""
    with ReservedPort() as port:
        yield port.number


@pytest.fixture
def tls_server() -> ssl.SSLContext:
    """For a listener that expects TLS; rejecting plaintext needs no certificate."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
