"""The producer's side of `Hooks`: calls the user's methods, and keeps their faults away from the records.

Where no hook of a producer's is overridden there is no `HookCaller`, and nothing is called.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from aiokwire.hooks import Hooks
from aiokwire.types import Headers

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch

logger = logging.getLogger("aiokwire.producer")

_PER_BATCH = ("on_batch_sealed", "on_produce_request", "on_delivered", "on_delivery_failed")


def overrides(hooks: Hooks | None, *names: str) -> bool:
    """Whether any of these methods is the user's own."""
    return hooks is not None and any(getattr(type(hooks), name) is not getattr(Hooks, name) for name in names)


class HookCaller:
    """Calls the hooks per batch: what the dispatcher, senders and batch results report, batch by batch."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    @classmethod
    def of(cls, hooks: Hooks | None) -> Self | None:
        """A caller if a hook per batch is overridden, else None."""
        return cls(hooks) if hooks is not None and overrides(hooks, *_PER_BATCH) else None

    def sealed(self, batch: Batch) -> None:
        """A batch queues up."""
        try:
            self._hooks.on_batch_sealed(batch.topic, batch.partition, batch.count, batch.size)
        except Exception:
            self._complain("on_batch_sealed")

    def request(self, node_id: int, batches: list[Batch]) -> None:
        """A request was written."""
        try:
            self._hooks.on_produce_request(node_id, len(batches), sum(batch.count for batch in batches))
        except Exception:
            self._complain("on_produce_request")

    def delivered(self, batch: Batch) -> None:
        """A batch was acknowledged."""
        try:
            self._hooks.on_delivered(batch.topic, batch.partition, batch.base_offset, batch.count)
        except Exception:
            self._complain("on_delivered")

    def failed(self, batch: Batch) -> None:
        """A batch was given up."""
        assert batch.error is not None
        try:
            self._hooks.on_delivery_failed(batch.topic, batch.partition, batch.remaining, batch.error)
        except Exception:
            self._complain("on_delivery_failed")

    def _complain(self, name: str) -> None:
        logger.exception("hook %s of %r raised", name, self._hooks)


def ask_headers(
    hooks: Hooks, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
) -> Headers | None:
    """The headers that `on_send` wants for a record; the record's own when it wants none, or fails."""
    try:
        wanted = hooks.on_send(topic, partition, key, value, headers)
    except Exception:
        logger.exception("hook on_send of %r raised", hooks)
        return headers
    return headers if wanted is None else wanted
