"""Hooks: what a user may plug into a client for logging, tracing and monitoring.

Subclass `Hooks`, override what you need, hand it in as `hooks=`. A method is called on the event loop and must not
block; what it raises is logged, never felt by the client. Hooks that are not given cost nothing.
"""

from __future__ import annotations


class Hooks:
    """Every hook, doing nothing."""

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        """A connection is ready; `elapsed` seconds since it was begun."""

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        """A connection ended; `error` is None when this side closed it."""

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        """A request of `size` bytes was handed to the socket."""

    def on_response_received(self, node_id: int | None, api: str, version: int, size: int, elapsed: float) -> None:
        """Its response of `size` bytes came, `elapsed` seconds after the request."""

    def on_throttle(self, node_id: int, seconds: float) -> None:
        """A broker asked the client to be silent for a while (KIP-219)."""

    def on_metadata(self, version: int, brokers: int, topics: int) -> None:
        """A new metadata snapshot is in force."""
