"""The listeners of a broker: an address each, with a protocol, SASL mechanisms and TLS options.

`Broker(listeners=[Listener(...)])`, or Kafka's configs `listeners`, `advertised.listeners`,
`listener.security.protocol.map`, `sasl.enabled.mechanisms`, `ssl.*`, which hold for all listeners.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokwire.broker.nodes import Endpoint, parse_endpoint
from aiokwire.broker.security.authentication import LoginRules
from aiokwire.broker.security.principals import PrincipalMapping
from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security import Secret

if TYPE_CHECKING:
    from aiokwire.broker.configs import BrokerConfigs
    from aiokwire.broker.state import BrokerState
    from aiokwire.security import OAuthToken, SaslServer, ServerTls, TlsOptions, TokenValidator

DEFAULT_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")  # that need users only
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
    """Accept an unsecured token (RFC 7515, appendix A.5), for tests of clients.

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


PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLIENT_AUTH: Final = ("none", "requested", "required")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ENTRY: Final = re.compile(r"([^:]*)://(.*)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listener:
    """One listener.

    `address` is `host:port`; port 0 picks a free one, and the nodes after the first take the ports
    after it. `advertised` is the address that clients receive if it differs. `name` is the
    protocol's by default. `mechanisms`, `tls` and `client_auth` ("none", "requested", "required")
    default to the broker's configs.

    OAUTHBEARER checks tokens by the broker's configs `sasl.oauthbearer.*`, or by `validate_token`,
    which raises AuthenticationFailed; `allow_unsecured_tokens` accepts those without a signature,
    in tests of clients.
    """

    address: str = "127.0.0.1:0"
    protocol: str = "PLAINTEXT"
    name: str = ""
    advertised: str | None = None
    mechanisms: Sequence[str] = ()
    tls: TlsOptions | None = None
    client_auth: str = ""
    validate_token: Callable[[Secret], Awaitable[OAuthToken]] | None = None
    allow_unsecured_tokens: bool = False

    def __post_init__(self) -> None:
        """Check the values.

        Raises: ConfigurationError: naming the value and the valid ones.
        """
        if self.protocol not in PROTOCOLS:
            raise ConfigurationError(f"the protocol of a listener must be one of {PROTOCOLS}, not {self.protocol!r}")
        if not self.name:
            object.__setattr__(self, "name", self.protocol)
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"the name of a listener must consist of letters, digits, _ . -: {self.name!r}")
        if self.client_auth not in ("", *CLIENT_AUTH):
            raise ConfigurationError(f"client_auth must be one of {CLIENT_AUTH}, not {self.client_auth!r}")
        parse_endpoint(self.address, f"the address of listener {self.name}")
        if self.advertised is not None:
            parse_endpoint(self.advertised, f"the advertised address of listener {self.name}")

    @property
    def endpoint(self) -> Endpoint:
        """The address to listen on."""
        return parse_endpoint(self.address, "address")

    @property
    def advertised_endpoint(self) -> Endpoint | None:
        """The address for clients, if it is not the one that the listener is bound to."""
        return None if self.advertised is None else parse_endpoint(self.advertised, "advertised")

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def listeners_of(configs: Mapping[str, str]) -> list[Listener]:
    """Return the listeners of Kafka's configs.

    Raises: ConfigurationError: naming the config and its part that is wrong.
    """
    protocols = {name: name for name in PROTOCOLS}
    for pair in _parts(configs.get("listener.security.protocol.map", "")):
        name, _, protocol = pair.partition(":")
        protocols[name.strip()] = protocol.strip()
    advertised = dict(_entries("advertised.listeners", configs.get("advertised.listeners", "")))
    found = [
        Listener(name=name, protocol=_protocol(name, protocols), address=address, advertised=advertised.pop(name, None))
        for name, address in _entries("listeners", configs["listeners"])
    ]
    if advertised:
        raise ConfigurationError(f"advertised.listeners names {', '.join(advertised)}, which listeners does not name")
    check_names(found)
    return found


