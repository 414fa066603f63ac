"""Batches that will not be delivered: their time is over, somebody gave them up, or nothing will be delivered any more.

Used by the dispatcher, transactions and the producer; `BatchResults` tells those who wait for the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aiokwire.errors import DeliveryFailed, KafkaError
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import IN_FLIGHT, Batch
from aiokwire.producer._partition import Partition
from aiokwire.producer.batch_results import BatchResults, records_of
from aiokwire.producer.buffer_pool import WaitingLine
from aiokwire.producer.topics import Topics

# In a larger batch no single record is cancelled: the batch is encoded again, which would block the loop for too long.
MOST_TO_CANCEL_IN = 10_000
# How much later than its deadline a batch without a partition is given up, when nobody else did it.
PARKED_GRACE = 1.0


class Withdrawal:
    """Takes batches out of the accumulator and the queues."""

    def __init__(
        self,
        accumulator: Accumulator,
        topics: Topics,
        batch_results: BatchResults,
        line: WaitingLine,
        now: Callable[[], float],
    ) -> None:
        """`now`: the loop's clock."""
        self._accumulator = accumulator
        self._topics = topics
        self._batch_results = batch_results
        self._line = line
        self._now = now

    def abandon(self) -> Iterator[tuple[Partition | None, Batch]]:
        """The batches that are not done, oldest first, to be given up."""
        for batch in sorted(self._accumulator.live, key=lambda batch: batch.order):
            partition = self._topics.partition_of(batch)
            self._withdraw(partition, batch)
            yield partition, batch

    def purge(self) -> int:
        """Give up whatever is not on its way; says how many records."""
        dropped = 0
        for batch in [batch for batch in self._accumulator.live if batch.state != IN_FLIGHT]:
            partition = self._topics.partition_of(batch)
            elapsed = self._now() - batch.created
            error = DeliveryFailed(
                f"{batch.remaining} record(s) for {batch.place} were purged {elapsed:.3f} s after they were accepted",
                topic=batch.topic,
                partition=batch.partition,
                stage="purged",
                elapsed=elapsed,
                last_error=batch.last_error,
            )
            self._withdraw(partition, batch)
            dropped += batch.remaining
            batch.mark_observed()
            self._batch_results.give_up(partition, batch, error)
        self._line.serve()
        return dropped

    def cancel(self, partition: Partition | None, batch: Batch, index: int) -> bool:
        """Take one record back, and leave all others in their order; whether it was there, in a batch that waits."""
        error = DeliveryFailed(
            f"the record for {batch.place} was cancelled before it was sent",
            topic=batch.topic,
            partition=batch.partition,
            stage="cancelled",
            elapsed=self._now() - batch.created,
        )
        if partition is None:
            return batch.parked is not None and self._accumulator.cancel_parked(batch, index, error)
        if batch not in partition.queue or batch.count > MOST_TO_CANCEL_IN:
            return False
        place = partition.queue.index(batch)
        rest = self._accumulator.cancel(batch, partition, records_of(batch), index, error)
        del partition.queue[place]
        for position, part in enumerate(rest):
            partition.queue.insert(place + position, part)
        self._line.serve()
        return True

    def blame(self, error: KafkaError) -> None:
        """What all batches wait for failed: should they be given up, that is why."""
        for batch in self._accumulator.live:
            batch.last_error = error.with_traceback(None)

    def drop_waiting(self, error: KafkaError) -> None:
        """Give up every batch that is not on its way."""
        for batch in [batch for batch in self._accumulator.live if batch.state != IN_FLIGHT]:
            partition = self._topics.partition_of(batch)
            self._withdraw(partition, batch)
            self._batch_results.give_up(partition, batch, error)
        self._line.serve()

    def expire(self, now: float) -> None:
        """Give up every batch whose time is over."""
        for batch in [batch for batch in self._accumulator.live if limit_of(batch) <= now]:
            partition = self._topics.partition_of(batch)
            self._withdraw(partition, batch)
            self._batch_results.expire(partition, batch, now)
        self._line.serve()

    def fail_all(self, error: KafkaError) -> None:
        """Nothing of what is there will be delivered."""
        for batch in list(self._accumulator.live):
            partition = self._topics.partition_of(batch)
            self._withdraw(partition, batch)
            self._batch_results.give_up(partition, batch, error)
        self._line.serve()

    def _withdraw(self, partition: Partition | None, batch: Batch) -> None:
        """A batch that is about to be given up: it takes no more records, and is nobody's next."""
        if batch.parked is not None:
            self._accumulator.forget_topic(self._accumulator.topics[batch.topic])
        elif partition is not None:
            if partition.open is batch:
                self._accumulator.seal(partition)
            if batch in partition.queue:
                partition.queue.remove(batch)


def limit_of(batch: Batch) -> float:
    """When a batch's time is over. One that waits for metadata is told the reason by the one who asks for it."""
    return batch.deadline if batch.parked is None else batch.deadline + PARKED_GRACE
