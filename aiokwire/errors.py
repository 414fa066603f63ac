"""What can go wrong, by what the caller does next.

Kafka's codes are one table (`aiokwire.error_codes`); here are the few classes that a program catches. A message
says what was asked of whom, what came back, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection

from aiokwire._text import printable
from aiokwire.error_codes import ErrorCode


class KafkaError(Exception):
    """The root of every error that this package raises on purpose.

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
    """No connection, or it was lost.

    `stage` says how far it came: "resolve", "connect", "handshake" or "ready".
    """

    def __init__(self, message: str, *, address: str = "", stage: str = "") -> None:
        super().__init__(message)
        self.address = address
        self.stage = stage


class RequestTimedOut(KafkaError, TimeoutError):
    """A deadline ended before the answer came. Whether the broker did the work is unknown."""


class ProtocolViolation(KafkaError):
    """Bytes came that no broker of this protocol sends here; the connection is closed."""


class CorruptRecord(ProtocolViolation):
    """A batch or record is damaged, or unreadable for its codec. The position stays before it.

    `next_offset` is where to seek to go on without it: all records of the damaged batch are left out. -1 where it does
    not come from a consumer.
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
    """There is no room in the producer's buffer for this record now. Nothing was accepted."""

    def __init__(self, message: str, *, needed: int = 0, in_use: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.needed = needed
        self.in_use = in_use
        self.limit = limit


class DeliveryFailed(KafkaError):
    """A record was given up: its delivery deadline ended, or its producer was closed.

    `stage` is where it was then ("metadata", "buffered", "in flight", "retrying"; "purged" when `purge` dropped it,
    "cancelled" when `Delivery.cancel` took it back), `elapsed` the seconds since it was accepted, `last_error` the
    last error of the broker or connection.
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
    """A call does not fit the transaction's state: a record outside of one, a second one at a time, offsets after its
    end. Nothing was accepted; the transaction goes on."""


class TransactionAborted(KafkaError):
    """A transaction did not take place, or has to be aborted: nothing of it will be read by `read_committed` readers.

    The producer can go on: let this error leave the transaction's block, then repeat the whole work in a new one.
    `reason` is what happened, None when the program itself aborted.
    """

    def __init__(self, message: str, *, reason: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class TransactionFailed(KafkaError):
    """A transactional producer cannot go on: close it, and make a new one, which ends what this one left open.

    `reason` is what happened. Fencing by a newer instance is a `FencedError` instead: then stop for good.
    """

    def __init__(self, message: str, *, reason: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = reason


# --- what a broker answered -------------------------------------------------------------------------------------------


class BrokerError(KafkaError):
    """A broker refused. `code` is what it said; `retriable` whether the same request may succeed later."""

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
    """The broker cannot now; the same request may succeed later."""

    @property
    def retriable(self) -> bool:
        # Also where the code is about another record: the rest of its batch may be sent again (KIP-467).
        return True


class StaleMetadataError(RetriableError):
    """The request went to the wrong place: refresh the metadata, then retry."""


class AuthorizationError(BrokerError):
    """This principal may not do that; retrying does not help."""


class FencedError(BrokerError):
    """A newer instance took over; this one must stop."""


class RecordRejected(BrokerError):
    """The broker refuses this record or batch as it is: too large, invalid, wrong timestamp."""


class UnsupportedVersion(BrokerError):
    """The broker or the chosen protocol version cannot do what was asked."""

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
    """The broker finds the request itself wrong: an unknown name, a bad value, something that exists already."""


# --- the consumer -----------------------------------------------------------------------------------------------------


class NoOffset(KafkaError):
    """A partition has no position and the reset policy is "none": seek, or choose a policy."""

    def __init__(self, message: str, *, topic: str = "", partition: int = -1) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition


class OffsetOutOfRange(NoOffset):
    """The position lies outside of what the broker still has, and the reset policy is "none"."""

    def __init__(self, message: str, *, topic: str = "", partition: int = -1, offset: int = -1) -> None:
        super().__init__(message, topic=topic, partition=partition)
        self.offset = offset


class CommitFailed(KafkaError):
    """Offsets were not kept: this member does not have the `partitions` any more, and another one reads them, from
    where the group stands. There is nothing to repeat; the member is in its group again, or on its way."""

    def __init__(self, message: str, *, partitions: Collection[tuple[str, int]] = ()) -> None:
        super().__init__(message)
        self.partitions = frozenset(partitions)


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
    """The error that a broker's `code` means for the caller.

    `context` says what was asked of whom; the code's name and description are added.
    """
    known = ErrorCode.of(code)
    name = known.name if known == code else f"unknown error code {code}"
    message = f"{context}: {name} ({known.description})"
    return _class_of(known)(message, code=known, topic=topic, partition=partition, request=request)


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later: no response came, or the broker returned a retriable code."""
    return isinstance(error, (ConnectionFailed, RequestTimedOut)) or (
        isinstance(error, BrokerError) and error.retriable
    )
