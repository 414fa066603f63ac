"""OAUTHBEARER (RFC 7628, KIP-255): a bearer token, with Kafka's extensions (KIP-342)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from aiokwire.errors import AuthenticationFailed
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret

MECHANISM: Final = "OAUTHBEARER"
MAX_MESSAGE: Final = 131_072
SEPARATOR: Final = "\x01"
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN: Final = re.compile(r"[-._~+/A-Za-z0-9]+=*")  # RFC 6750: b64token
_HEADER: Final = re.compile(r"[ny],(?:a=((?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,")

ValidateToken = Callable[[Secret], Awaitable[OAuthToken]]


class OAuthBearerClient:
    """The client's side of OAUTHBEARER: the token, and a response to the broker's error."""

    mechanism: Final = MECHANISM

    def __init__(self, token: OAuthToken) -> None:
        self._token = token
        self._is_sent = False
        self._is_complete = False
        self._error = ""

    @property
    def is_complete(self) -> bool:
        """Whether the broker accepted the token."""
        return self._is_complete

    @property
    def error(self) -> str:
        """Why the broker rejected the token; empty before."""
        return self._error

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the token's message; then b"", or b"\\x01" if the challenge is the broker's error.

        Raises: AuthenticationFailed: the broker rejected the token, or its extensions cannot be
        sent.
        """
        if self._error or self._is_complete:
            raise AuthenticationFailed(self._error or "the broker sent a message after the end of the exchange")
        if not self._is_sent:
            self._is_sent = True
            return self._first()
        if not challenge:
            self._is_complete = True
            return b""
        self._error = _explained(challenge)
        return SEPARATOR.encode()

    def _first(self) -> bytes:
        value = self._token.value.reveal()
        if not _TOKEN.fullmatch(value):
            raise AuthenticationFailed(
                "the OAuth token is empty or has characters that RFC 6750 does not allow: check the token provider"
            )
        check_extensions(self._token.extensions)
        pairs = "".join(f"{key}={value}{SEPARATOR}" for key, value in self._token.extensions.items())
        return f"n,,{SEPARATOR}auth=Bearer {value}{SEPARATOR}{pairs}{SEPARATOR}".encode()


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Check the names and values of extensions (KIP-342).

    Raises: AuthenticationFailed: names the extension that cannot be sent.
    """
    for key, value in extensions.items():
        if not _KEY.fullmatch(key) or key == "auth":
            raise AuthenticationFailed(f"the SASL extension {key!r}: a name has letters only and is not 'auth'")
        if not _VALUE.fullmatch(value):
            raise AuthenticationFailed(f"the SASL extension {key!r}: a value has printable ASCII characters only")


def _explained(challenge: bytes) -> str:
    """Return the text of the broker's error: JSON with status, scope and openid-configuration."""
    try:
        found = json.loads(challenge[:MAX_MESSAGE])
        status, scope = str(found["status"]), str(found.get("scope") or "")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return f"the broker rejected the OAuth token: {challenge[:200].decode(errors='replace')}"
    needed = f" (it needs the scope {scope!r})" if scope else ""
    return f"the broker rejected the OAuth token: status {status!r}{needed}"


class OAuthBearerServer:
    """The server's side of OAUTHBEARER.

    `validate` returns the token with its principal, or raises `AuthenticationFailed`.
    """

    mechanism: Final = MECHANISM

    def __init__(self, validate: ValidateToken, *, scope: str = "") -> None:
        """`scope`: the scope that the error names, which clients need."""
        self._validate = validate
        self._scope = scope
        self._token: OAuthToken | None = None
        self._extensions: Mapping[str, str] = MappingProxyType({})
        self._error = ""

    @property
    def is_complete(self) -> bool:
        return self._token is not None

    @property
    def authorization_id(self) -> str:
        return "" if self._token is None else self._token.principal

    @property
    def expires_at(self) -> float:
        return math.inf if self._token is None else self._token.expires_at

    @property
    def extensions(self) -> Mapping[str, str]:
        """The extensions that the client sent; they are not validated."""
        return self._extensions

    async def evaluate_response(self, response: bytes) -> bytes:
        """Return b"" if the token is valid, else the error as JSON; the reply to it raises.

        Raises: AuthenticationFailed: the message is malformed, or the client confirmed the error.
        """
        if self._error or self._token is not None:
            raise AuthenticationFailed(self._error or "a message after the end of the OAUTHBEARER exchange")
        authorization_id, value, extensions = parse_client_first(response)
        try:
            token = await self._validate(value)
        except AuthenticationFailed as refusal:
            self._error = str(refusal)
            return self._refusal()
        if authorization_id not in {"", token.principal}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name"
            )
        self._token, self._extensions = token, extensions
        return b""

    def _refusal(self) -> bytes:
        error = {"status": "invalid_token"} | ({"scope": self._scope} if self._scope else {})
        return json.dumps(error).encode()


def parse_client_first(message: bytes) -> tuple[str, Secret, dict[str, str]]:
    """Return the authorization id, the token and the extensions of a client's message.

    Raises: AuthenticationFailed: it is malformed.
    """
    if len(message) > MAX_MESSAGE:
        raise AuthenticationFailed(f"the OAUTHBEARER message has {len(message)} bytes, more than {MAX_MESSAGE}")
    try:
        text = message.decode("ascii")
    except UnicodeDecodeError:
        raise AuthenticationFailed("the OAUTHBEARER message is not ASCII") from None
    header = _HEADER.match(text)
    if header is None or not text.endswith(SEPARATOR * 2) or text[header.end() :][:1] != SEPARATOR:
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message")
    pairs = dict(_pair(part) for part in text[header.end() + 1 : -2].split(SEPARATOR))
    scheme, _, value = pairs.pop("auth", "").partition(" ")
    value = value.strip(" ")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(value):
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message: it has no bearer token")
    return (header[1] or "").replace("=2C", ",").replace("=3D", "="), Secret(value), pairs


def _pair(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message: an extension is malformed")
    return key, value
