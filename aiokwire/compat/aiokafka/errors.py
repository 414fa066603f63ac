"""aiokafka's exceptions, each a subclass of ours, and the translation of our errors into them.

`except aiokafka.errors.KafkaError` and `except aiokwire.errors.KafkaError` both catch them. The
text of an error is aiokafka's class name followed by our message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiokwire import errors
from aiokwire._text import printable
from aiokwire.error_codes import ErrorCode
from aiokwire.types import TopicPartition


class KafkaError(errors.KafkaError, RuntimeError):
    """The base of aiokafka's errors."""

    retriable: Any = False  # in ours a property
    invalid_metadata = False  # whether the metadata should be refreshed

    def __init__(self, *args: object) -> None:
        Exception.__init__(self, *args)
        _set_details(self)

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {printable(Exception.__str__(self))}" if self.args else name


# The attributes that our constructors set. They do not run here: aiokafka's errors take any arguments.
_DETAILS: Final[dict[type, dict[str, object]]] = {
    errors.ConnectionFailed: {"address": "", "stage": "", "is_logged": False},
    errors.AuthenticationFailed: {"address": ""},
    errors.CommitFailed: {"partitions": frozenset()},
    errors.NoOffset: {"topic": "", "partition": -1},
    errors.OffsetOutOfRange: {"offset": -1},
    errors.BrokerError: {"topic": None, "partition": None, "request": None},
}


def _set_details(error: KafkaError) -> None:
    for kind, details in _DETAILS.items():
        if isinstance(error, kind):
            error.__dict__.update(details)
    if isinstance(error, errors.BrokerError):
        error.code = ErrorCode.of(getattr(error, "errno", -1))


class IllegalStateError(KafkaError):
    pass


class IllegalArgumentError(KafkaError):
    pass


class NoBrokersAvailable(KafkaError, errors.ConnectionFailed):
    retriable = True
    invalid_metadata = True


class NodeNotReadyError(KafkaError):
    retriable = True


class KafkaProtocolError(KafkaError, errors.ProtocolViolation):
    retriable = True


class CorrelationIdError(KafkaProtocolError):
    retriable: Any = True


class Cancelled(KafkaError):
    retriable = True


class TooManyInFlightRequests(KafkaError):
    retriable = True


class StaleMetadata(KafkaError):
    retriable = True
    invalid_metadata = True


class MetadataEmptyBrokerList(KafkaError):
    retriable = True


class UnrecognizedBrokerVersion(KafkaError):
    pass


class IncompatibleBrokerVersion(KafkaError, errors.UnsupportedVersion):
    pass


class CommitFailedError(KafkaError, errors.CommitFailed):
    """The group gave the partitions to another member, which continues at the committed offsets."""

    def __init__(self, *args: object) -> None:
        super().__init__(
            "the offsets were not committed: the group has rebalanced and assigned the partitions again. Request "
            "records more often than max_poll_interval_ms, with a larger one or fewer records at a time",
            *args,
        )


class AuthenticationMethodNotSupported(KafkaError, errors.AuthenticationFailed):
    pass


class AuthenticationFailedError(KafkaError, errors.AuthenticationFailed):
    pass


class KafkaUnavailableError(KafkaError):
    pass


class KafkaTimeoutError(KafkaError, errors.RequestTimedOut):
    pass


class KafkaConnectionError(KafkaError, errors.ConnectionFailed):
    retriable = True
    invalid_metadata = True


class UnsupportedCodecError(KafkaError):
    pass


class KafkaConfigurationError(KafkaError, errors.ConfigurationError):
    pass


class QuotaViolationError(KafkaError):
    pass


class ConsumerStoppedError(errors.ClosedError):
    """The consumer was stopped; also raised by calls that were waiting then."""


class IllegalOperation(errors.KafkaError):
    """The configuration does not allow the call: a commit without a group, for example."""


class NoOffsetForPartitionError(KafkaError, errors.NoOffset):
    pass


class RecordTooLargeError(KafkaError):
    pass


class ProducerClosed(KafkaError, errors.ClosedError):
    pass


class ProducerFenced(KafkaError, errors.FencedError):
    """A newer producer has taken over the transactional id, or the transaction timed out."""

    errno = 90

    def __init__(
        self,
        msg: str = "a newer producer uses the same transactional_id, or the transaction was open longer than "
        "transaction_timeout_ms",
    ) -> None:
        super().__init__(msg)


