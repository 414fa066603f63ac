"""The exceptions, by what the caller can do next.

Kafka's codes are one table (`aiokwire.error_codes`); these are the few classes that a program
catches. A message names the request and its receiver, the result, and the next step.
"""

from __future__ import annotations

from collections.abc import Collection

from aiokwire._text import printable
from aiokwire.error_codes import ErrorCode


class KafkaError(Exception):
    """The base of every error that this package raises on purpose.

    Its text is one line: control characters, which may come from the wire, are escaped.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


# --- the program or its configuration is wrong: fix it --------------------------------------------------------------


class ConfigurationError(KafkaError, ValueError):
    """An option is unknown, out of its range, or contradicts another one. Nothing was sent."""


class InvalidArgument(KafkaError, ValueError):
    """An argument of a call has the wrong type or value. Nothing was accepted."""


class ClosedError(KafkaError):
    """The client was closed, never started, forked, or is used from another event loop."""


# --- the way to the broker: retry, or look at the network -----------------------------------------------------------


class ConnectionFailed(KafkaError):
    """A connection could not be opened, or was lost.

    `stage` is where it failed: "resolve", "connect", "tls", "handshake", "sasl" or "ready".
    `is_logged`: whether a log line has named the cause.
    """

    def __init__(self, message: str, *, address: str = "", stage: str = "", is_logged: bool = False) -> None:
        super().__init__(message)
        self.address = address
        self.stage = stage
        self.is_logged = is_logged


class AuthenticationFailed(KafkaError):
    """The broker refuses the client's identity, or the client refuses the broker's: TLS or SASL.

    Retrying does not help. `address` is the broker's.
    """

    def __init__(self, message: str, *, address: str = "") -> None:
        super().__init__(message)
        self.address = address


class RequestTimedOut(KafkaError, TimeoutError):
    """A deadline passed before the response. Whether a broker processed the request is unknown."""


class ProtocolViolation(KafkaError):
    """The peer sent bytes that violate the protocol; the connection is closed."""


class CorruptRecord(ProtocolViolation):
    """A batch or record is corrupt, or its codec cannot read it. The position stays before it.

    `next_offset` is where to seek to skip it, with all records of the corrupt batch. It is -1
    unless a consumer raises the error.
    """

    def __init__(
        self, message: str, *, topic: str = "", partition: int = -1, offset: int = -1, next_offset: int = -1
    ) -> None:
        if topic:
            message = f"{topic}[{partition}] at offset {offset}: {message}"
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


# --- the producer -----------------------------------------------------------------------------------------------------


class BufferFullError(KafkaError):
    """The producer's buffer has no room for this record now. Nothing was accepted."""

    def __init__(self, message: str, *, needed: int = 0, in_use: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.needed = needed
        self.in_use = in_use
        self.limit = limit


class DeliveryFailed(KafkaError):
    """A record was not delivered: its delivery deadline passed, or its producer was closed.

    `stage` is where it was then ("metadata", "buffered", "in flight", "retrying"; "purged" if
    `purge` dropped it, "cancelled" if `Delivery.cancel` withdrew it), `elapsed` the seconds since
    it was accepted, `last_error` the last error of the broker or connection.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str = "",
        partition: int = -1,
        stage: str = "",
        elapsed: float = 0.0,
        last_error: Exception | None = None,
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.stage = stage
        self.elapsed = elapsed
        self.last_error = last_error


# --- transactions -----------------------------------------------------------------------------------------------------


class TransactionStateError(KafkaError):
    """A call does not fit the transaction's state: a record outside, a second transaction at a
    time, offsets after its end. Nothing was accepted; the transaction continues."""


class TransactionAborted(KafkaError):
    """A transaction was aborted, or must be: `read_committed` readers will see none of its records.

    The producer can continue: let this error leave the transaction's block, then repeat the whole
    work in a new one. `reason` is the cause, None if the program itself aborted.
    """

    def __init__(self, message: str, *, reason: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class TransactionFailed(KafkaError):
    """A transactional producer cannot continue: close it. A new one ends its open transaction.

    `reason` is the cause. A newer instance raises `FencedError` instead: do not create a new one.
    """

    def __init__(self, message: str, *, reason: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason


# --- a broker refused -------------------------------------------------------------------------------------------------


class BrokerError(KafkaError):
    """A broker refused a request: `code` is its error, `retriable` if it may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR,
        topic: str | None = None,
        partition: int | None = None,
        request: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.topic = topic
        self.partition = partition
        self.request = request

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class RetriableError(BrokerError):
    """The broker refused for a transient reason; the same request may succeed later."""

    @property
    def retriable(self) -> bool:
        # Even if the code applies to another record: the other records of its batch may be retried (KIP-467).
        return True


class StaleMetadataError(RetriableError):
    """The request was sent to the wrong broker: refresh the metadata, then retry."""


class AuthorizationError(BrokerError):
    """This principal has no permission; retrying does not help."""


class FencedError(BrokerError):
    """A newer instance took over; this one must stop."""


class RecordRejected(BrokerError):
    """The broker refuses this record or batch: too large, invalid, wrong timestamp."""


class UnsupportedVersion(BrokerError):
    """The broker or the chosen protocol version does not support the request."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = ErrorCode.UNSUPPORTED_VERSION,
        topic: str | None = None,
        partition: int | None = None,
        request: str | None = None,
    ) -> None:
        super().__init__(message, code=code, topic=topic, partition=partition, request=request)


class InvalidRequestError(BrokerError):
    """The request is invalid: an unknown name, a bad value, something that exists already."""


# --- the consumer -----------------------------------------------------------------------------------------------------


class NoOffset(KafkaError):
    """A partition has no position and the reset policy is "none": seek, or choose a policy."""

    def __init__(self, message: str, *, topic: str = "", partition: int = -1) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition


class OffsetOutOfRange(NoOffset):
    """The position is outside the log, and the reset policy is "none"."""

    def __init__(self, message: str, *, topic: str = "", partition: int = -1, offset: int = -1) -> None:
        super().__init__(message, topic=topic, partition=partition)
        self.offset = offset


class CommitFailed(KafkaError):
    """Offsets were not committed: the `partitions` are no longer this member's; their new owner
    continues at the committed offsets. Do not retry: the member has rejoined its group, or will."""

    def __init__(self, message: str, *, partitions: Collection[tuple[str, int]] = ()) -> None:
        super().__init__(message)
        self.partitions: frozenset[tuple[str, int]] = frozenset(partitions)


# --- the embedded broker ----------------------------------------------------------------------------------------------


class StorageError(KafkaError):
    """The broker's data directory cannot be used: locked by another broker, full, or unreadable."""


class BrokerClosed(ClosedError):
    """The embedded broker was closed or never started."""


_AUTHORIZATION = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    }
)
_FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
_REJECTED = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)


def _class_of(code: ErrorCode) -> type[BrokerError]:
    if code in _AUTHORIZATION:
        return AuthorizationError
    if code in _FENCED:
        return FencedError
    if code in _REJECTED:
        return RecordRejected
    if code is ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedVersion
    if code.refresh_metadata:
        return StaleMetadataError
    if code.retriable:
        return RetriableError
    return InvalidRequestError


def error_for(
    code: int,
    context: str,
    *,
    topic: str | None = None,
    partition: int | None = None,
    request: str | None = None,
) -> BrokerError:
    """Return the error for a broker's `code`.

    `context` names the request and its receiver; the code's name and description are added.
    """
    known = ErrorCode.of(code)
    name = known.name if known == code else f"unknown error code {code}"
    message = f"{context}: {name} ({known.description})"
    return _class_of(known)(message, code=known, topic=topic, partition=partition, request=request)


def is_disk_error(error: BaseException) -> bool:
    """Whether a broker cannot use the disk of a partition, which may last: a full disk."""
    return isinstance(error, BrokerError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: no response came, or a retriable code."""
    return isinstance(error, (ConnectionFailed, RequestTimedOut)) or (
        isinstance(error, BrokerError) and error.retriable
    )
