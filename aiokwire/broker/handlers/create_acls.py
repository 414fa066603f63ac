"""CreateAcls: v0-3

Adds ACLs; each succeeds or fails alone. Creating an ACL that exists succeeds and changes nothing.
"""

from __future__ import annotations

import logging

from aiokwire.broker.dispatch import Call, CloseConnection
from aiokwire.broker.security import Acl, checked_acl
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import create_acls as messages

logger: logging.Logger = logging.getLogger(__name__)

MOST = 10_000  # ACLs of one request


async def handle(request: messages.CreateAclsRequest, call: Call) -> messages.CreateAclsResponse:
    """Respond once the ACLs are stored."""
    _check_codes(request)
    authorizer = call.state.authorizer
    if authorizer is None:
        return _all(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    if len(request.creations) > MOST:
        return _all(request, ErrorCode.POLICY_VIOLATION, f"a request may create {MOST} ACLs at most")
    created: list[Acl] = []
    results = [_result(one, created) for one in request.creations]
    try:
        await authorizer.create(created)
    except StorageError as error:
        logger.error("cannot store %d ACL(s), which were not created: %s", len(created), error)
        return _all(request, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return messages.CreateAclsResponse(results=results)


def refuse(request: messages.CreateAclsRequest, version: int, code: ErrorCode) -> messages.CreateAclsResponse:
    """Return an error for each ACL."""
    return _all(request, code, code.description)


def _check_codes(request: messages.CreateAclsRequest) -> None:
    for one in request.creations:
        if 0 in (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type):
            raise CloseConnection("CreateAcls: type, operation and permission must not be 0 (unknown)")


def _all(request: messages.CreateAclsRequest, code: ErrorCode, message: str) -> messages.CreateAclsResponse:
    return messages.CreateAclsResponse(
        results=[messages.AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
    )


def _result(one: messages.AclCreation, created: list[Acl]) -> messages.AclCreationResult:
    """Check an ACL, and add it to `created` if it is valid."""
    try:
        created.append(
            checked_acl(
                one.resource_type,
                one.resource_pattern_type,
                one.resource_name,
                one.principal,
                one.host,
                one.operation,
                one.permission_type,
            )
        )
    except BrokerError as error:
        return messages.AclCreationResult(error_code=error.code, error_message=str(error))
    return messages.AclCreationResult(error_message=None)