class BrokerResponseError(KafkaError, errors.BrokerError):
    """A broker's error code: `errno`, with its name in `message`."""

    errno: int
    message: str
    description: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.description = ErrorCode.of(cls.errno).description

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class NoError(BrokerResponseError):
    errno = 0
    message = "NO_ERROR"


class UnknownError(BrokerResponseError):
    errno = -1
    message = "UNKNOWN"


class OffsetOutOfRangeError(BrokerResponseError, errors.OffsetOutOfRange):  # type: ignore[misc]  # None, or a place
    errno = 1
    message = "OFFSET_OUT_OF_RANGE"


class CorruptRecordException(BrokerResponseError, errors.RetriableError):
    errno = 2
    message = "CORRUPT_MESSAGE"


InvalidMessageError = CorruptRecordException


class UnknownTopicOrPartitionError(BrokerResponseError, errors.StaleMetadataError):
    errno = 3
    message = "UNKNOWN_TOPIC_OR_PARTITION"
    retriable = True
    invalid_metadata = True


class InvalidFetchRequestError(BrokerResponseError, errors.InvalidRequestError):
    errno = 4
    message = "INVALID_FETCH_SIZE"


class LeaderNotAvailableError(BrokerResponseError, errors.StaleMetadataError):
    errno = 5
    message = "LEADER_NOT_AVAILABLE"
    retriable = True
    invalid_metadata = True


class NotLeaderForPartitionError(BrokerResponseError, errors.StaleMetadataError):
    errno = 6
    message = "NOT_LEADER_FOR_PARTITION"
    retriable = True
    invalid_metadata = True


class RequestTimedOutError(BrokerResponseError, errors.RetriableError):
    errno = 7
    message = "REQUEST_TIMED_OUT"
    retriable = True


class BrokerNotAvailableError(BrokerResponseError, errors.InvalidRequestError):
    errno = 8
    message = "BROKER_NOT_AVAILABLE"


class ReplicaNotAvailableError(BrokerResponseError, errors.StaleMetadataError):
    errno = 9
    message = "REPLICA_NOT_AVAILABLE"


class MessageSizeTooLargeError(BrokerResponseError, errors.RecordRejected):
    errno = 10
    message = "MESSAGE_SIZE_TOO_LARGE"


class StaleControllerEpochError(BrokerResponseError, errors.InvalidRequestError):
    errno = 11
    message = "STALE_CONTROLLER_EPOCH"


class OffsetMetadataTooLargeError(BrokerResponseError, errors.InvalidRequestError):
    errno = 12
    message = "OFFSET_METADATA_TOO_LARGE"


class StaleLeaderEpochCodeError(BrokerResponseError, errors.StaleMetadataError):
    errno = 13
    message = "STALE_LEADER_EPOCH_CODE"


class GroupLoadInProgressError(BrokerResponseError, errors.RetriableError):
    errno = 14
    message = "COORDINATOR_LOAD_IN_PROGRESS"
    retriable = True


CoordinatorLoadInProgressError = GroupLoadInProgressError


class GroupCoordinatorNotAvailableError(BrokerResponseError, errors.RetriableError):
    errno = 15
    message = "COORDINATOR_NOT_AVAILABLE"
    retriable = True


CoordinatorNotAvailableError = GroupCoordinatorNotAvailableError


class NotCoordinatorForGroupError(BrokerResponseError, errors.RetriableError):
    errno = 16
    message = "NOT_COORDINATOR"
    retriable = True


NotCoordinatorError = NotCoordinatorForGroupError


class InvalidTopicError(BrokerResponseError, errors.InvalidRequestError):
    errno = 17
    message = "INVALID_TOPIC"


class RecordListTooLargeError(BrokerResponseError, errors.RecordRejected):
    errno = 18
    message = "RECORD_LIST_TOO_LARGE"


class NotEnoughReplicasError(BrokerResponseError, errors.RetriableError):
    errno = 19
    message = "NOT_ENOUGH_REPLICAS"
    retriable = True


class NotEnoughReplicasAfterAppendError(BrokerResponseError, errors.RetriableError):
    errno = 20
    message = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    retriable = True


class InvalidRequiredAcksError(BrokerResponseError, errors.RecordRejected):
    errno = 21
    message = "INVALID_REQUIRED_ACKS"


class IllegalGenerationError(BrokerResponseError, errors.InvalidRequestError):
    errno = 22
    message = "ILLEGAL_GENERATION"


class InconsistentGroupProtocolError(BrokerResponseError, errors.InvalidRequestError):
    errno = 23
    message = "INCONSISTENT_GROUP_PROTOCOL"


