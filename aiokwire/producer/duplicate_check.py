"""Whether what a producer was told is there is its own: asked by those that join a transaction.

They share a producer id and epoch with others. A broker takes a batch with the numbers of one that it has for the same
batch sent again, whatever is in it: the second of two writers of a partition, such as an attempt of a task whose stage
was retried, would be told that its records are there, when those of the first one are. Nothing follows the first batch
of a sequence before its answer, so whoever is not the first to begin is found out before it has written anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, KafkaError, error_for
from aiokwire.types import TimestampType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokwire.cluster import Client
    from aiokwire.producer._delivery import Batch
    from aiokwire.protocol.messages import produce
    from aiokwire.records import Record


def may_be_duplicate(entry: produce.PartitionProduceResponse) -> bool:
    """Whether an acknowledgement may be that of another batch.

    A broker tells the time of the batch that it has only with a duplicate, and on topics where it sets the time.
    """
    return entry.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER or entry.log_append_time_ms >= 0


def is_own(ours: list[Record], theirs: list[Record]) -> bool:
    """Whether the log has what was sent; the times may be the broker's."""
    return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _is_same(ours: Record, theirs: Record) -> bool:
    if theirs.timestamp_type is TimestampType.CREATE_TIME and theirs.timestamp != ours.timestamp:
        return False
    return ours.key == theirs.key and ours.value == theirs.value and tuple(ours.headers) == tuple(theirs.headers)


class DuplicateCheck:
    """Reads batches back from their leaders."""

    def __init__(self, client: Client, timeout: float) -> None:
        self._client = client
        self._timeout = timeout

    def start(
        self,
        batch: Batch,
        entry: produce.PartitionProduceResponse,
        records: Callable[[], list[Record]],
        done: Callable[[KafkaError | None], None],
    ) -> None:
        """Find out, then call `done`, with an error where the log has something else, or nobody says what."""

        async def find_out() -> None:
            try:
                await self._check(batch, entry, records)
            except KafkaError as error:
                done(error)
            else:
                done(None)

        self._client.spawn(find_out, name=f"producer: duplicate check of {batch.topic}[{batch.partition}]")

    async def _check(
        self, batch: Batch, entry: produce.PartitionProduceResponse, records: Callable[[], list[Record]]
    ) -> None:
        """Raises: KafkaError."""
        place = TopicPartition(batch.topic, batch.partition)
        if entry.base_offset < 0:  # so much was written since that the broker does not remember where it began
            raise _taken(place)
        found = await self._client.fetch({place: entry.base_offset}, timeout=self._timeout)
        theirs = found[place].records()[: batch.count]
        if not is_own(records(), theirs):
            raise _taken(place)


def _taken(place: TopicPartition) -> BrokerError:
    return error_for(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"writing to {place.topic}[{place.partition}]: another producer of this transaction did so before",
        topic=place.topic,
        partition=place.partition,
        request="Produce",
    )
