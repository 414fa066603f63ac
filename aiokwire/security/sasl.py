"""The two sides of a SASL exchange (RFC 4422), without I/O, and the credentials that they use.

`aiokwire.net` drives a `SaslClient` over SaslAuthenticate requests; the embedded broker drives a
`SaslServer`. Each object serves one exchange: a new connection, or a re-authentication (KIP-368),
creates another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from aiokwire.security.secret import Secret


class UserPassword(NamedTuple):
    """The credentials of PLAIN and SCRAM."""

    username: str
    password: Secret


class OAuthToken(NamedTuple):
    """A bearer token (RFC 6750) for OAUTHBEARER."""

    value: Secret
    expires_at: float  # seconds since the epoch; math.inf if it does not expire
    principal: str = ""
    extensions: Mapping[str, str] = {}  # KIP-342


class SaslClient(Protocol):
    """The client's side of one exchange (Java: `SaslClient`)."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism on the wire, such as "SCRAM-SHA-256"."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the exchange has succeeded on this side."""
        ...

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the response to a challenge; the first call passes b"".

        Raises: AuthenticationFailed: no proof of the server's identity, or a malformed message.
        """
        ...


class SaslServer(Protocol):
    """The server's side of one exchange (Java: `SaslServer`)."""

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated."""
        ...

    @property
    def authorization_id(self) -> str:
        """The name of the authenticated user."""
        ...

    @property
    def expires_at(self) -> float:
        """When the credentials expire, in seconds since the epoch; math.inf: never."""
        ...

    async def evaluate_response(self, response: bytes) -> bytes:
        """Return the challenge that follows a client's response.

        Raises: AuthenticationFailed: the credentials are rejected; the text is for the client and
        reveals nothing about other users.
        """
        ...
