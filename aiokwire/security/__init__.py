"""TLS and SASL without sockets: options, contexts, mechanisms, credentials, secrets.

config       the options of clients             consistency   their aliases and checks
jaas         JAAS strings of the Java client    properties    its properties files
placeholders  ${env:}, ${file:}, ${dir:}         secret        a value that no text shows
sasl         the two sides of a SASL exchange

Used by `aiokwire.net` and the clients above it, and by the embedded broker.
"""

from aiokwire.security.config import SecurityConfig, SecurityOptions
from aiokwire.security.sasl import OAuthToken, SaslClient, SaslServer, UserPassword
from aiokwire.security.secret import Secret

__all__ = [
    "OAuthToken",
    "SaslClient",
    "SaslServer",
    "Secret",
    "SecurityConfig",
    "SecurityOptions",
    "UserPassword",
]
