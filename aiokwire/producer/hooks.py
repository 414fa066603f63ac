"""Calls the producer's hooks: per record, per call and per batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from aiokwire.hooks import HookCaller, Hooks
from aiokwire.types import Headers

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch, Delivery

_PER_BATCH = ("on_batch_sealed", "on_produce_request", "on_delivered", "on_delivery_failed")
_OUTCOMES = ("on_accepted", "on_refused")


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
        """The caller of the hooks per record and per call; None when none is overridden."""
        caller = cls(hooks)
        wanted = ("on_send", "around_send_many", *_OUTCOMES)
        return caller if any(map(caller.is_overridden, wanted)) else None

    @property
    def wants_outcomes(self) -> bool:
        """Whether `accepted` and `refused` have to be called for each record."""
        return any(map(self.is_overridden, _OUTCOMES))

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

    def accepted(self, headers: Headers | None, delivery: Delivery) -> None:
        """Report an accepted record."""
        self._call(self._hooks.on_accepted, headers, delivery)

    def refused(self, headers: Headers | None, error: BaseException) -> None:
        """Report a record that was refused after `on_send`."""
        self._call(self._hooks.on_refused, headers, error)

    def sending_many(self, topic: str) -> AbstractContextManager[Callable[[Any], object] | None]:
        """Return the context manager to enter around a `send_many`."""
        return self._around(self._hooks.around_send_many, topic)