class InvalidGroupIdError(BrokerResponseError, errors.InvalidRequestError):
    errno = 24
    message = "INVALID_GROUP_ID"


class UnknownMemberIdError(BrokerResponseError, errors.InvalidRequestError):
    errno = 25
    message = "UNKNOWN_MEMBER_ID"


class InvalidSessionTimeoutError(BrokerResponseError, errors.InvalidRequestError):
    errno = 26
    message = "INVALID_SESSION_TIMEOUT"


class RebalanceInProgressError(BrokerResponseError, errors.InvalidRequestError):
    errno = 27
    message = "REBALANCE_IN_PROGRESS"


class InvalidCommitOffsetSizeError(BrokerResponseError, errors.InvalidRequestError):
    errno = 28
    message = "INVALID_COMMIT_OFFSET_SIZE"


class TopicAuthorizationFailedError(BrokerResponseError, errors.AuthorizationError):
    errno = 29
    message = "TOPIC_AUTHORIZATION_FAILED"


class GroupAuthorizationFailedError(BrokerResponseError, errors.AuthorizationError):
    errno = 30
    message = "GROUP_AUTHORIZATION_FAILED"


class ClusterAuthorizationFailedError(BrokerResponseError, errors.AuthorizationError):
    errno = 31
    message = "CLUSTER_AUTHORIZATION_FAILED"


class InvalidTimestampError(BrokerResponseError, errors.RecordRejected):
    errno = 32
    message = "INVALID_TIMESTAMP"


class UnsupportedSaslMechanismError(BrokerResponseError, errors.InvalidRequestError):
    errno = 33
    message = "UNSUPPORTED_SASL_MECHANISM"


class IllegalSaslStateError(BrokerResponseError, errors.InvalidRequestError):
    errno = 34
    message = "ILLEGAL_SASL_STATE"


class UnsupportedVersionError(BrokerResponseError, errors.UnsupportedVersion):
    errno = 35
    message = "UNSUPPORTED_VERSION"


class TopicAlreadyExistsError(BrokerResponseError, errors.InvalidRequestError):
    errno = 36
    message = "TOPIC_ALREADY_EXISTS"


class InvalidPartitionsError(BrokerResponseError, errors.InvalidRequestError):
    errno = 37
    message = "INVALID_PARTITIONS"


class InvalidReplicationFactorError(BrokerResponseError, errors.InvalidRequestError):
    errno = 38
    message = "INVALID_REPLICATION_FACTOR"


class InvalidReplicationAssignmentError(BrokerResponseError, errors.InvalidRequestError):
    errno = 39
    message = "INVALID_REPLICATION_ASSIGNMENT"


class InvalidConfigurationError(BrokerResponseError, errors.InvalidRequestError):
    errno = 40
    message = "INVALID_CONFIG"


class NotControllerError(BrokerResponseError, errors.RetriableError):
    errno = 41
    message = "NOT_CONTROLLER"
    retriable = True


class InvalidRequestError(BrokerResponseError, errors.InvalidRequestError):
    errno = 42
    message = "INVALID_REQUEST"


class UnsupportedForMessageFormatError(BrokerResponseError, errors.RecordRejected):
    errno = 43
    message = "UNSUPPORTED_FOR_MESSAGE_FORMAT"


class PolicyViolationError(BrokerResponseError, errors.InvalidRequestError):
    errno = 44
    message = "POLICY_VIOLATION"


class OutOfOrderSequenceNumber(BrokerResponseError, errors.InvalidRequestError):
    errno = 45
    message = "OUT_OF_ORDER_SEQUENCE_NUMBER"


class DuplicateSequenceNumber(BrokerResponseError, errors.InvalidRequestError):
    errno = 46
    message = "DUPLICATE_SEQUENCE_NUMBER"


class InvalidProducerEpoch(BrokerResponseError, errors.FencedError):
    errno = 47
    message = "INVALID_PRODUCER_EPOCH"


class InvalidTxnState(BrokerResponseError, errors.InvalidRequestError):
    errno = 48
    message = "INVALID_TXN_STATE"


class InvalidProducerIdMapping(BrokerResponseError, errors.InvalidRequestError):
    errno = 49
    message = "INVALID_PRODUCER_ID_MAPPING"


class InvalidTransactionTimeout(BrokerResponseError, errors.InvalidRequestError):
    errno = 50
    message = "INVALID_TRANSACTION_TIMEOUT"


