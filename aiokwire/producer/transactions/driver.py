"""Drives the transactions of one producer (KIP-98, 360, 447, 588, 654, 890).

Only `Transactions` fires the machine in `states.py`. It calls `coordinator.py`; `block.py` is its
public side. Senders ask it whether a batch may be sent, batch results report failures to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    RequestTimedOut,
    TransactionAborted,
    TransactionStateError,
)
from aiokwire.events import Events
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.machine import Machine
from aiokwire.producer.events import ProducerEvent, ProducerFailed, TransactionAbortRequired
from aiokwire.producer.idempotence import TransactionalIdentity
from aiokwire.producer.transactions import requests
from aiokwire.producer.transactions.coordinator import CoordinatorRequestFailed, TransactionCoordinatorClient
from aiokwire.producer.transactions.errors import ErrorAction, action_for_error, explain_refusal, fatal_error
from aiokwire.producer.transactions.open_transaction import OpenTransaction, TransactionOutcome, run_to_the_end
from aiokwire.producer.transactions.shared import JoinedCoordinatorClient, TransactionTicket
from aiokwire.producer.transactions.states import TRANSITIONS, WRITING, TransactionEvent, TransactionState
from aiokwire.protocol import ApiKey, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aiokwire.producer._accumulator import Accumulator
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.buffer_pool import WaitingLine
    from aiokwire.producer.config import ProducerConfig

ResponseT = TypeVar("ResponseT", bound=Response)

logger: FieldLogger = get_logger("aiokwire.producer")

# The part of an abort's timeout in which it waits for the responses to batches in flight.
QUIET_SHARE = 0.5


class Transactions:
    """The driver of one producer's transactions (Java: `TransactionManager`); on its loop."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        accumulator: Accumulator,
        line: WaitingLine,
        *,
        joins: TransactionTicket | None,
        events: Events[ProducerEvent],
        flush: Callable[[], Awaitable[None]],
        fail_unsent: Callable[[KafkaError], object],
        fail_all: Callable[[KafkaError], None],
        on_writable: Callable[[], None],
        on_identity: Callable[[int, int], None],
    ) -> None:
        """`joins`: a shared transaction to write to (`shared.py`). `flush()` delivers the accepted
        records, `fail_unsent(error)` fails the batches that are not in flight, `fail_all(error)`
        all. `on_writable()` is called when more partitions may be written,
        `on_identity(producer_id, producer_epoch)` with a new producer id."""
        self.identity: TransactionalIdentity = TransactionalIdentity(self.may_write, on_identity)
        self.ended: KafkaError | None = None  # why no more batches of the current transaction are sent
        self._client = client
        self._config = config
        self._log = logger.bound(client_id=config.client_id, transactional_id=config.transactional_id)
        self._accumulator = accumulator
        self._line = line
        self._events = events
        self._flush = flush
        self._fail_unsent = fail_unsent
        self._fail_all = fail_all
        self._on_writable = on_writable
        self._coordinator = (
            TransactionCoordinatorClient(client, config, self.identity)
            if joins is None
            else JoinedCoordinatorClient(client, config, self.identity, joins)
        )
        self._who = self._coordinator.who
        self._machine = Machine(
            f"transactional id {config.transactional_id}", TRANSITIONS, TransactionState.UNINITIALIZED
        )
        self._transaction: OpenTransaction | None = None
        self._requests = 0  # requests of the transaction in flight
        self._adding = False
        self._changed = anyio.Event()  # set and replaced when a request, a batch or a state ends

    @property
    def state(self) -> TransactionState:
        """The state of the producer."""
        return self._machine.state

    @property
    def max_produce_version(self) -> int | None:
        """The newest version of Produce that the open transaction may use."""
        return requests.max_produce_version(
            self._transaction.transaction_v2 if self._transaction is not None else self._coordinator.transaction_v2
        )

    # --- called by the senders and the batch results ---------------------------------------------------------------

    def may_write(self, partition: Partition) -> bool:
        """Whether the partition is part of the open transaction; adds it if it is not."""
        transaction = self._transaction
        if transaction is None or self.state not in WRITING:
            return False
        place = TopicPartition(partition.topic, partition.index)
        if place in transaction.partitions:
            return True
        if transaction.transaction_v2:  # its leader adds it
            transaction.partitions.add(place)
            return True
        if place not in transaction.asked:
            transaction.wanted.add(place)
            if not self._adding:
                self._adding = True
                self._client.spawn(self._add_partitions, transaction, name="producer: partitions of the transaction")
        return False

    def on_failed(self, batch: Batch, error: KafkaError) -> None:
        """A batch failed: the transaction has to be aborted, and leaving its block reports it."""
        batch.mark_observed()
        if self._transaction is None or self.ended is not None or isinstance(error, ClosedError):
            return
        action = action_for_error(ApiKey.PRODUCE, error)
        if action >= ErrorAction.FENCED and not self._may_have_timed_out(action):
            asyncio.get_running_loop().call_soon(self._fail, action, error)
        else:
            self._lose(error)

    def explain(self, error: BrokerError) -> KafkaError:
        """The error of a refused batch for its deliveries."""
        return explain_refusal(error, self._config.transaction_timeout)

    def on_arrived(self) -> None:
        """Note that a batch is no longer in flight: a commit or abort may wait for that."""
        if self.ended is not None:
            self._signal()

    # --- begin and end ------------------------------------------------------------------------------------------------

    async def initialize(self) -> None:
        """Obtain producer id and epoch; fence the previous instance, and abort its transaction.

        Raises: KafkaError: the coordinator refuses, or does not respond in time.
        """
        self._fire(TransactionEvent.INITIALIZE)
        self._accumulator.close(TransactionStateError("records are accepted only after start()"))
        deadline = Deadline(self._config.default_api_timeout, f"{self._who}: requesting a producer id")
        try:
            await self._coordinator.obtain_identity(deadline)
        except CoordinatorRequestFailed as failed:
            self._fail(failed.action, failed.error)
            raise failed.error from None
        self._rest()

    def check(self) -> None:
        """Raises: FencedError, TransactionFailed: the producer cannot continue."""
        if self.state is TransactionState.FATAL_ERROR:
            assert self.ended is not None
            raise self.ended.with_traceback(None)

    def begin(self) -> OpenTransaction:
        """Open a transaction.

        Raises: TransactionStateError: one is open; FencedError, TransactionFailed: producer failed.
        """
        self.check()
        if self.state is not TransactionState.READY:
            raise TransactionStateError(
                f"{self._who} is in state {self.state.name}: a producer has one transaction at a time; leave its block "
                f"first, or use a producer for each"
            )
        self._fire(TransactionEvent.BEGIN)
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: a transaction (transaction_timeout_ms)")
        self._transaction = OpenTransaction(deadline, transaction_v2=self._coordinator.transaction_v2)
        self._accumulator.open(asyncio.get_running_loop())
        return self._transaction

    async def commit(self, transaction: OpenTransaction) -> None:
        """Deliver the accepted records, then commit. A cancellation before EndTxn leaves the
        transaction to be aborted; after that, the commit ends first.

        Raises: TransactionAborted: a part was lost; FencedError, TransactionFailed: fatal.
        """
        self._require(transaction)
        if self.state is TransactionState.IN_TRANSACTION:
            self._fire(TransactionEvent.COMMIT)
            self._accumulator.close(
                TransactionStateError("the transaction is being committed and accepts no more records")
            )
            try:
                await self._deliver_all(transaction)
                await self._check_time(transaction)
            except KafkaError as error:
                self._lose(error)
            except BaseException:
                self._lose(TransactionAborted("the commit was cancelled before all records were delivered"))
                raise
        if self.state is TransactionState.COMMITTING_TRANSACTION:
            await run_to_the_end(self._client, lambda: self._commit(transaction), "producer: commit")
        if self.state is TransactionState.ABORTABLE_ERROR:
            reason = transaction.error
            await self.abort(transaction)
            self.check()
            raise TransactionAborted(
                f"{self._who}: the transaction was aborted, because {reason}; repeat the work in a new transaction",
                reason=reason,
            ) from reason
        self.check()

    def give_up(self, transaction: OpenTransaction, error: KafkaError) -> None:
        """Abort the transaction later, for an error of the application."""
        self._require(transaction)
        self._lose(error)

    async def abort(self, transaction: OpenTransaction, timeout: float | None = None) -> None:
        """Abort; records that are not delivered fail with TransactionAborted. It ends within the
        transaction timeout, cancelled or not. A failure makes the state fatal, and is logged."""
        if transaction is not self._transaction or not self._machine.can(TransactionEvent.ABORT):
            return
        self._fire(TransactionEvent.ABORT)
        self._end_writing(TransactionAborted(f"{self._who}: the transaction was aborted", reason=transaction.error))
        limit = min(self._config.transaction_timeout, self._config.default_api_timeout)
        deadline = Deadline(limit if timeout is None else min(limit, timeout), f"{self._who}: aborting")
        await run_to_the_end(self._client, lambda: self._abort(transaction, deadline), "producer: abort")

    async def close(self, timeout: float) -> None:
        """Abort an open transaction; wait at most `timeout` seconds for one that is ending."""
        transaction = self._transaction
        if transaction is None:
            return
        await self.abort(transaction, timeout)
        with anyio.move_on_after(timeout):
            while self._transaction is not None:
                await self._changed.wait()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def send_offsets(
        self, transaction: OpenTransaction, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """See `Transaction.send_offsets`."""
        self._require(transaction)
        if self.state is TransactionState.ABORTABLE_ERROR:
            raise self._has_to_abort(transaction)
        if self.state is not TransactionState.IN_TRANSACTION:
            raise TransactionStateError(f"{self._who} is in state {self.state.name}: it accepts no more offsets")
        if not offsets:
            return
        try:
            with self._request():
                if group.group_id not in transaction.groups:
                    transaction.groups.add(group.group_id)
                    if not transaction.transaction_v2:
                        await self._coordinator.add_offsets(group.group_id, transaction.deadline)
                await self._coordinator.commit_offsets(
                    offsets, group, transaction.deadline, transaction_v2=transaction.transaction_v2
                )
        except CoordinatorRequestFailed as failed:
            self._on_refused(failed)
            self.check()
            raise self._has_to_abort(transaction) from failed.error
        except BaseException:
            self._lose(TransactionAborted("send_offsets was cancelled: whether the offsets arrived is not known"))
            raise

    async def _add_partitions(self, transaction: OpenTransaction) -> None:
        """Add the wanted partitions to the transaction, so that their batches may be sent."""
        try:
            with self._request():
                while transaction.wanted and self.state in WRITING:
                    batch = sorted(transaction.wanted)
                    transaction.asked.update(batch)
                    transaction.wanted.clear()
                    await self._coordinator.add_partitions(batch, transaction.deadline, lambda: self.state in WRITING)
                    transaction.partitions.update(batch)
                    self._on_writable()
        except CoordinatorRequestFailed as failed:
            self._on_refused(failed)
        finally:
            self._adding = False

    def _on_refused(self, failed: CoordinatorRequestFailed) -> None:
        """Fail the producer, or have the transaction aborted."""
        if failed.action >= ErrorAction.FENCED and not self._may_have_timed_out(failed.action):
            self._fail(failed.action, failed.error)
        else:
            self._lose(failed.error, unknown_id=failed.action is ErrorAction.NEW_EPOCH)

    async def _deliver_all(self, transaction: OpenTransaction) -> None:
        """Raises: RequestTimedOut: the transaction timeout ended."""
        with anyio.move_on_after(transaction.deadline.remaining):
            await self._flush()
            while self._requests:
                await self._changed.wait()
            return
        raise transaction.deadline.error()

    async def _check_time(self, transaction: OpenTransaction) -> None:
        """Raises: RequestTimedOut: aborted after its timeout (KIP-588); next identity is set."""
        if not transaction.touched or not transaction.deadline.expired:
            return
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: describing the transaction")
        if await self._coordinator.has_timed_out(deadline):
            transaction.timed_out = True
            limit = f"{self._config.transaction_timeout:.3f} s (transaction_timeout_ms)"
            raise RequestTimedOut(f"the coordinator aborted it when it was open longer than {limit}")

    def _may_have_timed_out(self, action: ErrorAction) -> bool:
        """Whether "fenced" may mean that the coordinator aborted the transaction after its timeout
        (KIP-588); the abort then finds out."""
        return action is ErrorAction.FENCED and self._transaction is not None and self._transaction.deadline.expired

    async def _commit(self, transaction: OpenTransaction) -> None:
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: committing")
        transaction.outcome = TransactionOutcome.UNKNOWN  # until the response
        try:
            if transaction.touched:
                await self._coordinator.end_transaction(
                    deadline, commit=True, transaction_v2=transaction.transaction_v2
                )
        except CoordinatorRequestFailed as failed:
            if failed.action >= ErrorAction.FENCED:
                self._fail(failed.action, failed.error, ", and whether the transaction was committed is not known")
            else:
                transaction.outcome = TransactionOutcome.OPEN
                self._lose(failed.error, unknown_id=failed.action is ErrorAction.NEW_EPOCH)
        else:
            transaction.outcome = TransactionOutcome.COMMITTED
            self._rest()

    async def _abort(self, transaction: OpenTransaction, deadline: Deadline) -> None:
        try:
            await self._request_abort(transaction, deadline)
        except CoordinatorRequestFailed as failed:
            self._fail(failed.action, failed.error)
            level = logging.WARNING if failed.action is ErrorAction.FENCED else logging.ERROR
            self._log.log(
                level, "cannot abort the transaction; the coordinator will do so at its timeout: %s", self.ended
            )
        else:
            transaction.outcome = TransactionOutcome.ABORTED
            self._rest()

    async def _request_abort(self, transaction: OpenTransaction, deadline: Deadline) -> None:
        new_epoch = not await self._is_quiet(deadline.remaining * QUIET_SHARE)
        new_epoch = new_epoch or any(partition.needs_epoch for partition in self._partitions())
        if not transaction.timed_out:
            with suppress(RequestTimedOut):
                await self._check_time(transaction)
        if transaction.unknown_id or transaction.timed_out:
            new_epoch = True
        elif transaction.touched:
            before = self.identity.producer_epoch
            try:
                await self._coordinator.end_transaction(
                    deadline, commit=False, transaction_v2=transaction.transaction_v2
                )
            except CoordinatorRequestFailed as failed:
                if failed.action is not ErrorAction.NEW_EPOCH:
                    raise
                new_epoch = True
            new_epoch = new_epoch and self.identity.producer_epoch == before
        if new_epoch:
            self._fire(TransactionEvent.INITIALIZE)
            await self._coordinator.obtain_identity(deadline)

    async def _is_quiet(self, limit: float) -> bool:
        """Wait until no batch or request of the transaction is in flight, so that none arrives
        after its end; return whether that was within `limit` seconds."""
        assert self.ended is not None
        with anyio.move_on_after(limit):
            while True:
                changed = self._changed
                self._fail_unsent(self.ended)
                if not self._requests and not any(partition.in_flight for partition in self._partitions()):
                    return True
                await changed.wait()
        return False

    def _partitions(self) -> Iterator[Partition]:
        for topic in self._accumulator.topics.values():
            yield from topic.partitions

    # --- parts --------------------------------------------------------------------------------------------------------

    def _fire(self, event: TransactionEvent) -> None:
        self._machine.fire(event)
        self._signal()

    def _signal(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @contextmanager
    def _request(self) -> Generator[None]:
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._signal()

    def _end_writing(self, reason: KafkaError) -> None:
        self.ended = reason
        self._accumulator.close(reason)
        self._line.dismiss(reason, report=False)  # leaving the transaction's block reports it

    def _rest(self) -> None:
        """Forget the ended transaction: another one may begin."""
        self._transaction = None
        self.ended = None
        self._accumulator.close(
            TransactionStateError(
                f"{self._who}: no transaction is open: send within `async with producer.transaction():`"
            )
        )
        self._fire(TransactionEvent.DONE)

    def _lose(self, error: KafkaError, *, unknown_id: bool = False) -> None:
        """Require the open transaction to be aborted: a part of it is lost."""
        transaction = self._transaction
        if transaction is None or not self._machine.can(TransactionEvent.ERROR):
            return
        transaction.error = error.with_traceback(None)
        transaction.unknown_id = unknown_id
        self._fire(TransactionEvent.ERROR)
        ended = self._has_to_abort(transaction)
        self._end_writing(ended)
        if self._events.wanted:
            self._events.publish(TransactionAbortRequired(self._config.transactional_id or "", error))
        # Not at once: the caller may be handling other batches.
        asyncio.get_running_loop().call_soon(self._drop, ended)

    def _drop(self, ended: KafkaError) -> None:
        if self.ended is ended:
            self._fail_unsent(ended)

    def _fail(self, action: ErrorAction, error: KafkaError, consequence: str = "") -> None:
        """Fail the producer permanently."""
        if not self._machine.can(TransactionEvent.FAIL):
            return
        fatal = fatal_error(self._who, action, error, self._config.transaction_timeout, consequence)
        self._transaction = None
        self._end_writing(fatal)
        self._fire(TransactionEvent.FAIL)
        self._fail_all(fatal)
        self._events.publish(ProducerFailed(fatal))

    def _has_to_abort(self, transaction: OpenTransaction) -> TransactionAborted:
        return TransactionAborted(
            f"{self._who}: the transaction has to be aborted, because {transaction.error}; leave its block, then "
            f"repeat the work in a new transaction",
            reason=transaction.error,
        )

    def _require(self, transaction: OpenTransaction) -> None:
        self.check()
        if transaction is not self._transaction:
            raise TransactionStateError(
                f"{self._who}: this transaction has ended: it was aborted, or its producer closed"
            )
