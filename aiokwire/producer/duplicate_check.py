"""Checks that an acknowledged batch is the producer's own, for producers that join a transaction.

These producers share a producer id and epoch. A broker takes a batch with the sequence of a stored one for a duplicate,
whatever its records are: the second writer of a partition (an attempt of a retried Spark task, for example) would
receive an acknowledgement for the records of the first. The first batch of a sequence is sent alone, so the check finds
the second writer before it has written anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, error_for
from aiokwire.types import TimestampType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokwire.cluster import Client
    from aiokwire.producer._delivery import Batch
    from aiokwire.protocol.messages import produce
    from aiokwire.records import Record


def may_be_duplicate(entry: produce.PartitionProduceResponse) -> bool:
    """Whether an acknowledgement may be that of another batch.

    A broker returns a log append time only for a duplicate, and on topics where it sets the timestamps.
    """
    return entry.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER or entry.log_append_time_ms >= 0


def is_own(ours: list[Record], theirs: list[Record]) -> bool:
    """Whether the log has the records that were sent; their timestamps may be the broker's."""
    return len(ours) == len(theirs) and all(map(_is_same, ours, theirs))


def _is_same(ours: Record, theirs: Record) -> bool:
    if theirs.timestamp_type is TimestampType.CREATE_TIME and theirs.timestamp != ours.timestamp:
        return False
    return ours.key == theirs.key and ours.value == theirs.value and tuple(ours.headers) == tuple(theirs.headers)


async def check_duplicate(
    client: Client,
    batch: Batch,
    entry: produce.PartitionProduceResponse,
    sent: Callable[[], list[Record]],
    timeout: float,
) -> None:
    """Compare an acknowledged batch with the log; `sent()` decodes its records.

    Raises: KafkaError: the log has other records, or the batch cannot be fetched.
    """
    place = TopicPartition(batch.topic, batch.partition)
    if entry.base_offset < 0:  # too many batches later: the broker no longer knows its offset
        raise _taken(place)
    found = await client.fetch({place: entry.base_offset}, timeout=timeout)
    if not is_own(sent(), found[place].records()[: batch.count]):
        raise _taken(place)


def _taken(place: TopicPartition) -> BrokerError:
    return error_for(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"writing to {place.topic}[{place.partition}]: another producer of this transaction has already written to it",
        topic=place.topic,
        partition=place.partition,
        request="Produce",
    )
