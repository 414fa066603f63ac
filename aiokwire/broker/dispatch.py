"""The broker's APIs, their versions, and the handler of each.

The versions advertised are exactly those of Kafka 4.3.1: clients infer a broker's release from
them. Some older versions are served, too, for clients that send no ApiVersions. A handler module
and its messages load at the first request of the API, so the broker starts before most are needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from aiokwire.broker.nodes import Endpoint, Node
from aiokwire.broker.security import (
    ANONYMOUS,
    CLUSTER_NAME,
    DENIED,
    WHOLE_RULES,
    AclOperation,
    Principal,
    ResourceType,
)
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.protocol import ApiKey, Message, Request, Response, decode_request

if TYPE_CHECKING:
    from aiokwire.broker.faults.rules import PartitionErrors
    from aiokwire.broker.security.authentication import Authenticator

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]
# What a handler returns: the response, or None if none is sent (acks=0).
Answer = Response | None
Result: TypeAlias = MaybeAwaitable[Answer]


class Api(NamedTuple):
    """One API: versions advertised, and the oldest one served."""

    key: ApiKey
    first: int
    last: int
    served_from: int

    @property
    def module(self) -> str:
        return self.key.name.lower()


def _table(*rows: tuple[ApiKey, int, int, int]) -> dict[int, Api]:
    return {int(row[0]): Api(*row) for row in rows}


APIS = _table(
    # Advertised from 0 although current Kafka rejects versions below 3: otherwise old librdkafka stops compressing.
    (ApiKey.PRODUCE, 0, 13, 0),
    (ApiKey.FETCH, 4, 18, 0),
    (ApiKey.LIST_OFFSETS, 1, 11, 0),
    (ApiKey.METADATA, 0, 13, 0),
    (ApiKey.OFFSET_COMMIT, 2, 10, 0),
    (ApiKey.OFFSET_FETCH, 1, 10, 0),
    (ApiKey.FIND_COORDINATOR, 0, 6, 0),
    (ApiKey.JOIN_GROUP, 0, 9, 0),
    (ApiKey.HEARTBEAT, 0, 4, 0),
    (ApiKey.LEAVE_GROUP, 0, 5, 0),
    (ApiKey.SYNC_GROUP, 0, 5, 0),
    (ApiKey.DESCRIBE_GROUPS, 0, 6, 0),
    (ApiKey.LIST_GROUPS, 0, 5, 0),
    (ApiKey.SASL_HANDSHAKE, 0, 1, 0),
    (ApiKey.API_VERSIONS, 0, 4, 0),
    (ApiKey.CREATE_TOPICS, 2, 7, 0),
    (ApiKey.DELETE_TOPICS, 1, 6, 0),
    (ApiKey.DELETE_RECORDS, 0, 2, 0),
    (ApiKey.INIT_PRODUCER_ID, 0, 5, 0),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 0),
    (ApiKey.DESCRIBE_CONFIGS, 1, 4, 0),
    (ApiKey.ALTER_CONFIGS, 0, 2, 0),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 0),
    (ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 0),
    (ApiKey.END_TXN, 0, 5, 0),
    (ApiKey.WRITE_TXN_MARKERS, 1, 2, 0),
    (ApiKey.TXN_OFFSET_COMMIT, 0, 5, 0),
    (ApiKey.DESCRIBE_ACLS, 1, 3, 0),
    (ApiKey.CREATE_ACLS, 1, 3, 0),
    (ApiKey.DELETE_ACLS, 1, 3, 0),
    (ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0),
    (ApiKey.LIST_TRANSACTIONS, 0, 2, 0),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 0),
    (ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 0),
    (ApiKey.SASL_AUTHENTICATE, 0, 2, 0),
    (ApiKey.CREATE_PARTITIONS, 0, 3, 0),
    (ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 0),
    (ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 0),
    (ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 0),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 0),
    (ApiKey.DELETE_GROUPS, 0, 2, 0),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 0),
    (ApiKey.ELECT_LEADERS, 0, 2, 0),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0),
    (ApiKey.OFFSET_DELETE, 0, 0, 0),
    (ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 0),
    (ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 0),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    (ApiKey.DESCRIBE_QUORUM, 0, 2, 0),
    (ApiKey.DESCRIBE_CLUSTER, 0, 2, 0),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0),
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, 0, 0),
    (ApiKey.PUSH_TELEMETRY, 0, 0, 0),
    (ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0),
    (ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0),
)


# Advertised only by a broker that receives metrics of clients, as by Kafka with a plugin for them.
TELEMETRY_APIS = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})


class CloseConnection(KafkaError):
    """The connection must be closed without a response; the message gives the reason."""


class AnswerAndClose(CloseConnection):
    """The connection must be closed after this response; the message gives the reason."""

    def __init__(self, message: str, response: Response) -> None:
        super().__init__(message)
        self.response = response


class FallSilent(KafkaError):
    """The connection must stay open without further responses, as if the broker hung."""


WHOLE_TOPIC = -1  # instead of a partition
MESSAGE_LENGTH = 1000  # characters of an error message that had to be cut
MAX_ELEMENTS = 100_000  # in the arrays of a request: each becomes an object, and its decoding blocks the loop


class Origin(NamedTuple):
    """The common state of a connection's requests until its next login."""

    peer: str = ""  # the client's address, with its port
    local: Endpoint | None = None  # the address that the client connected to
    connection_id: int = 0
    node: Node | None = None  # that receives the requests; None: the first one
    principal: Principal = ANONYMOUS  # that the connection is authenticated as
    listener: str = ""  # that the client connected to; empty: the first one
    authenticator: Authenticator | None = None  # of the connection, if its listener uses SASL


