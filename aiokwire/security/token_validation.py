"""Validates access tokens of OAUTHBEARER clients: signature, issuer, audience, times (RFC 9068).

The keys come from the provider's key set (JWKS), which is fetched again when a token names an
unknown key, at most every few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed, KafkaError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.credentials import Fetched, Shared
from aiokwire.security.http import HttpOptions, HttpResponse, check_url, request, shown
from aiokwire.security.jwt import (
    HASH_BITS,
    MAX_TOKEN,
    decoded_bytes,
    decoded_object,
    is_signed_by,
    public_key,
    require_cryptography,
    time_of,
)
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.security.jwt import PublicKey

MAX_KEYS: Final = 100
MAX_NAME: Final = 1024

logger: FieldLogger = get_logger(__name__)


class Key(NamedTuple):
    """A public key of a key set; `algorithm` is empty if it may be used with several."""

    id: str
    algorithm: str
    public: PublicKey


class KeySource(Protocol):
    """Supplies the keys that may have signed a token."""

    async def keys(self, key_id: str) -> Sequence[Key]:
        """Return the keys with this id, or all keys if the id is empty.

        Raises: ConnectionFailed: the keys cannot be fetched.
        """
        ...


class JwksKeys:
    """The keys of a provider, from its JWKS address (https, http to loopback, or file).

    `refresh_seconds`: how long keys are used before they are fetched again
    (`sasl.oauthbearer.jwks.endpoint.refresh.ms`); `refetch_seconds`: the pause between two fetches
    because of an unknown key id.
    """

    def __init__(
        self,
        url: str,
        *,
        refresh_seconds: float = 3600.0,
        refetch_seconds: float = 10.0,
        options: HttpOptions | None = None,
    ) -> None:
        """Raises: ConfigurationError: the address is not allowed, or cryptography is missing."""
        require_cryptography("the validation of OAuth tokens")
        if urlsplit(url).scheme != "file":
            check_url(url)
        self._url = url
        self._refresh_seconds = refresh_seconds
        self._refetch_seconds = refetch_seconds
        self._options = options or HttpOptions()
        self._fetched_at = -math.inf
        self._shared = Shared(self._fetch, what=f"the key set of {shown(url)}")

    async def keys(self, key_id: str) -> Sequence[Key]:
        """Return the keys with this id; fetch the set again if it has none.

        Raises: ConnectionFailed: the keys cannot be fetched.
        """
        found = _with_id(await self._shared.get(), key_id)
        if not found and self._may_refetch():
            self._shared.expire()
            found = _with_id(await self._shared.get(), key_id)
        return found

    def _may_refetch(self) -> bool:
        return wall_ms() / 1000 >= self._fetched_at + self._refetch_seconds

    async def _fetch(self) -> Fetched[tuple[Key, ...]]:
        self._fetched_at = wall_ms() / 1000  # also of a failure: the pause holds
        keys = await run_in_thread(self._load)
        return Fetched(keys, wall_ms() / 1000 + self._refresh_seconds, math.inf)

    def _load(self) -> tuple[Key, ...]:
        """Read and parse the key set; blocks."""
        response = self._response()
        try:
            listed = response.json()["keys"]
            found = [_key(one) for one in listed[:MAX_KEYS]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectionFailed(f"{shown(self._url)} is not a JSON web key set (JWKS)", stage="sasl") from error
        keys = tuple(key for key in found if key is not None)
        if not keys:
            raise ConnectionFailed(f"{shown(self._url)} has no key that can verify a token", stage="sasl")
        return keys

    def _response(self) -> HttpResponse:
        if urlsplit(self._url).scheme == "file":
            try:
                return HttpResponse(200, {}, Path(unquote(urlsplit(self._url).path)).read_bytes())
            except OSError as error:
                raise ConnectionFailed(f"{self._url} cannot be read: {error.strerror}", stage="sasl") from error
        response = request("GET", self._url, headers={"Accept": "application/json"}, options=self._options)
        if response.status != 200:
            raise ConnectionFailed(f"{shown(self._url)} responded with status {response.status}", stage="sasl")
        return response


def _with_id(keys: Sequence[Key], key_id: str) -> list[Key]:
    return [key for key in keys if not key_id or key.id == key_id]


def _key(jwk: dict[str, Any]) -> Key | None:
    public = public_key(jwk)
    return None if public is None else Key(str(jwk.get("kid", "")), str(jwk.get("alg", "")), public)


class TokenValidator:
    """Validates tokens for `OAuthBearerServer`; one for all connections of a listener.

    Raises `ConfigurationError` without an audience or an issuer, because a token for another
    service would be accepted.
    """

    def __init__(
        self,
        keys: KeySource,
        *,
        issuer: str = "",
        audience: Collection[str] = (),
        clock_skew: float = 30.0,
        principal_claim: str = "sub",
        scope_claim: str = "scope",
        scope: str = "",
    ) -> None:
        """`clock_skew` in seconds; `scope`: a scope that every token needs, empty: none."""
        if not issuer and not audience:
            raise ConfigurationError(
                "OAUTHBEARER needs sasl.oauthbearer.expected.issuer or sasl.oauthbearer.expected.audience: the broker "
                "would accept tokens for other services"
            )
        self._keys = keys
        self._issuer = issuer
        self._audience = frozenset([audience] if isinstance(audience, str) else audience)
        self._clock_skew = clock_skew
        self._principal_claim = principal_claim
        self._scope_claim = scope_claim
        self._scope = scope

    async def validate(self, token: Secret) -> OAuthToken:
        """Return the token with its principal and expiry.

        Raises: AuthenticationFailed: the token is not valid, or the keys cannot be fetched.
        """
        header, claims, message, signature = _parsed(token)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in HASH_BITS:  # "none" and HS* among them
            raise AuthenticationFailed(f"the token's algorithm is not one of {', '.join(HASH_BITS)}")
        if header.get("crit") is not None:
            raise AuthenticationFailed("the token has critical headers, which are not supported")
        key_id = header.get("kid", "")
        if not isinstance(key_id, str) or len(key_id) > MAX_NAME:
            raise AuthenticationFailed("the token's key id is not a string")
        keys = await self._fetched_keys(key_id)
        usable = [key for key in keys if key.algorithm in {"", algorithm}]
        if not any(is_signed_by(algorithm, key.public, message, signature) for key in usable):
            raise AuthenticationFailed("the token's signature is wrong, or its key is unknown")
        self._check_claims(claims)
        principal = claims.get(self._principal_claim)
        if not isinstance(principal, str) or not 0 < len(principal) <= MAX_NAME:
            raise AuthenticationFailed(f"the token has no claim {self._principal_claim!r}")
        return OAuthToken(token, float(claims["exp"]), principal)

    async def _fetched_keys(self, key_id: str) -> Sequence[Key]:
        try:
            return await self._keys.keys(key_id)
        except KafkaError as error:
            logger.error("a client's OAuth token cannot be validated: %s; the login fails", error)
            raise AuthenticationFailed("the broker cannot validate tokens now") from error

    def _check_claims(self, claims: dict[str, Any]) -> None:
        now = wall_ms() / 1000
        expires_at = time_of(claims, "exp")
        if expires_at is None:
            raise AuthenticationFailed("the token has no expiry (claim exp)")
        if expires_at + self._clock_skew <= now:
            raise AuthenticationFailed("the token has expired")
        for name in ("nbf", "iat"):
            starts = time_of(claims, name)
            if name in claims and (starts is None or starts - self._clock_skew > now):
                raise AuthenticationFailed(f"the token is not valid yet (claim {name}): check the clocks")
        if self._issuer and claims.get("iss") != self._issuer:
            raise AuthenticationFailed("the token has another issuer")
        if self._audience and not self._audience & set(_texts(claims.get("aud"))):
            raise AuthenticationFailed("the token is for another audience")
        if self._scope and self._scope not in _texts(claims.get(self._scope_claim), separator=" "):
            raise AuthenticationFailed(f"the token lacks the scope {self._scope!r}")


def _parsed(token: Secret) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Return the header, the claims, what is signed, and the signature."""
    text = token.reveal()
    parts = text.split(".")
    if len(text) > MAX_TOKEN or len(parts) != 3:
        raise AuthenticationFailed("the token is not a signed JWT")
    try:
        header, claims = decoded_object(parts[0]), decoded_object(parts[1])
        return header, claims, f"{parts[0]}.{parts[1]}".encode(), decoded_bytes(parts[2])
    except ValueError as error:
        raise AuthenticationFailed("the token is not a signed JWT") from error


def _texts(claim: object, separator: str = "") -> list[str]:
    """Return the texts of a claim that is a text or a list."""
    if isinstance(claim, str):
        return claim.split(separator) if separator else [claim]
    return [one for one in claim if isinstance(one, str)] if isinstance(claim, list) else []
