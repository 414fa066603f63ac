"""The login of a client: its mechanism and credentials, shared by all of its connections.

Credentials that change come from the user's function or an OpenID provider; `credentials.Shared`
fetches them once for all connections, before they expire. The classes of mechanisms and their
optional packages are imported at first use.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security.credentials import ASK_INTERVAL, Fetched, Provider, RefreshPolicy, Shared
from aiokwire.security.plain import PlainClient
from aiokwire.security.sasl import OAuthToken, SaslClient, UserPassword
from aiokwire.security.scram import HASHES, SaltedPasswords, ScramClient
from aiokwire.security.secret import Secret

NewClient = Callable[[str], Awaitable[SaslClient]]


class Login:
    """What the connections of one client need to log in. Usable from several event loops."""

    def __init__(self, mechanism: str, new_client: NewClient, credentials: Shared[Any] | None = None) -> None:
        self.mechanism: Final = mechanism
        self._new_client = new_client
        self._credentials = credentials

    async def new_client(self, host: str) -> SaslClient:
        """Return the client's side of an exchange with the broker at `host`.

        Raises:
            AuthenticationFailed: the credentials are missing or refused by their source.
            ConnectionFailed: the source of the credentials cannot be reached now.
        """
        return await self._new_client(host)

    def invalidate(self) -> None:
        """Ask for other credentials at the next login: a broker refused these."""
        if self._credentials is not None:
            self._credentials.invalidate()

    async def close(self) -> None:
        """Drop the credentials."""
        self.invalidate()

    def __repr__(self) -> str:
        return f"<Login {self.mechanism}>"


def new_login(config: Any) -> Login:
    """Return the login of a client's options (`SecurityConfig`).

    Raises: ConfigurationError: the mechanism is unknown, or its package is not installed.
    """
    mechanism = config.sasl_mechanism
    if config.sasl_client_factory is not None:
        return _with_factory(config)
    if mechanism == "PLAIN":
        return _with_password(config, PlainClient)
    if mechanism in HASHES:
        return _scram(config)
    others = {"OAUTHBEARER": _oauthbearer}
    if mechanism not in others:
        known = ", ".join(["PLAIN", *HASHES, *others])
        raise ConfigurationError(f"sasl_mechanism={mechanism!r} is unknown: use one of {known}, or sasl_client_factory")
    return others[mechanism](config)


def _with_factory(config: Any) -> Login:
    async def new_client(host: str) -> SaslClient:
        client: SaslClient = config.sasl_client_factory(host)
        return client

    return Login(config.sasl_mechanism, new_client)


# --- user and password ------------------------------------------------------------------------------------------------


def _scram(config: Any) -> Login:
    cache = SaltedPasswords()
    return _with_password(
        config,
        lambda credentials: ScramClient(
            config.sasl_mechanism, credentials, is_token=bool(config.sasl_delegation_token), cache=cache
        ),
    )


def _with_password(config: Any, build: Callable[[UserPassword], SaslClient]) -> Login:
    shared = _changing_password(config)
    if shared is None:
        fixed = UserPassword(config.sasl_plain_username or "", Secret(config.sasl_plain_password or ""))

        async def new_client(_host: str) -> SaslClient:
            return build(fixed)

        return Login(config.sasl_mechanism, new_client)

    async def new_client_of_shared(_host: str) -> SaslClient:
        return build(await shared.get())

    return Login(config.sasl_mechanism, new_client_of_shared, shared)


def _changing_password(config: Any) -> Shared[UserPassword] | None:
    """Return credentials that a function supplies, None if they are fixed."""
    if config.sasl_credentials_provider is not None:
        provider = Provider[Any](config.sasl_credentials_provider, option="sasl_credentials_provider")
        convert = as_credentials
    elif callable(config.sasl_plain_password):
        provider = Provider[Any](config.sasl_plain_password, option="sasl_plain_password")

        def convert(found: object) -> UserPassword:
            return as_credentials((config.sasl_plain_username or "", found))
    else:
        return None

    async def fetch() -> Fetched[UserPassword]:
        credentials = convert(await provider.call())
        next_call = wall_ms() / 1000 + ASK_INTERVAL
        return Fetched(credentials, next_call, next_call)

    return Shared(fetch, what="the user name and password")


def as_credentials(found: object) -> UserPassword:
    """Return what a user's function returned as credentials.

    Raises: AuthenticationFailed: it is not a pair of user name and password.
    """
    match found:
        case (str() as user, str() | Secret() as password):
            return UserPassword(user, Secret(password))
    raise AuthenticationFailed(
        f"sasl_credentials_provider returned {type(found).__name__}: return (user name, password)"
    )


# --- tokens -----------------------------------------------------------------------------------------------------------


def _oauthbearer(config: Any) -> Login:
    from aiokwire.security.oauthbearer import OAuthBearerClient

    shared = Shared(_token_source(config), what="the OAuth token")

    async def new_client(_host: str) -> SaslClient:
        return OAuthBearerClient(await shared.get())

    return Login(config.sasl_mechanism, new_client, shared)


def _token_source(config: Any) -> Callable[[], Awaitable[Fetched[OAuthToken]]]:
    """Return the function that fetches a token, with the time of its refresh."""
    source = config.sasl_oauth_token_provider
    if source is None:
        raise ConfigurationError("OAUTHBEARER needs sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url")
    function = getattr(source, "token", source)
    provider = Provider[Any](function, option="sasl_oauth_token_provider")
    policy, rng = refresh_policy(config), random.Random()

    async def fetch() -> Fetched[OAuthToken]:
        token = as_token(await provider.call(), _extensions(config, source))
        now = wall_ms() / 1000
        check_times(token, now)
        if token.expires_at == math.inf:  # unknown: as with passwords, ask for each login
            return Fetched(token, now + ASK_INTERVAL, now + ASK_INTERVAL)
        return Fetched(token, policy.refresh_at(now, token.expires_at, rng), token.expires_at)

    return fetch


def refresh_policy(config: Any) -> RefreshPolicy:
    """Return the policy of `sasl_login_refresh_*`."""
    return RefreshPolicy(
        config.sasl_login_refresh_window_factor,
        min_period_seconds=config.sasl_login_refresh_min_period_seconds,
        buffer_seconds=config.sasl_login_refresh_buffer_seconds,
    )


def _extensions(config: Any, source: object) -> dict[str, str]:
    """Return the SASL extensions of the options and of a token provider such as aiokafka's."""
    configured = config.sasl_oauthbearer_extensions or {}
    if isinstance(configured, str):
        pairs = [part.partition("=") for part in configured.split(",") if part.strip()]
        configured = {key.strip(): value.strip() for key, _, value in pairs}
    extensions = getattr(source, "extensions", None)
    return dict(configured) | dict((extensions() or {}) if callable(extensions) else {})