_UNKNOWN = Origin()


class Call:
    """The context of one request: its header, connection and node."""

    __slots__ = ("api", "client_id", "correlation_id", "faults", "node", "origin", "principal", "state", "version")

    def __init__(
        self,
        state: BrokerState,
        *,
        api: int,
        version: int,
        correlation_id: int = 0,
        client_id: str | None = None,
        origin: Origin = _UNKNOWN,
    ) -> None:
        self.state: BrokerState = state
        self.api: int = api
        self.version: int = version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id
        self.origin: Origin = origin
        self.node: Node = origin.node or state.nodes.first  # that received the request
        self.principal: Principal = origin.principal
        self.faults: PartitionErrors | None = None  # set by a test's rules

    @property
    def peer(self) -> str:
        """The client's address, with its port."""
        return self.origin.peer

    @property
    def connection_id(self) -> int:
        """The number of the connection."""
        return self.origin.connection_id

    @property
    def authenticator(self) -> Authenticator | None:
        """The logins of the connection, if its listener uses SASL."""
        return self.origin.authenticator

    def is_allowed(self, operation: AclOperation, resource: ResourceType, name: str, *, is_asked: bool = True) -> bool:
        """Return whether the client may do an operation with a resource.

        Everything is allowed if the broker has no authorizer. `is_asked` is false for
        a resource that the request does not name: a denial is not logged.
        """
        authorizer = self.state.authorizer
        return authorizer is None or authorizer.is_allowed(
            self.principal, self.host, operation, resource, name, is_asked=is_asked
        )

    def is_allowed_any(self, operation: AclOperation, resource: ResourceType) -> bool:
        """Return whether the client may do an operation with at least one resource of a type."""
        authorizer = self.state.authorizer
        return authorizer is None or authorizer.is_allowed_any(self.principal, self.host, operation, resource)

    def is_allowed_in_cluster(self, operation: AclOperation, *, is_asked: bool = True) -> bool:
        """Return whether the client may do an operation with the cluster."""
        return self.is_allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_asked=is_asked)

    @property
    def host(self) -> str:
        """The client's address without its port."""
        return self.origin.peer.rpartition(":")[0]

    def advertised(self, node: Node | None = None) -> Endpoint:
        """Return the address of a node (default: the call's) at which this client can reach it."""
        local = self.origin.local
        endpoint = (node or self.node).endpoint_at(self.origin.listener)
        if endpoint.host in {"0.0.0.0", "::", ""} and local is not None:
            return Endpoint(local.host, endpoint.port)
        return endpoint


Handler = Callable[[Any, Call], Result]
_handlers: dict[int, Handler] = {}


