"""ACLs: who may do what with which resource. Values and messages for `Admin`.

Brokers with an authorizer evaluate them (KIP-11, KIP-290 prefixes); others reject the requests with
SECURITY_DISABLED.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.errors import BrokerError, InvalidArgument, ProtocolViolation, error_for
from aiokwire.protocol.messages import create_acls, delete_acls, describe_acls

EnumT = TypeVar("EnumT", bound=enum.IntEnum)

NOT_ASKED: Final = -(2**31)  # instead of the bits of authorized operations
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class AclResourceType(enum.IntEnum):
    """The types of resources that ACLs protect; the values are those on the wire."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """The comparison of a resource's name; numbered as on the wire.

    ANY and MATCH are for filters: MATCH finds every ACL that affects a name, with prefixes and "*".
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(enum.IntEnum):
    """An operation to allow or deny; numbered as on the wire."""

    UNKNOWN = 0
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


class AclPermissionType(enum.IntEnum):
    """Whether an ACL allows or denies, which has precedence; the values are those on the wire."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_FILTERS_ONLY: Final[tuple[enum.IntEnum, ...]] = (
    AclResourceType.ANY,
    PatternType.ANY,
    PatternType.MATCH,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@dataclasses.dataclass(frozen=True, slots=True)
class AclBinding:
    """One ACL: `AclBinding("User:alice", AclOperation.READ, AclResourceType.TOPIC, "orders")`.

    `principal` is `Type:name`, "User:*" every user; `resource_name` and `host` may be "*".
    """

    principal: str
    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    host: str = "*"
    permission: AclPermissionType = AclPermissionType.ALLOW

    def __post_init__(self) -> None:
        _check_types(self)

    def __str__(self) -> str:
        pattern = "prefix " if self.pattern_type is PatternType.PREFIXED else ""
        return (
            f"{self.permission.name.lower()} {self.principal} {self.operation.name.lower()} "
            f"{self.resource_type.name.lower()} {pattern}{self.resource_name!r} from {self.host}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class AclBindingFilter:
    """The ACLs to describe or delete; a field that is left out matches every value."""

    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    host: str | None = None
    permission: AclPermissionType = AclPermissionType.ANY

    def __post_init__(self) -> None:
        _check_types(self)


def _check_types(one: AclBinding | AclBindingFilter) -> None:
    for name, kind in (
        ("operation", AclOperation),
        ("resource_type", AclResourceType),
        ("pattern_type", PatternType),
        ("permission", AclPermissionType),
    ):
        if not isinstance(getattr(one, name), kind):
            raise InvalidArgument(f"{name} must be an {kind.__name__}, not {getattr(one, name)!r}")


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations in a response's bits; None if it has none."""
    if bits == NOT_ASKED:
        return None
    return frozenset(operation for operation in AclOperation if operation > 0 and bits >> operation & 1)


def _check_binding(one: AclBinding) -> None:
    for kind in (one.resource_type, one.pattern_type, one.operation, one.permission):
        if any(kind is other for other in _FILTERS_ONLY) or kind == 0:
            raise InvalidArgument(
                f"an ACL cannot be created with {type(kind).__name__}.{kind.name}, which is for filters only: name one"
            )
    if ":" not in one.principal:
        raise InvalidArgument(f"a principal must be a type and a name, such as 'User:alice', not {one.principal!r}")
    if not one.resource_name:
        raise InvalidArgument("an ACL's resource name must not be empty; '*' stands for all")


def create_request(bindings: Sequence[AclBinding]) -> create_acls.CreateAclsRequest:
    """Raises: InvalidArgument: a binding is not one that can be created."""
    for binding in bindings:
        _check_binding(binding)
    return create_acls.CreateAclsRequest(
        creations=[
            create_acls.AclCreation(
                resource_type=int(one.resource_type),
                resource_name=one.resource_name,
                resource_pattern_type=int(one.pattern_type),
                principal=one.principal,
                host=one.host,
                operation=int(one.operation),
                permission_type=int(one.permission),
            )
            for one in bindings
        ]
    )