class ConcurrentTransactions(BrokerResponseError, errors.RetriableError):
    errno = 51
    message = "CONCURRENT_TRANSACTIONS"


class TransactionCoordinatorFenced(BrokerResponseError, errors.InvalidRequestError):
    errno = 52
    message = "TRANSACTION_COORDINATOR_FENCED"


class TransactionalIdAuthorizationFailed(BrokerResponseError, errors.AuthorizationError):
    errno = 53
    message = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


class SecurityDisabled(BrokerResponseError, errors.InvalidRequestError):
    errno = 54
    message = "SECURITY_DISABLED"


class OperationNotAttempted(BrokerResponseError, errors.InvalidRequestError):
    errno = 55
    message = "OPERATION_NOT_ATTEMPTED"


class KafkaStorageError(BrokerResponseError, errors.StaleMetadataError):
    errno = 56
    message = "KAFKA_STORAGE_ERROR"
    retriable = True
    invalid_metadata = True


class LogDirNotFound(BrokerResponseError, errors.InvalidRequestError):
    errno = 57
    message = "LOG_DIR_NOT_FOUND"


class SaslAuthenticationFailed(BrokerResponseError, errors.AuthorizationError):
    errno = 58
    message = "SASL_AUTHENTICATION_FAILED"


class UnknownProducerId(BrokerResponseError, errors.InvalidRequestError):
    errno = 59
    message = "UNKNOWN_PRODUCER_ID"


class ReassignmentInProgress(BrokerResponseError, errors.InvalidRequestError):
    errno = 60
    message = "REASSIGNMENT_IN_PROGRESS"


class DelegationTokenAuthDisabled(BrokerResponseError, errors.InvalidRequestError):
    errno = 61
    message = "DELEGATION_TOKEN_AUTH_DISABLED"


class DelegationTokenNotFound(BrokerResponseError, errors.InvalidRequestError):
    errno = 62
    message = "DELEGATION_TOKEN_NOT_FOUND"


class DelegationTokenOwnerMismatch(BrokerResponseError, errors.InvalidRequestError):
    errno = 63
    message = "DELEGATION_TOKEN_OWNER_MISMATCH"


class DelegationTokenRequestNotAllowed(BrokerResponseError, errors.InvalidRequestError):
    errno = 64
    message = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"


class DelegationTokenAuthorizationFailed(BrokerResponseError, errors.AuthorizationError):
    errno = 65
    message = "DELEGATION_TOKEN_AUTHORIZATION_FAILED"


class DelegationTokenExpired(BrokerResponseError, errors.InvalidRequestError):
    errno = 66
    message = "DELEGATION_TOKEN_EXPIRED"


class InvalidPrincipalType(BrokerResponseError, errors.InvalidRequestError):
    errno = 67
    message = "INVALID_PRINCIPAL_TYPE"


class NonEmptyGroup(BrokerResponseError, errors.InvalidRequestError):
    errno = 68
    message = "NON_EMPTY_GROUP"


class GroupIdNotFound(BrokerResponseError, errors.InvalidRequestError):
    errno = 69
    message = "GROUP_ID_NOT_FOUND"


class FetchSessionIdNotFound(BrokerResponseError, errors.RetriableError):
    errno = 70
    message = "FETCH_SESSION_ID_NOT_FOUND"


class InvalidFetchSessionEpoch(BrokerResponseError, errors.RetriableError):
    errno = 71
    message = "INVALID_FETCH_SESSION_EPOCH"


class ListenerNotFound(BrokerResponseError, errors.StaleMetadataError):
    errno = 72
    message = "LISTENER_NOT_FOUND"


class MemberIdRequired(BrokerResponseError, errors.InvalidRequestError):
    errno = 79
    message = "MEMBER_ID_REQUIRED"


kafka_errors: dict[int, type[BrokerResponseError]] = {
    found.errno: found for found in BrokerResponseError.__subclasses__()
}


def for_code(error_code: int) -> type[BrokerResponseError]:
    """Return the class of a broker's error code; `UnknownError` for codes that aiokafka does not
    know."""
    return kafka_errors.get(error_code, UnknownError)


# --- translation ------------------------------------------------------------------------------------------------------

_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_IMPOSSIBLE: Final = frozenset({"metadata"})  # the stages of a delivery that ended because its topic does not exist

