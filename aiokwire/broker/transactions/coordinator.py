"""The transaction coordinator: the producer and the transaction of each transactional id.

    request -> plan (decisions) -> record in __transaction_state -> in force -> response
    end     -> PrepareCommit or PrepareAbort logged -> marker per partition -> Complete... logged

Each step runs on the loop without waiting, so no other request sees part of it. Between a decision
and its markers there can be a disk error, a required flush or a crash: chores or the next start
complete a prepared transaction. Follows Java's TransactionCoordinator and KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Set
from typing import NamedTuple, TypeVar

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.internal_topic import InternalTopic
from aiokwire.broker.producer_ids import ProducerIds
from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.broker.transactions import decisions
from aiokwire.broker.transactions.markers import Listener, Markers
from aiokwire.broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from aiokwire.broker.transactions.states import TransactionEvent, TransactionState
from aiokwire.broker.transactions.transaction import EPOCH_BUMPS_SINCE, NO_EPOCH, NO_ID, Identity, Transaction
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.types import TopicPartition

logger: logging.Logger = logging.getLogger(__name__)

STATE_TOPIC = "__transaction_state"
COORDINATOR_EPOCH = 0  # there is only one coordinator
_NO_PRODUCER = Identity(NO_ID, NO_EPOCH)

A = TypeVar("A")


class Answered(NamedTuple):
    """An error code, or the producer's identity from now on."""

    code: ErrorCode
    identity: Identity = _NO_PRODUCER


