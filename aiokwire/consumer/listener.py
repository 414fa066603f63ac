"""The application's rebalance listener, and how it is called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

import anyio

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.types import TopicPartition

logger: FieldLogger = get_logger(__name__)

_METHODS: Final = ("assigned", "revoked", "lost")


class RebalanceListener:
    """Called with assigned, revoked or lost partitions; pass a subclass instance to `subscribe`.

    The methods run in a background task, one at a time, within `rebalance_listener_timeout_ms`
    each. They may use the consumer: commit, seek, pause, resume, position, subscribe. `assign` and
    `close` raise InvalidArgument there: they wait for the listener, so call them from another task.
    A method's exception is raised at the reader's next await; the rebalance continues.
    """

    every_rebalance: ClassVar[bool] = False
    """True: each rebalance calls `revoked`, then `assigned`, also without partitions."""

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Called with newly assigned partitions. Their records are delivered after this returns."""

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Called with partitions that go to another member once this returns. Their records are no
        longer delivered; finished ones were committed, unless automatic commits are off."""

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Called with partitions that another member may already own: nothing can be committed.
        Calls `revoked` unless overridden."""
        await self.revoked(partitions)


def checked_listener(given: object) -> RebalanceListener | None:
    """Return a listener that has all methods.

    Raises: InvalidArgument: it lacks a method.
    """
    if given is None:
        return None
    missing = [name for name in _METHODS if not callable(getattr(given, name, None))]
    if missing:
        raise InvalidArgument(
            f"listener: {given!r} has no {', '.join(missing)}; make it a subclass of RebalanceListener"
        )
    return given  # type: ignore[return-value]  # it has the methods


async def call_listener(
    method: Callable[[frozenset[TopicPartition]], Awaitable[object]],
    partitions: frozenset[TopicPartition],
    timeout: float,
) -> KafkaError | None:
    """Call a method of the listener; return its failure, or None."""
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
    logger.error("the rebalance listener %s did not return within %.1f s: continuing without it", name, timeout)
    return KafkaError(
        f"the rebalance listener {name} did not return within {timeout:.1f} s (rebalance_listener_timeout_ms)"
    )
