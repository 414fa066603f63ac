"""What a program may want to do when its partitions change."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)

_METHODS: Final = ("assigned", "revoked", "lost")


class RebalanceListener:
    """Told when partitions come and go; make a subclass and give it to `subscribe`.

    The methods run in a background task, one at a time, within `rebalance_listener_timeout_ms` each; the consumer can
    be used in them: commit, seek, pause, resume, position, subscribe. `assign` and `close` raise InvalidArgument there:
    they wait for the listener to return, so call them from another task. What the methods raise is raised at the
    reader's next await; the rebalance continues.
    """

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """These are new here. Nothing of them is handed over before this ends."""

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """These go to another member when this ends. Nothing of them is handed over any more; what is finished was
        committed, unless the automatic commit is off."""

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """These are gone, and another member may have them already: nothing can be committed. As `revoked`, unless it
        is made otherwise."""
        await self.revoked(partitions)


def checked_listener(given: object) -> RebalanceListener | None:
    """A listener, by its shape.

    Raises: InvalidArgument: it lacks a method.
    """
    if given is None:
        return None
    missing = [name for name in _METHODS if not callable(getattr(given, name, None))]
    if missing:
        raise InvalidArgument(
            f"listener: {given!r} has no {', '.join(missing)}; make it a subclass of RebalanceListener"
        )
    return given  # type: ignore[return-value]  # of that shape


async def call_listener(
    method: Callable[[frozenset[TopicPartition]], Awaitable[object]],
    partitions: frozenset[TopicPartition],
    timeout: float,
) -> KafkaError | None:
    """Why the listener did not do its work; None when it did."""
    name = getattr(method, "__qualname__", repr(method))
    try:
        with anyio.move_on_after(timeout):
            await method(partitions)
            return None
    except Exception as error:  # whatever the user's method raises
        logger.exception("the rebalance listener %s failed", name)
        failure = KafkaError(f"the rebalance listener {name} failed: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure
    logger.error("the rebalance listener %s did not end within %.1f s: going on without it", name, timeout)
    return KafkaError(
        f"the rebalance listener {name} did not end within {timeout:.1f} s (rebalance_listener_timeout_ms)"
    )
