"""aiokafka's rebalance listener on ours."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection
from typing import Any, ClassVar

from aiokwire.compat.aiokafka.abc import ConsumerRebalanceListener
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import KafkaError
from aiokwire.types import TopicPartition

log: logging.Logger = logging.getLogger("aiokwire.compat.aiokafka")


class AdaptedListener(RebalanceListener):
    """Commits what was delivered before a rebalance, then calls the application's listener.

    Refers to our consumer only: it lives as long as the membership, the application's consumer may
    not.
    """

    every_rebalance: ClassVar[bool] = True

    def __init__(
        self, consumer: Consumer[Any, Any], listener: ConsumerRebalanceListener | None, *, commits: bool
    ) -> None:
        self._consumer = consumer
        self._listener = listener
        self._commits = commits
        self.is_leaving = False  # the application left the group: its listener is not called

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Report all partitions at the end of a rebalance."""
        if self._listener is not None:
            await self._call(self._listener.on_partitions_assigned, self._consumer.assignment)

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit the positions of the revoked partitions, and report them."""
        if self._commits and not self.is_leaving:  # a member that leaves has committed
            await commit_delivered(self._consumer, partitions)
        await self.lost(partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Report partitions that other members may already have."""
        if self._listener is not None and not self.is_leaving:
            await self._call(self._listener.on_partitions_revoked, partitions)

    async def _call(self, method: Callable[..., Any], partitions: Collection[TopicPartition]) -> None:
        try:
            result = method(set(partitions))
            if inspect.isawaitable(result):
                await result
        except Exception:
            log.exception("the rebalance listener %r failed; the rebalance continues", self._listener)


async def commit_delivered(consumer: Consumer[Any, Any], partitions: Collection[TopicPartition]) -> None:
    """Commit the offsets after the last delivered records, as aiokafka's automatic commit does."""
    offsets = {tp: at for tp, at in consumer.positions().items() if tp in partitions and at is not None}
    if not offsets:
        return
    try:
        await consumer.commit(offsets)
    except KafkaError as error:
        log.warning("the automatic commit at the end of an assignment failed: %s", error)
