"""Who may do what at the embedded broker.

principals  the identity of a connection      store  the file that keeps users, ACLs and quotas
quotas      limits of clients, and their use  rates  the use of one quota over time
tokens      delegation tokens
"""

from aiokwire.broker.security.principals import ANONYMOUS, Principal
from aiokwire.broker.security.quotas import (
    CLIENT_ID,
    IP,
    USER,
    ClientQuotas,
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
    "IP",
    "USER",
    "ClientQuotas",
    "DelegationToken",
    "DelegationTokens",
    "MutationQuota",
    "Principal",
    "QuotaMatch",
    "SecurityStore",
    "Usage",
    "entity_of",
]
