"""Hooks: methods that a client calls, for the user's logging, tracing and monitoring.

Subclass `Hooks`, override the methods you need, and pass an instance as `hooks=`. Methods run on
the event loop and must not block; their exceptions are logged and have no other effect. Hooks that
are not overridden cost nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

from aiokwire.types import Headers

P = ParamSpec("P")


class Hooks:
    """All hooks; each does nothing until it is overridden."""

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        """A connection is ready, `elapsed` seconds after the attempt started."""

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        """A connection ended; `error` is None if this side closed it."""

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        """A request of `size` bytes was written to the socket."""

    def on_response_received(self, node_id: int | None, api: str, version: int, size: int, elapsed: float) -> None:
        """A response of `size` bytes arrived, `elapsed` seconds after its request."""

    def on_throttle(self, node_id: int, seconds: float) -> None:
        """A broker throttles the client for this time (KIP-219)."""

    def on_metadata(self, version: int, brokers: int, topics: int) -> None:
        """The client has a new metadata snapshot."""

    # --- of a producer; the first is called per record, if it is overridden, all others per batch -------------------

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        """Before a serialized record is accepted. Returned headers replace its own, unless None."""
        return None

    def on_batch_sealed(self, topic: str, partition: int, count: int, size: int) -> None:
        """A batch of `count` records and `size` bytes is complete and waits for its broker."""

    def on_produce_request(self, node_id: int, batches: int, count: int) -> None:
        """A request with `count` records in `batches` batches was sent, first or as a retry."""

    def on_delivered(self, topic: str, partition: int, base_offset: int, count: int) -> None:
        """A batch was acknowledged; `base_offset` is -1 if the broker does not return it."""

    def on_delivery_failed(self, topic: str, partition: int, count: int, error: Exception) -> None:
        """Records could not be delivered; `partition` is -1 if none was chosen."""

    # --- of a consumer ------------------------------------------------------------------------------------------------

    def on_reset(self, topic: str, partition: int, before: int | None, after: int, reason: str) -> None:
        """A position was set by a lookup: from `before` (None: there was none) to `after`.

        `reason` names policy and cause. The records in between are skipped or delivered again.
        """

    def on_partition_end(self, topic: str, partition: int, offset: int) -> None:
        """All records up to `offset` that the last fetch found were delivered, or are by the call
        that is just returning. Called once for each end, and again after a seek."""

    def on_batch_read(self, topic: str, partition: int, base_offset: int, count: int, size: int) -> None:
        """A whole batch was delivered to the application, or is by the call that is just returning.

        `base_offset` is its first wanted offset, `count` its number of records, `size` its bytes as
        fetched. A batch that a seek or a rebalance cut off is not reported; one of many thousand
        records is reported in several parts.
        """


class HookCaller:
    """Calls hooks and logs their exceptions. The base of each client's caller, on its loop."""

    def __init__(self, hooks: Hooks | None, logger: logging.Logger) -> None:
        """`logger` logs exceptions of hooks."""
        self._hooks = Hooks() if hooks is None else hooks
        self._logger = logger

    def is_overridden(self, name: str) -> bool:
        """Return whether the user has overridden a hook."""
        return getattr(type(self._hooks), name) is not getattr(Hooks, name)

    def _call(self, hook: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except Exception:
            self._logger.exception("hook %s of %r raised", getattr(hook, "__name__", hook), self._hooks)
