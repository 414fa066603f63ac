"""The SASL mechanisms of a listener: what creates the server's side of each exchange.

PLAIN and SCRAM use the broker's users, and SCRAM delegation tokens. OAUTHBEARER validates tokens
with the keys of `sasl.oauthbearer.jwks.endpoint.url`; GSSAPI uses the keytab of
`sasl.jaas.config`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from aiokwire.broker.configs import BrokerConfigs
    from aiokwire.broker.state import BrokerState
    from aiokwire.security import SaslServer

DEFAULT_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")  # that need nothing but users
MECHANISMS: Final = (*DEFAULT_MECHANISMS, "OAUTHBEARER", "GSSAPI")

NewServer = Callable[[], "SaslServer"]


def new_servers_of(mechanism: str, listener: str, state: BrokerState) -> NewServer:
    """Return the function that creates the server of one exchange.

    `listener` is its name, for errors.

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
        return _kerberos(listener, state.configs)
    raise ConfigurationError(
        f"listener {listener}: the broker has no SASL mechanism {mechanism}; it has {', '.join(MECHANISMS)}"
    )


def _oauthbearer(listener: str, configs: BrokerConfigs) -> NewServer:
    """Validate tokens with one key set for all connections of the listener."""
    from aiokwire.security import JwksKeys, OAuthBearerServer, TokenValidator

    url = configs.text("sasl.oauthbearer.jwks.endpoint.url")
    if not url:
        raise ConfigurationError(
            f"listener {listener}: OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url: the address of the OpenID "
            "provider's keys"
        )
    validator = TokenValidator(
        JwksKeys(url, refresh_seconds=configs.seconds("sasl.oauthbearer.jwks.endpoint.refresh.ms")),
        issuer=configs.text("sasl.oauthbearer.expected.issuer") or "",
        audience=[one.strip() for one in (configs.text("sasl.oauthbearer.expected.audience") or "").split(",") if one],
        clock_skew=configs.integer("sasl.oauthbearer.clock.skew.seconds"),
        principal_claim=configs.text("sasl.oauthbearer.sub.claim.name") or "sub",
        scope_claim=configs.text("sasl.oauthbearer.scope.claim.name") or "scope",
    )
    return lambda: OAuthBearerServer(validator.validate)


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
