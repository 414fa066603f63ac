"""A certificate authority for development, as of `aiokwire broker --secure`, and for tests.

Keys are ECDSA P-256. Not for production: the authority's key is held in memory or in a file beside
the data. Needs the extra `tls`.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aiokwire.clock import wall_ms
from aiokwire.security.secret import Secret

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_DAY: Final = 24 * 3600.0
_CLOCK_SKEW: Final = 3600.0  # seconds that a certificate is valid before it is issued
_AUTHORITY_DAYS: Final = 3650


class Issued(NamedTuple):
    """A certificate with its private key, and the certificate of its authority."""

    certificate: x509.Certificate
    private_key: ec.EllipticCurvePrivateKey
    authority: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        """The certificate as PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The key as PEM (PKCS8), not encrypted."""
        return self._key(None)

    @property
    def store_pem(self) -> str:
        """Key and chain in one text, as Java reads a PEM key store."""
        return self.key_pem + self.certificate_pem + self.authority.public_bytes(Encoding.PEM).decode()

    def encrypted_key_pem(self, password: Secret) -> str:
        """Return the key as PEM (PKCS8), encrypted by a password."""
        return self._key(password)

    def pkcs12(self, password: Secret) -> bytes:
        """Return key and chain as a PKCS12 file."""
        encryption = BestAvailableEncryption(password.reveal().encode())
        return pkcs12.serialize_key_and_certificates(
            b"aiokwire", self.private_key, self.certificate, [self.authority], encryption
        )

    def _key(self, password: Secret | None) -> str:
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.reveal().encode())
        return self.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


class CertificateAuthority:
    """Issues certificates for servers and clients."""

    def __init__(self, certificate: x509.Certificate, private_key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._private_key = private_key

    @classmethod
    def create(cls, name: str = "aiokwire development CA") -> CertificateAuthority:
        """Create an authority with a new key, valid for ten years."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = (
            _builder(subject, subject, key, 0.0, _AUTHORITY_DAYS * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(is_authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate_pem: str, key_pem: str) -> CertificateAuthority:
        """Return the authority of PEM texts.

        Raises: ValueError: a text is malformed, or the key is not an elliptic curve key.
        """
        key = load_pem_private_key(key_pem.encode(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the authority is not an elliptic curve key")
        return cls(x509.load_pem_x509_certificate(certificate_pem.encode()), key)

    @property
    def certificate_pem(self) -> str:
        """The authority's certificate as PEM: the truststore of its clients."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The authority's key as PEM: it can issue certificates for any host."""
        return self._private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def server(self, hosts: Sequence[str] = LOOPBACK, *, name: str = "", days: float = 365) -> Issued:
        """Issue a certificate for a broker by its host names and IP addresses.

        It serves for connections between brokers, too.
        """
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(name or hosts[0], hosts, usages, 0.0, days * _DAY)

    def client(self, name: str, *, organization: str = "", days: float = 365) -> Issued:
        """Issue a certificate for a client; `name` becomes its CN."""
        return self._issue(name, (), [ExtendedKeyUsageOID.CLIENT_AUTH], 0.0, days * _DAY, organization=organization)

    def expired_server(self, hosts: Sequence[str] = LOOPBACK) -> Issued:
        """Issue a server's certificate that expired an hour ago."""
        return self._issue(hosts[0], hosts, [ExtendedKeyUsageOID.SERVER_AUTH], -2 * _DAY, -_CLOCK_SKEW)

    def future_server(self, hosts: Sequence[str] = LOOPBACK) -> Issued:
        """Issue a server's certificate that becomes valid in about two days."""
        return self._issue(hosts[0], hosts, [ExtendedKeyUsageOID.SERVER_AUTH], 2 * _DAY, 4 * _DAY)

    def expired_client(self, name: str) -> Issued:
        """Issue a client's certificate that expired an hour ago."""
        return self._issue(name, (), [ExtendedKeyUsageOID.CLIENT_AUTH], -2 * _DAY, -_CLOCK_SKEW)

    def revocation_list(self, revoked: Sequence[Issued] = ()) -> str:
        """Return the list of revoked certificates as PEM, valid for a week."""
        now = _at(0.0)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
        builder = builder.last_update(_at(-_CLOCK_SKEW)).next_update(_at(7 * _DAY))
        for each in revoked:
            row = x509.RevokedCertificateBuilder().serial_number(each.certificate.serial_number).revocation_date(now)
            builder = builder.add_revoked_certificate(row.build())
        return builder.sign(self._private_key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def _issue(
        self,
        name: str,
        hosts: Sequence[str],
        usages: list[x509.ObjectIdentifier],
        start: float,
        end: float,
        *,
        organization: str = "",
    ) -> Issued:
        """Issue a certificate; `start` and `end` are seconds from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(name, organization), self.certificate.subject, key, start, end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._private_key.public_key()), critical=False
            )
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(_alternative_names(hosts)), critical=False)
        return Issued(builder.sign(self._private_key, hashes.SHA256()), key, self.certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: float, end: float
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(_at(start - _CLOCK_SKEW)).not_valid_after(_at(end))


def _name(name: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _alternative_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    return [_alternative_name(host) for host in hosts]


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _at(seconds: float) -> datetime.datetime:
    """Return the time that is `seconds` from now."""
    return datetime.datetime.fromtimestamp(wall_ms() / 1000 + seconds, datetime.UTC)
