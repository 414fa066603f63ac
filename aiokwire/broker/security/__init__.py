"""Who may do what at the embedded broker.

principals  the identity of a connection      store  the file that keeps users, ACLs and quotas
quotas      limits of clients, and their use   rates  the use of one quota over time
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

__all__ = [
    "ANONYMOUS",
    "CLIENT_ID",
    "IP",
    "USER",
    "ClientQuotas",
    "MutationQuota",
    "Principal",
    "QuotaMatch",
    "SecurityStore",
    "Usage",
    "entity_of",
]
