"""Delegation tokens (KIP-48, KIP-373): users create them and log in with them, until they expire.

A token is an id and its HMAC by the broker's secret key. The HMAC is the password; it is not
stored, because it can be computed again.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aiokwire._text import printable
from aiokwire.broker.security.principals import Principal
from aiokwire.broker.security.store import SecurityStore
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.security import ScramCredential, Secret, random_text, scram_credential

logger: logging.Logger = logging.getLogger(__name__)

SECTION: Final = "tokens"


@dataclasses.dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token without its HMAC; times are milliseconds since the epoch."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_at: int
    expires_at: int
    max_at: int
    """The latest time to which it can be renewed."""

    def has_expired(self, now: int) -> bool:
        """Whether its period or its maximum lifetime has ended."""
        return min(self.expires_at, self.max_at) < now

    def is_renewer(self, principal: Principal) -> bool:
        """Whether a principal may renew the token and let it expire."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: Principal) -> bool:
        """Whether it is a principal's own token, one that it requested, or may renew."""
        return self.is_renewer(principal) or principal == self.requester


def _row(token: DelegationToken) -> dict[str, Any]:
    return {
        **dataclasses.asdict(token),
        "owner": list(token.owner),
        "requester": list(token.requester),
        "renewers": [list(one) for one in token.renewers],
    }


def _token(row: Mapping[str, Any]) -> DelegationToken:
    people = {name: Principal(*row[name]) for name in ("owner", "requester")}
    return DelegationToken(**{**row, **people, "renewers": tuple(Principal(*one) for one in row["renewers"])})


def _new_id() -> str:
    """Return a random id that no command line takes for an option."""
    while (token_id := random_text(16)).startswith("-"):
        pass
    return token_id


