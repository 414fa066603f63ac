"""What names, options, methods and errors of aiokafka (0.14) become; the tables of the codemod.

A name is found by its last part: `aiokafka.structs.TopicPartition` and `aiokafka.TopicPartition`
are one entry. `docs/migrating/aiokafka.md` explains the differences; its test reads these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ROOT: Final = "aiokwire"
ADMIN: Final = "aiokwire.admin"

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
ADMIN_CLIENT: Final = "admin"
RECORD: Final = "record"

CLIENTS: Final[Mapping[str, str]] = {
    "AIOKafkaProducer": PRODUCER,
    "AIOKafkaConsumer": CONSUMER,
    "AIOKafkaAdminClient": ADMIN_CLIENT,
}

NAMES: Final[Mapping[str, str]] = {
    "AIOKafkaProducer": "Producer",
    "AIOKafkaConsumer": "Consumer",
    "AIOKafkaAdminClient": "Admin",
    "ConsumerRebalanceListener": "RebalanceListener",
    "ConsumerRecord": "ConsumerRecord",
    "TopicPartition": "TopicPartition",
    "OffsetAndMetadata": "OffsetAndMetadata",
    "OffsetAndTimestamp": "OffsetAndTimestamp",
    "RecordMetadata": "RecordMetadata",
    "NewTopic": "NewTopic",
    "__version__": "__version__",
}

# The modules of aiokafka whose replacement is not the root of aiokwire.
MODULES: Final[Mapping[str, str]] = {"aiokafka.errors": "aiokwire.errors", "aiokafka.admin": ADMIN}
# The names whose module is not the root.
HOMES: Final[Mapping[str, str]] = {"NewTopic": ADMIN}
# The functions of aiokafka's modules: all other names in lower case are modules.
FUNCTIONS: Final = frozenset({"create_ssl_context", "for_code", "__version__", "__all__"})

# Each error, and what is raised in its place; several if aiokwire distinguishes more cases.
ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    "KafkaError": ("KafkaError",),
    "BrokerResponseError": ("BrokerError",),
    "UnknownError": ("BrokerError",),
    # the program
    "IllegalStateError": ("InvalidArgument",),
    "IllegalArgumentError": ("InvalidArgument",),
    "IllegalOperation": ("ConfigurationError", "TransactionStateError"),
    "KafkaConfigurationError": ("ConfigurationError",),
    "ConsumerStoppedError": ("ClosedError",),
    "ProducerClosed": ("ClosedError",),
    # connections
    "KafkaConnectionError": ("ConnectionFailed",),
    "NoBrokersAvailable": ("ConnectionFailed",),
    "NodeNotReadyError": ("ConnectionFailed",),
    "KafkaUnavailableError": ("ConnectionFailed",),
    "MetadataEmptyBrokerList": ("ConnectionFailed",),
    "AuthenticationFailedError": ("AuthenticationFailed",),
    "AuthenticationMethodNotSupported": ("AuthenticationFailed",),
    "UnsupportedSaslMechanismError": ("AuthenticationFailed",),
    "IllegalSaslStateError": ("AuthenticationFailed",),
    "SaslAuthenticationFailed": ("AuthenticationFailed",),
    "KafkaTimeoutError": ("DeliveryFailed", "BufferFullError", "RequestTimedOut"),
    "RequestTimedOutError": ("DeliveryFailed", "RequestTimedOut"),
    "KafkaProtocolError": ("ProtocolViolation",),
    "CorrelationIdError": ("ProtocolViolation",),
    "UnrecognizedBrokerVersion": ("UnsupportedVersion",),
    "IncompatibleBrokerVersion": ("UnsupportedVersion",),
    "UnsupportedVersionError": ("UnsupportedVersion",),
    # the consumer
    "NoOffsetForPartitionError": ("NoOffset",),
    "OffsetOutOfRangeError": ("OffsetOutOfRange",),
    "CorruptRecordException": ("CorruptRecord",),
    "InvalidMessageError": ("CorruptRecord",),
    "UnsupportedCodecError": ("CorruptRecord",),
    "CommitFailedError": ("CommitFailed",),
    "IllegalGenerationError": ("CommitFailed",),
    "UnknownMemberIdError": ("CommitFailed",),
    "RebalanceInProgressError": ("CommitFailed",),
    # permissions, fencing
    "TopicAuthorizationFailedError": ("AuthorizationError",),
    "GroupAuthorizationFailedError": ("AuthorizationError",),
    "ClusterAuthorizationFailedError": ("AuthorizationError",),
    "TransactionalIdAuthorizationFailed": ("AuthorizationError",),
    "DelegationTokenAuthorizationFailed": ("AuthorizationError",),
    "ProducerFenced": ("FencedError",),
    "InvalidProducerEpoch": ("FencedError",),
    # records
    "MessageSizeTooLargeError": ("RecordRejected",),
    "RecordListTooLargeError": ("RecordRejected",),
    "InvalidTimestampError": ("RecordRejected",),
    "InvalidRequiredAcksError": ("RecordRejected",),
    "UnsupportedForMessageFormatError": ("RecordRejected",),
    # leaders and coordinators, which the client finds again itself
    "StaleMetadata": ("StaleMetadataError",),
    "UnknownTopicOrPartitionError": ("StaleMetadataError",),
    "LeaderNotAvailableError": ("StaleMetadataError",),
    "NotLeaderForPartitionError": ("StaleMetadataError",),
    "ReplicaNotAvailableError": ("StaleMetadataError",),
    "KafkaStorageError": ("StaleMetadataError",),
    "ListenerNotFound": ("StaleMetadataError",),
    "GroupLoadInProgressError": ("RetriableError",),
    "GroupCoordinatorNotAvailableError": ("RetriableError",),
    "NotCoordinatorForGroupError": ("RetriableError",),
    "CoordinatorLoadInProgressError": ("RetriableError",),
    "CoordinatorNotAvailableError": ("RetriableError",),
    "NotCoordinatorError": ("RetriableError",),
    "NotControllerError": ("RetriableError",),
    "NotEnoughReplicasError": ("RetriableError",),
    "NotEnoughReplicasAfterAppendError": ("RetriableError",),
    "ConcurrentTransactions": ("RetriableError",),
    "FetchSessionIdNotFound": ("RetriableError",),
    "InvalidFetchSessionEpoch": ("RetriableError",),
    # requests that are wrong: compare `error.code` with ErrorCode
    "InvalidTopicError": ("InvalidRequestError",),
    "InvalidFetchRequestError": ("InvalidRequestError",),
    "BrokerNotAvailableError": ("InvalidRequestError",),
    "StaleControllerEpochError": ("InvalidRequestError",),
    "OffsetMetadataTooLargeError": ("InvalidRequestError",),
    "InconsistentGroupProtocolError": ("InvalidRequestError",),
    "InvalidGroupIdError": ("InvalidRequestError",),
    "InvalidSessionTimeoutError": ("InvalidRequestError",),
    "InvalidCommitOffsetSizeError": ("InvalidRequestError",),
    "TopicAlreadyExistsError": ("InvalidRequestError",),
    "InvalidPartitionsError": ("InvalidRequestError",),
    "InvalidReplicationFactorError": ("InvalidRequestError",),
    "InvalidReplicationAssignmentError": ("InvalidRequestError",),
    "InvalidConfigurationError": ("InvalidRequestError",),
    "InvalidRequestError": ("InvalidRequestError",),
    "PolicyViolationError": ("InvalidRequestError",),
    "OutOfOrderSequenceNumber": ("InvalidRequestError",),
    "DuplicateSequenceNumber": ("InvalidRequestError",),
    "InvalidTxnState": ("InvalidRequestError",),
    "InvalidProducerIdMapping": ("InvalidRequestError",),
    "InvalidTransactionTimeout": ("InvalidRequestError",),
    "TransactionCoordinatorFenced": ("InvalidRequestError",),
    "SecurityDisabled": ("InvalidRequestError",),
    "OperationNotAttempted": ("InvalidRequestError",),
    "LogDirNotFound": ("InvalidRequestError",),
    "UnknownProducerId": ("InvalidRequestError",),
    "ReassignmentInProgress": ("InvalidRequestError",),
    "DelegationTokenAuthDisabled": ("InvalidRequestError",),
    "DelegationTokenNotFound": ("InvalidRequestError",),
    "DelegationTokenOwnerMismatch": ("InvalidRequestError",),
    "DelegationTokenRequestNotAllowed": ("InvalidRequestError",),
    "DelegationTokenExpired": ("InvalidRequestError",),
    "InvalidPrincipalType": ("InvalidRequestError",),
    "NonEmptyGroup": ("InvalidRequestError",),
    "GroupIdNotFound": ("InvalidRequestError",),
    "MemberIdRequired": ("InvalidRequestError",),
}

# The classes that stand for many codes: an except clause for one of aiokafka's errors then catches more.
COARSE: Final = frozenset({"InvalidRequestError", "RetriableError", "StaleMetadataError"})

# Names without a counterpart, and what to do.
GONE: Final[Mapping[str, str]] = {
    "AIOKafkaClient": "use aiokwire.Client, or the methods of Producer, Consumer and Admin",
    "AbstractTokenProvider": "derive from no class: any object with `async def token()` is accepted",
    "BrokerMetadata": "use Admin.describe_cluster(), which returns BrokerDescription",
    "PartitionMetadata": "use Admin.describe_topic(), which returns PartitionDescription",
    "ConfigResource": "use aiokwire.admin.ConfigResource(ResourceType.TOPIC, name)",
    "ConfigResourceType": "use aiokwire.admin.ResourceType",
    "NewPartitions": "pass the total count itself: admin.create_partitions({topic: count})",
    "RecordsToDelete": "pass the offset itself: admin.delete_records({partition: offset})",
    "DefaultPartitioner": 'leave the option out: partitioner="default" is the same function',
    "RoundRobinPartitionAssignor": 'name it: partition_assignment_strategy="roundrobin"',
    "RangePartitionAssignor": 'name it: partition_assignment_strategy="range"',
    "StickyPartitionAssignor": 'name it: partition_assignment_strategy="sticky"',
    "AbstractPartitionAssignor": "write an assignor with name, cooperative, user_data, assign, on_assignment",
    "create_ssl_context": "pass ssl_cafile=, ssl_certfile=, ssl_keyfile=, ssl_key_password= to the client",
    "for_code": "use aiokwire.errors.error_for(code, context), which returns an instance",
    "NoError": "compare with ErrorCode.NONE",
    "Cancelled": "leave it out: it is never raised",
    "TooManyInFlightRequests": "leave it out: it is never raised",
    "StaleLeaderEpochCodeError": "leave it out: it is never raised",
    "RecordTooLargeError": "leave it out: a batch that is larger than the limits is still returned",
    "QuotaViolationError": "leave it out: events() reports Throttled",
}
NO_COUNTERPART: Final = "aiokwire has no counterpart; see docs/migrating/aiokafka.md"

ASSIGNORS: Final[Mapping[str, str]] = {
    "RoundRobinPartitionAssignor": "roundrobin",
    "RangePartitionAssignor": "range",
    "StickyPartitionAssignor": "sticky",
}

# --- options ----------------------------------------------------------------------------------------------------------

RENAMED_OPTIONS: Final[Mapping[str, str]] = {"max_batch_size": "batch_size"}
# Options that are left out, with what to do if the program relied on them; "" if there is nothing to do.
DROPPED_OPTIONS: Final[Mapping[str, str]] = {
    "loop": "",
    "api_version": "",
    "consumer_timeout_ms": "",
    "rebalance_timeout_ms": "removed: a rebalance waits for this member up to max_poll_interval_ms, "
    "and for its listener up to rebalance_listener_timeout_ms",
    "exclude_internal_topics": "removed: a pattern never selects internal topics; subscribe to them by name",
}
UNREMARKABLE: Final[Mapping[str, str]] = {"exclude_internal_topics": "True", "rebalance_timeout_ms": "None"}

# aiokafka's defaults that change what a program does; `--keep-defaults` writes them down.
DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    PRODUCER: {"acks": "1", "linger_ms": "0", "batch_size": "16384"},
    CONSUMER: {
        "isolation_level": '"read_uncommitted"',
        "session_timeout_ms": "10000",
        "partition_assignment_strategy": '"roundrobin"',
    },
    ADMIN_CLIENT: {},
}

# --- methods that are left unchanged ----------------------------------------------------------------------------------

# By kind of client: the method or attribute, and what to do.
ADVICE: Final[Mapping[str, Mapping[str, str]]] = {
    PRODUCER: {
        "create_batch": "collect ProducerRecord(value, key, partition=...) in a list and await "
        "producer.send_many(topic, records)",
        "send_batch": "await producer.send_many(topic, records)",
        "begin_transaction": "open the transaction as a block: async with producer.transaction() as transaction",
        "commit_transaction": "leave the block of async with producer.transaction(): its end commits",
        "abort_transaction": "raise within the block of async with producer.transaction(), or await "
        "transaction.abort()",
        "send_offsets_to_transaction": "within the block: await transaction.send_offsets(offsets, group_id)",
        "client": "use the methods of Producer: partitions_for(), health(), metrics()",
    },
    CONSUMER: {
        "topics": "use Admin.list_topics()",
        "seek_to_committed": "consumer.resume_from_committed(positions) for some of consumer.positions(); "
        "await consumer.committed() returns the offsets",
        "__anext__": "await consumer.getone()",
    },
    ADMIN_CLIENT: {
        "describe_topics": "returns Results of TopicDescription: await admin.describe_topics(names); "
        "list_topics() returns all",
        "describe_cluster": "returns a ClusterDescription with cluster_id, controller_id and brokers",
        "describe_configs": "pass aiokwire.admin.ConfigResource(ResourceType.TOPIC, name); returns Results of "
        "ConfigEntry by name",
        "alter_configs": "pass {ConfigResource(ResourceType.TOPIC, name): {setting: value}}; other settings are "
        "kept, where aiokafka resets them",
        "describe_consumer_groups": "use describe_groups(group_ids), which returns Results of GroupDescription",
        "find_coordinator": "use (await admin.describe_group(group_id)).coordinator",
    },
    RECORD: {
        "checksum": "leave it out: the consumer checks the checksum of every batch (check_crcs)",
        "serialized_key_size": "use len(record.key); with a deserializer, measure there",
        "serialized_value_size": "use len(record.value); with a deserializer, measure there",
    },
}

# Methods that only aiokafka has: reported also for objects of unknown type.
DISTINCTIVE: Final = frozenset({
    "send_and_wait", "seek_to_committed", "send_offsets_to_transaction", "begin_transaction", "commit_transaction",
    "abort_transaction", "last_stable_offset", "last_poll_timestamp", "on_partitions_revoked",
    "on_partitions_assigned", "highwater",
})  # fmt: skip
