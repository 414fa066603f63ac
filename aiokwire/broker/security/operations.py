"""ACL operations and resources, and the table of what each API requires.

Codes are those of the wire. A `Rule` for the whole request is checked before its handler runs;
the handlers check the other rules for each topic, group or resource that a request names.
Source: `KafkaApis` and `ControllerApis` of Kafka 4.3.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey

CLUSTER_NAME: Final = "kafka-cluster"  # the only resource of type CLUSTER


class AclOperation(enum.IntEnum):
    """An operation of a principal on a resource (Java: `AclOperation`)."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(enum.IntEnum):
    """The type of a resource that an ACL protects (Java: `ResourceType`)."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """The comparison of the name in an ACL or a filter (Java: `PatternType`, KIP-290)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(enum.IntEnum):
    """Whether an ACL allows or denies (Java: `AclPermissionType`)."""

    ANY = 1
    DENY = 2
    ALLOW = 3


_Op = AclOperation
_Type = ResourceType

# An ACL that allows one of these also allows the key; one that denies it does not.
IMPLIED_BY: Final[Mapping[AclOperation, frozenset[AclOperation]]] = {
    _Op.DESCRIBE: frozenset({_Op.DESCRIBE, _Op.READ, _Op.WRITE, _Op.DELETE, _Op.ALTER}),
    _Op.DESCRIBE_CONFIGS: frozenset({_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS}),
}

# The operations that "authorized operations" in responses name (Java: `AclEntry.supportedOperations`).
SUPPORTED: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    _Type.TOPIC: (
        _Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
    ),
    _Type.GROUP: (_Op.READ, _Op.DELETE, _Op.DESCRIBE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS),
    _Type.CLUSTER: (
        _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
        _Op.IDEMPOTENT_WRITE,
    ),
}  # fmt: skip

