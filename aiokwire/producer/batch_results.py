"""Acknowledges, retries, splits or fails a batch as `responses.py` decides, and frees its room.

Senders call it with a response or a lost request, `batch_failures.py` with batches to fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiokwire.backoff import Backoff
from aiokwire.cluster import Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BrokerError,
    DeliveryFailed,
    KafkaError,
    RecordRejected,
    RetriableError,
    UnsupportedVersion,
    is_disk_error,
)
from aiokwire.errors import error_for as broker_error
from aiokwire.events import Events
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.producer import planning
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import DONE, IN_FLIGHT, Batch
from aiokwire.producer._partition import Partition, next_sequence
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.events import ProducerEvent, report_failed
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.producer.idempotence import Idempotence
from aiokwire.producer.metrics import ProducerCounts
from aiokwire.producer.responses import Verdict, verdict_of
from aiokwire.producer.topics import Topics
from aiokwire.protocol.messages import produce
from aiokwire.records import Record, read_batches
from aiokwire.types import Compression, TimestampType, TopicPartition

if TYPE_CHECKING:
    from aiokwire.producer.transactions.driver import Transactions

logger: FieldLogger = get_logger("aiokwire.producer")


def records_of(batch: Batch) -> list[Record]:
    """Decode the records of a batch from its bytes, to split or convert it."""
    data = batch.data if batch.data is not None else batch.seal(Compression.NONE, None)
    found = read_batches(data, batch.topic, batch.partition, check_crcs=False)
    return [record for part in found for record in part.records()]


def delivery_failed(batch: Batch, stage: str, elapsed: float, what: str) -> DeliveryFailed:
    """The error of a batch that is not delivered; `what` completes the message."""
    return DeliveryFailed(
        f"{batch.remaining} record(s) for {batch.place} were {what}",
        topic=batch.topic,
        partition=batch.partition,
        stage=stage,
        elapsed=elapsed,
        last_error=batch.last_error,
    )


def stage_of(batch: Batch, partition: Partition | None) -> str:
    """Name what a batch was waiting for, for the message of `DeliveryFailed`: a key of `WHERE`."""
    if partition is None or (partition.leader < 0 and not batch.attempts):
        return "metadata"
    if batch.state == IN_FLIGHT:
        return "in flight"
    return "retrying" if batch.attempts else "buffered"


# What an expired batch was waiting for, by its stage.
WHERE = {
    "metadata": "waiting for the partition's leader",
    "buffered": "waiting to be sent",
    "in flight": "in flight without an answer",
    "retrying": "retrying",
}


class BatchResults:
    """Handles the results of one producer's batches (Java: `Sender.completeBatch`); on its loop.

    With `transactions`, a batch that fails ends the open transaction. With `check_duplicates`, a
    batch that may be a duplicate is compared with the log.
    """

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        accumulator: Accumulator,
        topics: Topics,
        idempotence: Idempotence,
        *,
        requeue: Callable[[Partition, float], None],
        transactions: Transactions | None,
        hooks: ProducerHooks | None,
        events: Events[ProducerEvent],
        counts: ProducerCounts,
        check_duplicates: bool,
    ) -> None:
        """`requeue(partition, when)`: the partition has a batch to send from that time on."""
        self._client = client
        self._accumulator = accumulator
        self._idempotence = idempotence
        self._config = config
        self._log = logger.bound(client_id=config.client_id, transactional_id=config.transactional_id)
        self._topics = topics
        self._requeue = requeue
        self._transactions = transactions
        self._hooks = hooks
        self._events = events
        self._counts = counts
        self._check_duplicates = check_duplicates
        self._backoffs: dict[Partition, Backoff] = {}

    # --- by response --------------------------------------------------------------------------------------------------

    def handle(self, node_id: int, partition: Partition, batch: Batch, entry: produce.PartitionProduceResponse) -> None:
        """Handle a broker's response for one partition."""
        if not entry.error_code:  # nearly always
            self._on_written(partition, batch, entry, entry.base_offset, entry.log_append_time_ms)
            return
        verdict = verdict_of(
            entry.error_code,
            count=batch.count,
            idempotent=self._idempotence.enabled,
            earlier_unresolved=planning.earlier_is_unresolved(partition, batch),
            transactional=self._transactions is not None,
        )
        if verdict is Verdict.DUPLICATE:
            self._on_written(partition, batch, entry, -1, -1)
            return
        error = self._error_of(node_id, batch, entry)
        if verdict is Verdict.SPLIT:
            self._split(partition, batch, error)
        elif verdict is Verdict.FAIL:
            final = error if self._transactions is None else self._transactions.explain(error)
            self.give_up(partition, batch, final, _errors_of_records(batch, entry))
        else:
            if verdict is Verdict.NEW_EPOCH:
                partition.break_sequence()
                batch.clear_sequence()
            self.retry(partition, batch, error, refresh=verdict is Verdict.REFRESH)
            if entry.current_leader is not None and entry.current_leader.leader_id >= 0:
                self._topics.on_leader(partition, entry.current_leader)  # another leader ends the pause

    def _on_written(
        self,
        partition: Partition,
        batch: Batch,
        entry: produce.PartitionProduceResponse,
        base_offset: int,
        append_time: int,
    ) -> None:
        if self._check_duplicates and may_be_duplicate(entry):  # the batch is in flight until the check ends
            name = f"producer: duplicate check of {batch.place}"
            self._client.spawn(self._check_duplicate, partition, batch, entry, name=name)
        else:
            self.deliver(partition, batch, base_offset, append_time)

    def deliver(self, partition: Partition, batch: Batch, base_offset: int, append_time: int) -> None:
        """Acknowledge a batch: wake the tasks that await its deliveries, free its buffer."""
        self._end_flight(partition, batch)
        if batch.state != DONE:
            size = 0 if batch.data is None else len(batch.data)
            self._counts.delivered(batch, size, asyncio.get_running_loop().time())
            batch.complete(base_offset, append_time)
            self._accumulator.finish(batch)
            if self._hooks is not None:
                self._hooks.delivered(batch)
        self._accumulator.release(batch)
        if self._backoffs:
            partition.hold(0.0)
            self._backoffs.pop(partition, None)
        if partition.queue:
            self._requeue(partition, 0.0)

    def retry(self, partition: Partition, batch: Batch, error: Exception, *, refresh: bool) -> None:
        """Queue a batch again for the time after a pause, unless its deadline has ended."""
        if self._expired_in_flight(partition, batch):
            return
        if self._transactions is not None and self._transactions.ended is not None:
            self.give_up(partition, batch, self._transactions.ended)
            return
        batch.set_last_error(error)
        backoff = self._backoff_of(partition)
        if is_disk_error(error) and backoff.take_warning():
            self._log.warning("%s; retrying", error)
        now = asyncio.get_running_loop().time()
        if now >= batch.deadline:
            self.expire(partition, batch, now)
            return
        self._counts.retried(batch)
        partition.put_back(batch)
        if partition.retry_at <= now:  # batches that fail together count as one failure
            partition.hold(now + backoff.next())
        if refresh:
            self._topics.refresh(partition.topic, str(error))
        self._requeue(partition, partition.retry_at)

    def give_up(
        self,
        partition: Partition | None,
        batch: Batch,
        error: KafkaError,
        record_errors: dict[int, KafkaError] | None = None,
    ) -> None:
        """Fail a batch permanently: its deliveries raise `error`, later batches may leave."""
        if partition is not None:
            self._end_flight(partition, batch)
            partition.skip(batch)
        if batch.state != DONE:
            self._fail(batch, error, record_errors)
        self._accumulator.release(batch)
        if partition is not None and partition.queue:
            self._requeue(partition, 0.0)

    def _split(self, partition: Partition, batch: Batch, error: BrokerError) -> None:
        if self._expired_in_flight(partition, batch):
            return
        self._log.info("%s; sending it in two halves", error)
        batch.set_last_error(error)
        self._counts.split()
        halves = self._accumulator.split(batch, partition, records_of(batch))
        if self._transactions is None:
            partition.skip(batch)
        sequence = batch.base_sequence
        for half in halves:
            if self._transactions is not None and sequence >= 0:  # they take its place: none of it was written
                half.number(batch.producer_id, batch.producer_epoch, sequence)
                sequence = next_sequence(sequence, half.count)
            partition.put_back(half)
        self._requeue(partition, 0.0)

    # --- by time ----------------------------------------------------------------------------------------------------

    def expire(self, partition: Partition | None, batch: Batch, now: float) -> None:
        """Fail a batch past its delivery timeout; bytes in flight keep room until the response."""
        stage = stage_of(batch, partition)
        flying = batch.state == IN_FLIGHT
        elapsed = now - batch.deadline + self._config.delivery_timeout  # the wait for room included
        cause = f": {batch.last_error}" if batch.last_error is not None else ""
        throttle = "" if flying else self._throttle_of(partition, now)
        within = f"{elapsed:.3f} s ({self._config.delivery_timeout_option})"
        error = delivery_failed(batch, stage, elapsed, f"not delivered in {within}, {WHERE[stage]}{throttle}{cause}")
        if flying:
            self._fail(batch, error)
        else:
            self.give_up(partition, batch, error)

    def _throttle_of(self, partition: Partition | None, now: float) -> str:
        """The rest of its leader's throttle, for the message of an expired batch."""
        if partition is None or partition.leader < 0:
            return ""
        left = self._client.throttled_until(partition.leader) - now
        return f", throttled by broker {partition.leader} for another {left * 1000:.0f} ms (quotas)" if left > 0 else ""

    # --- formats ----------------------------------------------------------------------------------------------------

    def rebuild(self, partition: Partition, batch: Batch, magic: int) -> None:
        """Convert a batch to the message format of another leader.

        Raises: UnsupportedVersion: a record has headers, which the format does not have.
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
        partition.move(partition.leader, magic)

    # --- parts ------------------------------------------------------------------------------------------------------

    async def _check_duplicate(
        self, partition: Partition, batch: Batch, entry: produce.PartitionProduceResponse
    ) -> None:
        timeout = self._config.default_api_timeout
        try:
            await check_duplicate(self._client, batch, entry, lambda: records_of(batch), timeout)
        except KafkaError as error:
            self.give_up(partition, batch, error)
        else:
            self.deliver(partition, batch, entry.base_offset, entry.log_append_time_ms)
        self._requeue(partition, 0.0)

    def _end_flight(self, partition: Partition, batch: Batch) -> None:
        if partition.arrived(batch) and self._transactions is not None:
            self._transactions.on_arrived()

    def _expired_in_flight(self, partition: Partition, batch: Batch) -> bool:
        """End a batch's flight; free its room if it expired meanwhile; return whether it did."""
        self._end_flight(partition, batch)
        if batch.state != DONE:
            return False
        partition.skip(batch)
        self._accumulator.release(batch)
        return True

    def _fail(self, batch: Batch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> None:
        batch.fail(error, record_errors)
        self._accumulator.finish(batch)
        if not batch.remaining:
            return  # every record was cancelled: there is no failure to report
        self._counts.failed(batch, error)
        if self._transactions is not None:
            self._transactions.on_failed(batch, error)
        if self._hooks is not None:
            self._hooks.failed(batch)
        report_failed(self._events, batch)

    def _backoff_of(self, partition: Partition) -> Backoff:
        backoff = self._backoffs.get(partition)
        if backoff is None:
            backoff = self._backoffs[partition] = self._config.new_retry_backoff(self._client.rng)
        return backoff

    def _error_of(self, node_id: int, batch: Batch, entry: produce.PartitionProduceResponse) -> BrokerError:
        size = len(batch.data) if batch.data is not None else batch.size
        context = (
            f"producing {batch.count} record(s), {batch.size} bytes ({size} as sent), to "
            f"{batch.topic}[{batch.partition}] on node {node_id}"
        )
        if entry.error_message:
            context += f", with the message {entry.error_message!r}"
        if entry.error_code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            context += " (the topic's max.message.bytes or the broker's message.max.bytes is smaller)"
        return broker_error(entry.error_code, context, topic=batch.topic, partition=batch.partition, request="Produce")


def _errors_of_records(batch: Batch, entry: produce.PartitionProduceResponse) -> dict[int, KafkaError] | None:
    """The errors by record (KIP-467): a rejected record gets its own, others a retriable one."""
    if not entry.record_errors:
        return None
    code = ErrorCode.of(entry.error_code)

    def error(kind: type[BrokerError], message: str) -> BrokerError:
        return kind(message, code=code, topic=batch.topic, partition=batch.partition, request="Produce")

    first = entry.record_errors[0]
    shared = error(
        RetriableError,
        f"{len(entry.record_errors)} other record(s) of its batch for {batch.place} were rejected (number "
        f"{first.batch_index}: {first.batch_index_error_message or code.description}), so no record of it was written: "
        f"send this record again",
    )
    errors: dict[int, KafkaError] = dict.fromkeys(range(batch.count), shared)
    for rejected in entry.record_errors:
        why = rejected.batch_index_error_message or code.description
        message = f"record {rejected.batch_index} of a batch of {batch.count} for {batch.place} was rejected: {why}"
        errors[rejected.batch_index] = error(RecordRejected, message)
    return errors


def may_be_duplicate(entry: produce.PartitionProduceResponse) -> bool:
    """Whether an acknowledgement may be that of another batch.

    A broker returns a log append time only for a duplicate, or on topics where it sets timestamps.
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

    For producers that join a transaction, which share a producer id and epoch. A broker takes a
    batch with the sequence of a stored one for a duplicate, whatever its records are: the second
    writer of a partition (an attempt of a retried Spark task, for example) would receive an
    acknowledgement for the records of the first. The first batch of a sequence is sent alone, so
    the check finds the second writer before it has written anything.

    Raises: KafkaError: the log has other records, or the batch cannot be fetched.
    """
    place = TopicPartition(batch.topic, batch.partition)
    if entry.base_offset < 0:  # too many batches later: the broker no longer knows its offset
        raise _written_by_other(place)
    found = await client.fetch({place: entry.base_offset}, timeout=timeout)
    if not is_own(sent(), found[place].records()[: batch.count]):
        raise _written_by_other(place)


def _written_by_other(place: TopicPartition) -> BrokerError:
    return broker_error(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"writing to {place.topic}[{place.partition}]: another producer of this transaction has already written to it",
        topic=place.topic,
        partition=place.partition,
        request="Produce",
    )
