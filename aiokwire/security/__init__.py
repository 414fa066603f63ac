"""TLS and SASL without sockets: options, contexts, mechanisms, credentials, secrets.

secret  a value that no text shows      sasl  the two sides of a SASL exchange

Used by `aiokwire.net` and the clients above it, and by the embedded broker.
"""

from aiokwire.security.sasl import OAuthToken, SaslClient, SaslServer, UserPassword
from aiokwire.security.secret import Secret

__all__ = ["OAuthToken", "SaslClient", "SaslServer", "Secret", "UserPassword"]
