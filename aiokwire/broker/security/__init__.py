"""Who may do what at the embedded broker.

principals  the identity of a connection      store  the file that keeps users, ACLs and quotas
"""

from aiokwire.broker.security.principals import ANONYMOUS, Principal
from aiokwire.broker.security.store import SecurityStore

__all__ = ["ANONYMOUS", "Principal", "SecurityStore"]
