"""Explains failed TLS handshakes, with remedies: the texts of errors and logs."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from aiokwire.security.certificate_info import PeerCertificate

_TRUST: Final = "set ssl_cafile (ssl_truststore_location) to the certificate of the authority that signs the brokers'"

# Transient alerts and errors: the peer was overloaded or stopped.
_PASSING: Final = frozenset(
    {
        "TLSV1_ALERT_INTERNAL_ERROR",
        "TLSV1_ALERT_USER_CANCELLED",
        "UNEXPECTED_EOF_WHILE_READING",
        "APPLICATION_DATA_AFTER_CLOSE_NOTIFY",
    }
)

_ALERTS: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a client certificate, and none was sent",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it rejects the client's certificate, or requires one and none was sent",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the client's certificate is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the client's certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it does not support the type of the client's certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority that signed the client's certificate",
    "TLSV1_ALERT_ACCESS_DENIED": "it denies access to the owner of the client's certificate",
}
_VERSIONS: Final = frozenset(
    {
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "UNSUPPORTED_PROTOCOL",
        "NO_PROTOCOLS_AVAILABLE",
        "WRONG_SSL_VERSION",
        "VERSION_TOO_LOW",
    }
)
_PLAINTEXT: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_TOO_SMALL"}
)
_CIPHERS: Final = frozenset({"SSLV3_ALERT_HANDSHAKE_FAILURE", "NO_SHARED_CIPHER", "TLSV1_ALERT_INSUFFICIENT_SECURITY"})


def is_final(error: BaseException) -> bool:
    """Whether a retry of the handshake cannot succeed before a certificate or an option changes."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return False
    return _reason(error) not in _PASSING


def _reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's name of an error; errors that Python raises itself have none."""
    return getattr(error, "reason", None) or ""