def read_created(response: create_acls.CreateAclsResponse, bindings: Sequence[AclBinding]) -> Results[AclBinding, None]:
    """Raises: ProtocolViolation: the response has results for other ACLs."""
    results: Results[AclBinding, None] = Results({}, {})
    _check_count(len(response.results), len(bindings))
    for binding, result in zip(bindings, response.results, strict=True):
        if result.error_code:
            results.errors[binding] = _error(
                f"cannot create the ACL {binding}", result.error_code, result.error_message
            )
        else:
            results.succeeded[binding] = None
    return results


def describe_request(wanted: AclBindingFilter) -> describe_acls.DescribeAclsRequest:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=int(wanted.resource_type),
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=int(wanted.pattern_type),
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=int(wanted.operation),
        permission_type=int(wanted.permission),
    )


def read_described(response: describe_acls.DescribeAclsResponse) -> list[AclBinding]:
    """Raises: BrokerError: the broker refuses the request."""
    if response.error_code:
        raise _error("cannot describe the ACLs", response.error_code, response.error_message)
    return _sorted(
        AclBinding(
            acl.principal,
            _known(AclOperation, acl.operation),
            _known(AclResourceType, resource.resource_type),
            resource.resource_name,
            _known(PatternType, resource.pattern_type),
            acl.host,
            _known(AclPermissionType, acl.permission_type),
        )
        for resource in response.resources
        for acl in resource.acls
    )


def delete_request(filters: Iterable[AclBindingFilter]) -> delete_acls.DeleteAclsRequest:
    return delete_acls.DeleteAclsRequest(
        filters=[
            delete_acls.DeleteAclsFilter(
                resource_type_filter=int(one.resource_type),
                resource_name_filter=one.resource_name,
                pattern_type_filter=int(one.pattern_type),
                principal_filter=one.principal,
                host_filter=one.host,
                operation=int(one.operation),
                permission_type=int(one.permission),
            )
            for one in filters
        ]
    )


def read_deleted(
    response: delete_acls.DeleteAclsResponse, filters: Sequence[AclBindingFilter]
) -> Results[AclBindingFilter, list[AclBinding]]:
    """Raises: ProtocolViolation: the response has results for other filters."""
    results: Results[AclBindingFilter, list[AclBinding]] = Results({}, {})
    _check_count(len(response.filter_results), len(filters))
    for one, result in zip(filters, response.filter_results, strict=True):
        failed = [result] if result.error_code else [acl for acl in result.matching_acls if acl.error_code]
        if failed:
            results.errors[one] = _error("cannot delete ACLs", failed[0].error_code, failed[0].error_message)
        else:
            results.succeeded[one] = _sorted(map(_deleted, result.matching_acls))
    return results


def _deleted(acl: delete_acls.DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        acl.principal,
        _known(AclOperation, acl.operation),
        _known(AclResourceType, acl.resource_type),
        acl.resource_name,
        _known(PatternType, acl.pattern_type),
        acl.host,
        _known(AclPermissionType, acl.permission_type),
    )


def _sorted(bindings: Iterable[AclBinding]) -> list[AclBinding]:
    return sorted(
        bindings,
        key=lambda one: (
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            one.principal,
            one.operation,
            one.host,
        ),
    )


def _known(kind: type[EnumT], code: int) -> EnumT:
    """Return the member with a code, or UNKNOWN: a newer broker may have more."""
    return kind(code) if code in kind._value2member_map_ else kind(0)


def _check_count(have: int, wanted: int) -> None:
    if have != wanted:
        raise ProtocolViolation(f"the broker's response has {have} result(s) for {wanted} item(s)")


def _error(context: str, code: int, message: str | None) -> BrokerError:
    return error_for(code, with_message(context, message))
