"""The meaning of error codes for a transaction: a table by API and code; `driver.py` acts on it."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    FencedError,
    KafkaError,
    RetriableError,
    TransactionAborted,
    TransactionFailed,
    UnsupportedVersion,
)
from aiokwire.protocol import ApiKey


class ErrorAction(enum.IntEnum):
    """The driver's next action; of several codes in a response, the most severe counts."""

    DONE = 0
    RETRY = 1  # the same request after a pause
    COORDINATOR = 2  # the same, after looking up the coordinator again
    ABORTABLE = 3  # the transaction has to be aborted, then the producer can continue
    NEW_EPOCH = 4  # the same, and the coordinator no longer knows the producer id: InitProducerId instead of EndTxn
    FENCED = 5  # a newer instance took over
    FATAL = 6


# The meaning of the codes in the responses of all APIs.
_ALWAYS = {
    ErrorCode.NONE: ErrorAction.DONE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorAction.COORDINATOR,
    ErrorCode.NOT_COORDINATOR: ErrorAction.COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorAction.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: ErrorAction.RETRY,
    ErrorCode.TRANSACTION_ABORTABLE: ErrorAction.ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: ErrorAction.NEW_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID: ErrorAction.NEW_EPOCH,
    ErrorCode.PRODUCER_FENCED: ErrorAction.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: ErrorAction.FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ErrorAction.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorAction.FATAL,
    ErrorCode.INVALID_TXN_STATE: ErrorAction.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: ErrorAction.FATAL,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorAction.FATAL,
}

# Their meaning in the responses of one API, where it differs.
BY_API: dict[ApiKey, dict[ErrorCode, ErrorAction]] = {
    ApiKey.INIT_PRODUCER_ID: {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: ErrorAction.FATAL,
        ErrorCode.UNKNOWN_PRODUCER_ID: ErrorAction.FATAL,
        ErrorCode.TRANSACTION_ABORTABLE: ErrorAction.FATAL,  # there is no transaction to abort
        ErrorCode.INVALID_TRANSACTION_TIMEOUT: ErrorAction.FATAL,
    },
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        ErrorCode.OPERATION_NOT_ATTEMPTED: ErrorAction.RETRY,  # another partition's code is the cause
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ErrorAction.ABORTABLE,
    },
    ApiKey.ADD_OFFSETS_TO_TXN: {ErrorCode.GROUP_AUTHORIZATION_FAILED: ErrorAction.ABORTABLE},
    ApiKey.TXN_OFFSET_COMMIT: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.RETRY,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: ErrorAction.ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: ErrorAction.ABORTABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE: ErrorAction.ABORTABLE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE: ErrorAction.ABORTABLE,
        # the consumer lost its partitions: other members process their records
        ErrorCode.ILLEGAL_GENERATION: ErrorAction.ABORTABLE,
        ErrorCode.UNKNOWN_MEMBER_ID: ErrorAction.ABORTABLE,
        ErrorCode.FENCED_INSTANCE_ID: ErrorAction.ABORTABLE,
        ErrorCode.REBALANCE_IN_PROGRESS: ErrorAction.ABORTABLE,
        ErrorCode.STALE_MEMBER_EPOCH: ErrorAction.ABORTABLE,
        ErrorCode.FENCED_MEMBER_EPOCH: ErrorAction.ABORTABLE,
    },
    ApiKey.FIND_COORDINATOR: {ErrorCode.GROUP_AUTHORIZATION_FAILED: ErrorAction.ABORTABLE},
    # The partitions are requested before a commit, which then fails.
    ApiKey.DESCRIBE_TRANSACTIONS: {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: ErrorAction.ABORTABLE},
    # Never the response to a successful commit: the coordinator aborted the transaction after its timeout.
    ApiKey.END_TXN: {ErrorCode.INVALID_TXN_STATE: ErrorAction.ABORTABLE},
    # A batch that failed: only the coordinator knows whether the producer is fenced.
    ApiKey.PRODUCE: {
        ErrorCode.INVALID_PRODUCER_EPOCH: ErrorAction.ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID: ErrorAction.ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: ErrorAction.ABORTABLE,
        ErrorCode.INVALID_TXN_STATE: ErrorAction.ABORTABLE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorAction.ABORTABLE,
    },
}
# APIs whose other refusals concern only this transaction; after those of other APIs, its state is not known.
_ABORTABLE_BY_DEFAULT = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE})


def action_for(api: ApiKey, code: int) -> ErrorAction:
    """What an error code of an API means for the transaction."""
    known = ErrorCode.of(code)
    if known == code:
        action = BY_API[api].get(known, _ALWAYS.get(known))
        if action is not None:
            return action
        if known.retriable and api is not ApiKey.PRODUCE:
            return ErrorAction.RETRY
    return ErrorAction.ABORTABLE if api in _ABORTABLE_BY_DEFAULT else ErrorAction.FATAL


def most_severe(api: ApiKey, codes: Iterable[tuple[int, str]]) -> tuple[ErrorAction, int, str]:
    """The most severe of a response's codes with subjects: the action, the code, the subject."""
    found = [(action_for(api, code), code, about) for code, about in codes]
    return max(found, key=lambda each: each[0], default=(ErrorAction.DONE, 0, ""))


def action_for_error(api: ApiKey, error: KafkaError) -> ErrorAction:
    """What the failure of a request without a response, or of a batch, means for the transaction.

    After a deadline an open transaction can be aborted; the result of EndTxn is not known.
    """
    if isinstance(error, (AuthorizationError, FencedError, UnsupportedVersion)):
        return action_for(api if api is ApiKey.PRODUCE else ApiKey.FIND_COORDINATOR, error.code)
    if api in (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID):
        return ErrorAction.FATAL
    if isinstance(error, BrokerError) and not isinstance(error, RetriableError):
        return action_for(api, error.code)
    return ErrorAction.ABORTABLE


def explain_refusal(error: BrokerError, timeout: float) -> KafkaError:
    """The error for records of a refused batch; `timeout` of transactions in seconds.

    A leader's INVALID_PRODUCER_EPOCH is not final: the coordinator raises the epoch also when it
    aborts a transaction after its timeout.
    """
    if error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
        return error
    return TransactionAborted(
        f"{error}; the transaction was open longer than {timeout:.3f} s (transaction_timeout_ms), or a newer producer "
        f"took over: leave the transaction's block, which determines which",
        reason=error,
    )


def fatal_error(who: str, action: ErrorAction, error: KafkaError, timeout: float, consequence: str) -> KafkaError:
    """The error that ends a producer; transaction `timeout` in seconds, `consequence` as text."""
    reason = error.with_traceback(None)
    fatal: KafkaError
    if action is ErrorAction.FENCED:
        fatal = FencedError(
            f"{who}: a newer producer has taken over, or the coordinator aborted a transaction that was open "
            f"longer than {timeout:.3f} s{consequence}; this producer must stop: {reason}",
            code=reason.code if isinstance(reason, BrokerError) else ErrorCode.PRODUCER_FENCED,
        )
    else:
        fatal = TransactionFailed(
            f"{who}: this producer cannot continue{consequence}: {reason}; close it and create a new one",
            reason=reason,
        )
    fatal.__cause__ = reason
    return fatal
