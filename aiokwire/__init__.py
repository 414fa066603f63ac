"""aiokwire: an asyncio-native Kafka client framework.

All public names are here and load when first used; `aiokwire.broker`, `aiokwire.testing` and
`aiokwire.spark` are imported by their own names.
"""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names
from aiokwire._version import __version__ as __version__

if not any(os.path.exists(f"{__path__[0]}/protocol/_codec{suffix}") for suffix in EXTENSION_SUFFIXES):
    raise ImportError(
        f"aiokwire is imported from a source folder without its compiled modules ({__path__[0]}): "
        "run outside the checkout, or run `make build`"
    )

if TYPE_CHECKING:
    from aiokwire.admin import Admin as Admin
    from aiokwire.cluster import Client as Client, ClientConfig as ClientConfig
    from aiokwire.consumer import (
        Consumer as Consumer,
        ConsumerConfig as ConsumerConfig,
        ConsumerHealth as ConsumerHealth,
        ConsumerRecord as ConsumerRecord,
        CoordinatorFound as CoordinatorFound,
        CoordinatorLost as CoordinatorLost,
        DeserializationError as DeserializationError,
        LoopBlocked as LoopBlocked,
        PartitionEnd as PartitionEnd,
        PartitionResumed as PartitionResumed,
        PartitionStalled as PartitionStalled,
        PositionReset as PositionReset,
        RebalanceEnded as RebalanceEnded,
        RebalanceListener as RebalanceListener,
        RebalanceStarted as RebalanceStarted,
        RecordStream as RecordStream,
    )
    from aiokwire.error_codes import ErrorCode as ErrorCode
    from aiokwire.errors import (
        AuthenticationFailed as AuthenticationFailed,
        AuthorizationError as AuthorizationError,
        BrokerClosed as BrokerClosed,
        BrokerError as BrokerError,
        BufferFullError as BufferFullError,
        ClosedError as ClosedError,
        CommitFailed as CommitFailed,
        ConfigurationError as ConfigurationError,
        ConnectionFailed as ConnectionFailed,
        CorruptRecord as CorruptRecord,
        DeliveryFailed as DeliveryFailed,
        FencedError as FencedError,
        InvalidArgument as InvalidArgument,
        InvalidRequestError as InvalidRequestError,
        KafkaError as KafkaError,
        NoOffset as NoOffset,
        OffsetOutOfRange as OffsetOutOfRange,
        ProtocolViolation as ProtocolViolation,
        RecordRejected as RecordRejected,
        RequestTimedOut as RequestTimedOut,
        RetriableError as RetriableError,
        StaleMetadataError as StaleMetadataError,
        StorageError as StorageError,
        TransactionAborted as TransactionAborted,
        TransactionFailed as TransactionFailed,
        TransactionStateError as TransactionStateError,
        UnsupportedVersion as UnsupportedVersion,
    )
    from aiokwire.events import EventStream as EventStream, Throttled as Throttled
    from aiokwire.hooks import Hooks as Hooks, combined_hooks as combined_hooks
    from aiokwire.producer import (
        BatchFailed as BatchFailed,
        BufferFree as BufferFree,
        BufferFull as BufferFull,
        Delivery as Delivery,
        LeadersChanged as LeadersChanged,
        Producer as Producer,
        ProducerConfig as ProducerConfig,
        ProducerFailed as ProducerFailed,
        ProducerHealth as ProducerHealth,
        ProducerIdChanged as ProducerIdChanged,
        Transaction as Transaction,
        TransactionAbortRequired as TransactionAbortRequired,
    )
    from aiokwire.records import DeserializedRecord as DeserializedRecord, Record as Record
    from aiokwire.transforming import transform as transform
    from aiokwire.types import (
        Acks as Acks,
        BrokerPattern as BrokerPattern,
        Compression as Compression,
        GroupMetadata as GroupMetadata,
        Headers as Headers,
        IsolationLevel as IsolationLevel,
        OffsetAndMetadata as OffsetAndMetadata,
        OffsetAndTimestamp as OffsetAndTimestamp,
        OffsetReset as OffsetReset,
        RecordMetadata as RecordMetadata,
        TimestampType as TimestampType,
        TopicPartition as TopicPartition,
        TransactionalReader as TransactionalReader,
        Watermarks as Watermarks,
    )
    from aiokwire.worker import (
        BatchError as BatchError,
        CircuitBreaker as CircuitBreaker,
        CircuitClosed as CircuitClosed,
        CircuitOpened as CircuitOpened,
        Context as Context,
        DeadLetter as DeadLetter,
        PeriodicContext as PeriodicContext,
        RateLimit as RateLimit,
        Retry as Retry,
        RetryPolicy as RetryPolicy,
        Skip as Skip,
        Worker as Worker,
        WorkerConfig as WorkerConfig,
        WorkerHealth as WorkerHealth,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "admin": "Admin",
            "cluster": "Client ClientConfig",
            "consumer": (
                "Consumer ConsumerConfig ConsumerHealth ConsumerRecord CoordinatorFound CoordinatorLost "
                "DeserializationError LoopBlocked PartitionEnd PartitionResumed PartitionStalled PositionReset "
                "RebalanceEnded RebalanceListener RebalanceStarted RecordStream"
            ),
            "error_codes": "ErrorCode",
            "errors": (
                "AuthenticationFailed AuthorizationError BrokerClosed BrokerError BufferFullError ClosedError "
                "CommitFailed ConfigurationError ConnectionFailed CorruptRecord DeliveryFailed FencedError "
                "InvalidArgument InvalidRequestError KafkaError NoOffset OffsetOutOfRange ProtocolViolation "
                "RecordRejected RequestTimedOut RetriableError StaleMetadataError StorageError TransactionAborted "
                "TransactionFailed TransactionStateError UnsupportedVersion"
            ),
            "events": "EventStream Throttled",
            "hooks": "Hooks combined_hooks",
            "producer": (
                "BatchFailed BufferFree BufferFull Delivery LeadersChanged Producer ProducerConfig ProducerFailed "
                "ProducerHealth ProducerIdChanged Transaction TransactionAbortRequired"
            ),
            "records": "DeserializedRecord Record",
            "transforming": "transform",
            "types": (
                "Acks BrokerPattern Compression GroupMetadata Headers IsolationLevel OffsetAndMetadata "
                "OffsetAndTimestamp OffsetReset RecordMetadata TimestampType TopicPartition TransactionalReader "
                "Watermarks"
            ),
            "worker": "BatchError CircuitBreaker CircuitClosed CircuitOpened Context DeadLetter PeriodicContext "
            "RateLimit Retry RetryPolicy Skip Worker WorkerConfig WorkerHealth",
        },
    )
    __all__ += ["__version__"]