class TransactionCoordinator:
    """Every transactional id of the broker."""

    def __init__(
        self, topics: TopicRegistry, configs: BrokerConfigs, producer_ids: ProducerIds, on_marker: Listener
    ) -> None:
        self._topics = topics
        self._producer_ids = producer_ids
        self.markers: Markers = Markers(topics, on_marker)
        self._max_timeout_ms = configs.integer("transaction.max.timeout.ms")
        self._expiration_ms = configs.integer("transactional.id.expiration.ms")
        self._log = InternalTopic(
            topics,
            STATE_TOPIC,
            configs.integer("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(configs.integer("transaction.state.log.segment.bytes")),
            },
        )
        self._transactions: dict[str, Transaction] = {}
        # Loop time of the timeout of each ongoing transaction; loaded ones get one at the first check.
        self._deadlines: dict[str, float] = {}
        self._flushing: set[str] = set()  # their last record is being flushed: markers must wait
        self._unfinished: set[str] = set()  # prepared, with markers or a last record still to be written

    def __repr__(self) -> str:
        ongoing = sum(one.state is TransactionState.ONGOING for one in self._transactions.values())
        return f"<TransactionCoordinator of {len(self._transactions)} transactional ids, {ongoing} ongoing>"

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._transactions.values()))

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # --- load ---------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read every transaction, complete the prepared ones, abort hanging ones.

        Raises: StorageError, CorruptRecord.
        """
        for _, batch in self._log.replay():
            for record in batch.records():
                transactional_id = decode_key(record.key)
                if transactional_id is None:
                    continue
                if record.value is None:
                    self._transactions.pop(transactional_id, None)
                else:
                    self._transactions[transactional_id] = decode_value(transactional_id, record.value)
        self._unfinished = {one.transactional_id for one in self if one.prepared}
        self.finish_prepared()
        self._abort_hanging()

    @property
    def highest_producer_id(self) -> int:
        """The greatest producer id of any transaction."""
        return max(
            (max(one.producer_id, one.next_producer_id, one.previous_producer_id) for one in self), default=NO_ID
        )

    def _abort_hanging(self) -> None:
        """Abort transactions open in a partition only: a power failure lost their record."""
        owned = {(one.producer_id, tp) for one in self if one.prepared or not one.at_rest for tp in one.partitions}
        for topic in self._topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.index)
                for state in list(partition.log.producers.states.values()):
                    if state.transaction_start >= 0 and (state.producer_id, tp) not in owned:
                        logger.warning(
                            "%s[%d]: producer %d left a transaction open; aborted it", *tp, state.producer_id
                        )
                        self._mark(tp, Identity(state.producer_id, state.epoch), commit=False)

    # --- around a request ---------------------------------------------------------------------------------------------

    def run(
        self,
        transactional_id: str,
        action: Callable[[], A],
        refused: Callable[[ErrorCode], A],
        then: Callable[[], None] | None = None,
    ) -> A | Awaitable[A]:
        """Run `action` once log and producer ids are ready; flush if the configs require it.

        `then` follows after the flush. `refused` makes the response if the disk fails.
        """
        if not self._is_ready(transactional_id):
            return self._run_later(transactional_id, action, refused, then)
        try:
            answer = action()
        except StorageError as error:
            return refused(_unavailable(error))
        if self._log.flush_needed(transactional_id):
            return self._flush(transactional_id, answer, refused, then)
        if then is not None:
            then()
        return answer

    def _is_ready(self, transactional_id: str) -> bool:
        return self._producer_ids.available and self._log.is_ready(transactional_id)

    async def _run_later(
        self,
        transactional_id: str,
        action: Callable[[], A],
        refused: Callable[[ErrorCode], A],
        then: Callable[[], None] | None,
    ) -> A:
        try:
            while not self._is_ready(transactional_id):
                await self._producer_ids.reserve()
                await self._log.prepare(transactional_id)
        except StorageError as error:
            return refused(_unavailable(error))
        answer = self.run(transactional_id, action, refused, then)
        return await answer if isinstance(answer, Awaitable) else answer

    async def _flush(
        self, transactional_id: str, answer: A, refused: Callable[[ErrorCode], A], then: Callable[[], None] | None
    ) -> A:
        self._flushing.add(transactional_id)
        try:
            await self._log.flush(transactional_id, wall_ms())
        except StorageError as error:
            self._unfinished.add(transactional_id)
            return refused(_unavailable(error))
        finally:
            self._flushing.discard(transactional_id)
        if then is not None:
            then()
        return answer

    def _take_id(self) -> int:
        taken = self._producer_ids.take()
        assert taken is not None, "`run` has reserved one"
        return taken

    def _log_and_set(self, transaction: Transaction) -> None:
        """Log a transaction and set it.

        Raises: StorageError: it is unchanged.
        """
        key = transaction.transactional_id
        self._log.append(key, [(encode_key(key), encode_value(transaction))], wall_ms())
        before = self._transactions.get(key)
        self._transactions[key] = transaction
        if transaction.state is not TransactionState.ONGOING:
            self._deadlines.pop(key, None)
        elif before is None or before.state is not TransactionState.ONGOING:
            self._deadlines[key] = asyncio.get_running_loop().time() + transaction.timeout_ms / 1000

    # --- requests: call within `run` ----------------------------------------------------------------------------------

    def init_producer(self, transactional_id: str, timeout_ms: int, expected: Identity | None) -> Answered:
        """InitProducerId: fences earlier producers of the transactional id.

        Raises: StorageError.
        """
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return Answered(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        current = self._transactions.get(transactional_id)
        if current is None:
            current = Transaction(transactional_id, self._take_id())
        decision = decisions.plan_init(
            current, timeout_ms=timeout_ms, expected=expected, fresh_id=self._take_id, now_ms=wall_ms()
        )
        if decision.next is not None:
            self._log_and_set(decision.next)
            if decision.next.prepared:
                self.finish(transactional_id)
        if decision.code is not ErrorCode.NONE or decision.next is None:
            return Answered(decision.code)
        return Answered(ErrorCode.NONE, decision.next.identity)

    def add_partitions(
        self, transactional_id: str, who: Identity, partitions: Set[TopicPartition], *, client_version: int = 0
    ) -> ErrorCode:
        """Add partitions to the producer's transaction; the first ones start it.

        Raises: StorageError.
        """
        decision = decisions.plan_add(
            self._transactions.get(transactional_id), who, partitions, client_version=client_version, now_ms=wall_ms()
        )
        if decision.next is not None:
            self._log_and_set(decision.next)
        return decision.code

    def prepare_end(self, transactional_id: str, who: Identity, *, commit: bool, client_version: int) -> Answered:
        """EndTxn up to its response: once the decision is logged, `finish` carries it out.

        Raises: StorageError.
        """
        decision = decisions.plan_end(
            self._transactions.get(transactional_id),
            who,
            commit=commit,
            client_version=client_version,
            fresh_id=self._take_id,
            now_ms=wall_ms(),
        )
        if decision.next is not None:
            self._log_and_set(decision.next)
        if decision.code is not ErrorCode.NONE:
            return Answered(decision.code)
        return Answered(ErrorCode.NONE, decisions.identity_after(self._transactions[transactional_id]))

    def admit(
        self, transactional_id: str | None, who: Identity, tp: TopicPartition, *, client_version: int
    ) -> ErrorCode:
        """Check a transactional write to a partition; for newer clients (KIP-890), also add it.

        Raises: StorageError.
        """
        if not transactional_id:
            return ErrorCode.INVALID_TXN_STATE
        if client_version >= EPOCH_BUMPS_SINCE:
            return self.add_partitions(transactional_id, who, {tp}, client_version=client_version)
        return self.verify(transactional_id, who, tp)

    def verify(self, transactional_id: str, who: Identity, tp: TopicPartition) -> ErrorCode:
        """Check that the partition is in the producer's ongoing transaction."""
        return decisions.verify(self._transactions.get(transactional_id), who, tp)

    # --- ends ---------------------------------------------------------------------------------------------------------

    def finish(self, transactional_id: str) -> None:
        """Write a prepared transaction's markers, then log completion; errors are retried later."""
        if transactional_id in self._flushing:
            return
        transaction = self._transactions.get(transactional_id)
        if transaction is None or not transaction.prepared:
            self._unfinished.discard(transactional_id)
            return
        commit = transaction.state is TransactionState.PREPARE_COMMIT
        try:
            for tp in sorted(transaction.partitions):
                self._mark(tp, transaction.identity, commit=commit)
            self._log_and_set(decisions.plan_complete(transaction, wall_ms()))
        except StorageError as error:
            logger.error("the transaction of %r cannot be completed yet: %s", transactional_id, error)
            self._unfinished.add(transactional_id)
        else:
            self._unfinished.discard(transactional_id)

    def _mark(self, tp: TopicPartition, who: Identity, *, commit: bool) -> None:
        code = self.markers.write(
            tp, who.producer_id, who.epoch, commit=commit, coordinator_epoch=COORDINATOR_EPOCH, now_ms=wall_ms()
        )
        if code is not ErrorCode.NONE:
            # The partition was deleted, or a newer epoch ended this transaction there: there is nothing to end.
            logger.warning(
                "%s[%d]: cannot write the transaction marker of producer %d: %s", *tp, who.producer_id, code.name
            )

    # --- chores -------------------------------------------------------------------------------------------------------

    def finish_prepared(self) -> None:
        """Retry the transactions that could not be completed."""
        for transactional_id in sorted(self._unfinished):
            self.finish(transactional_id)

    def abort_timed_out(self, now: float) -> int:
        """Abort the transactions that have timed out at loop time `now`; return their number.

        Raises: StorageError: the rest is left for the next call.
        """
        count = 0
        for one in self:
            if one.state is TransactionState.ONGOING and now >= self._deadline_of(one, now):
                logger.warning("the transaction of %r took more than %d ms; aborted", *_who_and_limit(one))
                self._log_and_set(decisions.plan_fence(one, wall_ms()))
                self.finish(one.transactional_id)
                count += 1
        return count

    def _deadline_of(self, transaction: Transaction, now: float) -> float:
        deadline = self._deadlines.get(transaction.transactional_id)
        if deadline is None:
            left_ms = min(transaction.started_ms + transaction.timeout_ms - wall_ms(), transaction.timeout_ms)
            deadline = self._deadlines[transaction.transactional_id] = now + left_ms / 1000
        return deadline

    def expire(self, now_ms: int) -> int:
        """Remove transactional ids unused for `transactional.id.expiration.ms`; return how many.

        Raises: StorageError: the rest is left for the next call.
        """
        count = 0
        for one in self:
            if one.at_rest and now_ms - one.updated_ms >= self._expiration_ms:
                dead = one.after(TransactionEvent.EXPIRE, now_ms)
                self._log.append(dead.transactional_id, [(encode_key(dead.transactional_id), None)], now_ms)
                del self._transactions[dead.transactional_id]
                count += 1
        return count


def _who_and_limit(transaction: Transaction) -> tuple[str, int]:
    return transaction.transactional_id, transaction.timeout_ms


def _unavailable(error: StorageError) -> ErrorCode:
    logger.error("cannot store transaction state: %s", error)
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
