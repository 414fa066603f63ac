"""Requests of a named user to a broker without sockets, and short forms of ACLs."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import Any

from aiokwire.broker.configs import BrokerConfigs, static_configs
from aiokwire.broker.dispatch import Origin, read_call
from aiokwire.broker.log import MemoryStorage, Storage
from aiokwire.broker.security import Acl, AclOperation, PatternType, PermissionType, Principal, ResourceType
from aiokwire.broker.state import BrokerState
from aiokwire.protocol import Request, decode_response, encode_request, encode_response

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ADMIN = Principal("User", "admin")
ALICE = Principal("User", "alice")
HOST = "192.0.2.7"


def opened(storage: Storage | None = None, **options: object) -> BrokerState:
    """The state of a broker with an authorizer; the user admin is a super user."""
    configs = static_configs({"authorizer_class_name": STANDARD, "super_users": "User:admin", **options})
    state = BrokerState(storage or MemoryStorage(capacity=1 << 26), BrokerConfigs(configs, node_id=1), random.Random(1))
    state.open()
    return state


def allow(
    operation: AclOperation,
    resource: ResourceType,
    name: str,
    *,
    principal: str = "User:alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    permission: PermissionType = PermissionType.ALLOW,
) -> Acl:
    """An ACL that allows."""
    return Acl(resource, pattern, name, principal, host, operation, permission)


def deny(operation: AclOperation, resource: ResourceType, name: str, **others: Any) -> Acl:
    """An ACL that denies."""
    return allow(operation, resource, name, permission=PermissionType.DENY, **others)


async def ask(state: BrokerState, request: Request[Any], version: int, who: Principal = ALICE) -> Any:
    """The response to a request of a user."""
    frame = bytearray(b"".join(bytes(part) for part in encode_request(request, version, 5, "acting")))[4:]
    call, work = read_call(state, frame, Origin(peer=f"{HOST}:4711", connection_id=1))
    call.principal = who
    result = work()
    response = await result if isinstance(result, Awaitable) else result
    assert response is not None
    sent = b"".join(bytes(part) for part in encode_response(response, version, 5))[4:]
    return decode_response(sent, type(request).RESPONSE, version)
