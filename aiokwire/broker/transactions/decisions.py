"""The coordinator's decisions on requests, as pure functions of a transaction and a request.

Each returns an error code, or the transaction's next version; NONE without one: no change. The
order of checks is Kafka's (Java: TransactionCoordinator, TransactionMetadata).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

from aiokwire.broker.transactions.states import TransactionEvent, TransactionState
from aiokwire.broker.transactions.transaction import (
    EPOCH_BUMPS_SINCE,
    EXHAUSTED_EPOCH,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    Identity,
    Transaction,
)
from aiokwire.error_codes import ErrorCode
from aiokwire.types import TopicPartition

_ENDS = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}
_ENDINGS = {TransactionState.PREPARE_COMMIT: True, TransactionState.PREPARE_ABORT: False}


class Decision(NamedTuple):
    """The code of the response, and the transaction to log first."""

    code: ErrorCode
    next: Transaction | None = None


def plan_init(
    current: Transaction, *, timeout_ms: int, expected: Identity | None, fresh_id: Callable[[], int], now_ms: int
) -> Decision:
    """InitProducerId: the producer's id and its next epoch.

    `current` of a new transactional id has no epoch yet. `expected`: the identity the producer
    names (KIP-360). CONCURRENT_TRANSACTIONS with a next version: abort first, the producer retries.
    """
    if expected is not None and not _may_be(current, expected):
        return Decision(ErrorCode.PRODUCER_FENCED)
    if current.prepared:
        return Decision(ErrorCode.CONCURRENT_TRANSACTIONS)
    known = expected is None or current.epoch in {NO_EPOCH, expected.epoch}
    repeated = not known and expected is not None and expected.epoch == current.last_epoch
    if not known and not repeated:
        return Decision(ErrorCode.PRODUCER_FENCED)
    if current.state is TransactionState.ONGOING:
        return Decision(ErrorCode.CONCURRENT_TRANSACTIONS, plan_fence(current, now_ms))
    fresh = {"partitions": frozenset[TopicPartition](), "started_ms": -1, "timeout_ms": timeout_ms}
    if repeated:
        return Decision(ErrorCode.NONE, current.after(TransactionEvent.INIT, now_ms, **fresh))
    last_epoch = NO_EPOCH if expected is None else current.epoch
    if current.epochs_used_up:
        changes = {"producer_id": fresh_id(), "epoch": 0, "previous_producer_id": current.producer_id}
    else:
        changes = {"epoch": current.epoch + 1}
    changes |= {"last_epoch": last_epoch, "next_producer_id": NO_ID}
    return Decision(ErrorCode.NONE, current.after(TransactionEvent.INIT, now_ms, **fresh, **changes))


def _may_be(current: Transaction, expected: Identity) -> bool:
    return (
        current.epoch == NO_EPOCH
        or expected.producer_id == current.producer_id
        or (expected.producer_id == current.previous_producer_id and expected.epoch >= EXHAUSTED_EPOCH)
    )


def _fault_of(current: Transaction | None, who: Identity) -> ErrorCode:
    """Return why this producer may not act on the transaction now, or NONE."""
    if current is None or current.producer_id != who.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.epoch != who.epoch:
        return ErrorCode.PRODUCER_FENCED
    if current.prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE


def plan_add(
    current: Transaction | None, who: Identity, partitions: Set[TopicPartition], *, client_version: int, now_ms: int
) -> Decision:
    """AddPartitionsToTxn and AddOffsetsToTxn, explicit or implied by Produce, TxnOffsetCommit."""
    code = _fault_of(current, who)
    if code is not ErrorCode.NONE or current is None:
        return Decision(code)
    if current.state is TransactionState.ONGOING and partitions <= current.partitions:
        return Decision(ErrorCode.NONE)
    started = current.started_ms if current.state is TransactionState.ONGOING else now_ms
    return Decision(
        ErrorCode.NONE,
        current.after(
            TransactionEvent.ADD,
            now_ms,
            partitions=current.partitions | partitions,
            started_ms=started,
            client_version=client_version,
        ),
    )


def verify(current: Transaction | None, who: Identity, partition: TopicPartition) -> ErrorCode:
    """Return why the producer may not write, or NONE; TRANSACTION_ABORTABLE: not added."""
    code = _fault_of(current, who)
    if code is not ErrorCode.NONE or current is None:
        return code
    if current.state is TransactionState.ONGOING and partition in current.partitions:
        return ErrorCode.NONE
    return ErrorCode.TRANSACTION_ABORTABLE


def plan_end(
    current: Transaction | None,
    who: Identity,
    *,
    commit: bool,
    client_version: int,
    fresh_id: Callable[[], int],
    now_ms: int,
) -> Decision:
    """EndTxn. With KIP-890 an end raises the epoch, so that a retry names the previous epoch."""
    bumps = client_version >= EPOCH_BUMPS_SINCE
    repeated = current is not None and bumps and _is_repeated(current, who)
    if current is None or (current.producer_id != who.producer_id and not repeated):
        return Decision(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.epoch != who.epoch and not repeated:
        return Decision(ErrorCode.PRODUCER_FENCED)
    if current.prepared:
        same = _ENDINGS[current.state] is commit
        return Decision(ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE)
    if current.state in _ENDS and (repeated or not bumps):
        return Decision(ErrorCode.NONE if _ENDS[current.state] is commit else ErrorCode.INVALID_TXN_STATE)
    if repeated:
        return Decision(ErrorCode.PRODUCER_FENCED)  # something else raised the epoch
    if current.state is not TransactionState.ONGOING and (commit or not bumps):
        return Decision(ErrorCode.INVALID_TXN_STATE)
    changes: dict[str, int] = {"client_version": client_version}
    if bumps:
        changes |= {"epoch": current.epoch + 1, "last_epoch": current.epoch}
        if current.epochs_used_up:
            changes["next_producer_id"] = fresh_id()
    if current.state is not TransactionState.ONGOING:
        changes["started_ms"] = now_ms
    event = TransactionEvent.COMMIT if commit else TransactionEvent.ABORT
    return Decision(ErrorCode.NONE, current.after(event, now_ms, **changes))


def _is_repeated(current: Transaction, who: Identity) -> bool:
    """Return whether the producer retries: it names the epoch from before the end."""
    if current.producer_id == who.producer_id:
        return current.epoch == who.epoch + 1
    return current.previous_producer_id == who.producer_id and who.epoch == EXHAUSTED_EPOCH and current.epoch == 0


def plan_fence(current: Transaction, now_ms: int) -> Transaction:
    """Return an ongoing transaction aborted by the broker, which fences its producer.

    The previous epoch is kept: the transaction's producer may name it to receive the new one, by
    InitProducerId, or by a late EndTxn (abort) with KIP-890.
    """
    epoch = min(current.epoch + 1, LAST_EPOCH)
    return current.after(TransactionEvent.FENCE, now_ms, epoch=epoch, last_epoch=current.epoch)


def plan_complete(current: Transaction, now_ms: int) -> Transaction:
    """Return a prepared transaction once its markers are written."""
    changes: dict[str, object] = {"partitions": frozenset[TopicPartition]()}
    if current.next_producer_id != NO_ID:
        changes |= {
            "producer_id": current.next_producer_id,
            "epoch": 0,
            "previous_producer_id": current.producer_id,
            "next_producer_id": NO_ID,
        }
    return current.after(TransactionEvent.MARKED, now_ms, **changes)


def identity_after(transaction: Transaction) -> Identity:
    """Return the producer's identity in its next transaction."""
    if transaction.next_producer_id != NO_ID:
        return Identity(transaction.next_producer_id, 0)
    return transaction.identity
