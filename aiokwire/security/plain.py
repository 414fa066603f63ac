"""PLAIN (RFC 4616): the user name and the password in clear text, so only for TLS connections."""

from __future__ import annotations

import hmac
import math
from collections.abc import Awaitable, Callable
from typing import Final

from aiokwire.errors import AuthenticationFailed
from aiokwire.security.sasl import UserPassword
from aiokwire.security.secret import Secret

MECHANISM: Final = "PLAIN"
MAX_MESSAGE: Final = 65_536
REFUSED: Final = "Authentication failed: Invalid username or password"  # Kafka's text

VerifyPassword = Callable[[str, Secret], Awaitable[bool]]


class PlainClient:
    """The client's side of PLAIN: one message."""

    mechanism: Final = MECHANISM

    def __init__(self, credentials: UserPassword) -> None:
        self._credentials = credentials
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the message was sent; the broker responds with success or an error."""
        return self._is_complete

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the message.

        Raises: AuthenticationFailed: the broker sent a challenge, which PLAIN does not have, or
        the user name or the password cannot be sent.
        """
        if challenge or self._is_complete:
            raise AuthenticationFailed("the broker sent a challenge, which PLAIN does not have")
        user, password = self._credentials
        if not user or not password or "\0" in user or "\0" in password.reveal():
            raise AuthenticationFailed(
                "PLAIN needs a user name and a password without NUL characters: set sasl_plain_username and "
                "sasl_plain_password"
            )
        self._is_complete = True
        return _encoded(f"\0{user}\0{password.reveal()}")


class PlainServer:
    """The server's side of PLAIN.

    `verify` returns whether a password is the one of a user; it takes equal time for unknown users.
    """

    expires_at: Final = math.inf

    def __init__(self, verify: VerifyPassword) -> None:
        self._verify = verify
        self._user = ""

    @property
    def is_complete(self) -> bool:
        return bool(self._user)

    @property
    def authorization_id(self) -> str:
        return self._user

    async def evaluate_response(self, response: bytes) -> bytes:
        """Check the client's message and return b"".

        Raises: AuthenticationFailed: it is malformed, or the user name or the password is wrong.
        """
        authorization_id, user, password = _parsed(response)
        # Both checks always run: the time does not depend on which one fails.
        is_right = await self._verify(user, password)
        if not is_right:
            raise AuthenticationFailed(REFUSED)
        if authorization_id and not hmac.compare_digest(authorization_id.encode(), user.encode()):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._user = user
        return b""


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # its text would contain the password
        raise AuthenticationFailed("the user name or the password has characters that UTF-8 cannot encode") from None


def _parsed(response: bytes) -> tuple[str, str, Secret]:
    if len(response) > MAX_MESSAGE:
        raise AuthenticationFailed(f"the PLAIN message has {len(response)} bytes, more than {MAX_MESSAGE}")
    try:
        parts = response.decode().split("\0")
    except UnicodeDecodeError:
        raise AuthenticationFailed("the PLAIN message is not UTF-8") from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise AuthenticationFailed("the PLAIN message needs three parts: authorization id, user name, password")
    return parts[0], parts[1], Secret(parts[2])