def handler_of(api: Api) -> Handler:
    """Return the function that handles an API; its module loads at the first request."""
    handler: Handler | None = _handlers.get(api.key)
    if handler is None:
        handler = _handlers[api.key] = _module_of(api.key).handle
    return handler


def _module_of(key: ApiKey) -> Any:
    return import_module(f"aiokwire.broker.handlers.{APIS[key].module}")


def error_response(request: Request[Any], version: int, code: ErrorCode) -> Response:
    """Return the response to a request that failed with this code.

    A handler's module has `refuse` unless its response has one error code and nothing else to set.

    Raises: InvalidArgument: the response has no error code for the whole request.
    """
    module = _module_of(request.API)
    kind: Any = type(request).RESPONSE
    response: Response
    if hasattr(module, "refuse"):
        response = module.refuse(request, version, code)
    elif "error_code" in kind.__slots__:
        response = kind(error_code=code)
    else:
        raise InvalidArgument(f"{kind.__name__} has no error code of its own: use respond(...)")
    return response


def shorten_messages(message: Any) -> None:
    """Cut the error messages in a response, which may repeat long names of its request."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_message" and value is not None:
            setattr(message, name, value[:MESSAGE_LENGTH])
        for element in value if isinstance(value, list) else ():
            if isinstance(element, Message):
                shorten_messages(element)


def read_call(state: BrokerState, frame: bytearray, origin: Origin) -> tuple[Call, Callable[[], Result]]:
    """Return the call in a frame, and the function that handles it.

    Raises: CloseConnection: an unknown API or version. ProtocolViolation: a malformed request.
    """
    key = int.from_bytes(frame[0:2], "big", signed=True)
    version = int.from_bytes(frame[2:4], "big", signed=True)
    api = APIS.get(key)
    if api is None or not api.served_from <= version <= api.last:
        return _unsupported(state, frame, api, key, version)
    header, request = decode_request(frame, trailing=True, max_elements=MAX_ELEMENTS)
    call = Call(
        state,
        api=key,
        version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        origin=origin,
    )
    handler = _handlers.get(key) or handler_of(api)
    if state.plays_several and is_coordinated_elsewhere(request, state, call.node.id):
        handler = _not_coordinator
    if state.authorizer is not None and key in WHOLE_RULES:
        handler = partial(_if_allowed, handler)
    if state.interceptor is not None:
        return call, state.interceptor.work_of(call, request, frame, handler)
    return call, lambda: handler(request, call)


def is_coordinated_elsewhere(request: Request[Any], state: BrokerState, node_id: int) -> bool:
    """Return whether another node coordinates the group or transactional id of a request."""
    key = request.coordinator_key()
    return bool(key) and state.nodes.coordinator(key).id != node_id


def _if_allowed(handler: Handler, request: Request[Any], call: Call) -> Result:
    code = _denial(request, call)
    return handler(request, call) if code is ErrorCode.NONE else error_response(request, call.version, code)


def _denial(request: Request[Any], call: Call) -> ErrorCode:
    """Return the code of the first rule for the whole request that denies it, or NONE."""
    for rule in WHOLE_RULES[call.api]:
        name = (getattr(request, rule.field) or "") if rule.field else CLUSTER_NAME
        if rule.instead is not None and call.is_allowed(rule.instead, rule.resource, name, is_asked=False):
            continue
        if not call.is_allowed(rule.operation, rule.resource, name):
            return DENIED[rule.resource]
    return ErrorCode.NONE


def _not_coordinator(request: Request[Any], call: Call) -> Response:
    return error_response(request, call.version, ErrorCode.NOT_COORDINATOR)


def _unsupported(
    state: BrokerState, frame: bytearray, api: Api | None, key: int, version: int
) -> tuple[Call, Callable[[], Result]]:
    if key != ApiKey.API_VERSIONS:
        known = ApiKey(key).name if key in set(ApiKey) else f"unknown API {key}"
        has = f"only versions {api.served_from} to {api.last}" if api is not None else "no such API"
        raise CloseConnection(f"{known} version {version}: this broker has {has}")
    # KIP-511: the response to an unknown version has version 0 and lists the supported versions.
    correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    call = Call(state, api=key, version=0, correlation_id=correlation_id)
    return call, _module_of(ApiKey.API_VERSIONS).unsupported_version
