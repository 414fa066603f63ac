"""Transactions of one producer (KIP-98, 360, 447, 588, 654, 890): who may write when, and how each one ends.

`Transactions` is the only driver of the machine in `states.py`; it talks to the coordinators through `steps.py`, and
`scope.py` is its face to programs. The dispatcher asks it whether a batch may leave, the settlement tells it what
failed.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BrokerError,
    ClosedError,
    FencedError,
    KafkaError,
    RequestTimedOut,
    TransactionAborted,
    TransactionFailed,
    TransactionStateError,
)
from aiokwire.machine import Machine
from aiokwire.producer import transaction_requests as requests
from aiokwire.producer.events import ProducerFailed, TransactionAbortRequired
from aiokwire.producer.idempotence import TransactionalIdentity
from aiokwire.producer.ongoing import Fate, Ongoing, run_to_the_end
from aiokwire.producer.outcomes import Outcome, outcome_of_error
from aiokwire.producer.shared import JoinedSteps, TransactionTicket
from aiokwire.producer.states import TRANSITIONS, WRITING, TransactionEvent, TransactionState
from aiokwire.producer.steps import StepFailed, Steps
from aiokwire.protocol import ApiKey, Response
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.config import ProducerConfig
    from aiokwire.producer.dispatcher import Dispatcher

ResponseT = TypeVar("ResponseT", bound=Response)

logger = logging.getLogger("aiokwire.producer")

# Of the time that an abort may take, the part in which it waits for the answers to what is on its way.
QUIET_SHARE = 0.5


class Transactions:
    """The driver."""

    def __init__(
        self, client: Client, config: ProducerConfig, dispatcher: Dispatcher, joins: TransactionTicket | None = None
    ) -> None:
        """`joins`: the transaction is somebody else's (`shared.py`)."""
        self.identity = TransactionalIdentity(self.may_write)
        self.ended: KafkaError | None = None  # why batches of the present transaction leave no more
        self._client = client
        self._config = config
        self._dispatcher = dispatcher
        self._coordinators = (
            Steps(client, config, self.identity, dispatcher.rng)
            if joins is None
            else JoinedSteps(client, config, self.identity, dispatcher.rng, joins)
        )
        self._machine = Machine(
            f"transactional id {config.transactional_id}", TRANSITIONS, TransactionState.UNINITIALIZED
        )
        self._ongoing: Ongoing | None = None
        self._steps = 0  # requests under way that belong to the transaction
        self._adding = False
        self._changed = anyio.Event()  # set, and replaced, when a step, a batch or a state ends

    @property
    def _who(self) -> str:
        return self._coordinators.who

    @property
    def state(self) -> TransactionState:
        """Where the producer is."""
        return self._machine.state

    @property
    def newest_produce(self) -> int | None:
        """The newest version of Produce that the open transaction may use."""
        return requests.newest_produce(self._ongoing.second if self._ongoing is not None else self._coordinators.second)

    # --- what the dispatcher and the settlement ask and tell ----------------------------------------------------------

    def may_write(self, partition: Partition) -> bool:
        """Whether the partition is part of the open transaction; when it is not yet, it is made so."""
        ongoing = self._ongoing
        if ongoing is None or self.state not in WRITING:
            return False
        place = TopicPartition(partition.topic, partition.index)
        if place in ongoing.partitions:
            return True
        if ongoing.second:  # its leader makes it so
            ongoing.partitions.add(place)
            return True
        if place not in ongoing.asked:
            ongoing.wanted.add(place)
            if not self._adding:
                self._adding = True
                self._client.spawn(self._add_partitions, ongoing, name="producer: partitions of the transaction")
        return False

    def on_failed(self, batch: Batch, error: KafkaError) -> None:
        """A batch was given up, so the transaction is not whole; leaving its block says so, no log has to."""
        batch.mark_observed()
        if self._ongoing is None or self.ended is not None or isinstance(error, ClosedError):
            return
        outcome = outcome_of_error(ApiKey.PRODUCE, error)
        if outcome >= Outcome.FENCED and not self._may_have_timed_out(outcome):
            self._dispatcher.loop.call_soon(self._fail, outcome, error)
        else:
            self._lose(error)

    def explain(self, error: BrokerError) -> KafkaError:
        """What a batch's refusal means for whoever awaits it: a leader's word on the epoch is not the last one, because
        a coordinator raises it also when it aborts a transaction that was open for too long."""
        if error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
            return error
        return TransactionAborted(
            f"{error}; the transaction was open longer than {self._config.transaction_timeout:.3f} s "
            f"(transaction_timeout_ms), or a newer producer took over: let this leave its block, which finds out",
            reason=error,
        )

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
            await self._coordinators.obtain_identity(deadline)
        except StepFailed as failed:
            self._fail(failed.outcome, failed.error)
            raise failed.error from None
        self._rest()

    def check(self) -> None:
        """Do nothing while the producer can go on.

        Raises: FencedError, TransactionFailed: it cannot.
        """
        if self.state is TransactionState.FATAL_ERROR:
            raise self._fatal()

    def begin(self) -> Ongoing:
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
        self._ongoing = Ongoing(deadline, second=self._coordinators.second)
        self._dispatcher.accumulator.open(self._dispatcher.loop)
        return self._ongoing

    async def commit(self, ongoing: Ongoing) -> None:
        """Deliver what was accepted, then commit. Cancelled before the coordinator is asked, it leaves the transaction
        to be aborted; from then on it ends first.

        Raises: TransactionAborted: something was lost, so it was aborted; FencedError, TransactionFailed: fatal.
        """
        self._require(ongoing)
        if self.state is TransactionState.IN_TRANSACTION:
            self._fire(TransactionEvent.COMMIT)
            self._shut(TransactionStateError("the transaction is being committed: it takes no more"))
            try:
                await self._deliver_all(ongoing)
                await self._check_time(ongoing)
            except KafkaError as error:
                self._lose(error)
            except BaseException:
                self._lose(TransactionAborted("the commit was cancelled before all records were delivered"))
                raise
        if self.state is TransactionState.COMMITTING_TRANSACTION:
            await run_to_the_end(self._client, lambda: self._commit(ongoing), "producer: commit")
        if self.state is TransactionState.ABORTABLE_ERROR:
            reason = ongoing.error
            await self.abort(ongoing)
            self.check()
            raise TransactionAborted(
                f"{self._who}: the transaction was aborted, because {reason}; repeat its work in a new one",
                reason=reason,
            ) from reason
        self.check()

    def give_up(self, ongoing: Ongoing, error: KafkaError) -> None:
        """The transaction is not whole, for a reason of its program's own."""
        self._require(ongoing)
        self._lose(error)

    async def abort(self, ongoing: Ongoing, timeout: float | None = None) -> None:
        """Abort; what is not delivered fails with TransactionAborted. It ends within the transaction time-out,
        cancelled or not. A failure makes the state fatal, and is logged."""
        if ongoing is not self._ongoing or not self._machine.can(TransactionEvent.ABORT):
            return
        self._fire(TransactionEvent.ABORT)
        self._end_writing(TransactionAborted(f"{self._who}: the transaction was aborted", reason=ongoing.error))
        limit = min(self._config.transaction_timeout, self._config.default_api_timeout)
        deadline = Deadline(limit if timeout is None else min(limit, timeout), f"{self._who}: aborting")
        await run_to_the_end(self._client, lambda: self._abort(ongoing, deadline), "producer: abort")

    async def close(self, timeout: float) -> None:
        """Nothing stays open: a transaction that is, is aborted; one that ends gets `timeout` seconds for that."""
        ongoing = self._ongoing
        if ongoing is None:
            return
        await self.abort(ongoing, timeout)
        with anyio.move_on_after(timeout):
            while self._ongoing is not None:
                await self._changed.wait()

    # --- the steps ----------------------------------------------------------------------------------------------------

    async def send_offsets(
        self, ongoing: Ongoing, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """See `Transaction.send_offsets`."""
        self._require(ongoing)
        if self.state is TransactionState.ABORTABLE_ERROR:
            raise self._has_to_abort(ongoing)
        if self.state is not TransactionState.IN_TRANSACTION:
            raise TransactionStateError(f"{self._who} is in state {self.state.name}: it takes no more offsets")
        if not offsets:
            return
        try:
            with self._step():
                if group.group_id not in ongoing.groups:
                    ongoing.groups.add(group.group_id)
                    if not ongoing.second:
                        await self._coordinators.add_offsets(group.group_id, ongoing.deadline)
                await self._coordinators.commit_offsets(offsets, group, ongoing.deadline, second=ongoing.second)
        except StepFailed as failed:
            if failed.outcome >= Outcome.FENCED and not self._may_have_timed_out(failed.outcome):
                self._fail(failed.outcome, failed.error)
                raise self._fatal() from failed.error
            self._lose(failed.error, unknown_id=failed.outcome is Outcome.NEW_EPOCH)
            raise self._has_to_abort(ongoing) from failed.error
        except BaseException:
            self._lose(TransactionAborted("send_offsets was cancelled: whether the offsets arrived is not known"))
            raise

    async def _add_partitions(self, ongoing: Ongoing) -> None:
        """Make partitions part of the transaction until none is wanted; then their batches may leave."""
        try:
            with self._step():
                while ongoing.wanted and self.state in WRITING:
                    batch = sorted(ongoing.wanted)
                    ongoing.asked.update(batch)
                    ongoing.wanted.clear()
                    await self._coordinators.add_partitions(batch, ongoing.deadline, lambda: self.state in WRITING)
                    ongoing.partitions.update(batch)
                    self._dispatcher.soon()
        except StepFailed as failed:
            if failed.outcome >= Outcome.FENCED and not self._may_have_timed_out(failed.outcome):
                self._fail(failed.outcome, failed.error)
            else:
                self._lose(failed.error, unknown_id=failed.outcome is Outcome.NEW_EPOCH)
        finally:
            self._adding = False

    async def _deliver_all(self, ongoing: Ongoing) -> None:
        """Raises: RequestTimedOut: not within the transaction's time."""
        with anyio.move_on_after(ongoing.deadline.remaining):
            await self._dispatcher.flush()
            while self._steps:
                await self._changed.wait()
            return
        raise ongoing.deadline.error()

    async def _check_time(self, ongoing: Ongoing) -> None:
        """Do nothing unless the coordinator aborted the transaction because its time was over (KIP-588).

        Raises: RequestTimedOut: it did; the producer has its new identity already.
        """
        if not ongoing.touched or not ongoing.deadline.expired:
            return
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: describing the transaction")
        if await self._coordinators.has_timed_out(deadline):
            ongoing.timed_out = True
            raise RequestTimedOut(
                f"the coordinator aborted it when it was open longer than {self._config.transaction_timeout:.3f} s "
                f"(transaction_timeout_ms)"
            )

    def _may_have_timed_out(self, outcome: Outcome) -> bool:
        """Whether "fenced" may mean that the coordinator aborted the transaction when its time was over (KIP-588). It
        is aborted then, which finds out."""
        return outcome is Outcome.FENCED and self._ongoing is not None and self._ongoing.deadline.expired

    async def _commit(self, ongoing: Ongoing) -> None:
        deadline = Deadline(self._config.transaction_timeout, f"{self._who}: committing")
        ongoing.fate = Fate.UNKNOWN  # until there is an answer
        try:
            if ongoing.touched:
                await self._coordinators.tell_end(deadline, commit=True, second=ongoing.second)
        except StepFailed as failed:
            if failed.outcome >= Outcome.FENCED:
                self._fail(failed.outcome, failed.error, ", and whether the transaction was committed is not known")
            else:
                ongoing.fate = Fate.OPEN
                self._lose(failed.error, unknown_id=failed.outcome is Outcome.NEW_EPOCH)
        else:
            ongoing.fate = Fate.COMMITTED
            self._rest()

    async def _abort(self, ongoing: Ongoing, deadline: Deadline) -> None:
        try:
            await self._tell_abort(ongoing, deadline)
        except StepFailed as failed:
            self._fail(failed.outcome, failed.error)
            logger.error("aborting a transaction failed; the coordinator will do it: %s", self._fatal())
        else:
            ongoing.fate = Fate.ABORTED
            self._rest()

    async def _tell_abort(self, ongoing: Ongoing, deadline: Deadline) -> None:
        new_epoch = not await self._is_quiet(deadline.remaining * QUIET_SHARE) or self._dispatcher.sequences_broken
        if not ongoing.timed_out:
            with suppress(RequestTimedOut):
                await self._check_time(ongoing)
        if ongoing.unknown_id or ongoing.timed_out:
            new_epoch = True
        elif ongoing.touched:
            before = self.identity.epoch
            try:
                await self._coordinators.tell_end(deadline, commit=False, second=ongoing.second)
            except StepFailed as failed:
                if failed.outcome is not Outcome.NEW_EPOCH:
                    raise
                new_epoch = True
            new_epoch = new_epoch and self.identity.epoch == before
        if new_epoch:
            self._fire(TransactionEvent.INITIALIZE)
            await self._coordinators.obtain_identity(deadline)

    async def _is_quiet(self, limit: float) -> bool:
        """Wait until nothing of the transaction is under way, so that nothing can arrive after its end; whether it came
        to that."""
        assert self.ended is not None
        with anyio.move_on_after(limit):
            while True:
                changed = self._changed
                self._dispatcher.withdrawal.drop_waiting(self.ended)
                if not self._steps and not self._dispatcher.flying:
                    return True
                await changed.wait()
        return False

    # --- parts --------------------------------------------------------------------------------------------------------

    def _fire(self, event: TransactionEvent) -> None:
        self._machine.fire(event)
        self._signal()

    def _signal(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @contextmanager
    def _step(self) -> Generator[None]:
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1
            self._signal()

    def _shut(self, reason: KafkaError) -> None:
        """The producer takes no records; callers are told why."""
        self._dispatcher.accumulator.close(reason)

    def _end_writing(self, reason: KafkaError) -> None:
        self.ended = reason
        self._shut(reason)
        self._dispatcher.line.dismiss(reason, report=False)  # leaving the transaction's block says so

    def _rest(self) -> None:
        """Between transactions."""
        self._ongoing = None
        self.ended = None
        self._shut(
            TransactionStateError(
                f"{self._who}: no transaction is open: send within `async with producer.transaction():`"
            )
        )
        self._fire(TransactionEvent.DONE)

    def _lose(self, error: KafkaError, *, unknown_id: bool = False) -> None:
        """The open transaction is not whole any more."""
        ongoing = self._ongoing
        if ongoing is None or not self._machine.can(TransactionEvent.ERROR):
            return
        ongoing.error = error.with_traceback(None)
        ongoing.unknown_id = unknown_id
        self._fire(TransactionEvent.ERROR)
        ended = self._has_to_abort(ongoing)
        self._end_writing(ended)
        if self._dispatcher.events.wanted:
            self._dispatcher.events.publish(TransactionAbortRequired(self._config.transactional_id or "", error))
        # Not at once: whoever tells of a failed batch is at work on others.
        self._dispatcher.loop.call_soon(self._drop, ended)

    def _drop(self, ended: KafkaError) -> None:
        if self.ended is ended:
            self._dispatcher.withdrawal.drop_waiting(ended)

    def _fail(self, outcome: Outcome, error: KafkaError, consequence: str = "") -> None:
        """The producer can do no more."""
        if not self._machine.can(TransactionEvent.FAIL):
            return
        reason = error.with_traceback(None)
        fatal: KafkaError
        if outcome is Outcome.FENCED:
            fatal = FencedError(
                f"{self._who}: a newer producer has taken over, or the coordinator aborted a transaction that was open "
                f"longer than {self._config.transaction_timeout:.3f} s{consequence}; this producer must stop: {reason}",
                code=reason.code if isinstance(reason, BrokerError) else ErrorCode.PRODUCER_FENCED,
            )
        else:
            fatal = TransactionFailed(
                f"{self._who}: this producer cannot go on{consequence}: {reason}; close it and make a new one",
                reason=reason,
            )
        fatal.__cause__ = reason
        self._ongoing = None
        self._end_writing(fatal)
        self._fire(TransactionEvent.FAIL)
        self._dispatcher.withdrawal.fail_all(fatal)
        self._dispatcher.events.publish(ProducerFailed(fatal))

    def _fatal(self) -> KafkaError:
        assert self.ended is not None
        return self.ended.with_traceback(None)

    def _has_to_abort(self, ongoing: Ongoing) -> TransactionAborted:
        return TransactionAborted(
            f"{self._who}: the transaction has to be aborted, because {ongoing.error}; leave its block, then repeat "
            f"its work in a new one",
            reason=ongoing.error,
        )

    def _require(self, ongoing: Ongoing) -> None:
        self.check()
        if ongoing is not self._ongoing:
            raise TransactionStateError(
                f"{self._who}: this transaction has ended: it was aborted, or its producer closed"
            )