def check_names(listeners: Iterable[Listener]) -> None:
    """Check that there are listeners, and that their names differ.

    Raises: ConfigurationError: the name that occurs twice.
    """
    names = [one.name for one in listeners]
    if not names:
        raise ConfigurationError("listeners must name at least one listener")
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"listeners names {name} twice: give each listener its own name")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _entries(config: str, text: str) -> list[tuple[str, str]]:
    """Return name and address of each entry `NAME://host:port`."""
    found = []
    for entry in _parts(text):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ConfigurationError(f"{config}: {entry!r} must be NAME://host:port")
        found.append((match.group(1), match.group(2)))
    return found


def _protocol(name: str, protocols: Mapping[str, str]) -> str:
    if name not in protocols:
        raise ConfigurationError(
            f"listener {name} has no protocol: add {name}:SASL_SSL (or another one of {', '.join(PROTOCOLS)}) to "
            "listener.security.protocol.map"
        )
    return protocols[name]


# --- of a running broker ----------------------------------------------------------------------------------------------


class ListenerSecurity(NamedTuple):
    """The state that the connections of a listener share at run time."""

    name: str
    tls: ServerTls | None = None
    login: LoginRules | None = None
    mapping: PrincipalMapping | None = None  # of the names in clients' certificates, without SASL


def security_of(listener: Listener, state: BrokerState) -> ListenerSecurity:
    """Return what the connections of a listener share.

    Raises: ConfigurationError: options are missing or wrong.
    """
    configs = state.configs
    mapping = None
    if listener.protocol == "SSL":
        mapping = PrincipalMapping(configs.text("ssl.principal.mapping.rules") or "DEFAULT")
    return ListenerSecurity(
        listener.name,
        tls=_tls(listener, state) if listener.uses_tls else None,
        login=_login_rules(listener, state) if listener.uses_sasl else None,
        mapping=mapping,
    )


def _tls(listener: Listener, state: BrokerState) -> ServerTls:
    from aiokwire.security import ServerTls  # here: it loads OpenSSL, which most brokers do not need

    options = listener.tls or tls_options_of(state.configs.static)
    auth: Any = listener.client_auth or (state.configs.text("ssl.client.auth") or "none").lower()
    return ServerTls(options, auth)


def tls_options_of(configs: Mapping[str, str]) -> TlsOptions:
    """Return the TLS options in Kafka's configs `ssl.*`."""
    from aiokwire.security import TlsOptions

    def text(name: str) -> str:
        return configs.get(f"ssl.{name}", "")

    def secret(name: str) -> Secret | None:
        return Secret(text(name)) if text(name) else None

    given: dict[str, Any] = {}
    if text("enabled.protocols"):
        given["enabled_protocols"] = tuple(_parts(text("enabled.protocols")))
    return TlsOptions(
        truststore_location=text("truststore.location"),
        truststore_certificates=text("truststore.certificates"),
        truststore_type=text("truststore.type"),
        truststore_password=secret("truststore.password"),
        keystore_location=text("keystore.location"),
        keystore_certificate_chain=text("keystore.certificate.chain"),
        keystore_key=secret("keystore.key"),
        keystore_type=text("keystore.type"),
        keystore_password=secret("keystore.password"),
        key_password=secret("key.password"),
        cipher_suites=tuple(_parts(text("cipher.suites"))),
        **given,
    )


def _login_rules(listener: Listener, state: BrokerState) -> LoginRules:
    configs = state.configs
    enabled = listener.mechanisms or _parts(configs.static.get("sasl.enabled.mechanisms", "")) or DEFAULT_MECHANISMS
    reauthentication = configs.integer("connections.max.reauth.ms") / 1000
    return LoginRules(
        listener.name,
        {mechanism: new_servers_of(mechanism, listener, state) for mechanism in enabled},
        max_session=reauthentication if reauthentication > 0 else math.inf,
        failure_delay=configs.integer("connection.failed.authentication.delay.ms") / 1000,
    )
