"""Exactly-once: what handlers send and the offsets of their records are one transaction (KIP-447).

A handler's records are held back until it has returned, so that a transaction contains only what
belongs to completed records. Handlers run on while a transaction is being committed. Its records
are kept until then: if it is aborted, they are sent again in the next one, without their handlers.
"""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, NoReturn

import anyio

from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BrokerError,
    ClosedError,
    FencedError,
    InvalidArgument,
    KafkaError,
    RecordRejected,
    TransactionAborted,
    TransactionFailed,
)
from aiokwire.producer import Delivery, Producer, Transaction
from aiokwire.transforming import is_worth_repeating
from aiokwire.types import Headers, RecordMetadata, TopicPartition
from aiokwire.worker.committer import Fatal, Finished
from aiokwire.worker.context import Output
from aiokwire.worker.ordering import InFlightRecord
from aiokwire.worker.recovery import RenewableProducer, SentOffsets, committed_now, reads_decided, was_committed
from aiokwire.worker.settlement import Source
from aiokwire.worker.work_queue import WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

# A transaction with this many records is committed at once.
MOST_OUTPUTS: Final = 10_000
# What is wrong with the record itself, not with the transaction.
_REFUSED: Final = (InvalidArgument, RecordRejected)


class Published(NamedTuple):
    """What one call of a handler has sent; `tp`: the partition of its records, None: periodic."""

    tp: TopicPartition | None
    outputs: list[Output]


