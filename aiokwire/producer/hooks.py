"""Calls the producer's hooks: per batch, and `on_send` per record."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from aiokwire.hooks import HookCaller, Hooks
from aiokwire.types import Headers

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch

_PER_BATCH = ("on_batch_sealed", "on_produce_request", "on_delivered", "on_delivery_failed")


class ProducerHooks(HookCaller):
    """Calls the user's hooks for the producer's parts; a hook's exception affects no record.

    Exists only where a hook is overridden; called on the producer's loop, between two awaits.
    """

    def __init__(self, hooks: Hooks | None) -> None:
        super().__init__(hooks, logging.getLogger("aiokwire.producer"))

    @classmethod
    def per_batch(cls, hooks: Hooks | None) -> Self | None:
        """The caller of the hooks per batch; None when none is overridden."""
        caller = cls(hooks)
        return caller if any(map(caller.is_overridden, _PER_BATCH)) else None

    @classmethod
    def per_record(cls, hooks: Hooks | None) -> Self | None:
        """The caller of `on_send`; None when it is not overridden."""
        caller = cls(hooks)
        return caller if caller.is_overridden("on_send") else None

    def sealed(self, batch: Batch) -> None:
        """Report a batch that was sealed."""
        self._call(self._hooks.on_batch_sealed, batch.topic, batch.partition, batch.count, batch.size)

    def request(self, node_id: int, batches: list[Batch]) -> None:
        """Report a request that was written."""
        self._call(self._hooks.on_produce_request, node_id, len(batches), sum(batch.count for batch in batches))

    def delivered(self, batch: Batch) -> None:
        """Report a batch that was acknowledged."""
        self._call(self._hooks.on_delivered, batch.topic, batch.partition, batch.base_offset, batch.count)

    def failed(self, batch: Batch) -> None:
        """Report a batch that failed."""
        assert batch.error is not None
        self._call(self._hooks.on_delivery_failed, batch.topic, batch.partition, batch.remaining, batch.error)

    def headers_to_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        """The headers from `on_send` for a record; its own if the hook returns None or raises."""
        try:
            wanted = self._hooks.on_send(topic, partition, key, value, headers)
        except Exception:
            self._logger.exception("hook on_send of %r raised", self._hooks)
            return headers
        return headers if wanted is None else wanted
