"""ACLs, the filters that select them, and an index for lookups by resource.

An ACL is kept by its text as it was created. Hosts are compared as addresses, so that an IPv6
address may be written in any form.
"""

from __future__ import annotations

import functools
import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from aiokwire.broker.security.operations import (
    CLUSTER_NAME,
    IMPLIED_BY,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError

WILDCARD: Final = "*"  # any name, as a literal pattern; any host
ANY_USER: Final = "User:*"


class Acl(NamedTuple):
    """One access control entry (Java: `AclBinding`)."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str
    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType

    @property
    def allows(self) -> bool:
        return self.permission is PermissionType.ALLOW

    def __str__(self) -> str:
        return (
            f"{self.permission.name} {self.operation.name} on {self.resource_type.name} "
            f"{self.pattern_type.name} {self.name!r} for {self.principal} from {self.host}"
        )

    def is_for(self, principal: str, host: str) -> bool:
        """Return whether the ACL is about this principal at this host."""
        if self.principal not in (principal, ANY_USER):
            return False
        return self.host == WILDCARD or canonical_host(self.host) == canonical_host(host)

    def covers(self, operation: AclOperation) -> bool:
        """Return whether the ACL decides about this operation."""
        if self.operation in (operation, AclOperation.ALL):
            return True
        return self.allows and self.operation in IMPLIED_BY.get(operation, ())

    def to_row(self) -> dict[str, Any]:
        """Return the ACL as a JSON object."""
        return {
            "resource_type": self.resource_type.name,
            "pattern_type": self.pattern_type.name,
            "name": self.name,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation.name,
            "permission": self.permission.name,
        }

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Acl:
        """Return the ACL of a JSON object.

        Raises: KeyError: a field is missing, or has an unknown value.
        """
        return cls(
            ResourceType[row["resource_type"]],
            PatternType[row["pattern_type"]],
            str(row["name"]),
            str(row["principal"]),
            str(row["host"]),
            AclOperation[row["operation"]],
            PermissionType[row["permission"]],
        )


@functools.lru_cache(maxsize=1024)
def canonical_host(host: str) -> str:
    """Return an address in its shortest form; anything else unchanged."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def checked_acl(
    resource_type: int, pattern_type: int, name: str, principal: str, host: str, operation: int, permission: int
) -> Acl:
    """Return an ACL to create, from the codes of the wire.

    Raises: BrokerError: INVALID_REQUEST, if such an ACL cannot exist.
    """
    if resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    kinds = set(ResourceType) - {ResourceType.ANY}
    if resource_type not in kinds:
        raise _invalid(f"Invalid resourceType {_named(ResourceType, resource_type)}")
    if pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED}:
        raise _invalid(f"Invalid patternType {_named(PatternType, pattern_type)}")
    if operation not in set(AclOperation) - {AclOperation.ANY}:
        raise _invalid(f"Invalid operation {_named(AclOperation, operation)}")
    if permission not in {PermissionType.DENY, PermissionType.ALLOW}:
        raise _invalid(f"Invalid permissionType {_named(PermissionType, permission)}")
    if ":" not in principal:
        raise _invalid(f"Could not parse principal from `{principal}`: it must be a type, a colon and a name")
    return Acl(
        ResourceType(resource_type),
        PatternType(pattern_type),
        name,
        principal,
        host,
        AclOperation(operation),
        PermissionType(permission),
    )


def _named(kind: Any, code: int) -> str:
    return str(kind(code).name) if code in set(kind) else "UNKNOWN"


def _invalid(message: str) -> BrokerError:
    return BrokerError(message, code=ErrorCode.INVALID_REQUEST)


class AclFilter(NamedTuple):
    """Selects ACLs (Java: `AclBindingFilter`); None and ANY match everything."""

    resource_type: int
    pattern_type: int
    name: str | None
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @property
    def has_unknown(self) -> bool:
        """Whether a code is 0, which stands for "unknown": Kafka rejects it."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    @property
    def is_known(self) -> bool:
        """Whether each code has a meaning."""
        return (
            self.resource_type in set(ResourceType)
            and self.pattern_type in set(PatternType)
            and self.operation in set(AclOperation)
            and self.permission in set(PermissionType)
        )

    def matches(self, acl: Acl) -> bool:
        """Return whether the filter selects an ACL."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and (self.principal is None or self.principal == acl.principal)
            and (self.host is None or self.host == acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (PermissionType.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type is PatternType.LITERAL:
            return acl.name == WILDCARD
        return self.name.startswith(acl.name)


class AclIndex:
    """A set of ACLs, in the order of their creation, with quick lookups by resource."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls: dict[Acl, None] = {}
        self._by_pattern: dict[tuple[ResourceType, PatternType, str], dict[Acl, None]] = {}
        # The lengths of prefixes: a name is cut to each of them, instead of being compared with each prefix.
        self._lengths: dict[ResourceType, Counter[int]] = {}
        for acl in acls:
            self.add(acl)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __len__(self) -> int:
        return len(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        """Add an ACL, unless it exists."""
        if acl in self._acls:
            return
        self._acls[acl] = None
        self._by_pattern.setdefault(acl[:3], {})[acl] = None
        if acl.pattern_type is PatternType.PREFIXED:
            self._lengths.setdefault(acl.resource_type, Counter())[len(acl.name)] += 1

    def remove(self, acl: Acl) -> None:
        """Remove an ACL that exists."""
        del self._acls[acl]
        same = self._by_pattern[acl[:3]]
        del same[acl]
        if not same:
            del self._by_pattern[acl[:3]]
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.name)] -= 1
            if not lengths[len(acl.name)]:
                del lengths[len(acl.name)]

    def select(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter selects."""
        return [acl for acl in self._acls if wanted.matches(acl)]

    def of_type(self, resource_type: ResourceType) -> Iterator[Acl]:
        """Return the ACLs of all resources of a type."""
        return (acl for acl in self._acls if acl.resource_type is resource_type)

    def of_resource(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """Return the ACLs whose pattern matches a resource."""
        for literal in {name, WILDCARD}:
            yield from self._by_pattern.get((resource_type, PatternType.LITERAL, literal), ())
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                yield from self._by_pattern.get((resource_type, PatternType.PREFIXED, name[:length]), ())
