"""Serves `/livez`, `/readyz` and `/metrics` of a worker over HTTP, on the loop that it runs on."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc

from aiokwire.cli.metrics_server import parse_address
from aiokwire.errors import ClosedError, ConfigurationError

if TYPE_CHECKING:
    from aiokwire.worker import Worker

# A request that is longer (bytes), or takes longer (seconds), gets no response.
LONGEST: Final = 8192
TIMEOUT: Final = 5.0
_PHRASES: Final = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
_JSON: Final = "application/json"


@contextlib.asynccontextmanager
async def serve_health(address: str, worker: Worker, number: int = 1) -> AsyncIterator[str]:
    """Serve the health of a worker at `host:port`, within the block; yields the URL.

    `number`: of this process; each later one has the next port.

    Raises: ConfigurationError: the address cannot be used.
    """
    host, port = parse_address(address)
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port + number - 1 if port else 0)
    except OSError as error:
        raise ConfigurationError(f"cannot serve health on {address}: {error.strerror or error}") from error

    async def respond(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with anyio.move_on_after(TIMEOUT), contextlib.suppress(OSError, anyio.BrokenResourceError):
                await _respond(stream, worker)

    failure: BaseException | None = None
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, respond)
        try:
            yield f"http://{host}:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        except (Exception, SystemExit) as error:  # not within an ExceptionGroup
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _respond(stream: anyio.abc.SocketStream, worker: Worker) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        try:
            head += await stream.receive()
        except anyio.EndOfStream:
            return
        if len(head) > LONGEST:
            return
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    status, kind, body = answer_to(method, rest.partition(" ")[0].partition("?")[0], worker)
    lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    text = "\r\n".join([*lines, "Connection: close", "", ""])
    await stream.send(text.encode() + (b"" if method == "HEAD" else body))


def answer_to(method: str, path: str, worker: Worker) -> tuple[int, str, bytes]:
    """Return the status, the content type and the body of a response."""
    if method not in ("GET", "HEAD"):
        return 405, _JSON, b"{}"
    if path == "/metrics":
        return _metrics_of(worker)
    if path not in ("/livez", "/readyz"):
        return 404, _JSON, b'{"paths": ["/livez", "/readyz", "/metrics"]}'
    try:
        health = worker.health()
    except ClosedError:
        is_ok, reasons = path == "/livez", ["the worker is not started"]
    else:
        is_ok = health.ok if path == "/readyz" else not health.has_ended
        reasons = health.reasons
    name = "ready" if path == "/readyz" else "alive"
    return 200 if is_ok else 503, _JSON, json.dumps({name: is_ok, "reasons": reasons}).encode()


def _metrics_of(worker: Worker) -> tuple[int, str, bytes]:
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        from aiokwire.telemetry import KafkaCollector
    except ImportError:
        return 404, _JSON, b'{"missing": "pip install \'aiokwire[telemetry]\'"}'
    registry = CollectorRegistry()
    registry.register(KafkaCollector(worker))
    return 200, CONTENT_TYPE_LATEST, generate_latest(registry)
