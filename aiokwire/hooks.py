"""Hooks: methods that a client calls, for the user's logging, tracing and monitoring.

Subclass `Hooks`, override what you need, and pass an instance as `hooks=`. A method is called on the event loop and
must not block; an exception that it raises is logged and has no other effect. Hooks that are not overridden cost
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

from aiokwire.types import Headers

P = ParamSpec("P")


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

    # --- of a producer; the first is called per record, where it is overridden, all others per batch ---------------

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        """A record is about to be accepted, serialized. What comes back, unless None, takes its headers' place."""
        return None

    def on_batch_sealed(self, topic: str, partition: int, count: int, size: int) -> None:
        """A batch of `count` records and `size` bytes takes no more and queues up for its broker."""

    def on_produce_request(self, node_id: int, batches: int, count: int) -> None:
        """A request with `count` records in `batches` batches went to a broker, the first time or again."""

    def on_delivered(self, topic: str, partition: int, base_offset: int, count: int) -> None:
        """A batch was acknowledged; `base_offset` is -1 where the broker does not tell it."""

    def on_delivery_failed(self, topic: str, partition: int, count: int, error: Exception) -> None:
        """Records were given up; `partition` is -1 when it never became known."""

    # --- of a consumer ------------------------------------------------------------------------------------------------

    def on_reset(self, topic: str, partition: int, before: int | None, after: int, reason: str) -> None:
        """A position was looked up instead of followed: it was `before` (None: there was none) and is now `after`.

        `reason` says by which policy and why. Between the two lie records that are skipped or read again.
        """

    def on_partition_end(self, topic: str, partition: int, offset: int) -> None:
        """All that a partition had when it was last fetched, up to `offset`, is handed over, or will be by the call of
        the reader that is just returning. Once for each end, and again after a seek."""

    def on_batch_read(self, topic: str, partition: int, base_offset: int, count: int, size: int) -> None:
        """A whole batch was handed over to the application, or is by the call of the reader that is just returning.

        `base_offset` is the first offset that was wanted of it, `count` its number of records (one that a seek or a
        rebalance cut off is left out), `size` its bytes as they were fetched. A batch of many thousand records is
        reported in several parts.
        """


class HookCaller:
    """Calls the user's hooks and logs their exceptions. Base of each client's own caller; runs on the client's loop."""

    def __init__(self, hooks: Hooks | None, logger: logging.Logger) -> None:
        """`logger`: where exceptions are logged."""
        self._hooks = Hooks() if hooks is None else hooks
        self._logger = logger

    def is_overridden(self, name: str) -> bool:
        """Whether a hook is the user's own method."""
        return getattr(type(self._hooks), name) is not getattr(Hooks, name)

    def _call(self, hook: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except Exception:
            self._logger.exception("hook %s of %r raised", getattr(hook, "__name__", hook), self._hooks)
