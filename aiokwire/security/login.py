"""The login of a client: its mechanism and credentials, shared by all of its connections.

Credentials that change come from the user's function or an OpenID provider; `credentials.Shared`
fetches them once for all connections, before they expire. The classes of mechanisms and their
optional packages are imported at first use.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security.config import SaslClientFactory, SecurityConfig
from aiokwire.security.credentials import ASK_INTERVAL, Fetched, Provider, RefreshPolicy, Shared
from aiokwire.security.jwt import MAX_SKEW, expiry_of, time_of, unverified_claims
from aiokwire.security.plain import PlainClient
from aiokwire.security.sasl import OAuthToken, SaslClient, UserPassword
from aiokwire.security.scram import HASHES, SaltedPasswords, ScramClient
from aiokwire.security.secret import Secret
from aiokwire.threads import run_in_thread

T = TypeVar("T")

NewClient = Callable[[str], Awaitable[SaslClient]]


class Login:
    """The logins of one client's connections. Usable from several event loops."""

    def __init__(self, mechanism: str, new_client: NewClient, credentials: Shared[Any] | None = None) -> None:
        self.mechanism: Final = mechanism
        self._new_client = new_client
        self._credentials = credentials

    async def new_client(self, host: str) -> SaslClient:
        """Return the client's side of an exchange with the broker at `host`.

        Raises:
            AuthenticationFailed: the credentials are missing or rejected by their source.
            ConnectionFailed: the source of the credentials cannot be reached now.
        """
        return await self._new_client(host)

    def invalidate(self) -> None:
        """Obtain new credentials at the next login: a broker rejected these."""
        if self._credentials is not None:
            self._credentials.invalidate()

    async def close(self) -> None:
        """Drop the credentials."""
        self.invalidate()

    def __repr__(self) -> str:
        return f"<Login {self.mechanism}>"


def new_login(config: SecurityConfig) -> Login:
    """Return the login of a client's options.

    Raises: ConfigurationError: the mechanism is unknown, or its package is not installed.
    """
    mechanism = config.sasl_mechanism or ""
    factory = config.sasl_client_factory
    if factory is not None:
        return _with_factory(mechanism, factory)
    if mechanism == "PLAIN":
        return _with_password(config, mechanism, PlainClient)
    if mechanism in HASHES:
        cache, is_token = SaltedPasswords(), config.sasl_delegation_token
        return _with_password(
            config, mechanism, lambda found: ScramClient(mechanism, found, is_token=is_token, cache=cache)
        )
    return {"OAUTHBEARER": _oauthbearer, "GSSAPI": _kerberos, "AWS_MSK_IAM": _aws}[mechanism](config)


def _with_factory(mechanism: str, factory: SaslClientFactory) -> Login:
    async def new_client(host: str) -> SaslClient:
        return factory(host)

    return Login(mechanism, new_client)


# --- user and password ------------------------------------------------------------------------------------------------


def _with_password(config: SecurityConfig, mechanism: str, build: Callable[[UserPassword], SaslClient]) -> Login:
    shared = _changing_password(config)

    async def new_client(_host: str) -> SaslClient:
        return build(_fixed_password(config) if shared is None else await shared.get())

    return Login(mechanism, new_client, shared)


def _fixed_password(config: SecurityConfig) -> UserPassword:
    password = config.sasl_plain_password
    return UserPassword(config.sasl_plain_username or "", Secret("" if callable(password) else password or ""))


def _changing_password(config: SecurityConfig) -> Shared[UserPassword] | None:
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


def _oauthbearer(config: SecurityConfig) -> Login:
    from aiokwire.security.oauthbearer import OAuthBearerClient

    shared = Shared(_token_source(config), what="the OAuth token")

    async def new_client(_host: str) -> SaslClient:
        return OAuthBearerClient(await shared.get())

    return Login("OAUTHBEARER", new_client, shared)


def _token_source(config: SecurityConfig) -> Callable[[], Awaitable[Fetched[OAuthToken]]]:
    """Return the function that fetches a token, with the time of its refresh."""
    request = _token_request(config)
    policy, rng = refresh_policy(config), random.Random()

    async def fetch() -> Fetched[OAuthToken]:
        token = await request()
        check_times(token, wall_ms() / 1000)
        return fetched_until(token, token.expires_at, policy, rng)

    return fetch


