"""JAAS strings (`sasl.jaas.config` of the Java client) as options of aiokwire.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";

Shaded class names (`kafkashaded.org.apache...`) are accepted. No error shows a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from aiokwire.errors import ConfigurationError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.secret import Secret

logger: FieldLogger = get_logger(__name__)

_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/ | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' """
    r"""| /?[^\s=;"'/*]+(?:/[^\s=;"'/*]+)*)"""
    r"""| (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_FORM: Final = 'it must be: LoginModule required name="value" ...;'


class Jaas(NamedTuple):
    """A JAAS string: the login module's class, and its options."""

    module: str
    options: Mapping[str, str]

    @property
    def simple_name(self) -> str:
        """The class without its package."""
        return self.module.rpartition(".")[2]


def parse_jaas(text: str) -> Jaas:
    """Parse a JAAS string with one login module.

    Raises: ConfigurationError: it has another form, or several modules.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ";":
        raise ConfigurationError(f"sasl_jaas_config does not end with a semicolon: {_FORM}")
    module, flag, *rest = tokens[:-1]
    if ";" in rest:
        raise ConfigurationError("sasl_jaas_config has more than one login module; give one")
    if flag.lower() not in _FLAGS:
        raise ConfigurationError(f"sasl_jaas_config lacks the word required after the login module: {_FORM}")
    names, equals, values = rest[::3], rest[1::3], rest[2::3]
    if not len(names) == len(equals) == len(values) or any(mark != "=" for mark in equals):
        raise ConfigurationError(f"sasl_jaas_config has an option that is not name=value: {_FORM}")
    return Jaas(module, {name: _unquoted(value) for name, value in zip(names, values, strict=True)})


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ConfigurationError(f"sasl_jaas_config cannot be read at character {position + 1}: {_FORM}")
        position = found.end()
        token = found.group("text") or found.group("mark")
        if token:
            tokens.append(token)
    return tokens


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found.group(1), found.group(1)), token[1:-1])


def options_of(jaas: Jaas, mechanism: str | None) -> dict[str, Any]:
    """Return the options of `SecurityConfig` that a JAAS string has, with the mechanism.

    Raises: ConfigurationError: the module is unknown, an option is missing, or the module is for
    another mechanism.
    """
    convert, mechanisms = _MODULES.get(jaas.simple_name, (_refuse, ()))
    found = convert(jaas)
    if mechanism is None:
        if len(mechanisms) > 1:
            raise ConfigurationError(f"sasl_mechanism must be set to one of {', '.join(mechanisms)}")
        mechanism = mechanisms[0]
    if mechanism not in mechanisms:
        raise ConfigurationError(
            f"sasl_jaas_config has a {jaas.simple_name}, which is for {' and '.join(mechanisms)}, but sasl_mechanism "
            f"is {mechanism!r}: change one of them"
        )
    return {**found, "sasl_mechanism": mechanism}


def _refuse(jaas: Jaas) -> dict[str, Any]:
    raise ConfigurationError(
        f"sasl_jaas_config has the login module {jaas.module!r}, which is Java code and cannot run here: use "
        "sasl_credentials_provider for users and passwords, sasl_oauth_token_provider for tokens, or "
        "sasl_client_factory for your own mechanism"
    )


def _user_password(jaas: Jaas) -> dict[str, Any]:
    for name in ("username", "password"):
        if name not in jaas.options:
            raise ConfigurationError(f"sasl_jaas_config lacks {name}= for {jaas.simple_name}")
    _log_unused(jaas, {"username", "password", "tokenauth"})
    return {
        "sasl_plain_username": jaas.options["username"],
        "sasl_plain_password": Secret(jaas.options["password"]),
    }


def _scram(jaas: Jaas) -> dict[str, Any]:
    return {**_user_password(jaas), "sasl_delegation_token": jaas.options.get("tokenauth", "").lower() == "true"}


_OAUTH: Final = {
    "clientId": "sasl_oauthbearer_client_credentials_client_id",
    "clientSecret": "sasl_oauthbearer_client_credentials_client_secret",
    "scope": "sasl_oauthbearer_scope",
}
_EXTENSION: Final = "extension_"


def _oauth(jaas: Jaas) -> dict[str, Any]:
    foreign = sorted(name for name in jaas.options if name.startswith(("oauth.", "unsecuredLogin")))
    if foreign:
        raise ConfigurationError(
            f"sasl_jaas_config has {', '.join(foreign)} for a callback handler in Java, which cannot run here: set "
            "sasl_oauthbearer_token_endpoint_url, sasl_oauthbearer_client_credentials_client_id, "
            "sasl_oauthbearer_client_credentials_client_secret and sasl_oauthbearer_scope, or pass "
            "sasl_oauth_token_provider"
        )
    extensions = {
        name.removeprefix(_EXTENSION): value for name, value in jaas.options.items() if name.startswith(_EXTENSION)
    }
    _log_unused(jaas, {*_OAUTH, *(_EXTENSION + name for name in extensions)})
    found: dict[str, Any] = {ours: jaas.options[name] for name, ours in _OAUTH.items() if name in jaas.options}
    secret = "sasl_oauthbearer_client_credentials_client_secret"
    if secret in found:
        found[secret] = Secret(found[secret])
    return {**found, "sasl_oauthbearer_extensions": extensions} if extensions else found


def _kerberos(jaas: Jaas) -> dict[str, Any]:
    names = {
        "keyTab": "sasl_kerberos_keytab",
        "principal": "sasl_kerberos_principal",
        "serviceName": "sasl_kerberos_service_name",
    }
    ignored = {"useKeyTab", "useTicketCache", "storeKey", "doNotPrompt", "refreshKrb5Config", "renewTGT", "debug"}
    _log_unused(jaas, {*names, *ignored})
    return {ours: jaas.options[name].removeprefix("file:") for name, ours in names.items() if name in jaas.options}


def _aws(jaas: Jaas) -> dict[str, Any]:
    if "awsRoleArn" in jaas.options:
        raise ConfigurationError(
            "sasl_jaas_config has awsRoleArn: put the role into a profile of ~/.aws/config (role_arn=, "
            "source_profile=), and name the profile in sasl_aws_profile"
        )
    _log_unused(jaas, {"awsProfileName", "awsDebugCreds"})
    profile = jaas.options.get("awsProfileName")
    return {"sasl_aws_profile": profile} if profile else {}


def _log_unused(jaas: Jaas, used: set[str]) -> None:
    unused = sorted(set(jaas.options) - used)
    if unused:
        logger.info("sasl_jaas_config: options of %s without effect here: %s", jaas.simple_name, ", ".join(unused))


_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MODULES: Final[Mapping[str, tuple[Callable[[Jaas], dict[str, Any]], tuple[str, ...]]]] = {
    "PlainLoginModule": (_user_password, ("PLAIN",)),
    "ScramLoginModule": (_scram, _SCRAM),
    "OAuthBearerLoginModule": (_oauth, ("OAUTHBEARER",)),
    "Krb5LoginModule": (_kerberos, ("GSSAPI",)),
    "IAMLoginModule": (_aws, ("AWS_MSK_IAM",)),
}
