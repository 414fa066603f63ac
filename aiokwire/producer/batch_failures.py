"""Fails batches for reasons other than a response: expired, purged, cancelled, failed producer.

fail_batches(which, error)    every batch that `which` selects leaves its queue and fails;
                              `batch_results.py` frees its room and wakes its waiters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aiokwire.errors import DeliveryFailed, KafkaError
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import IN_FLIGHT, Batch
from aiokwire.producer._partition import Partition
from aiokwire.producer.batch_results import BatchResults, delivery_failed, records_of
from aiokwire.producer.buffer_pool import WaitingLine
from aiokwire.producer.topics import Topics

# Records of a larger batch cannot be cancelled: re-encoding it would block the loop for too long.
MOST_TO_CANCEL_IN = 10_000
# Seconds after its deadline at which a batch without a partition fails, unless its topic's lookup failed it before.
PARKED_GRACE = 1.0

Which = Callable[[Batch], bool]


def any_batch(batch: Batch) -> bool:
    """Select every batch: the filter for a producer that ends."""
    return True


def is_not_in_flight(batch: Batch) -> bool:
    """Select the batches that wait to be sent."""
    return batch.state != IN_FLIGHT


def expires_at(batch: Batch) -> float:
    """The deadline of a batch, on the loop's clock; a batch without a partition has `PARKED_GRACE`
    more, to fail with the error of the lookup of its topic."""
    return batch.deadline if batch.parked is None else batch.deadline + PARKED_GRACE


class BatchFailures:
    """Removes a producer's batches from the accumulator and queues, and fails them; on its loop."""

    def __init__(
        self,
        accumulator: Accumulator,
        topics: Topics,
        results: BatchResults,
        line: WaitingLine,
        now: Callable[[], float],
    ) -> None:
        self._accumulator = accumulator
        self._topics = topics
        self._results = results
        self._line = line
        self._now = now

    def fail_batches(self, which: Which, error: KafkaError | Callable[[Batch], KafkaError]) -> list[Batch]:
        """Fail the batches that `which` selects, with one error or one each; return them."""
        failed: list[Batch] = []
        for batch in self.withdraw(which):
            self.fail(batch, error if isinstance(error, KafkaError) else error(batch))
            failed.append(batch)
        return failed

    def withdraw(self, which: Which) -> Iterator[Batch]:
        """Dequeue the batches that `which` selects, oldest first; the caller fails each at once."""
        for batch in sorted(filter(which, self._accumulator.live), key=lambda batch: batch.order):
            if batch.parked is not None:
                self._accumulator.forget_topic(self._accumulator.topics[batch.topic])
            elif (partition := self._topics.partition_of(batch)) is not None:
                if partition.open is batch:
                    self._accumulator.seal(partition)
                partition.discard(batch)
            yield batch
        self._line.serve()

    def fail(self, batch: Batch, error: KafkaError) -> None:
        """Fail a batch that `withdraw` has taken out of its queue."""
        self._results.give_up(self._topics.partition_of(batch), batch, error)

    def expire(self, now: float) -> None:
        """Fail every batch whose deadline has ended."""
        for batch in self.withdraw(lambda batch: expires_at(batch) <= now):
            self._results.expire(self._topics.partition_of(batch), batch, now)

    def purge(self) -> int:
        """Fail batches not in flight, without logging them; return the number of their records."""
        failed = self.fail_batches(is_not_in_flight, self._purged)
        for batch in failed:
            batch.mark_observed()
        return sum(batch.remaining for batch in failed)

    def _purged(self, batch: Batch) -> DeliveryFailed:
        elapsed = self._now() - batch.created
        return delivery_failed(batch, "purged", elapsed, f"purged {elapsed:.3f} s after they were accepted")

    def set_last_error(self, error: KafkaError) -> None:
        """Set the last error of every batch: a batch that fails before it is sent names it."""
        for batch in self._accumulator.live:
            batch.set_last_error(error)

    def cancel(self, partition: Partition | None, batch: Batch, index: int) -> bool:
        """Cancel a queued batch's record; return whether it was there; others keep their order."""
        error = DeliveryFailed(
            f"the record for {batch.place} was cancelled before it was sent",
            topic=batch.topic,
            partition=batch.partition,
            stage="cancelled",
            elapsed=self._now() - batch.created,
        )
        if partition is None:
            if batch.parked is None or not self._accumulator.cancel_parked(batch, index, error):
                return False
            if not batch.remaining:  # no flush has to wait for its topic
                self._accumulator.forget_topic(self._accumulator.topics[batch.topic])
                self.fail(batch, error)
            self._line.serve()
            return True
        if batch not in partition.queue or batch.count > MOST_TO_CANCEL_IN:
            return False
        rest = self._accumulator.cancel(batch, partition, records_of(batch), index, error)
        partition.discard(batch)
        for part in rest:
            partition.put_back(part)
        self._line.serve()
        return True
