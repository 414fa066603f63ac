"""aiokwire: an asyncio-native Kafka client framework.

All public names are here and load when first used; `aiokwire.broker`, `aiokwire.testing` and
`aiokwire.spark` are imported by their own names.
"""

from __future__ import annotations

import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

from aiokwire._version import __version__

if not any(os.path.exists(f"{__path__[0]}/protocol/_codec{suffix}") for suffix in EXTENSION_SUFFIXES):
    raise ImportError(
        f"aiokwire is imported from a source folder without its compiled modules ({__path__[0]}): "
        "run outside the checkout, or run `make build`"
    )

if TYPE_CHECKING:
    from aiokwire.admin import Admin
    from aiokwire.cluster import Client, ClientConfig
    from aiokwire.consumer import (
        Consumer,
        ConsumerConfig,
        ConsumerHealth,
        ConsumerRecord,
        CoordinatorFound,
        CoordinatorLost,
        DeserializationError,
        LoopBlocked,
        PartitionEnd,
        PartitionResumed,
        PartitionStalled,
        PositionReset,
        RebalanceEnded,
        RebalanceListener,
        RebalanceStarted,
        RecordStream,
    )
    from aiokwire.error_codes import ErrorCode
    from aiokwire.errors import (
        AuthenticationFailed,
        AuthorizationError,
        BrokerClosed,
        BrokerError,
        BufferFullError,
        ClosedError,
        CommitFailed,
        ConfigurationError,
        ConnectionFailed,
        CorruptRecord,
        DeliveryFailed,
        FencedError,
        InvalidArgument,
        InvalidRequestError,
        KafkaError,
        NoOffset,
        OffsetOutOfRange,
        ProtocolViolation,
        RecordRejected,
        RequestTimedOut,
        RetriableError,
        StaleMetadataError,
        StorageError,
        TransactionAborted,
        TransactionFailed,
        TransactionStateError,
        UnsupportedVersion,
    )
    from aiokwire.events import EventStream, Throttled
    from aiokwire.hooks import Hooks
    from aiokwire.producer import (
        BatchFailed,
        BufferFree,
        BufferFull,
        Delivery,
        LeadersChanged,
        Producer,
        ProducerConfig,
        ProducerFailed,
        ProducerHealth,
        ProducerIdChanged,
        Transaction,
        TransactionAbortRequired,
    )
    from aiokwire.records import DeserializedRecord, Record
    from aiokwire.transforming import transform
    from aiokwire.types import (
        Acks,
        BrokerPattern,
        Compression,
        GroupMetadata,
        Headers,
        IsolationLevel,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        OffsetReset,
        RecordMetadata,
        TimestampType,
        TopicPartition,
        TransactionalReader,
        Watermarks,
    )

# The module of each public name, loaded lazily: a producer need not load the consumer, nor an error code the kernel.
_HOMES = {
    "admin": ("Admin",),
    "cluster": ("Client", "ClientConfig"),
    "consumer": (
        "Consumer",
        "ConsumerConfig",
        "ConsumerHealth",
        "ConsumerRecord",
        "CoordinatorFound",
        "CoordinatorLost",
        "DeserializationError",
        "LoopBlocked",
        "PartitionEnd",
        "PartitionResumed",
        "PartitionStalled",
        "PositionReset",
        "RebalanceEnded",
        "RebalanceListener",
        "RebalanceStarted",
        "RecordStream",
    ),
    "error_codes": ("ErrorCode",),
    "errors": (
        "AuthenticationFailed",
        "AuthorizationError",
        "BrokerClosed",
        "BrokerError",
        "BufferFullError",
        "ClosedError",
        "CommitFailed",
        "ConfigurationError",
        "ConnectionFailed",
        "CorruptRecord",
        "DeliveryFailed",
        "FencedError",
        "InvalidArgument",
        "InvalidRequestError",
        "KafkaError",
        "NoOffset",
        "OffsetOutOfRange",
        "ProtocolViolation",
        "RecordRejected",
        "RequestTimedOut",
        "RetriableError",
        "StaleMetadataError",
        "StorageError",
        "TransactionAborted",
        "TransactionFailed",
        "TransactionStateError",
        "UnsupportedVersion",
    ),
    "events": ("EventStream", "Throttled"),
    "hooks": ("Hooks",),
    "producer": (
        "BatchFailed",
        "BufferFree",
        "BufferFull",
        "Delivery",
        "LeadersChanged",
        "Producer",
        "ProducerConfig",
        "ProducerFailed",
        "ProducerHealth",
        "ProducerIdChanged",
        "Transaction",
        "TransactionAbortRequired",
    ),
    "records": ("DeserializedRecord", "Record"),
    "transforming": ("transform",),
    "types": (
        "Acks",
        "BrokerPattern",
        "Compression",
        "GroupMetadata",
        "Headers",
        "IsolationLevel",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "OffsetReset",
        "RecordMetadata",
        "TimestampType",
        "TopicPartition",
        "TransactionalReader",
        "Watermarks",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Acks",
    "Admin",
    "AuthenticationFailed",
    "AuthorizationError",
    "BatchFailed",
    "BrokerClosed",
    "BrokerError",
    "BrokerPattern",
    "BufferFree",
    "BufferFull",
    "BufferFullError",
    "Client",
    "ClientConfig",
    "ClosedError",
    "CommitFailed",
    "Compression",
    "ConfigurationError",
    "ConnectionFailed",
    "Consumer",
    "ConsumerConfig",
    "ConsumerHealth",
    "ConsumerRecord",
    "CoordinatorFound",
    "CoordinatorLost",
    "CorruptRecord",
    "Delivery",
    "DeliveryFailed",
    "DeserializationError",
    "DeserializedRecord",
    "ErrorCode",
    "EventStream",
    "FencedError",
    "GroupMetadata",
    "Headers",
    "Hooks",
    "InvalidArgument",
    "InvalidRequestError",
    "IsolationLevel",
    "KafkaError",
    "LeadersChanged",
    "LoopBlocked",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "OffsetReset",
    "PartitionEnd",
    "PartitionResumed",
    "PartitionStalled",
    "PositionReset",
    "Producer",
    "ProducerConfig",
    "ProducerFailed",
    "ProducerHealth",
    "ProducerIdChanged",
    "ProtocolViolation",
    "RebalanceEnded",
    "RebalanceListener",
    "RebalanceStarted",
    "Record",
    "RecordMetadata",
    "RecordRejected",
    "RecordStream",
    "RequestTimedOut",
    "RetriableError",
    "StaleMetadataError",
    "StorageError",
    "Throttled",
    "TimestampType",
    "TopicPartition",
    "Transaction",
    "TransactionAbortRequired",
    "TransactionAborted",
    "TransactionFailed",
    "TransactionStateError",
    "TransactionalReader",
    "UnsupportedVersion",
    "Watermarks",
    "__version__",
    "transform",
]


def __getattr__(name: str) -> object:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aiokwire' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"aiokwire.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
