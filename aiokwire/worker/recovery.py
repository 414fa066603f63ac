"""What follows a transaction of unknown outcome: a new producer with the same transactional id ends
it, and then the committed offsets show whether it was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import anyio

from aiokwire.backoff import Backoff
from aiokwire.consumer import Consumer
from aiokwire.errors import FencedError, KafkaError, TransactionFailed, is_transient
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.types import IsolationLevel, OffsetAndMetadata, TopicPartition
from aiokwire.worker.completed_offsets import Progress
from aiokwire.worker.work_queue import AssignedPartition

logger: logging.Logger = logging.getLogger("aiokwire.worker")

# The producers that may fail in a row before one has committed.
MOST_PRODUCERS: Final = 10
# How long (seconds) the producer that failed may take to close.
CLOSE_TIMEOUT: Final = 1.0

Offsets = Mapping[TopicPartition, OffsetAndMetadata | None]


class SentOffsets:
    """The offsets in a transaction, and what was committed before."""

    def __init__(
        self,
        progress: dict[TopicPartition, Progress] | None = None,
        offsets: dict[TopicPartition, OffsetAndMetadata] | None = None,
        partitions: dict[TopicPartition, AssignedPartition] | None = None,
    ) -> None:
        self.progress: dict[TopicPartition, Progress] = progress or {}
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = offsets or {}
        self._partitions = partitions or {}
        self.before: dict[TopicPartition, OffsetAndMetadata | None] = {
            tp: partition.stored for tp, partition in self._partitions.items()
        }

    def held_in(self, partitions: Mapping[TopicPartition, AssignedPartition]) -> list[TopicPartition]:
        """Return those that this worker has not given up since."""
        return [tp for tp, partition in self._partitions.items() if partitions.get(tp) is partition]

    def still_held(
        self, partitions: Mapping[TopicPartition, AssignedPartition]
    ) -> tuple[dict[TopicPartition, Progress], dict[TopicPartition, OffsetAndMetadata]]:
        """Return the progress and the offsets of those."""
        held = self.held_in(partitions)
        return {tp: self.progress[tp] for tp in held}, {tp: self.offsets[tp] for tp in held}


class RenewableProducer:
    """The worker's producer, which may be replaced by one with the same config."""

    def __init__(
        self,
        config: ProducerConfig[bytes, bytes],
        new: Callable[[ProducerConfig[bytes, bytes]], Producer[bytes, bytes]],
        *,
        has_own_id: bool,
    ) -> None:
        """`has_own_id`: no other producer can have its transactional id."""
        self.current: Producer[bytes, bytes] = new(config)
        self._new = new
        self._has_own_id = has_own_id
        self._failed = 0  # since the last success

    def succeeded(self) -> None:
        """Note that the current producer has committed."""
        self._failed = 0

    def may_renew(self, error: KafkaError) -> bool:
        """Return whether a new producer may continue after this error of the current one."""
        is_unknown = isinstance(error, TransactionFailed) or (self._has_own_id and isinstance(error, FencedError))
        return is_unknown and self._failed < MOST_PRODUCERS

    async def renew(self, backoff: Backoff) -> None:
        """Start a new producer, which ends the open transaction; retry while no broker
        responds.

        Raises: KafkaError: the coordinator refuses.
        """
        self._failed += 1
        await self.current.close(CLOSE_TIMEOUT)
        self.current = self._new(self.current.config)
        while True:
            try:
                await self.current.start()
                return
            except KafkaError as error:
                if not is_transient(error):
                    raise
                name = self.current.config.transactional_id
                await pause(backoff, f"transactional id {name!r}: no new producer", error)


async def committed_now(
    consumer: Consumer[bytes, bytes], partitions: Collection[TopicPartition], backoff: Backoff
) -> Offsets:
    """Return the committed offsets, retrying while no broker responds.

    Raises: KafkaError: the coordinator refuses.
    """
    while True:
        try:
            return await consumer.committed(*partitions) if partitions else {}
        except KafkaError as error:
            if not is_transient(error):
                raise
            await pause(backoff, f"group {consumer.config.group_id!r}: no committed offsets", error)


def was_committed(before: Offsets, sent: Offsets, now: Offsets) -> bool | None:
    """Return whether a transaction with these offsets was committed; None if it changed none of
    them, so that they do not show it.

    `now` has the partitions that no other member can have had since `before`.
    """
    if any(_place(now[tp]) != _place(sent.get(tp)) for tp in now):
        return False
    return True if any(_place(before.get(tp)) != _place(sent.get(tp)) for tp in now) else None


def reads_decided(consumer: Consumer[Any, Any]) -> bool:
    """Return whether the consumer waits for transactions that may change its offsets."""
    return consumer.config.isolation is IsolationLevel.READ_COMMITTED


async def pause(backoff: Backoff, what: str, error: KafkaError) -> None:
    """Sleep before the next attempt; log the first."""
    delay = backoff.next()
    if backoff.is_worth_logging:
        logger.warning("%s yet, retrying in %.3f s: %s", what, delay, error)
    await anyio.sleep(delay)


def _place(offset: OffsetAndMetadata | None) -> tuple[int, str] | None:
    return None if offset is None else (offset.offset, offset.metadata)
