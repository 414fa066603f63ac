"""aiokafka's abstract classes, for applications to implement."""

from __future__ import annotations

import abc
from collections.abc import Collection
from typing import Any

from aiokwire.types import TopicPartition

__all__ = ["AbstractTokenProvider", "ConsumerRebalanceListener"]


class ConsumerRebalanceListener(abc.ABC):
    """Called when the group's assignment of a consumer changes; the methods may be coroutines."""

    @abc.abstractmethod
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> Any:
        """Called at the start of a rebalance with all partitions of the consumer, perhaps none.

        No records are fetched meanwhile. Not called by `AIOKafkaConsumer.stop`.
        """

    @abc.abstractmethod
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> Any:
        """Called at the end of a rebalance with all partitions of the consumer, before the first
        fetch."""


class AbstractTokenProvider(abc.ABC):
    """Provides the tokens of SASL/OAUTHBEARER."""

    @abc.abstractmethod
    async def token(self) -> str:
        """Return a token that has not expired."""

    def extensions(self) -> dict[str, str]:
        """Return SASL extensions to send with the token."""
        return {}
