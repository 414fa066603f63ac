"""Transactions of one producer (KIP-98, 360, 447, 588, 654, 890): who may write when, and how each one ends.

`Transactions` is the only driver of the machine in `states.py`; it calls the coordinators through
`coordinator.py`; `block.py` is what programs hold. The senders ask it whether a batch may leave, and the batch
results report what failed.
"""

from __future__ import annotations

import asyncio
import logging
import random
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

logger = logging.getLogger("aiokwire.producer")

# Of the time that an abort may take, the part in which it waits for the answers to what is on its way.
QUIET_SHARE = 0.5


class Transactions:
    """The driver of one producer's transactions (in Java's client: `TransactionManager`); on the producer's loop."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        rng: random.Random,
        accumulator: Accumulator,
        line: WaitingLine,
        *,
        joins: TransactionTicket | None,
        events: Events[ProducerEvent],
        flush: Callable[[], Awaitable[None]],
        fail_unsent: Callable[[KafkaError], None],
        fail_all: Callable[[KafkaError], None],
        on_writable: Callable[[], None],
        on_identity: Callable[[int, int], None],
    ) -> None:
        """`joins`: another producer's transaction to write to (`shared.py`). `flush()` delivers what was accepted,
        `fail_unsent(error)` fails the batches that are not in flight, `fail_all(error)` all. `on_writable()` is called
        when batches may leave that could not, `on_identity(producer_id, producer_epoch)` with a new producer id."""
        self.identity = TransactionalIdentity(self.may_write, on_identity)
        self.ended: KafkaError | None = None  # why batches of the present transaction leave no more
        self._client = client
        self._config = config
        self._accumulator = accumulator
        self._line = line
        self._events = events
        self._flush = flush
        self._fail_unsent = fail_unsent
        self._fail_all = fail_all
        self._on_writable = on_writable
        self._coordinator = (
            TransactionCoordinatorClient(client, config, self.identity, rng)
            if joins is None
            else JoinedCoordinatorClient(client, config, self.identity, rng, joins)
        )
        self._machine = Machine(
            f"transactional id {config.transactional_id}", TRANSITIONS, TransactionState.UNINITIALIZED
        )
        self._transaction: OpenTransaction | None = None
        self._requests = 0  # requests under way that belong to the transaction
        self._adding = False
        self._changed = anyio.Event()  # set, and replaced, when a step, a batch or a state ends

    @property
    def _who(self) -> str:
        return self._coordinator.who

    @property
    def state(self) -> TransactionState:
        """Where the producer is."""
        return self._machine.state

    @property
    def max_produce_version(self) -> int | None:
        """The newest version of Produce that the open transaction may use."""
        return requests.max_produce_version(
            self._transaction.transaction_v2 if self._transaction is not None else self._coordinator.transaction_v2
        )

    # --- called by the senders and the batch results ---------------------------------------------------------------

    def may_write(self, partition: Partition) -> bool:
        """Whether the partition is part of the open transaction; when it is not yet, it is made so."""
        transaction = self._transaction
        if transaction is None or self.state not in WRITING:
            return False
        place = TopicPartition(partition.topic, partition.index)
        if place in transaction.partitions:
            return True
        if transaction.transaction_v2:  # its leader makes it so
            transaction.partitions.add(place)
            return True
        if place not in transaction.asked:
            transaction.wanted.add(place)
            if not self._adding:
                self._adding = True
                self._client.spawn(self._add_partitions, transaction, name="producer: partitions of the transaction")
        return False

    def on_failed(self, batch: Batch, error: KafkaError) -> None:
        """A batch was given up, so the transaction is not whole; leaving its block says so, no log has to."""
        batch.mark_observed()
        if self._transaction is None or self.ended is not None or isinstance(error, ClosedError):
            return
        action = action_for_error(ApiKey.PRODUCE, error)
        if action >= ErrorAction.FENCED and not self._may_have_timed_out(action):
            asyncio.get_running_loop().call_soon(self._fail, action, error)
        else:
            self._lose(error)

    def explain(self, error: BrokerError) -> KafkaError:
        """What a batch's refusal means for whoever awaits it."""
        return explain_refusal(error, self._config.transaction_timeout)

    def on_arrived(self) -> None:
        """A batch is not in flight any more."""
        if self.ended is not None:
            self._signal()

    # --- the life -----------------------------------------------------------------------------------------------------

    async def initialize(self) -> None:
        """Get producer id and epoch; fences the instance before, and ends what it left open.

        Raises: KafkaError: the coordinator refuses, or does not answer in time.
        """
        self._fire(TransactionEvent.INITIALIZE)
        self._shut(TransactionStateError("no record is taken before start() is done"))
        deadline = Deadline(self._config.default_api_timeout, f"{self._who}: getting a producer id")
        try:
            await self._coordinator.obtain_identity(deadline)
        except CoordinatorRequestFailed as failed:
            self._fail(failed.action, failed.error)
            raise failed.error from None
        self._rest()

    def check(self) -> None:
        """Do nothing while the producer can go on.

        Raises: FencedError, TransactionFailed: it cannot.
        """
        if self.state is TransactionState.FATAL_ERROR:
            raise self._fatal()

    def begin(self) -> OpenTransaction:
        """Open a transaction.

        Raises: TransactionStateError: one is open already; FencedError, TransactionFailed: the producer has failed.
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
        """Deliver what was accepted, then commit. Cancelled before the coordinator is asked, it leaves the transaction
        to be aborted; from then on it ends first.

        Raises: TransactionAborted: something was lost, so it was aborted; FencedError, TransactionFailed: fatal.
        """
        self._require(transaction)
        if self.state is TransactionState.IN_TRANSACTION:
            self._fire(TransactionEvent.COMMIT)
            self._shut(TransactionStateError("the transaction is being committed: it takes no more"))
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
                f"{self._who}: the transaction was aborted, because {reason}; repeat its work in a new one",
                reason=reason,
            ) from reason
        self.check()

    def give_up(self, transaction: OpenTransaction, error: KafkaError) -> None:
        """The transaction is not whole, for a reason of its program's own."""
        self._require(transaction)
        self._lose(error)

    async def abort(self, transaction: OpenTransaction, timeout: float | None = None) -> None:
        """Abort; what is not delivered fails with TransactionAborted. It ends within the transaction time-out,
        cancelled or not. A failure makes the state fatal, and is logged."""
        if transaction is not self._transaction or not self._machine.can(TransactionEvent.ABORT):
            return
        self._fire(TransactionEvent.ABORT)
        self._end_writing(TransactionAborted(f"{self._who}: the transaction was aborted", reason=transaction.error))
        limit = min(self._config.transaction_timeout, self._config.default_api_timeout)
        deadline = Deadline(limit if timeout is None else min(limit, timeout), f"{self._who}: aborting")
        await run_to_the_end(self._client, lambda: self._abort(transaction, deadline), "producer: abort")

    async def close(self, timeout: float) -> None:
        """Nothing stays open: a transaction that is, is aborted; one that ends gets `timeout` seconds for that."""
        transaction = self._transaction
        if transaction is None:
            return
        await self.abort(transaction, timeout)
        with anyio.move_on_after(timeout):
            while self._transaction is not None:
                await self._changed.wait()

    # --- the steps ----------------------------------------------------------------------------------------------------

    async def send_offsets(
        self, transaction: OpenTransaction, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """See `Transaction.send_offsets`."""
        self._require(transaction)
        if self.state is TransactionState.ABORTABLE_ERROR:
            raise self._has_to_abort(transaction)
        if self.state is not TransactionState.IN_TRANSACTION:
            raise TransactionStateError(f"{self._who} is in state {self.state.name}: it takes no more offsets")
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
            if failed.action >= ErrorAction.FENCED and not self._may_have_timed_out(failed.action):
                self._fail(failed.action, failed.error)
                raise self._fatal() from failed.error
            self._lose(failed.error, unknown_id=failed.action is ErrorAction.NEW_EPOCH)
            raise self._has_to_abort(transaction) from failed.error
        except BaseException:
            self._lose(TransactionAborted("send_offsets was cancelled: whether the offsets arrived is not known"))
            raise

    async def _add_partitions(self, transaction: OpenTransaction) -> None:
        """Make partitions part of the transaction until none is wanted; then their batches may leave."""
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
            if failed.action >= ErrorAction.FENCED and not self._may_have_timed_out(failed.action):
                self._fail(failed.action, failed.error)
            else:
                self._lose(failed.error, unknown_id=failed.action is ErrorAction.NEW_EPOCH)
        finally:
            self._adding = False

    async def _deliver_all(self, transaction: OpenTransaction) -> None:
        """Raises: RequestTimedOut: not within the transaction's time."""
        with anyio.move_on_after(transaction.deadline.remaining):
            await self._flush()
            while self._requests:
                await self._changed.wait()
            return
        raise transaction.deadline.error()

    async def _check_time(self, transaction: OpenTransaction) -> None:
        """Do nothing unless the coordinator aborted the transaction because its time was over (KIP-588).

        Raises: RequestTimedOut: it did; the producer has its new identity already.
        """
        if not transaction.touched or not transaction.deadline.expired:
            return
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: describing the transaction")
        if await self._coordinator.has_timed_out(deadline):
            transaction.timed_out = True
            raise RequestTimedOut(
                f"the coordinator aborted it when it was open longer than {self._config.transaction_timeout:.3f} s "
                f"(transaction_timeout_ms)"
            )

    def _may_have_timed_out(self, action: ErrorAction) -> bool:
        """Whether "fenced" may mean that the coordinator aborted the transaction when its time was over (KIP-588). It
        is aborted then, which finds out."""
        return action is ErrorAction.FENCED and self._transaction is not None and self._transaction.deadline.expired

    async def _commit(self, transaction: OpenTransaction) -> None:
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: committing")
        transaction.outcome = TransactionOutcome.UNKNOWN  # until there is an answer
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
            await self._tell_abort(transaction, deadline)
        except CoordinatorRequestFailed as failed:
            self._fail(failed.action, failed.error)
            logger.error("aborting a transaction failed; the coordinator will do it: %s", self._fatal())
        else:
            transaction.outcome = TransactionOutcome.ABORTED
            self._rest()

    async def _tell_abort(self, transaction: OpenTransaction, deadline: Deadline) -> None:
        new_epoch = not await self._is_quiet(deadline.remaining * QUIET_SHARE) or self._is_a_sequence_broken()
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
        """Wait until nothing of the transaction is under way, so that nothing can arrive after its end; whether it came
        to that."""
        assert self.ended is not None
        with anyio.move_on_after(limit):
            while True:
                changed = self._changed
                self._fail_unsent(self.ended)
                if not self._requests and not self._is_in_flight():
                    return True
                await changed.wait()
        return False

    def _is_in_flight(self) -> bool:
        """Whether a batch is on its way to a broker."""
        return any(partition.in_flight for partition in self._partitions())

    def _is_a_sequence_broken(self) -> bool:
        """Whether a partition needs another epoch before its next batch."""
        return any(partition.needs_epoch for partition in self._partitions())

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

    def _shut(self, reason: KafkaError) -> None:
        """The producer takes no records; callers get the reason."""
        self._accumulator.close(reason)

    def _end_writing(self, reason: KafkaError) -> None:
        self.ended = reason
        self._shut(reason)
        self._line.dismiss(reason, report=False)  # leaving the transaction's block says so

    def _rest(self) -> None:
        """Between transactions."""
        self._transaction = None
        self.ended = None
        self._shut(
            TransactionStateError(
                f"{self._who}: no transaction is open: send within `async with producer.transaction():`"
            )
        )
        self._fire(TransactionEvent.DONE)

    def _lose(self, error: KafkaError, *, unknown_id: bool = False) -> None:
        """The open transaction is not whole any more."""
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
        # Not at once: whoever tells of a failed batch is at work on others.
        asyncio.get_running_loop().call_soon(self._drop, ended)

    def _drop(self, ended: KafkaError) -> None:
        if self.ended is ended:
            self._fail_unsent(ended)

    def _fail(self, action: ErrorAction, error: KafkaError, consequence: str = "") -> None:
        """The producer can do no more."""
        if not self._machine.can(TransactionEvent.FAIL):
            return
        fatal = fatal_error(self._who, action, error, self._config.transaction_timeout, consequence)
        self._transaction = None
        self._end_writing(fatal)
        self._fire(TransactionEvent.FAIL)
        self._fail_all(fatal)
        self._events.publish(ProducerFailed(fatal))

    def _fatal(self) -> KafkaError:
        assert self.ended is not None
        return self.ended.with_traceback(None)

    def _has_to_abort(self, transaction: OpenTransaction) -> TransactionAborted:
        return TransactionAborted(
            f"{self._who}: the transaction has to be aborted, because {transaction.error}; leave its block, then "
            f"repeat its work in a new one",
            reason=transaction.error,
        )

    def _require(self, transaction: OpenTransaction) -> None:
        self.check()
        if transaction is not self._transaction:
            raise TransactionStateError(
                f"{self._who}: this transaction has ended: it was aborted, or its producer closed"
            )
