"""The identity of a connection (Java: `KafkaPrincipal`, `SslPrincipalMapper`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aiokwire.errors import ConfigurationError

USER: Final = "User"


class Principal(NamedTuple):
    """A user, by its type and name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")

# --- from certificates ------------------------------------------------------------------------------------------------

_KEYWORDS: Final = {  # of RFC 2253, by OpenSSL's long names
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_EMAIL: Final = "1.2.840.113549.1.9.1"  # without a keyword in RFC 2253: the DER encoding in hexadecimal digits follows
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """Return the subject of a certificate (of `SSLSocket.getpeercert`) as RFC 2253 writes it."""
    names = ["+".join(_attribute(key, value) for key, value in relative) for relative in certificate["subject"]]
    return ",".join(reversed(names))


def _attribute(name: str, value: str) -> str:
    if name == "emailAddress":
        return f"{_EMAIL}=#16{len(value):02x}{value.encode().hex()}"
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if escaped.endswith(" ") and len(escaped) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return f"{_KEYWORDS.get(name, name)}={escaped}"


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    case: str  # "L", "U" or ""


class PrincipalMapping:
    """The rules that make a user name of a certificate's subject.

    `ssl.principal.mapping.rules`: `RULE:pattern/replacement/[LU]` or `DEFAULT`, separated by
    commas; the first that matches the whole subject is applied.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        """Parse the rules.

        Raises: ConfigurationError: naming the part that is not a rule.
        """
        self._rules: list[_Rule] = []
        position = 0
        while position < len(rules):
            match = _RULE.match(rules, position)
            if match is None:
                raise ConfigurationError(
                    f"ssl.principal.mapping.rules: {rules[position:]!r} must be DEFAULT or RULE:pattern/replacement/ "
                    "with an optional L or U at its end"
                )
            self._rules.append(_rule(*match.group(1, 2, 3, 4)))
            position = match.end()

    def name_of(self, subject: str) -> str:
        """Return the user name of a subject.

        Raises: ValueError: none of the rules applies.
        """
        for pattern, replacement, case in self._rules:
            if pattern is None:
                return subject
            match = pattern.fullmatch(subject)
            if match is not None:
                name = match.expand(replacement)
                return name.lower() if case == "L" else name.upper() if case == "U" else name
        raise ValueError(f"no rule of ssl.principal.mapping.rules applies to {subject!r}")

    def principal_of(self, certificate: Mapping[str, Any] | None) -> Principal:
        """Return the principal of a client's certificate; ANONYMOUS without one.

        Raises: ValueError: none of the rules applies.
        """
        if not certificate:
            return ANONYMOUS
        return Principal(USER, self.name_of(distinguished_name(certificate)))


def _rule(default: str | None, pattern: str, replacement: str, case: str) -> _Rule:
    if default:
        return _Rule(None, "", "")
    try:
        compiled = re.compile(pattern.replace(r"\/", "/"))
    except re.error as error:
        raise ConfigurationError(f"ssl.principal.mapping.rules: {pattern!r} is not a pattern: {error}") from error
    # Java's $1 is \g<1> in Python.
    return _Rule(compiled, re.sub(r"\$(\d)", r"\\g<\1>", replacement.replace(r"\/", "/")), case)
