"""The meaning of error codes in Produce responses; `batch_results.py` acts on it."""

from __future__ import annotations

import enum

from aiokwire.error_codes import ErrorCode


class Verdict(enum.Enum):
    """The handling of a batch, by the error code in its response."""

    DELIVERED = enum.auto()
    DUPLICATE = enum.auto()  # the broker has it: delivered, at an unknown offset
    RETRY = enum.auto()  # the same bytes, after a pause
    REFRESH = enum.auto()  # the same, to the leader that newer metadata names
    SPLIT = enum.auto()  # two smaller batches instead
    NEW_EPOCH = enum.auto()  # the sequence is broken: a retry under the next producer epoch (KIP-360)
    FAIL = enum.auto()


# Other codes are retried if `ErrorCode` marks them as retriable; otherwise the batch fails.
ON_CODE = {
    ErrorCode.NONE: Verdict.DELIVERED,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.DUPLICATE,
    # another leader
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.REFRESH,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.REFRESH,
    # not now
    ErrorCode.REQUEST_TIMED_OUT: Verdict.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: Verdict.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Verdict.RETRY,
    ErrorCode.NETWORK_EXCEPTION: Verdict.RETRY,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Verdict.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Verdict.RETRY,  # the coordinator still completes the one before
    # corrupted in transit: the producer's copy is intact
    ErrorCode.CORRUPT_MESSAGE: Verdict.RETRY,
    # the batch
    ErrorCode.MESSAGE_TOO_LARGE: Verdict.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: Verdict.SPLIT,
    # the sequence
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.NEW_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.NEW_EPOCH,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.NEW_EPOCH,
}


def verdict_of(
    code: int, *, count: int, idempotent: bool, earlier_unresolved: bool, transactional: bool = False
) -> Verdict:
    """What an error code (0: none) means for a batch of `count` records.

    `earlier_unresolved`: an earlier batch, queued or in flight, causes the gap in the sequence.
    `transactional`: a broken sequence ends the transaction: only the coordinator raises its epoch.
    """
    known = ErrorCode.of(code)
    if known != code:
        return Verdict.FAIL
    verdict = ON_CODE.get(known)
    if verdict is None:
        return Verdict.RETRY if known.retriable else Verdict.FAIL
    if verdict is Verdict.SPLIT and count < 2:
        return Verdict.FAIL
    if verdict is Verdict.NEW_EPOCH:
        if not idempotent:
            return Verdict.FAIL
        if transactional:
            gap = known is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and earlier_unresolved
            return Verdict.RETRY if gap else Verdict.FAIL
        if earlier_unresolved:
            return Verdict.RETRY
    return verdict
