"""Converts other spellings of security options, and checks them, when a config is constructed.

`normalized` returns the fields that change; `check` raises. No error shows a secret.
"""

from __future__ import annotations

import functools
import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from aiokwire.config import require_bool, require_number
from aiokwire.errors import ConfigurationError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.jaas import options_of, parse_jaas
from aiokwire.security.placeholders import resolve
from aiokwire.security.sasl import UserPassword
from aiokwire.security.secret import Secret

if TYPE_CHECKING:
    from aiokwire.security.config import SecurityConfig

logger: FieldLogger = get_logger(__name__)

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM, "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
GRANTS: Final = ("client_credentials", "jwt-bearer")

SECRETS: Final = (
    "ssl_truststore_password", "ssl_keystore_key", "ssl_keystore_password", "ssl_key_password", "sasl_jaas_config",
    "sasl_plain_password", "sasl_password", "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_assertion_private_key_passphrase", "sasl_aws_secret_access_key", "sasl_aws_session_token",
)  # fmt: skip
_FUNCTIONS: Final = {
    "sasl_credentials_provider": "a function that returns (user, password)",
    "sasl_oauth_token_provider": "a function, or an object with token(), that returns a token",
    "sasl_client_factory": "a function of the broker's host that returns a SaslClient",
}
_NUMBERS: Final = {
    "sasl_login_refresh_window_factor": (0.5, 1.0),
    "sasl_login_refresh_buffer_seconds": (0, 3600),
    "sasl_login_refresh_min_period_seconds": (0, 900),
    "sasl_login_connect_timeout_ms": (1, 600_000),
    "sasl_login_read_timeout_ms": (1, 600_000),
    "sasl_login_retry_backoff_ms": (0, 600_000),
    "sasl_login_retry_backoff_max_ms": (0, 600_000),
    "sasl_oauthbearer_assertion_claim_exp_seconds": (1, 86_400),
    "sasl_oauthbearer_assertion_claim_nbf_seconds": (0, 86_400),
}
_USER_PASSWORD: Final = ("sasl_plain_username", "sasl_plain_password")
_BOOLEANS: Final = (
    "sasl_delegation_token",
    "sasl_oauthbearer_assertion_claim_jti_include",
    "sasl_oauthbearer_header_urlencode",
)
# The options that belong to mechanisms, by their prefix; the first that fits counts.
_OWNERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("sasl_plain_", ("PLAIN", *SCRAM)),
    ("sasl_credentials_provider", ("PLAIN", *SCRAM)),
    ("sasl_delegation_token", SCRAM),
    ("sasl_oauth", ("OAUTHBEARER",)),
    ("sasl_kerberos_", ("GSSAPI",)),
    ("sasl_aws_", ("AWS_MSK_IAM",)),
)


class PasswordProvider:
    """Credentials whose password a function of the user returns at each login."""

    def __init__(self, username: str, password: Callable[[], Any]) -> None:
        self.username = username
        self._password = password

    def with_username(self, username: str) -> PasswordProvider:
        """Return a provider for another user with the same function."""
        return PasswordProvider(username, self._password)

    def __call__(self) -> UserPassword | Awaitable[UserPassword]:
        """Return the credentials, or an awaitable of them if the user's function is async."""
        password = self._password()
        if inspect.isawaitable(password):
            return self._awaited(password)
        return UserPassword(self.username, Secret(password))

    async def _awaited(self, password: Awaitable[Any]) -> UserPassword:
        return UserPassword(self.username, Secret(await password))


# --- converting -------------------------------------------------------------------------------------------------------


