"""aiokwire: an asyncio-native Kafka client framework.

Everything public stands here and loads when first used; `aiokwire.broker`, `aiokwire.testing` and `aiokwire.spark`
are imported by their own names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from aiokwire._version import __version__

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
        EventStream,
        LoopBlocked,
        PartitionEnd,
        PartitionResumed,
        PartitionStalled,
        PositionReset,
        RebalanceEnded,
        RebalanceListener,
        RebalanceStarted,
        RecordStream,
        Throttled,
    )
    from aiokwire.error_codes import ErrorCode
    from aiokwire.errors import (
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
    from aiokwire.hooks import Hooks
    from aiokwire.producer import Delivery, Producer, ProducerConfig, Transaction
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

# Where each public name lives. Lazy, because a producer need not load the consumer, nor an error code the kernel.
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
        "EventStream",
        "LoopBlocked",
        "PartitionEnd",
        "PartitionResumed",
        "PartitionStalled",
        "PositionReset",
        "RebalanceEnded",
        "RebalanceListener",
        "RebalanceStarted",
        "RecordStream",
        "Throttled",
    ),
    "error_codes": ("ErrorCode",),
    "errors": (
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
    "hooks": ("Hooks",),
    "producer": ("Delivery", "Producer", "ProducerConfig", "Transaction"),
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
    "AuthorizationError",
    "BrokerClosed",
    "BrokerError",
    "BrokerPattern",
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
