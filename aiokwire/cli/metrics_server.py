"""Serves metrics to Prometheus over HTTP, from a thread of `prometheus_client`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import anyio

from aiokwire.errors import ConfigurationError
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.telemetry import Measured

MAX_PORT: Final = 65535


def parse_address(text: str) -> tuple[str, int]:
    """Return the host and the port of `host:port`.

    Raises: ConfigurationError: it is something else.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise ConfigurationError(f"{text!r} is not the address of a metrics server: write HOST:PORT")
    return host.strip("[]"), int(port)


@contextlib.asynccontextmanager
async def serve_metrics(address: str, *clients: Measured) -> AsyncIterator[str]:
    """Serve the metrics of clients at `host:port`, within the block; yields the URL.

    Raises: ConfigurationError: prometheus-client is not installed, or the address cannot be used.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server

        from aiokwire.telemetry import KafkaCollector
    except ImportError:
        raise ConfigurationError("metrics need prometheus-client: pip install 'aiokwire[telemetry]'") from None
    host, port = parse_address(address)
    registry = CollectorRegistry()
    registry.register(KafkaCollector(*clients))
    try:
        server, thread = await run_in_thread(start_http_server, port, host, registry)
    except OSError as error:
        raise ConfigurationError(f"cannot serve metrics on {address}: {error.strerror}") from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        with anyio.CancelScope(shield=True):  # half a second at most
            await run_in_thread(server.shutdown)
            server.server_close()
            await run_in_thread(thread.join)