def normalized(config: SecurityConfig) -> Mapping[str, Any]:
    """Return the fields of a config that change: secrets hidden, aliases and JAAS converted.

    Raises: ConfigurationError: a value has the wrong type, two spellings of an option contradict
    each other, or the JAAS string cannot be used.
    """
    changed = _Changes(config)
    _hide_secrets(changed)
    changed["security_protocol"] = _protocol(config.security_protocol)
    _refuse_options_of_other_protocols(changed["security_protocol"], _given(config))
    mechanism = changed["sasl_mechanism"]
    if isinstance(mechanism, str) and changed["sasl_client_factory"] is None:
        changed["sasl_mechanism"] = mechanism.strip().upper() or None
    changed.rename("ssl_cafile", "ssl_truststore_location")
    changed.rename("sasl_username", "sasl_plain_username")
    changed.rename("sasl_password", "sasl_plain_password")
    _convert_jaas(changed)
    _convert_password_function(changed)
    _convert_endpoint_identification(changed)
    for name in ("ssl_enabled_protocols", "ssl_cipher_suites"):
        changed[name] = _names(name, changed[name])
    changed["sasl_oauthbearer_extensions"] = _extensions(changed["sasl_oauthbearer_extensions"])
    return changed.values


def _protocol(given: object) -> str:
    protocol = given.strip().upper() if isinstance(given, str) else given
    if protocol not in PROTOCOLS:
        raise ConfigurationError(f"security_protocol must be one of {', '.join(PROTOCOLS)}, not {given!r}")
    return str(protocol)


def _refuse_options_of_other_protocols(protocol: str, given: list[str]) -> None:
    """Done before aliases are converted, so that the error has the name that the user wrote."""
    of_tls = [name for name in given if name.startswith("ssl_")]
    of_sasl = [name for name in given if name.startswith("sasl_")]
    if of_tls and not protocol.endswith("SSL"):
        needed = "SASL_SSL" if of_sasl or protocol == "SASL_PLAINTEXT" else "SSL"
        raise ConfigurationError(
            f'{of_tls[0]} has no effect with security_protocol={protocol!r}: set security_protocol="{needed}", or '
            "leave it out"
        )
    if of_sasl and not protocol.startswith("SASL_"):
        raise ConfigurationError(
            f'{of_sasl[0]} has no effect with security_protocol={protocol!r}: set security_protocol="SASL_SSL" '
            '("SASL_PLAINTEXT" for a listener without TLS), or leave it out'
        )


