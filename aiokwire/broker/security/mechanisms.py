"""The SASL mechanisms of a listener: what creates the server's side of each exchange.

PLAIN and SCRAM use the broker's users, and SCRAM delegation tokens. OAUTHBEARER validates tokens
with the keys of `sasl.oauthbearer.jwks.endpoint.url`, or by a function of the listener; GSSAPI
uses the keytab of `sasl.jaas.config`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError

if TYPE_CHECKING:
    from aiokwire.broker.configs import BrokerConfigs
    from aiokwire.broker.security.listeners import Listener
    from aiokwire.broker.state import BrokerState
    from aiokwire.security import OAuthToken, SaslServer, Secret, TokenValidator

DEFAULT_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")  # that need nothing but users
MECHANISMS: Final = (*DEFAULT_MECHANISMS, "OAUTHBEARER", "GSSAPI")

NewServer = Callable[[], "SaslServer"]


def new_servers_of(mechanism: str, listener: Listener, state: BrokerState) -> NewServer:
    """Return the function that creates the server of one exchange.

    Raises: ConfigurationError: the mechanism is unknown, or lacks a config or a package.
    """
    from aiokwire.security import PlainServer, ScramServer

    if mechanism == "PLAIN":
        return functools.partial(PlainServer, state.users.verify)
    if mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        find = functools.partial(state.users.find, mechanism)
        return lambda: ScramServer(
            mechanism, find, find_token=lambda token_id: state.tokens.scram_credential(token_id, mechanism)
        )
    if mechanism == "OAUTHBEARER":
        return _oauthbearer(listener, state.configs)
    if mechanism == "GSSAPI":
        return _kerberos(listener.name, state.configs)
    raise ConfigurationError(
        f"listener {listener.name}: the broker has no SASL mechanism {mechanism}; it has {', '.join(MECHANISMS)}"
    )


def _oauthbearer(listener: Listener, configs: BrokerConfigs) -> NewServer:
    from aiokwire.security import OAuthBearerServer

    if listener.validate_token is not None:
        return functools.partial(OAuthBearerServer, listener.validate_token)
    if listener.allow_unsecured_tokens:
        return functools.partial(OAuthBearerServer, validate_unsecured)
    return functools.partial(OAuthBearerServer, _validator(listener.name, configs).validate)


async def validate_unsecured(token: Secret) -> OAuthToken:
    """Return an unsecured token (RFC 7515, appendix A.5) as it is, for tests of clients.

    Raises: AuthenticationFailed: it is signed, has no subject, or has expired.
    """
    from aiokwire.security import OAuthToken, unverified_claims

    claims = unverified_claims(token)
    subject, expires_at = claims.get("sub"), claims.get("exp")
    if not token.reveal().endswith(".") or not isinstance(subject, str) or not subject:
        raise AuthenticationFailed("the token is not an unsecured JWT with the claim sub")
    if not isinstance(expires_at, int | float) or expires_at * 1000 <= wall_ms():
        raise AuthenticationFailed("the token has expired, or has no claim exp")
    return OAuthToken(token, float(expires_at), subject)


def _validator(listener: str, configs: BrokerConfigs) -> TokenValidator:
    """Return the validator of all connections of the listener, which share one key set."""
    from aiokwire.security import JwksKeys, TokenValidator

    url = configs.text("sasl.oauthbearer.jwks.endpoint.url")
    if not url:
        raise ConfigurationError(
            f"listener {listener}: OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url: the address of the OpenID "
            "provider's keys"
        )
    return TokenValidator(
        JwksKeys(url, refresh_seconds=configs.seconds("sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        issuer=configs.text("sasl.oauthbearer.expected.issuer") or "",
        audience=[one.strip() for one in (configs.text("sasl.oauthbearer.expected.audience") or "").split(",") if one],
        clock_skew=configs.integer("sasl.oauthbearer.clock.skew.seconds"),
        principal_claim=configs.text("sasl.oauthbearer.sub.claim.name") or "sub",
        scope_claim=configs.text("sasl.oauthbearer.scope.claim.name") or "scope",
    )


def _kerberos(listener: str, configs: BrokerConfigs) -> NewServer:
    """Accept tickets for the service whose keys a keytab has."""
    from aiokwire.security import GssapiServer, parse_jaas, require_gssapi

    require_gssapi()
    jaas = configs.text("sasl.jaas.config")
    keytab = parse_jaas(jaas).options.get("keyTab", "") if jaas else ""
    if not keytab:
        raise ConfigurationError(
            f"listener {listener}: GSSAPI needs sasl.jaas.config with keyTab=: the file with the keys of the broker's "
            'principal, as in: com.sun.security.auth.module.Krb5LoginModule required keyTab="/etc/kafka.keytab";'
        )
    return lambda: GssapiServer(keytab)
