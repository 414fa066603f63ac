"""The parts of a certificate that messages show: its owner, its issuer, its names and dates."""

from __future__ import annotations

import ssl
from typing import Any, Final, NamedTuple

from aiokwire.security.keystores import private_file

_SHORT: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "domainComponent": "DC",
}


class PeerCertificate(NamedTuple):
    """A certificate, which may be one that is not trusted."""

    subject: str  # "CN=localhost,O=Example"
    issuer: str
    names: tuple[str, ...]  # of hosts: DNS names and IP addresses
    not_before: float  # seconds since the epoch
    not_after: float
    start: str  # the dates as text, in UTC
    expiry: str


def read_der(certificate: bytes) -> PeerCertificate:
    """Return the contents of a certificate, as `SSLObject.getpeercert(True)` returns it.

    Raises: ssl.SSLError: it is malformed.
    """
    with private_file(ssl.DER_cert_to_PEM_cert(certificate).encode()) as path:
        return read_pem(path)


def read_pem(path: str) -> PeerCertificate:
    """Return the contents of the first certificate of a PEM file.

    Raises: ssl.SSLError: it is malformed.
    """
    # The standard library has no other decoder: `getpeercert()` shows verified certificates only.
    import _ssl

    try:
        return from_fields(_ssl._test_decode_cert(path))  # type: ignore[attr-defined]  # CPython has it
    except ValueError as error:  # a name that is not UTF-8
        raise ssl.SSLError("the certificate is malformed") from error


def from_fields(fields: Any) -> PeerCertificate:
    """Return the contents of a certificate by the dictionary of `SSLObject.getpeercert()`.

    Raises: ssl.SSLError: a date is malformed.
    """
    try:
        not_before, not_after = (ssl.cert_time_to_seconds(fields[name]) for name in ("notBefore", "notAfter"))
    except (KeyError, ValueError) as error:
        raise ssl.SSLError("a date of the certificate is malformed") from error
    return PeerCertificate(
        subject=_distinguished_name(fields.get("subject", ())),
        issuer=_distinguished_name(fields.get("issuer", ())),
        names=tuple(name for kind, name in fields.get("subjectAltName", ()) if kind in ("DNS", "IP Address")),
        not_before=not_before,
        not_after=not_after,
        start=fields["notBefore"],
        expiry=fields["notAfter"],
    )


def _distinguished_name(parts: Any) -> str:
    return ",".join(f"{_SHORT.get(kind, kind)}={value}" for part in parts for kind, value in part) or "no name"