def explain_tls_error(
    error: BaseException,
    *,
    host: str,
    certificate: PeerCertificate | None = None,
    has_certificate: bool | None = None,
) -> str:
    """Return cause and remedy of a failed handshake with a broker.

    With TLS 1.3 its alert about the client's certificate arrives after the handshake.
    `host` is the name that the certificate must contain; `certificate` is the broker's, if a probe
    got it; `has_certificate` is whether the client has one to present, None if unknown.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return _explain_verification(error, host, certificate)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _closed(has_certificate)
    if isinstance(error, ssl.SSLError):
        return _explain_alert(_reason(error), str(error), has_certificate)
    if isinstance(error, TimeoutError | ConnectionAbortedError):
        return (
            "the TLS handshake timed out: the port may expect plaintext (set "
            "security_protocol=PLAINTEXT or SASL_PLAINTEXT), or the broker is overloaded"
        )
    if isinstance(error, ConnectionError | EOFError):
        return _closed(has_certificate)
    return f"the TLS handshake failed: {error or type(error).__name__}"


def _closed(has_certificate: bool | None) -> str:
    certificate = "rejects the client's certificate" if has_certificate else "requires a client certificate"
    remedy = "" if has_certificate else " (set ssl_keystore_location)"
    return (
        "the peer closed the connection during the TLS handshake: the port may expect plaintext (set "
        f"security_protocol=PLAINTEXT or SASL_PLAINTEXT), or the broker {certificate}{remedy}, or has no TLS version "
        "or cipher suite in common with the client; the broker's log has the reason"
    )


# --- the broker's certificate -----------------------------------------------------------------------------------------


def _explain_verification(error: ssl.SSLCertVerificationError, host: str, certificate: PeerCertificate | None) -> str:
    explain = _VERIFICATIONS.get(error.verify_code)
    if explain is None:
        return f"the broker's certificate{_owner(certificate)} was rejected: {error.verify_message}"
    return explain(host, certificate)


def _expired(_host: str, certificate: PeerCertificate | None) -> str:
    when = f" on {certificate.expiry}" if certificate is not None else ""
    return f"the broker's certificate{_owner(certificate)} expired{when}: renew it, or check the clock of this machine"


def _not_yet_valid(_host: str, certificate: PeerCertificate | None) -> str:
    when = f" before {certificate.start}" if certificate is not None else " yet"
    return f"the broker's certificate{_owner(certificate)} is not valid{when}: check the clocks of both machines"


def _wrong_host(host: str, certificate: PeerCertificate | None) -> str:
    names = "" if certificate is None else f"; it is for {', '.join(certificate.names) or 'no host at all'}"
    return (
        f"the broker's certificate{_owner(certificate)} is not for {host}{names}: connect by one of its names "
        "(bootstrap_servers, the broker's advertised.listeners), or add the name to the certificate"
    )


def _self_signed(_host: str, certificate: PeerCertificate | None) -> str:
    return f"the broker's certificate{_owner(certificate)} is self-signed and not trusted: set ssl_cafile to it"


def _unknown_authority(_host: str, certificate: PeerCertificate | None) -> str:
    issuer = "" if certificate is None else f" {certificate.issuer}"
    return (
        f"the broker's certificate{_owner(certificate)} is signed by an authority{issuer} that is not trusted: {_TRUST}"
    )


def _revoked(_host: str, certificate: PeerCertificate | None) -> str:
    return f"the broker's certificate{_owner(certificate)} is revoked by ssl_crlfile: replace the certificate"


def _no_revocation_list(_host: str, certificate: PeerCertificate | None) -> str:
    issuer = "its authority" if certificate is None else certificate.issuer
    return f"ssl_crlfile has no current list of {issuer}: fetch the authority's list of revoked certificates again"


def _wrong_purpose(_host: str, certificate: PeerCertificate | None) -> str:
    return f"the broker's certificate{_owner(certificate)} is not for servers: its extended key usage lacks serverAuth"


def _owner(certificate: PeerCertificate | None) -> str:
    return "" if certificate is None else f" ({certificate.subject})"


# By OpenSSL's X509_V_ERR_* codes.
_VERIFICATIONS: Final[dict[int, Callable[[str, PeerCertificate | None], str]]] = {
    2: _unknown_authority,
    3: _no_revocation_list,
    9: _not_yet_valid,
    10: _expired,
    12: _no_revocation_list,
    18: _self_signed,
    19: _unknown_authority,
    20: _unknown_authority,
    21: _unknown_authority,
    23: _revoked,
    26: _wrong_purpose,
    62: _wrong_host,
    64: _wrong_host,
}


# --- alerts -----------------------------------------------------------------------------------------------------------


def _explain_alert(reason: str, text: str, has_certificate: bool | None) -> str:
    if reason in _PLAINTEXT:
        return "the peer does not speak TLS: set security_protocol=PLAINTEXT or SASL_PLAINTEXT, or use its TLS port"
    if reason in _VERSIONS:
        return "the peer supports no TLS version of ssl_enabled_protocols: allow TLSv1.2 and TLSv1.3 on both sides"
    if reason in _ALERTS:
        return (
            f"the broker closed the connection with the alert {reason}: {_ALERTS[reason]}; {_remedy(has_certificate)}"
        )
    if reason in _CIPHERS:
        return (
            f"the TLS handshake failed ({reason}): the two sides have no cipher suite in common (ssl_cipher_suites), "
            f"or the broker requires a client certificate: {_remedy(has_certificate)}"
        )
    if reason == "UNEXPECTED_EOF_WHILE_READING":
        return _closed(has_certificate)
    return f"the TLS handshake failed: {reason or text}; the broker's log may have the reason"


def _remedy(has_certificate: bool | None) -> str:
    if has_certificate:
        return "its truststore must contain the authority of the client's certificate (ssl_keystore_location)"
    return "set ssl_keystore_location, or ssl_certfile and ssl_keyfile, to a certificate that the broker trusts"
