"""DescribeAcls: v0-3

The ACLs that a filter selects, by resource.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, CloseConnection
from aiokwire.broker.security import AclFilter
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_acls as messages


def handle(request: messages.DescribeAclsRequest, call: Call) -> messages.DescribeAclsResponse:
    """Respond at once."""
    wanted = AclFilter(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.resource_name_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if wanted.has_unknown:
        raise CloseConnection("DescribeAcls: type, operation and permission must not be 0 (unknown)")
    authorizer = call.state.authorizer
    if authorizer is None:
        message = "No Authorizer is configured on the broker"
        return messages.DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
    resources: dict[tuple[int, int, str], messages.DescribeAclsResource] = {}
    for acl in authorizer.select(wanted):
        kind, pattern, name = acl.resource_type, acl.pattern_type, acl.name
        if (kind, pattern, name) not in resources:
            resources[kind, pattern, name] = messages.DescribeAclsResource(
                resource_type=kind, pattern_type=pattern, resource_name=name
            )
        resources[kind, pattern, name].acls.append(
            messages.AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
            )
        )
    return messages.DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def refuse(request: messages.DescribeAclsRequest, version: int, code: ErrorCode) -> messages.DescribeAclsResponse:
    """Return an error and no ACLs."""
    return messages.DescribeAclsResponse(error_code=code, error_message=code.description)