def as_token(found: object, extensions: Mapping[str, str] | None = None) -> OAuthToken:
    """Return what a token provider returned as a token.

    The expiry of a JWT is read from its claim `exp`; the expiry of another text is unknown
    (math.inf).

    Raises: AuthenticationFailed: it is neither a text, nor (text, expiry), nor an `OAuthToken`.
    """
    match found:
        case OAuthToken():
            token = found
        case str() | Secret():
            token = OAuthToken(Secret(found), expiry_of(Secret(found)))
        case (str() | Secret() as value, int() | float() as expires_at):
            token = OAuthToken(Secret(value), float(expires_at))
        case _:
            raise AuthenticationFailed(
                f"sasl_oauth_token_provider returned {type(found).__name__}: return the token as str, "
                "(str, seconds since the epoch at which it expires), or an OAuthToken"
            )
    return token._replace(extensions={**(extensions or {}), **token.extensions})


def expiry_of(token: Secret) -> float:
    """Return the claim `exp` of a JWT, math.inf if the token is not a JWT or has none."""
    from aiokwire.security.jwt import unverified_claims

    expires_at = unverified_claims(token).get("exp")
    return float(expires_at) if isinstance(expires_at, int | float) else math.inf


def check_times(token: OAuthToken, now: float) -> None:
    """Check that a token is valid now; a broker with the right time would refuse it.

    Raises: AuthenticationFailed: it has expired, or is not valid yet: a clock is wrong.
    """
    from aiokwire.security.jwt import MAX_SKEW, unverified_claims

    if token.expires_at <= now:
        raise AuthenticationFailed(
            f"the OAuth token expired {now - token.expires_at:.0f} s before it arrived: the clock of this host or of "
            "the token's issuer is wrong, or the token provider returns an old token"
        )
    starts = unverified_claims(token.value).get("nbf")
    if isinstance(starts, int | float) and starts > now + MAX_SKEW:
        raise AuthenticationFailed(
            f"the OAuth token becomes valid in {starts - now:.0f} s only: the clock of this host or of the token's "
            "issuer is wrong"
        )
