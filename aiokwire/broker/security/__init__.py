"""Security of the embedded broker: principals, ACLs, quotas, delegation tokens.

principals  the identity of a connection      store   the file that keeps users, ACLs and quotas
operations  what each API requires            acls    ACLs, filters, lookups
authorizer  the decisions                     audit   the log of the decisions
quotas      limits of clients, and their use  rates   the use of one quota over time
tokens      delegation tokens
"""

from aiokwire.broker.security.acls import Acl, AclFilter, checked_acl
from aiokwire.broker.security.authorizer import Authorizer, new_authorizer
from aiokwire.broker.security.operations import (
    CLUSTER_NAME,
    DENIED,
    RULES,
    SUPPORTED,
    WHOLE_RULES,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from aiokwire.broker.security.principals import ANONYMOUS, Principal
from aiokwire.broker.security.quotas import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuotas,
    Entity,
    MutationQuota,
    QuotaMatch,
    Usage,
    entity_of,
)
from aiokwire.broker.security.store import SecurityStore
from aiokwire.broker.security.tokens import DelegationToken, DelegationTokens

__all__ = [
    "ANONYMOUS",
    "CLIENT_ID",
    "CLUSTER_NAME",
    "DENIED",
    "IP",
    "RULES",
    "SUPPORTED",
    "USER",
    "WHOLE_RULES",
    "Acl",
    "AclFilter",
    "AclOperation",
    "Authorizer",
    "ClientQuotas",
    "DelegationToken",
    "DelegationTokens",
    "Entity",
    "MutationQuota",
    "PatternType",
    "PermissionType",
    "Principal",
    "QuotaMatch",
    "ResourceType",
    "SecurityStore",
    "Usage",
    "checked_acl",
    "entity_of",
    "new_authorizer",
]
