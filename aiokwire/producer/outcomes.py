"""What a broker's answer means for a transaction: one table by API and error code, and one decision.

Pure: `transaction.py` asks and carries it out.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, BrokerError, FencedError, KafkaError, RetriableError, UnsupportedVersion
from aiokwire.protocol import ApiKey


class Outcome(enum.IntEnum):
    """What follows; of several codes in one answer the gravest counts."""

    DONE = 0
    RETRY = 1  # the same request after a pause
    COORDINATOR = 2  # the same, to the coordinator that is to be looked up anew
    ABORTABLE = 3  # the transaction has to be aborted, then the producer goes on
    NEW_EPOCH = 4  # the same, and the coordinator no longer knows the producer id: InitProducerId instead of EndTxn
    FENCED = 5  # a newer instance took over
    FATAL = 6


# What the codes mean wherever they come from.
_ALWAYS = {
    ErrorCode.NONE: Outcome.DONE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Outcome.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Outcome.COORDINATOR,
    ErrorCode.NOT_COORDINATOR: Outcome.COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS: Outcome.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Outcome.RETRY,
    ErrorCode.TRANSACTION_ABORTABLE: Outcome.ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Outcome.NEW_EPOCH,
    ErrorCode.UNKNOWN_PRODUCER_ID: Outcome.NEW_EPOCH,
    ErrorCode.PRODUCER_FENCED: Outcome.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Outcome.FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Outcome.FATAL,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Outcome.FATAL,
    ErrorCode.INVALID_TXN_STATE: Outcome.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Outcome.FATAL,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Outcome.FATAL,
}

# What they mean in the answers of one API, where that differs.
BY_API: dict[ApiKey, dict[ErrorCode, Outcome]] = {
    ApiKey.INIT_PRODUCER_ID: {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: Outcome.FATAL,
        ErrorCode.UNKNOWN_PRODUCER_ID: Outcome.FATAL,
        ErrorCode.TRANSACTION_ABORTABLE: Outcome.FATAL,  # there is no transaction to abort
        ErrorCode.INVALID_TRANSACTION_TIMEOUT: Outcome.FATAL,
    },
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Outcome.RETRY,
        ErrorCode.OPERATION_NOT_ATTEMPTED: Outcome.RETRY,  # another partition's code says what is wrong
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
    },
    ApiKey.ADD_OFFSETS_TO_TXN: {ErrorCode.GROUP_AUTHORIZATION_FAILED: Outcome.ABORTABLE},
    ApiKey.TXN_OFFSET_COMMIT: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Outcome.RETRY,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE: Outcome.ABORTABLE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Outcome.ABORTABLE,
        # the consumer lost its partitions: others will do its work
        ErrorCode.ILLEGAL_GENERATION: Outcome.ABORTABLE,
        ErrorCode.UNKNOWN_MEMBER_ID: Outcome.ABORTABLE,
        ErrorCode.FENCED_INSTANCE_ID: Outcome.ABORTABLE,
        ErrorCode.REBALANCE_IN_PROGRESS: Outcome.ABORTABLE,
        ErrorCode.STALE_MEMBER_EPOCH: Outcome.ABORTABLE,
        ErrorCode.FENCED_MEMBER_EPOCH: Outcome.ABORTABLE,
    },
    ApiKey.FIND_COORDINATOR: {ErrorCode.GROUP_AUTHORIZATION_FAILED: Outcome.ABORTABLE},
    # What was written is asked for before a commit, which does not take place then.
    ApiKey.DESCRIBE_TRANSACTIONS: {ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: Outcome.ABORTABLE},
    # Never the answer to a commit that took place: the coordinator aborted the transaction when its time was over.
    ApiKey.END_TXN: {ErrorCode.INVALID_TXN_STATE: Outcome.ABORTABLE},
    # A batch that failed: the coordinator has the last word on who is fenced and what is open.
    ApiKey.PRODUCE: {
        ErrorCode.INVALID_PRODUCER_EPOCH: Outcome.ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID: Outcome.ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: Outcome.ABORTABLE,
        ErrorCode.INVALID_TXN_STATE: Outcome.ABORTABLE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Outcome.ABORTABLE,
    },
}
# APIs whose other refusals concern only this transaction; elsewhere nobody knows what the coordinator did.
_ABORTABLE_BY_DEFAULT = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE})


def outcome_of(api: ApiKey, code: int) -> Outcome:
    """What an error code of an API means for the transaction."""
    known = ErrorCode.of(code)
    if known == code:
        outcome = BY_API[api].get(known, _ALWAYS.get(known))
        if outcome is not None:
            return outcome
        if known.retriable and api is not ApiKey.PRODUCE:
            return Outcome.RETRY
    return Outcome.ABORTABLE if api in _ABORTABLE_BY_DEFAULT else Outcome.FATAL


def gravest(api: ApiKey, codes: Iterable[tuple[int, str]]) -> tuple[Outcome, int, str]:
    """Of an answer's codes with what each is about: what follows, from which code, about what."""
    found = [(outcome_of(api, code), code, about) for code, about in codes]
    return max(found, key=lambda each: each[0], default=(Outcome.DONE, 0, ""))


def outcome_of_error(api: ApiKey, error: KafkaError) -> Outcome:
    """What it means that a request got no answer to read, or that a batch failed.

    After a deadline: a transaction that is still open can be aborted; how EndTxn ended is not known.
    """
    if isinstance(error, (AuthorizationError, FencedError, UnsupportedVersion)):
        return outcome_of(api if api is ApiKey.PRODUCE else ApiKey.FIND_COORDINATOR, error.code)
    if api in (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID):
        return Outcome.FATAL
    if isinstance(error, BrokerError) and not isinstance(error, RetriableError):
        return outcome_of(api, error.code)
    return Outcome.ABORTABLE