_CLASSES: Final[tuple[tuple[type[errors.KafkaError], type[Exception]], ...]] = (
    (errors.AuthenticationFailed, AuthenticationFailedError),
    (errors.ConnectionFailed, KafkaConnectionError),
    (errors.CommitFailed, CommitFailedError),
    (errors.RequestTimedOut, KafkaTimeoutError),
    (errors.BufferFullError, KafkaTimeoutError),
    (errors.CorruptRecord, CorruptRecordException),
    (errors.ProtocolViolation, KafkaProtocolError),
    (errors.TransactionStateError, IllegalOperation),
    (errors.ConfigurationError, KafkaConfigurationError),
    (errors.InvalidArgument, ValueError),
)


def translated(error: errors.KafkaError, closed: type[Exception] = ProducerClosed) -> BaseException:
    """Return aiokafka's error for one of ours; `closed` is the class for a closed client."""
    new = _translated(error, closed)
    if new is not error and new.__cause__ is None:
        new.__cause__ = error
    return new


def _translated(error: errors.KafkaError, closed: type[Exception]) -> BaseException:
    if isinstance(error, (KafkaError, ConsumerStoppedError, IllegalOperation)):
        return error
    if isinstance(error, errors.BrokerError):
        return ProducerFenced() if error.code in _FENCED else for_code(error.code)(str(error))
    if isinstance(error, errors.OffsetOutOfRange):
        return OffsetOutOfRangeError({TopicPartition(error.topic, error.partition): error.offset})
    if isinstance(error, errors.NoOffset):
        return NoOffsetForPartitionError(TopicPartition(error.topic, error.partition))
    if isinstance(error, errors.DeliveryFailed):
        return _undelivered(error, closed)
    if isinstance(error, (errors.TransactionAborted, errors.TransactionFailed)):
        reason = error.reason
        return translated(reason, closed) if isinstance(reason, errors.KafkaError) else KafkaError(str(error))
    if isinstance(error, errors.ClosedError):
        return closed(str(error))
    for ours, theirs in _CLASSES:
        if isinstance(error, ours):
            return theirs(str(error))
    return (
        error.__cause__
        if type(error).__name__ == "DeserializationError" and error.__cause__
        else KafkaError(str(error))
    )


def _undelivered(error: errors.DeliveryFailed, closed: type[Exception]) -> Exception:
    last = error.last_error
    if error.stage in _IMPOSSIBLE and isinstance(last, errors.BrokerError):
        return for_code(last.code)(str(error))
    return KafkaTimeoutError(str(error))


@contextmanager
def translating(closed: type[Exception] = ProducerClosed) -> Iterator[None]:
    """Raise our errors as aiokafka's."""
    try:
        yield
    except errors.KafkaError as error:
        raise translated(error, closed) from error.__cause__


__all__ = [
    "AuthenticationFailedError",
    "AuthenticationMethodNotSupported",
    "BrokerNotAvailableError",
    "BrokerResponseError",
    "Cancelled",
    "ClusterAuthorizationFailedError",
    "CommitFailedError",
    "ConsumerStoppedError",
    "CorrelationIdError",
    "CorruptRecordException",
    "GroupAuthorizationFailedError",
    "GroupCoordinatorNotAvailableError",
    "GroupLoadInProgressError",
    "IllegalArgumentError",
    "IllegalGenerationError",
    "IllegalSaslStateError",
    "IllegalStateError",
    "IncompatibleBrokerVersion",
    "InconsistentGroupProtocolError",
    "InvalidCommitOffsetSizeError",
    "InvalidConfigurationError",
    "InvalidFetchRequestError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidReplicationAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidSessionTimeoutError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaProtocolError",
    "KafkaTimeoutError",
    "KafkaUnavailableError",
    "LeaderNotAvailableError",
    "MessageSizeTooLargeError",
    "NoBrokersAvailable",
    "NoError",
    "NoOffsetForPartitionError",
    "NodeNotReadyError",
    "NotControllerError",
    "NotCoordinatorForGroupError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderForPartitionError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "PolicyViolationError",
    "ProducerClosed",
    "RebalanceInProgressError",
    "RecordListTooLargeError",
    "RecordTooLargeError",
    "ReplicaNotAvailableError",
    "RequestTimedOutError",
    "StaleControllerEpochError",
    "StaleLeaderEpochCodeError",
    "StaleMetadata",
    "TooManyInFlightRequests",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "UnknownError",
    "UnknownMemberIdError",
    "UnknownTopicOrPartitionError",
    "UnrecognizedBrokerVersion",
    "UnsupportedCodecError",
    "UnsupportedForMessageFormatError",
    "UnsupportedSaslMechanismError",
    "UnsupportedVersionError",
]
