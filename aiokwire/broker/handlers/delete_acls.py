"""DeleteAcls: v0-3

Removes the ACLs that filters select, and names them in the response.
"""

from __future__ import annotations

import logging

from aiokwire.broker.dispatch import Call, CloseConnection
from aiokwire.broker.security import Acl, AclFilter, Authorizer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import delete_acls as messages

logger: logging.Logger = logging.getLogger(__name__)

MOST = 10_000  # ACLs that a request may remove


async def handle(request: messages.DeleteAclsRequest, call: Call) -> messages.DeleteAclsResponse:
    """Respond once the ACLs are removed from the store."""
    filters = [_filter(one) for one in request.filters]
    if any(one.has_unknown for one in filters):
        raise CloseConnection("DeleteAcls: type, operation and permission must not be 0 (unknown)")
    authorizer = call.state.authorizer
    if authorizer is None:
        return _all(request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    removed: dict[Acl, None] = {}
    results = [_result(one, authorizer, removed) for one in filters]
    try:
        await authorizer.delete(removed)
    except StorageError as error:
        logger.error("cannot store the removal of %d ACL(s), which remain in force: %s", len(removed), error)
        return _all(request, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    return messages.DeleteAclsResponse(filter_results=results)


def refuse(request: messages.DeleteAclsRequest, version: int, code: ErrorCode) -> messages.DeleteAclsResponse:
    """Return an error for each filter."""
    return _all(request, code, code.description)


def _all(request: messages.DeleteAclsRequest, code: ErrorCode, message: str) -> messages.DeleteAclsResponse:
    return messages.DeleteAclsResponse(filter_results=[_fault(code, message) for _ in request.filters])


def _fault(code: ErrorCode, message: str) -> messages.DeleteAclsFilterResult:
    return messages.DeleteAclsFilterResult(error_code=code, error_message=message)


def _filter(one: messages.DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        one.resource_type_filter,
        one.pattern_type_filter,
        one.resource_name_filter,
        one.principal_filter,
        one.host_filter,
        one.operation,
        one.permission_type,
    )


def _result(wanted: AclFilter, authorizer: Authorizer, removed: dict[Acl, None]) -> messages.DeleteAclsFilterResult:
    """Select the ACLs of a filter and add them to `removed`."""
    if not wanted.is_known:
        return _fault(ErrorCode.INVALID_REQUEST, "a type, an operation or a permission of the filter is unknown")
    selected = authorizer.select(wanted)
    if len(removed.keys() | selected) > MOST:
        return _fault(ErrorCode.INVALID_REQUEST, f"a request may remove {MOST} ACLs at most: narrow the filter")
    removed.update(dict.fromkeys(selected))
    return messages.DeleteAclsFilterResult(error_message=None, matching_acls=[_matching(acl) for acl in selected])


def _matching(acl: Acl) -> messages.DeleteAclsMatchingAcl:
    return messages.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