class DelegationTokens:
    """The tokens of a broker."""

    def __init__(
        self,
        store: SecurityStore,
        secret_key: Secret | None,
        clock: Callable[[], int],
        *,
        max_lifetime_ms: int,
        renewal_ms: int,
    ) -> None:
        """`secret_key`: `delegation.token.secret.key`, None turns tokens off; `clock`: milliseconds
        since the epoch; `renewal_ms`: how long a token is valid unless it is renewed."""
        self._store = store
        self._key = secret_key
        self._clock = clock
        self._max_lifetime = max_lifetime_ms
        self._renewal = renewal_ms
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}  # by HMAC
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # by id and mechanism

    @property
    def enabled(self) -> bool:
        """Whether the broker has a secret key for tokens."""
        return bool(self._key)

    def load(self) -> None:
        """Read the stored tokens.

        Raises: StorageError: they are corrupt.
        """
        try:
            for row in self._store.section(SECTION):
                self._put(_token(row))
        except (KeyError, TypeError) as error:
            raise StorageError(f"the delegation tokens in the data directory are corrupt: {error!r}") from error

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token: what its owner must keep secret."""
        assert self._key is not None, "tokens are enabled"
        return hmac.digest(self._key.reveal().encode(), token_id.encode(), "sha512")

    # --- requests -----------------------------------------------------------------------------------------------------

    async def create(
        self, requester: Principal, owner: Principal, renewers: Sequence[Principal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Create a token; `max_lifetime_ms`: at most the broker's, which -1 stands for.

        Raises: BrokerError: tokens are off. StorageError: the token cannot be stored.
        """
        self._check_enabled()
        now = self._clock()
        lifetime = min(self._max_lifetime, max_lifetime_ms) if max_lifetime_ms > 0 else self._max_lifetime
        token = DelegationToken(
            token_id=_new_id(),
            owner=owner,
            requester=requester,
            renewers=tuple(renewers),
            issued_at=now,
            expires_at=now + min(lifetime, self._renewal),
            max_at=now + lifetime,
        )
        async with self._store.turn(SECTION):
            await self._save({**self._tokens, token.token_id: token})
            self._put(token)
        logger.info("delegation token %s of %s was created", token.token_id, printable(str(owner)))
        return token

    async def renew(self, given: bytes, principal: Principal, period_ms: int) -> int:
        """Renew the token with this HMAC; return when it expires. -1: by the broker's period.

        Raises: BrokerError: unknown, expired, or not the principal's. StorageError.
        """
        period = min(self._renewal, period_ms) if period_ms > 0 else self._renewal
        async with self._store.turn(SECTION):
            return await self._set_expiry(self._find(given, principal), period)

    async def expire(self, given: bytes, principal: Principal, period_ms: int) -> int:
        """Let the token with this HMAC expire after a period, at once if negative; return when.

        Raises: BrokerError: unknown, expired, or not the principal's. StorageError.
        """
        async with self._store.turn(SECTION):
            token = self._find(given, principal)
            if period_ms >= 0:
                return await self._set_expiry(token, period_ms)
            await self._remove([token.token_id])
        logger.info("delegation token %s was removed by %s", token.token_id, printable(str(principal)))
        return period_ms

    def tokens(self) -> list[DelegationToken]:
        """Return all tokens that have not expired, oldest first.

        Raises: BrokerError: tokens are off.
        """
        self._check_enabled()
        now = self._clock()
        return sorted(
            (token for token in self._tokens.values() if not token.has_expired(now)),
            key=lambda token: (token.issued_at, token.token_id),
        )

    async def remove_expired(self) -> None:
        """Forget expired tokens.

        Raises: StorageError: the file cannot be written.
        """
        now = self._clock()
        async with self._store.turn(SECTION):
            expired = [token.token_id for token in self._tokens.values() if token.has_expired(now)]
            if expired:
                await self._remove(expired)
        if expired:
            logger.info("%d expired delegation tokens were removed", len(expired))

    # --- logins -------------------------------------------------------------------------------------------------------

    def scram_credential(self, token_id: str, mechanism: str) -> ScramCredential | None:
        """Return the credential of a SCRAM login with a token; None: unknown or expired.

        Its `principal` is the token's owner; it takes some milliseconds at a token's first login.
        """
        token = self._tokens.get(token_id)
        if token is None or not self.enabled or token.has_expired(self._clock()):
            return None
        found = self._credentials.get((token_id, mechanism))
        if found is None:
            password = Secret(base64.b64encode(self.hmac_of(token_id)).decode())
            found = self._credentials[token_id, mechanism] = scram_credential(mechanism, password)
        return found._replace(principal=token.owner.name, expires_at=token.expires_at / 1000)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _check_enabled(self) -> None:
        if not self.enabled:
            raise BrokerError("delegation.token.secret.key is not set", code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def _find(self, given: bytes, principal: Principal) -> DelegationToken:
        self._check_enabled()
        token = self._tokens.get(self._ids.get(given, ""))
        if token is None:
            raise BrokerError("no token has this HMAC", code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if token.has_expired(self._clock()):
            raise BrokerError(token.token_id, code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if not token.is_renewer(principal):
            raise BrokerError(token.token_id, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token

    async def _set_expiry(self, token: DelegationToken, period_ms: int) -> int:
        expires_at = min(token.max_at, self._clock() + period_ms)
        changed = dataclasses.replace(token, expires_at=expires_at)
        await self._save({**self._tokens, token.token_id: changed})
        self._put(changed)
        return expires_at

    async def _remove(self, token_ids: Sequence[str]) -> None:
        await self._save({one: token for one, token in self._tokens.items() if one not in token_ids})
        for token_id in token_ids:
            self._drop(token_id)

    def _put(self, token: DelegationToken) -> None:
        self._tokens[token.token_id] = token
        if self.enabled:
            self._ids[self.hmac_of(token.token_id)] = token.token_id

    def _drop(self, token_id: str) -> None:
        del self._tokens[token_id]
        if self.enabled:
            self._ids.pop(self.hmac_of(token_id), None)
        for key in [key for key in self._credentials if key[0] == token_id]:
            del self._credentials[key]

    async def _save(self, tokens: Mapping[str, DelegationToken]) -> None:
        await self._store.replace(SECTION, [_row(token) for token in tokens.values()])
