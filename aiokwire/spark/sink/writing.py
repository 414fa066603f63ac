"""A task of the sink: sends Arrow batches from Spark, all of them acknowledged at its end.

Spark's iterator blocks, so that it is read in a thread while the loop serves the brokers. The
producer's buffer bounds the unacknowledged rows.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError, KafkaError
from aiokwire.producer import ArrowDelivery, Producer, ProducerConfig, TransactionTicket
from aiokwire.spark.sink.columns import SinkColumns, lacks_partition, with_owner
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Counts = dict[tuple[str, int], int]
"""Rows by topic and partition."""


@dataclasses.dataclass(frozen=True)
class Joining:
    """A task's part in a shared transaction."""

    ticket: TransactionTicket
    task: int


@dataclasses.dataclass
class Tally:
    """The acknowledged rows of a task."""

    rows: int = 0
    counts: Counts = dataclasses.field(default_factory=dict)

    def add(self, delivery: ArrowDelivery) -> None:
        """Count the rows of a delivery, all of them acknowledged."""
        self.rows += delivery.rows
        for partition, count in delivery.counts.items():
            place = delivery.topic, partition
            self.counts[place] = self.counts.get(place, 0) + count


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on a new loop, on uvloop if it is installed."""
    try:
        import uvloop

        factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    except ImportError:
        factory = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


async def write(
    batches: Iterator[pa.RecordBatch], config: ProducerConfig, columns: SinkColumns, joining: Joining | None = None
) -> Tally:
    """Send all rows, and wait until each is acknowledged.

    Raises: KafkaError: a row was not delivered; others may have been.
    """
    ticket = None if joining is None else joining.ticket
    async with Producer(config=config, joins=ticket) as producer:
        if joining is None:
            return await _send(producer, batches, columns)
        try:
            async with producer.transaction():
                return await _send(producer, batches, columns, joining)
        except KafkaError as error:
            raise _explained(error) from error


async def _send(
    producer: Producer[Any, Any],
    batches: Iterator[pa.RecordBatch],
    columns: SinkColumns,
    joining: Joining | None = None,
) -> Tally:
    tally = Tally()
    pending: collections.deque[ArrowDelivery] = collections.deque()
    while (batch := await run_in_thread(next, batches, None)) is not None:
        for topic, records in columns.by_topic(batch):
            owned = records
            if joining is not None and lacks_partition(records):
                owned = with_owner(records, await _partition_of(producer, topic, joining.task))
            pending.append(await producer.submit_arrow(topic, owned))
        while pending and pending[0].done():
            await _settle(pending.popleft(), tally)
    await producer.flush()
    while pending:
        await _settle(pending.popleft(), tally)
    return tally


async def _settle(delivery: ArrowDelivery, tally: Tally) -> None:
    (await delivery).raise_for_errors()
    tally.add(delivery)


async def _partition_of(producer: Producer[Any, Any], topic: str, task: int) -> int:
    """Return the partition of a task for rows without a key.

    Raises: ConfigurationError: there are more tasks than partitions.
    """
    count = await producer.partitions_for(topic)
    if task >= count:
        raise ConfigurationError(
            f"delivery=exactly-once: {topic} has {count} partition(s), this is task {task}, and each partition has one "
            f"writer: call coalesce({count}) before writing, or aiokwire.spark.one_owner"
        )
    return task


def _explained(error: KafkaError) -> KafkaError:
    """Explain an out-of-order sequence number: a second task writes to the partition."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BrokerError) and cause.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return ConfigurationError(
                f"delivery=exactly-once: two tasks write to {cause.topic}[{cause.partition}], and each partition has "
                f"one writer: repartition with aiokwire.spark.one_owner before writing ({error})"
            )
        cause = getattr(cause, "reason", None) or cause.__cause__
    return error