# The code of a response to a request that is denied.
DENIED: Final[Mapping[ResourceType, ErrorCode]] = {
    _Type.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    _Type.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    _Type.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    _Type.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    _Type.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    _Type.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class Rule(NamedTuple):
    """An operation that an API requires."""

    operation: AclOperation
    resource: ResourceType
    # The request's field with the name of a group or transactional id, for a rule of the whole request.
    field: str = ""
    # Otherwise: the part of the request, or the condition, that it is for. Empty for a rule of the whole request.
    note: str = ""
    instead: AclOperation | None = None  # suffices as well

    @property
    def is_whole(self) -> bool:
        """Whether the rule is checked once, before the handler."""
        return not self.note


def _topics(operation: AclOperation, note: str = "each topic") -> Rule:
    return Rule(operation, _Type.TOPIC, note=note)


def _groups(operation: AclOperation, note: str = "each group") -> Rule:
    return Rule(operation, _Type.GROUP, note=note)


def _cluster(operation: AclOperation, note: str = "", *, instead: AclOperation | None = None) -> Rule:
    return Rule(operation, _Type.CLUSTER, note=note, instead=instead)


def _group(operation: AclOperation) -> Rule:
    return Rule(operation, _Type.GROUP, "group_id")


def _transaction(operation: AclOperation = _Op.WRITE) -> Rule:
    return Rule(operation, _Type.TRANSACTIONAL_ID, "transactional_id")


def _transactions(operation: AclOperation, note: str = "each transactional id") -> Rule:
    return Rule(operation, _Type.TRANSACTIONAL_ID, note=note)


_CONFIG_RULES = ((_Type.TOPIC, "each topic"), (_Type.GROUP, "each group"), (_Type.CLUSTER, "each broker"))

RULES: Final[Mapping[ApiKey, tuple[Rule, ...]]] = {
    ApiKey.PRODUCE: (_transactions(_Op.WRITE, "transactional records"), _topics(_Op.WRITE)),
    ApiKey.FETCH: (_topics(_Op.READ), _cluster(_Op.CLUSTER_ACTION, "from a follower, instead")),
    ApiKey.LIST_OFFSETS: (_topics(_Op.DESCRIBE),),
    ApiKey.METADATA: (
        _topics(_Op.DESCRIBE),
        _cluster(_Op.CREATE, "auto-creation"),
        _topics(_Op.CREATE, "auto-creation, instead"),
        _cluster(_Op.DESCRIBE, "the operations allowed on the cluster"),
    ),
    ApiKey.OFFSET_COMMIT: (_group(_Op.READ), _topics(_Op.READ)),
    ApiKey.OFFSET_FETCH: (_groups(_Op.DESCRIBE), _topics(_Op.DESCRIBE)),
    ApiKey.FIND_COORDINATOR: (_groups(_Op.DESCRIBE), _transactions(_Op.DESCRIBE)),
    ApiKey.JOIN_GROUP: (_group(_Op.READ),),
    ApiKey.HEARTBEAT: (_group(_Op.READ),),
    ApiKey.LEAVE_GROUP: (_group(_Op.READ),),
    ApiKey.SYNC_GROUP: (_group(_Op.READ),),
    ApiKey.DESCRIBE_GROUPS: (_groups(_Op.DESCRIBE),),
    ApiKey.LIST_GROUPS: (
        _cluster(_Op.DESCRIBE, "all groups"),
        _groups(_Op.DESCRIBE, "each group, instead; others are left out"),
    ),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.API_VERSIONS: (),
    ApiKey.CREATE_TOPICS: (
        _cluster(_Op.CREATE, "all topics"),
        _topics(_Op.CREATE, "each topic, instead"),
        _topics(_Op.DESCRIBE_CONFIGS, "each topic's configs in the response"),
    ),
    ApiKey.DELETE_TOPICS: (
        _cluster(_Op.DELETE, "all topics"),
        _topics(_Op.DELETE, "each topic, instead"),
        _topics(_Op.DESCRIBE, "each topic's name in the response"),
    ),
    ApiKey.DELETE_RECORDS: (_topics(_Op.DELETE),),
    ApiKey.INIT_PRODUCER_ID: (
        _transactions(_Op.WRITE, "a transactional producer"),
        _cluster(_Op.IDEMPOTENT_WRITE, "an idempotent producer"),
        _topics(_Op.WRITE, "any topic, instead"),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        _cluster(_Op.CLUSTER_ACTION, "all topics"),
        _topics(_Op.DESCRIBE, "each topic, instead"),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _transactions(_Op.WRITE, "versions 0 to 3"),
        _topics(_Op.WRITE, "each topic, versions 0 to 3"),
        _cluster(_Op.CLUSTER_ACTION, "version 4 and up: from brokers"),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_transaction(), _group(_Op.READ)),
    ApiKey.END_TXN: (_transaction(),),
    ApiKey.WRITE_TXN_MARKERS: (_cluster(_Op.CLUSTER_ACTION, instead=_Op.ALTER),),
    ApiKey.TXN_OFFSET_COMMIT: (_transaction(), _group(_Op.READ), _topics(_Op.READ)),
    ApiKey.DESCRIBE_ACLS: (_cluster(_Op.DESCRIBE),),
    ApiKey.CREATE_ACLS: (_cluster(_Op.ALTER),),
    ApiKey.DELETE_ACLS: (_cluster(_Op.ALTER),),
    ApiKey.DESCRIBE_CONFIGS: tuple(Rule(_Op.DESCRIBE_CONFIGS, kind, note=note) for kind, note in _CONFIG_RULES),
    ApiKey.ALTER_CONFIGS: tuple(Rule(_Op.ALTER_CONFIGS, kind, note=note) for kind, note in _CONFIG_RULES),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_cluster(_Op.ALTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (_cluster(_Op.DESCRIBE),),
    ApiKey.CREATE_PARTITIONS: (_topics(_Op.ALTER),),
    ApiKey.CREATE_DELEGATION_TOKEN: (Rule(_Op.CREATE_TOKENS, _Type.USER, note="a token for another user"),),
    ApiKey.RENEW_DELEGATION_TOKEN: (),  # only the owner and the renewers may
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (
        Rule(_Op.DESCRIBE, _Type.DELEGATION_TOKEN, note="each token of another user"),
        Rule(_Op.DESCRIBE_TOKENS, _Type.USER, note="each owner, instead"),
    ),
    ApiKey.DELETE_GROUPS: (_groups(_Op.DELETE),),
    ApiKey.ELECT_LEADERS: (_cluster(_Op.ALTER),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: tuple(Rule(_Op.ALTER_CONFIGS, kind, note=note) for kind, note in _CONFIG_RULES),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_cluster(_Op.ALTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_cluster(_Op.DESCRIBE),),
    ApiKey.OFFSET_DELETE: (_group(_Op.DELETE), _topics(_Op.READ)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_cluster(_Op.DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_cluster(_Op.ALTER_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_cluster(_Op.DESCRIBE),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_cluster(_Op.ALTER),),
    ApiKey.DESCRIBE_QUORUM: (_cluster(_Op.DESCRIBE),),
    ApiKey.DESCRIBE_CLUSTER: (_cluster(_Op.DESCRIBE, "the operations allowed on the cluster"),),
    ApiKey.DESCRIBE_PRODUCERS: (_topics(_Op.READ),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        _transactions(_Op.DESCRIBE),
        _topics(_Op.DESCRIBE, "each topic; others are left out"),
    ),
    ApiKey.LIST_TRANSACTIONS: (_transactions(_Op.DESCRIBE, "each transactional id; others are left out"),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (_group(_Op.READ), _topics(_Op.DESCRIBE, "each topic subscribed by name")),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (_groups(_Op.DESCRIBE), _topics(_Op.DESCRIBE, "each assigned topic")),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (),
    ApiKey.PUSH_TELEMETRY: (),
    ApiKey.LIST_CONFIG_RESOURCES: (_cluster(_Op.DESCRIBE_CONFIGS),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (_topics(_Op.DESCRIBE),),
}

# The rules that are checked before the handler, by API.
WHOLE_RULES: Final[Mapping[int, tuple[Rule, ...]]] = {
    int(key): whole
    for key, rules in RULES.items()
    for whole in (tuple(rule for rule in rules if rule.is_whole),)
    if whole
}