def _token_request(config: SecurityConfig) -> Callable[[], Awaitable[OAuthToken]]:
    """Return the function that requests a token from the user's provider or the token endpoint."""
    source: Any = config.sasl_oauth_token_provider
    if source is not None:
        provider = Provider[Any](getattr(source, "token", source), option="sasl_oauth_token_provider")

        async def ask() -> OAuthToken:
            return as_token(await provider.call(), _extensions(config, source))

        return ask
    if config.sasl_oauthbearer_token_endpoint_url is None:
        raise ConfigurationError("OAUTHBEARER needs sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url")
    from aiokwire.security.oidc import TokenEndpoint

    endpoint = TokenEndpoint(config)

    async def request() -> OAuthToken:
        return as_token(await endpoint.token(), _extensions(config, None))

    return request


def refresh_policy(config: SecurityConfig) -> RefreshPolicy:
    """Return the policy of `sasl_login_refresh_*`."""
    return RefreshPolicy(
        config.sasl_login_refresh_window_factor,
        min_period_seconds=config.sasl_login_refresh_min_period_seconds,
        buffer_seconds=config.sasl_login_refresh_buffer_seconds,
    )


def _extensions(config: SecurityConfig, source: object) -> dict[str, str]:
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


def check_times(token: OAuthToken, now: float) -> None:
    """Check that a token is valid now; a broker with the right time would reject it.

    Raises: AuthenticationFailed: it has expired, or is not valid yet: a clock is wrong.
    """
    if token.expires_at <= now:
        raise AuthenticationFailed(
            f"the OAuth token expired {now - token.expires_at:.0f} s before it arrived: the clock of this host or of "
            "the token's issuer is wrong, or the token provider returns an old token"
        )
    starts = time_of(unverified_claims(token.value), "nbf")
    if starts is not None and starts > now + MAX_SKEW:
        raise AuthenticationFailed(
            f"the OAuth token is not valid for another {starts - now:.0f} s: the clock of this host or of the token's "
            "issuer is wrong"
        )


# --- Kerberos and AWS -------------------------------------------------------------------------------------------------


def _kerberos(config: SecurityConfig) -> Login:
    from aiokwire.security.gssapi import GssapiClient, KerberosOptions, require_gssapi

    require_gssapi()
    options = KerberosOptions(
        config.sasl_kerberos_service_name,
        config.sasl_kerberos_domain_name or "",
        config.sasl_kerberos_keytab or "",
        config.sasl_kerberos_principal or "",
    )

    async def new_client(host: str) -> SaslClient:
        return GssapiClient(host, options)

    return Login("GSSAPI", new_client)


def _aws(config: SecurityConfig) -> Login:
    from aiokwire.security.aws_credentials import AwsCredentials, find_credentials, find_region
    from aiokwire.security.aws_msk_iam import AwsMskIamClient, region_of

    profile, policy, rng = config.sasl_aws_profile or "", refresh_policy(config), random.Random()

    async def fetch() -> Fetched[AwsCredentials]:
        if config.sasl_aws_access_key_id:
            secret, token = config.sasl_aws_secret_access_key or "", config.sasl_aws_session_token or ""
            fixed = AwsCredentials(config.sasl_aws_access_key_id, Secret(secret), Secret(token))
            return Fetched(fixed, math.inf, math.inf)
        found = await run_in_thread(find_credentials, profile)
        return fetched_until(found, found.expires_at, policy, rng)

    shared = Shared(fetch, what="the AWS credentials")

    async def new_client(host: str) -> SaslClient:
        region = config.sasl_aws_region or region_of(host) or await run_in_thread(find_region, profile)
        if not region:
            raise AuthenticationFailed(f"AWS_MSK_IAM: the region of {host} is unknown: set sasl_aws_region")
        return AwsMskIamClient(host, region, await shared.get())

    return Login("AWS_MSK_IAM", new_client, shared)


def fetched_until(value: T, expires_at: float, policy: RefreshPolicy, rng: random.Random) -> Fetched[T]:
    """Return a value with the time of its refresh; without a known expiry, it is soon."""
    now = wall_ms() / 1000
    if expires_at == math.inf:
        return Fetched(value, now + ASK_INTERVAL, now + ASK_INTERVAL)
    return Fetched(value, policy.refresh_at(now, expires_at, rng), expires_at)
