"""Carries out what `responses.py` decides about a batch: acknowledge, retry, split or fail it, and free its room.

Called by the senders with a broker's response or a lost request, and by `batch_failures.py`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from aiokwire.backoff import Backoff
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, DeliveryFailed, KafkaError, RecordRejected, RetriableError, UnsupportedVersion
from aiokwire.errors import error_for as broker_error
from aiokwire.events import Events
from aiokwire.producer import planning
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import DONE, IN_FLIGHT, SEALED, Batch
from aiokwire.producer._partition import Partition
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.duplicate_check import DuplicateCheck, may_be_duplicate
from aiokwire.producer.events import ProducerEvent, report_failed
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.idempotence import Idempotence, next_sequence, refuse_number
from aiokwire.producer.responses import Verdict, verdict_of
from aiokwire.producer.transactions.coordinator import FIRST_PAUSE
from aiokwire.protocol.messages import produce
from aiokwire.records import Record, read_batches
from aiokwire.types import Compression

if TYPE_CHECKING:
    from aiokwire.producer.transactions.driver import Transactions

logger = logging.getLogger("aiokwire.producer")


def records_of(batch: Batch) -> list[Record]:
    """The records of a batch, decoded again."""
    data = batch.data if batch.data is not None else batch.seal(Compression.NONE, None)
    found = read_batches(data, batch.topic, batch.partition, check_crcs=False)
    return [record for part in found for record in part.records()]


def stage_of(batch: Batch, partition: Partition | None) -> str:
    """Where a batch is, for `DeliveryFailed`."""
    if partition is None or (partition.leader < 0 and not batch.attempts):
        return "metadata"
    if batch.state == IN_FLIGHT:
        return "in flight"
    return "retrying" if batch.attempts else "buffered"


# What an expired batch was doing, by its stage.
WHERE = {
    "metadata": "waiting for the partition's leader",
    "buffered": "waiting to be sent",
    "in flight": "in flight without an answer",
    "retrying": "retrying",
}


def pass_numbers_on(batch: Batch, parts: Sequence[Batch]) -> None:
    """The parts of a batch that was refused as a whole take its place in the sequence: nothing of it was written."""
    sequence = batch.base_sequence
    if sequence < 0:
        return
    for part in parts:
        part.producer_id = batch.producer_id
        part.producer_epoch = batch.producer_epoch
        part.base_sequence = sequence
        sequence = next_sequence(sequence, part.count)


class BatchResults:
    """Handles the results of the batches of one producer (in Java's client: `Sender.completeBatch`); on its loop.

    `requeue(partition, when)` is called when a partition has a batch to send from that time on, `refresh(topic,
    reason)` when its metadata is stale. With `transactions`, a batch that fails ends the open one. With
    `duplicate_check`, what may be a duplicate must be in the log as it was sent.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        idempotence: Idempotence,
        config: ProducerConfig,
        rng: random.Random,
        *,
        requeue: Callable[[Partition, float], None],
        refresh: Callable[[str, str], None],
        on_leader: Callable[[Partition, produce.LeaderIdAndEpoch], None],
        throttled_until: Callable[[int], float],
        transactions: Transactions | None = None,
        hooks: ProducerHooks | None = None,
        events: Events[ProducerEvent] | None = None,
        duplicate_check: DuplicateCheck | None = None,
    ) -> None:
        self._accumulator = accumulator
        self._idempotence = idempotence
        self._config = config
        self._rng = rng
        self._requeue = requeue
        self._refresh = refresh
        self._on_leader = on_leader
        self._throttled_until = throttled_until
        self._transactions = transactions
        self._hooks = hooks
        self._events = Events[ProducerEvent]() if events is None else events
        self._duplicate_check = duplicate_check
        self._backoffs: dict[Partition, Backoff] = {}

    # --- by response --------------------------------------------------------------------------------------------------

    def handle(self, node_id: int, partition: Partition, batch: Batch, entry: produce.PartitionProduceResponse) -> None:
        """Act on a broker's response for one partition."""
        verdict = verdict_of(
            entry.error_code,
            count=batch.count,
            idempotent=self._idempotence.enabled,
            earlier_unresolved=planning.earlier_is_unresolved(partition, batch),
            transactional=self._transactions is not None,
        )
        delivered = verdict in (Verdict.DELIVERED, Verdict.DUPLICATE)
        if delivered and self._duplicate_check is not None and may_be_duplicate(entry):
            self._check_duplicate(self._duplicate_check, partition, batch, entry)
            return
        if verdict is Verdict.DELIVERED:
            self.deliver(partition, batch, entry.base_offset, entry.log_append_time_ms)
            return
        if verdict is Verdict.DUPLICATE:
            self.deliver(partition, batch, -1, -1)
            return
        error = self._error_of(node_id, batch, entry)
        if verdict is Verdict.SPLIT:
            self._split(partition, batch, error)
        elif verdict is Verdict.FAIL:
            final = error if self._transactions is None else self._transactions.explain(error)
            self.give_up(partition, batch, final, _errors_of_records(batch, entry))
        else:
            if verdict is Verdict.NEW_EPOCH:
                partition.needs_epoch = True
                refuse_number(batch)
            self.retry(partition, batch, error, refresh=verdict is Verdict.REFRESH)
            if entry.current_leader is not None and entry.current_leader.leader_id >= 0:
                self._on_leader(partition, entry.current_leader)  # a leader that moved ends the pause

    def deliver(self, partition: Partition, batch: Batch, base_offset: int, append_time: int) -> None:
        """Acknowledge a batch that the broker has."""
        self._end_flight(partition, batch)
        if batch.state != DONE:
            batch.complete(base_offset, append_time)
            self._accumulator.finish(batch)
            if self._hooks is not None:
                self._hooks.delivered(batch)
        self._accumulator.release(batch)
        partition.retry_at = 0.0
        if self._backoffs:
            self._backoffs.pop(partition, None)
        if partition.queue:
            self._requeue(partition, 0.0)

    def retry(self, partition: Partition, batch: Batch, error: Exception, *, refresh: bool) -> None:
        """Queue the same bytes again after a pause, unless the batch's time is over."""
        self._end_flight(partition, batch)
        if batch.state == DONE:  # its deadline ended while it was in flight
            self._break_sequence(partition, batch)
            self._accumulator.release(batch)
            return
        if self._transactions is not None and self._transactions.ended is not None:
            self.give_up(partition, batch, self._transactions.ended)
            return
        batch.last_error = _without_traceback(error)
        now = asyncio.get_running_loop().time()
        batch.state = SEALED
        if now >= batch.deadline:
            self.expire(partition, batch, now)
            return
        partition.put_back(batch)
        if partition.retry_at <= now:  # several batches that fail together are one failure
            partition.retry_at = now + self._backoff_of(partition).next()
        if refresh:
            self._refresh(partition.topic, str(error))
        self._requeue(partition, partition.retry_at)

    def give_up(
        self,
        partition: Partition | None,
        batch: Batch,
        error: KafkaError,
        record_errors: dict[int, KafkaError] | None = None,
    ) -> None:
        """Fail a batch for good."""
        if partition is not None:
            self._end_flight(partition, batch)
            self._break_sequence(partition, batch)
        if batch.state != DONE:
            batch.fail(_without_traceback(error), record_errors)
            self._accumulator.finish(batch)
            self._report_failure(batch, error)
        self._accumulator.release(batch)
        if partition is not None and partition.queue:
            self._requeue(partition, 0.0)

    def _split(self, partition: Partition, batch: Batch, error: BrokerError) -> None:
        self._end_flight(partition, batch)
        if batch.state == DONE:
            self._break_sequence(partition, batch)
            self._accumulator.release(batch)
            return
        logger.info("%s; sending it in two halves", error)
        batch.last_error = error
        halves = self._accumulator.split(batch, partition, records_of(batch))
        if self._transactions is None:
            self._break_sequence(partition, batch)
        else:
            pass_numbers_on(batch, halves)
        for half in halves:
            partition.put_back(half)
        self._requeue(partition, 0.0)

    # --- by time ----------------------------------------------------------------------------------------------------

    def expire(self, partition: Partition | None, batch: Batch, now: float) -> None:
        """Fail a batch whose delivery deadline ended. Bytes in flight keep their room until the response."""
        stage = stage_of(batch, partition)
        flying = batch.state == IN_FLIGHT
        elapsed = now - batch.deadline + self._config.delivery_timeout  # the wait for room included
        said = f": {batch.last_error}" if batch.last_error is not None else ""
        throttle = "" if flying else self._throttle_of(partition, now)
        error = DeliveryFailed(
            f"{batch.remaining} record(s) for {batch.place} were not delivered in {elapsed:.3f} s "
            f"({self._config.delivery_timeout_option}), {WHERE[stage]}{throttle}{said}",
            topic=batch.topic,
            partition=batch.partition,
            stage=stage,
            elapsed=elapsed,
            last_error=batch.last_error,
        )
        if flying:
            batch.fail(error)
            self._accumulator.finish(batch)
            self._report_failure(batch, error)
            return
        self.give_up(partition, batch, error)

    def _throttle_of(self, partition: Partition | None, now: float) -> str:
        """For the message of an expired batch: for how long its leader's throttle still holds it back."""
        if partition is None or partition.leader < 0:
            return ""
        left = self._throttled_until(partition.leader) - now
        return f", throttled by broker {partition.leader} for another {left * 1000:.0f} ms (quotas)" if left > 0 else ""

    # --- formats ----------------------------------------------------------------------------------------------------

    def rebuild(self, partition: Partition, batch: Batch, magic: int) -> None:
        """Put a batch into another message format, because its leader is another broker than expected.

        Raises: UnsupportedVersion: a record has headers, and the format has none.
        """
        records = records_of(batch)
        if magic < 2 and any(record.headers for record in records):
            raise UnsupportedVersion(
                f"the broker that leads {batch.topic}[{batch.partition}] stores message format {magic}, which has no "
                f"headers: produce without them, or upgrade the broker",
                topic=batch.topic,
                partition=batch.partition,
                request="Produce",
            )
        self._accumulator.rebuild(batch, records, magic)
        partition.magic = magic

    # --- parts ------------------------------------------------------------------------------------------------------

    def _check_duplicate(
        self,
        duplicate_check: DuplicateCheck,
        partition: Partition,
        batch: Batch,
        entry: produce.PartitionProduceResponse,
    ) -> None:
        """Read the log; until then the batch counts as in flight."""

        def done(error: KafkaError | None) -> None:
            if error is None:
                self.deliver(partition, batch, entry.base_offset, entry.log_append_time_ms)
            else:
                self.give_up(partition, batch, error)
            self._requeue(partition, 0.0)

        duplicate_check.start(batch, entry, lambda: records_of(batch), done)

    def _end_flight(self, partition: Partition, batch: Batch) -> None:
        if partition.arrived(batch) and self._transactions is not None:
            self._transactions.on_arrived()

    def _report_failure(self, batch: Batch, error: KafkaError) -> None:
        if not batch.remaining:
            return  # every record of it was cancelled: nothing is lost
        if self._transactions is not None:
            self._transactions.on_failed(batch, error)
        if self._hooks is not None:
            self._hooks.failed(batch)
        report_failed(self._events, batch)

    def _break_sequence(self, partition: Partition, batch: Batch) -> None:
        """Ask for a new epoch when a numbered batch will not be sent (again): the broker would wait for its numbers."""
        if batch.base_sequence >= 0 and batch.producer_epoch == partition.producer_epoch:
            partition.needs_epoch = True

    def _backoff_of(self, partition: Partition) -> Backoff:
        backoff = self._backoffs.get(partition)
        if backoff is None:
            config = self._config
            initial, longest = config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000
            if self._transactions is not None:
                initial = min(initial, FIRST_PAUSE)
            backoff = self._backoffs[partition] = Backoff(initial, longest, rng=self._rng)
        return backoff

    def _error_of(self, node_id: int, batch: Batch, entry: produce.PartitionProduceResponse) -> BrokerError:
        size = len(batch.data) if batch.data is not None else batch.size
        context = (
            f"producing {batch.count} record(s), {batch.size} bytes ({size} as sent), to "
            f"{batch.topic}[{batch.partition}] on node {node_id}"
        )
        if entry.error_message:
            context += f", which says {entry.error_message!r}"
        if entry.error_code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            context += " (the topic's max.message.bytes or the broker's message.max.bytes is smaller)"
        return broker_error(entry.error_code, context, topic=batch.topic, partition=batch.partition, request="Produce")