class _Changes:
    """The fields of a config, some of them replaced."""

    def __init__(self, config: SecurityConfig) -> None:
        self._config = config
        self.values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.values[name] if name in self.values else getattr(self._config, name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.values[name] = value

    def rename(self, alias: str, name: str) -> None:
        """Move the value of an alias to the option that it stands for."""
        given, existing = self[alias], self[name]
        if given is None:
            return
        if existing is not None and existing != given:
            raise ConfigurationError(f"{alias} and {name} are the same option with two values: set one of them")
        self[name], self[alias] = given, None


def _hide_secrets(changed: _Changes) -> None:
    for name in SECRETS:
        value = changed[name]
        if isinstance(value, str):
            changed[name] = Secret(value)
        elif value is not None and not isinstance(value, Secret) and not _may_be_function(name, value):
            raise ConfigurationError(f"{name} must be a string, not a {type(value).__name__}")


def _may_be_function(name: str, value: object) -> bool:
    return name in ("sasl_password", "sasl_plain_password", "ssl_key_password") and callable(value)


def _convert_jaas(changed: _Changes) -> None:
    jaas = changed["sasl_jaas_config"]
    if jaas is None:
        return
    text = resolve(jaas.reveal(), option="sasl_jaas_config")
    for name, value in options_of(parse_jaas(text), changed["sasl_mechanism"]).items():
        existing = changed[name]
        is_default = existing is None or (name, existing) in _KEPT_DEFAULTS
        if not is_default and existing != value:
            raise ConfigurationError(f"sasl_jaas_config and {name} contradict each other: set one of them")
        changed[name] = value
    changed["sasl_jaas_config"] = None


_KEPT_DEFAULTS: Final = (("sasl_delegation_token", False), ("sasl_kerberos_service_name", "kafka"))


def _convert_password_function(changed: _Changes) -> None:
    """A password that is a function becomes a provider of credentials."""
    username, password, provider = (
        changed["sasl_plain_username"],
        changed["sasl_plain_password"],
        changed["sasl_credentials_provider"],
    )
    if callable(password):
        if username is None:
            raise ConfigurationError("sasl_plain_password needs sasl_plain_username, the user that logs in")
        changed["sasl_credentials_provider"] = PasswordProvider(username, password)
        changed["sasl_plain_password"] = None
    elif isinstance(provider, PasswordProvider):  # of a config that `dataclasses.replace` copies
        if password is not None:
            changed["sasl_credentials_provider"] = None
        elif username is not None and username != provider.username:
            changed["sasl_credentials_provider"] = provider.with_username(username)


def _convert_endpoint_identification(changed: _Changes) -> None:
    algorithm, check_hostname = changed["ssl_endpoint_identification_algorithm"], changed["ssl_check_hostname"]
    if isinstance(algorithm, str):
        algorithm = algorithm.strip().lower()
        algorithm = "" if algorithm == "none" else algorithm  # librdkafka's name
    if algorithm not in ("https", ""):
        raise ConfigurationError(
            'ssl_endpoint_identification_algorithm must be "https", or "" for certificates that do not name the host, '
            f"not {algorithm!r}"
        )
    if check_hostname is not None:
        require_bool("ssl_check_hostname", check_hostname)
        algorithm = "https" if check_hostname else ""
    changed["ssl_endpoint_identification_algorithm"] = algorithm
    changed["ssl_check_hostname"] = None


def _names(option: str, given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    parts = re.split("[,:]", given) if isinstance(given, str) else given  # OpenSSL and librdkafka separate by ":"
    if not isinstance(parts, Iterable) or not all(isinstance(part, str) for part in parts):
        raise ConfigurationError(f"{option} must be names separated by commas, or a list of them, not {given!r}")
    return tuple(name for part in parts if (name := part.strip())) or None


def _extensions(given: object) -> tuple[tuple[str, str], ...] | None:
    """Return pairs: a config can be a key of a dict."""
    if given is None:
        return None
    if isinstance(given, str):
        parts = [pair.partition("=") for pair in given.split(",") if pair.strip()]
        if any(not equals or not name.strip() for name, equals, _ in parts):
            raise ConfigurationError('sasl_oauthbearer_extensions must be "name=value,name=value" or a dict')
        return tuple((name.strip(), value.strip()) for name, _, value in parts)
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, tuple) or not all(isinstance(each, str) for pair in pairs for each in pair):
        raise ConfigurationError("sasl_oauthbearer_extensions must be a dict of strings, or a string")
    return pairs


# --- checking ---------------------------------------------------------------------------------------------------------


def check(config: SecurityConfig) -> None:
    """Check a normalized config.

    Raises: ConfigurationError: what is missing or contradicts, and what to set.
    """
    given = _given(config)
    _check_types(config, given)
    if config.uses_tls:
        _check_tls(config, given)
    if config.uses_sasl:
        _check_sasl(config, given)


def _given(config: SecurityConfig) -> list[str]:
    return [name for name, default in type(config).security_defaults().items() if getattr(config, name) != default]


def _check_types(config: SecurityConfig, given: list[str]) -> None:
    for name in given:
        value = getattr(config, name)
        if name in _NUMBERS:
            minimum, maximum = _NUMBERS[name]
            require_number(name, value, minimum=minimum, maximum=maximum)
        elif name in _BOOLEANS:
            require_bool(name, value)
        elif name in _FUNCTIONS:
            if not callable(value) and not hasattr(value, "token"):
                raise ConfigurationError(f"{name} must be {_FUNCTIONS[name]}, not a {type(value).__name__}")
        elif name == "ssl_context":
            if not hasattr(value, "wrap_bio"):
                raise ConfigurationError(f"ssl_context must be an ssl.SSLContext, not a {type(value).__name__}")
        elif not isinstance(value, (str, Secret, tuple)) and not _may_be_function(name, value):
            raise ConfigurationError(f"{name} must be a string, not {value!r} ({type(value).__name__})")


def _check_tls(config: SecurityConfig, given: list[str]) -> None:
    if config.ssl_context is not None:
        others = [name for name in given if name.startswith("ssl_") and name != "ssl_context"]
        if others:
            raise ConfigurationError(
                f"ssl_context replaces all other ssl options: leave out {others[0]}, or load it into the context"
            )
        return
    _at_most_one(given, "ssl_truststore_location", "ssl_truststore_certificates")
    _at_most_one(given, "ssl_certfile", "ssl_keystore_location", "ssl_keystore_certificate_chain")
    for name, needed in (
        ("ssl_keyfile", "ssl_certfile"),
        ("ssl_keystore_key", "ssl_keystore_certificate_chain"),
        ("ssl_keystore_certificate_chain", "ssl_keystore_key"),
    ):
        if name in given and needed not in given:
            raise ConfigurationError(f"{name} needs {needed}: a client certificate is a chain and its private key")
    for name in ("ssl_truststore_type", "ssl_keystore_type"):
        _check_store_type(name, getattr(config, name))


def _check_store_type(name: str, kind: str | None) -> None:
    if kind is None or kind.upper() in ("PEM", "PKCS12"):
        return
    store = "truststore" if "trust" in name else "keystore"
    if kind.upper() == "JKS":
        raise ConfigurationError(
            f"{name}: JKS files can be read by Java only; convert yours: keytool -importkeystore -srckeystore "
            f"{store}.jks -destkeystore {store}.p12 -deststoretype PKCS12; then set {name}=PKCS12"
        )
    raise ConfigurationError(f'{name} must be "PEM" or "PKCS12", not {kind!r}')


def _at_most_one(given: list[str], *names: str) -> None:
    found = [name for name in names if name in given]
    if len(found) > 1:
        raise ConfigurationError(f"{found[0]} and {found[1]} are two sources of the same: set one of them")


def _check_sasl(config: SecurityConfig, given: list[str]) -> None:
    mechanism = config.sasl_mechanism
    if mechanism is None:
        raise ConfigurationError(
            f"security_protocol={config.security_protocol!r} needs sasl_mechanism: one of {', '.join(MECHANISMS)}"
        )
    if config.sasl_client_factory is not None:
        return
    if mechanism not in MECHANISMS:
        raise ConfigurationError(
            f"sasl_mechanism must be one of {', '.join(MECHANISMS)}, not {mechanism!r}; your own mechanism needs "
            "sasl_client_factory"
        )
    _refuse_options_of_others(mechanism, given)
    if mechanism in ("PLAIN", *SCRAM):
        _check_user_password(config, mechanism, given)
    elif mechanism == "OAUTHBEARER":
        _check_oauthbearer(config, given)
    elif mechanism == "AWS_MSK_IAM":
        _check_aws(config, given)


def _refuse_options_of_others(mechanism: str, given: list[str]) -> None:
    for name in given:
        owners = next((owners for prefix, owners in _OWNERS if name.startswith(prefix)), (mechanism,))
        if mechanism not in owners:
            raise ConfigurationError(
                f"{name} is for {' and '.join(owners)}, but sasl_mechanism is {mechanism!r}: change one of them"
            )


def _check_user_password(config: SecurityConfig, mechanism: str, given: list[str]) -> None:
    provider = config.sasl_credentials_provider
    if provider is not None:
        own = ["sasl_plain_password"] if isinstance(provider, PasswordProvider) else _USER_PASSWORD
        for name in own:
            if name in given:
                raise ConfigurationError(f"sasl_credentials_provider returns user and password: leave out {name}")
        return
    for name in _USER_PASSWORD:
        if name in given and not getattr(config, name):
            raise ConfigurationError(f"{name} is empty: check where its value comes from")
        if name not in given:
            raise ConfigurationError(
                f"sasl_mechanism={mechanism!r} needs {name}: set sasl_plain_username and sasl_plain_password, or "
                "sasl_credentials_provider"
            )


def _check_oauthbearer(config: SecurityConfig, given: list[str]) -> None:
    _at_most_one(given, "sasl_oauth_token_provider", "sasl_oauthbearer_token_endpoint_url")
    if config.sasl_oauth_token_provider is not None:
        return
    if config.sasl_oauthbearer_token_endpoint_url is None:
        raise ConfigurationError(
            'sasl_mechanism="OAUTHBEARER" needs sasl_oauth_token_provider, a function that returns the token, or '
            "sasl_oauthbearer_token_endpoint_url with a client id and secret"
        )
    _check_token_endpoint(config.sasl_oauthbearer_token_endpoint_url)
    if config.sasl_oauthbearer_grant not in GRANTS:
        raise ConfigurationError(
            f"sasl_oauthbearer_grant must be one of {', '.join(GRANTS)}, not {config.sasl_oauthbearer_grant!r}"
        )
    if config.sasl_oauthbearer_grant == "jwt-bearer":
        _check_assertion(given)
    else:
        _check_client_credentials(given)


def _check_client_credentials(given: list[str]) -> None:
    for part in ("client_id", "client_secret"):
        name = f"sasl_oauthbearer_client_credentials_{part}"
        if name not in given:
            raise ConfigurationError(
                f"sasl_oauthbearer_token_endpoint_url needs {name}; for a signed assertion in place of a secret set "
                'sasl_oauthbearer_grant="jwt-bearer"'
            )


def _check_assertion(given: list[str]) -> None:
    sources = ("sasl_oauthbearer_assertion_file", "sasl_oauthbearer_assertion_private_key_file")
    _at_most_one(given, *sources)
    if not any(name in given for name in sources):
        raise ConfigurationError(f'sasl_oauthbearer_grant="jwt-bearer" needs {sources[0]} or {sources[1]}')


def _check_token_endpoint(url: str) -> None:
    name = "sasl_oauthbearer_token_endpoint_url"
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"{name} must not contain a user or password: use sasl_oauthbearer_client_credentials_client_id and "
            "sasl_oauthbearer_client_credentials_client_secret"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{name} must be https://host/path, not {url!r}")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ConfigurationError(f"{name} must begin with https://: http would send the client secret unencrypted")


def _check_aws(config: SecurityConfig, given: list[str]) -> None:
    if not config.uses_tls:
        raise ConfigurationError('sasl_mechanism="AWS_MSK_IAM" needs security_protocol="SASL_SSL"')
    pair = ("sasl_aws_access_key_id", "sasl_aws_secret_access_key")
    for name, other in (pair, pair[::-1]):
        if name in given and other not in given:
            raise ConfigurationError(f"{name} needs {other}")


# --- warnings ---------------------------------------------------------------------------------------------------------


def warn_of_clear_text(config: SecurityConfig, hosts: Iterable[str]) -> None:
    """Log one WARNING if a login sends its secret unencrypted to another machine."""
    if config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism in ("PLAIN", "OAUTHBEARER"):
        remote = tuple(host for host in hosts if not is_loopback(host))
        if remote:
            _warn_once(config.sasl_mechanism, remote)


@functools.lru_cache(maxsize=256)
def _warn_once(mechanism: str, hosts: tuple[str, ...]) -> None:
    secret = "the password" if mechanism == "PLAIN" else "the token"
    logger.warning(
        "%s over SASL_PLAINTEXT sends %s unencrypted to %s: use security_protocol=SASL_SSL%s",
        mechanism, secret, ", ".join(hosts), ", or SCRAM-SHA-512" if mechanism == "PLAIN" else "",
    )  # fmt: skip


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost" or host.lower().endswith(".localhost")