class TransactionCommitter:
    """Drives the worker's transactions: one task, `run`, opens and ends all of them."""

    def __init__(
        self,
        producers: RenewableProducer,
        consumer: Consumer[bytes, bytes],
        finished: Finished,
        queue: WorkQueue,
        interval: float,
        rng: random.Random,
        on_fatal: Fatal,
    ) -> None:
        """`interval`: seconds for which a transaction collects completed records."""
        self._producers = producers
        self._consumer = consumer
        self._finished = finished
        self._queue = queue
        self._interval = interval
        self._on_fatal = on_fatal
        self._backoff = producers.current.config.new_backoff(rng)
        self._sent = SentOffsets()  # by the present transaction
        self._published: list[Published] = []  # in the open transaction, or for the next one
        self._outputs = 0  # in the open transaction
        self._is_open = False
        self._opened = anyio.Event()
        self._publishing = 0  # handlers whose records are being added
        self._quiet = anyio.Event()
        self._must_abort = ""  # why the open transaction cannot be committed
        self._is_complete = False  # the present transaction: its commit may have been requested
        self._wanted = anyio.Event()  # a handler waits for a transaction, or a commit was requested
        self._due = anyio.Event()  # the open transaction is to be committed now
        self._requests: list[anyio.Event] = []
        self._covered: list[anyio.Event] = []  # those whose work is in the transaction that is being committed
        self._has_failed = False

    # --- called by executors ------------------------------------------------------------------------------------------

    async def publish(self, source: Source, outputs: list[Output]) -> None:
        """See `Publisher`."""
        async with self._adding():
            sent = 0
            try:
                for output in outputs:
                    await _submit(self._producers.current, output)
                    sent += 1
            except BaseException as error:
                if isinstance(error, KafkaError) and not isinstance(error, _REFUSED):
                    self._must_abort = str(error)  # all of them are sent again in the next one
                else:
                    if sent or not isinstance(error, Exception):
                        self._must_abort = f"{source.place} was published in part"
                    raise
            self._keep(source.tp, outputs)

    async def send(self, item: InFlightRecord, output: Output) -> RecordMetadata:
        """Add a single record, and wait for its acknowledgement, in the next transaction if this
        one is aborted.

        Raises: KafkaError: it was rejected.
        """
        while True:
            async with self._adding():
                try:
                    metadata = await (await _submit(self._producers.current, output))
                except KafkaError as error:
                    if not is_worth_repeating(error):
                        raise
                    self._end_early(str(error))
                except BaseException:  # it may be delivered, but its offset is not finished
                    self._end_early(f"{item.tp} at offset {item.record.offset} was given up")
                    raise
                else:
                    self._keep(item.tp, [output])
                    return metadata

    def _end_early(self, why: str) -> None:
        """Add nothing more to the open transaction, which has to be aborted."""
        self._must_abort = why
        self._due.set()
        self._close()

    def _keep(self, tp: TopicPartition | None, outputs: list[Output]) -> None:
        if tp is not None and tp not in self._queue.partitions:
            # Lost in the turn in which the handler was woken to publish: the new owner handles its records.
            self._must_abort = f"{tp} was given up meanwhile"
            return
        self._published.append(Published(tp, outputs))
        self._outputs += len(outputs)
        if self._outputs >= MOST_OUTPUTS:
            self._due.set()

    @asynccontextmanager
    async def _adding(self) -> AsyncIterator[None]:
        """Wait for an open transaction; it is not ended within the block."""
        while not self._is_open:
            if self._has_failed:
                raise ClosedError("the worker's transactions have ended")
            self._wanted.set()
            await self._opened.wait()
        self._publishing += 1
        try:
            yield
        finally:
            self._publishing -= 1
            if not self._publishing:
                self._quiet.set()

    # --- called by the worker -----------------------------------------------------------------------------------------

    async def commit(self, partitions: Collection[TopicPartition], timeout: float) -> None:
        """See `Committer`: commits a transaction with all that is finished."""
        if self._has_failed:
            return
        done = anyio.Event()
        self._requests.append(done)
        self._wanted.set()
        self._due.set()
        with anyio.move_on_after(timeout):
            await done.wait()
            return
        logger.warning(
            "group %r: a transaction was not committed within %.1f s: its records are handled again",
            self._consumer.config.group_id,
            timeout,
        )

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """See `Committer`: their new owner handles the records again."""
        kept = [each for each in self._published if each.tp not in partitions]
        if len(kept) < len(self._published):
            self._must_abort = f"{', '.join(map(str, sorted(partitions)))} were given up meanwhile"
            self._published = kept

    async def run(self) -> None:
        """See `Committer`."""
        while True:
            with anyio.move_on_after(self._interval):
                await self._wanted.wait()
            if self._wanted.is_set() or self._published or self._finished.uncommitted(self._queue.partitions):
                self._wanted = anyio.Event()
                await self._run_transaction()

    # --- one transaction ----------------------------------------------------------------------------------------------

    async def _run_transaction(self) -> None:
        """Run one transaction; one that is aborted is repeated by the next call."""
        transaction = self._producers.current.transaction()
        self._sent = SentOffsets()
        self._is_complete = False
        try:
            async with transaction:
                await self._collect(transaction)
        except (FencedError, TransactionFailed) as error:
            await self._recover(error)
        except KafkaError as error:
            self._requests += self._covered
            await self._after_abort(transaction.failure or error)
        else:
            self._after_commit()
        finally:
            self._covered = []
            self._close()

    def _after_commit(self) -> None:
        self._backoff.reset()
        self._producers.succeeded()
        self._published.clear()
        self._finished.committed(*self._sent.still_held(self._queue.partitions))
        for request in self._covered:
            request.set()

    async def _collect(self, transaction: Transaction) -> None:
        """Fill a transaction until it is to be committed.

        Raises: TransactionAborted: it cannot be committed.
        """
        self._must_abort = ""
        self._outputs = 0
        for published in list(self._published):  # of one that was aborted
            for output in published.outputs:
                await _submit(self._producers.current, output)
        self._open()
        with anyio.move_on_after(self._interval):
            await self._due.wait()
        self._close()
        while self._publishing:
            self._quiet = anyio.Event()
            await self._quiet.wait()
        if self._must_abort:
            raise TransactionAborted(self._must_abort)
        self._covered, self._requests = self._requests, []
        progress = self._finished.uncommitted(self._queue.partitions)
        if progress:
            held = {tp: self._queue.partitions[tp] for tp in progress}
            self._sent = SentOffsets(progress, self._finished.offsets(progress), held)
            await transaction.send_offsets(self._sent.offsets, self._consumer.group_metadata())
        if self._must_abort:  # a partition was given up meanwhile
            raise TransactionAborted(self._must_abort)
        self._is_complete = True

    def _open(self) -> None:
        self._due = anyio.Event()
        if self._requests:
            self._due.set()
        self._is_open = True
        self._opened.set()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._opened = anyio.Event()

    async def _after_abort(self, error: KafkaError) -> None:
        """Pause before the repetition, or stop the worker if it would fail again."""
        reason = error.reason if isinstance(error, TransactionAborted) and error.reason is not None else error
        is_too_large = isinstance(reason, BrokerError) and reason.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
        if is_too_large and self._finished.shorten(self._consumer.config.group_id or ""):
            self._wanted.set()
            return
        if not is_worth_repeating(error):
            await self._fail(error)
        pause = self._backoff.next()
        if self._backoff.is_worth_logging:
            logger.warning(
                "transactional id %r: a transaction was aborted, its records are sent again in %.3f s: %s",
                self._producers.current.config.transactional_id,
                pause,
                error,
            )
        await anyio.sleep(pause)
        self._wanted.set()

    # --- a producer that cannot continue ------------------------------------------------------------------------------

    async def _recover(self, error: KafkaError) -> None:
        """Continue with a new producer, which ends the transaction; stop the worker if that is
        impossible."""
        if not self._producers.may_renew(error) or not reads_decided(self._consumer):
            await self._fail(error)
        name = self._producers.current.config.transactional_id
        logger.warning("transactional id %r: continuing with a new producer: %s", name, error)
        try:
            await self._producers.renew(self._backoff)
            is_committed = await self._is_committed()
        except KafkaError as refusal:
            await self._fail(refusal)
        if is_committed is None:
            if any(each.tp is not None for each in self._published):
                await self._fail(error)
            self._drop_undecided(name)
        logger.info("transactional id %r: the last transaction was %scommitted", name, "" if is_committed else "not ")
        if is_committed:
            self._after_commit()
        else:
            self._requests += self._covered
            self._wanted.set()

    def _drop_undecided(self, name: str | None) -> None:
        """Do not send again what periodic handlers have sent without any offset beside it."""
        if self._published:
            logger.warning(
                "transactional id %r: %d record(s) of periodic handlers may have been sent, or not, in a transaction "
                "of unknown outcome; they are not sent again",
                name,
                sum(len(each.outputs) for each in self._published),
            )
            self._published.clear()

    async def _is_committed(self) -> bool | None:
        """Return whether this transaction was committed; None: its offsets do not show it."""
        sent = self._sent
        if not sent.offsets:
            return None if self._is_complete else False
        now = await committed_now(self._consumer, sent.held_in(self._queue.partitions), self._backoff)
        return was_committed(sent.before, sent.offsets, {tp: now[tp] for tp in sent.held_in(self._queue.partitions)})

    async def _fail(self, error: KafkaError) -> NoReturn:
        """Stop the worker; wait until this task is cancelled."""
        self._has_failed = True
        self._opened.set()
        for request in (*self._requests, *self._covered):
            request.set()
        self._on_fatal(_fatal(self._producers.current, error))
        while True:
            await anyio.sleep_forever()


class DeadLetterSender:
    """What `DeadLetters` needs of a producer, for the dead letter of one record."""

    def __init__(self, committer: TransactionCommitter, item: InFlightRecord) -> None:
        self._committer = committer
        self._item = item

    async def send(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, *, headers: Headers | None = None
    ) -> RecordMetadata:
        """Send within the transaction of the record's offset."""
        return await self._committer.send(self._item, Output(topic, value, key, None, None, headers))


async def _submit(producer: Producer[Any, Any], output: Output) -> Delivery:
    return await producer.submit(
        output.topic,
        output.value,
        output.key,
        partition=output.partition,
        timestamp=output.timestamp,
        headers=output.headers,
    )


def _fatal(producer: Producer[Any, Any], error: KafkaError) -> KafkaError:
    failure = KafkaError(
        f"transactional id {producer.config.transactional_id!r}: the worker stops, because a transaction cannot be "
        f"repeated: {error}. What was not committed is handled again after a restart"
    )
    failure.__cause__ = error
    return failure