def _errors_of_records(batch: Batch, entry: produce.PartitionProduceResponse) -> dict[int, KafkaError] | None:
    """Whose fault it is (KIP-467): the culprits have their own error, all others one that says: send it again."""
    if not entry.record_errors:
        return None
    code = ErrorCode.of(entry.error_code)
    place = f"{batch.topic}[{batch.partition}]"
    first = entry.record_errors[0]
    shared = RetriableError(
        f"{len(entry.record_errors)} other record(s) of its batch for {place} were rejected (number "
        f"{first.batch_index}: {first.batch_index_error_message or code.description}), so nothing of it was written: "
        f"this record may be sent again",
        code=code,
        topic=batch.topic,
        partition=batch.partition,
        request="Produce",
    )
    errors: dict[int, KafkaError] = dict.fromkeys(range(batch.count), shared)
    for culprit in entry.record_errors:
        said = culprit.batch_index_error_message or code.description
        errors[culprit.batch_index] = RecordRejected(
            f"record {culprit.batch_index} of a batch of {batch.count} for {place} was rejected: {said}",
            code=code,
            topic=batch.topic,
            partition=batch.partition,
            request="Produce",
        )
    return errors


def _without_traceback(error: Exception) -> Exception:
    """An error to keep: its frames would keep alive whatever they hold."""
    return error.with_traceback(None)
