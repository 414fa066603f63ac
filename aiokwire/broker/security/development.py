"""TLS and a user for development, used by `aiokwire broker --secure` and by tests.

An authority, a certificate of the broker and the user `admin` with a random password. A directory
keeps them for the next start: `ca.pem` (the truststore of clients), `ca-key.pem`, `broker.pem`,
`admin-password` and `client.properties`, which Java's tools read, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokwire.broker.log import DiskStorage, Storage, write_atomically
from aiokwire.broker.security.listeners import Listener
from aiokwire.clock import wall_ms
from aiokwire.errors import ConfigurationError, StorageError
from aiokwire.security import Secret, TlsOptions, random_text

if TYPE_CHECKING:
    from aiokwire.security import CertificateAuthority

ADMIN: Final = "admin"
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
PROPERTIES: Final = "client.properties"
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
WILDCARDS: Final = ("0.0.0.0", "::", "")
RENEW_AHEAD: Final = datetime.timedelta(days=30)


class Setup(NamedTuple):
    """The files and options that a broker and its clients need."""

    authority_pem: str
    tls: TlsOptions
    password: Secret

    def listener(self, address: str, advertised: str | None = None) -> Listener:
        """Return the SASL_SSL listener at an address `host:port`."""
        return Listener(
            protocol="SASL_SSL", address=address, advertised=advertised, mechanisms=MECHANISMS, tls=self.tls
        )

    @property
    def users(self) -> dict[str, Secret]:
        """The users with their passwords."""
        return {ADMIN: self.password}

    @property
    def client_options(self) -> dict[str, Any]:
        """The options of a client of this package, with the password."""
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": MECHANISMS[0],
            "sasl_plain_username": ADMIN,
            "sasl_plain_password": self.password.reveal(),
            "ssl_truststore_certificates": self.authority_pem,
        }


def new_setup(hosts: Sequence[str] = LOOPBACK) -> Setup:
    """Return a setup that exists in memory only; `hosts` are the names in the certificate.

    Raises: ConfigurationError: the package `cryptography` is not installed.
    """
    authority = _authority_class().create()
    return _setup(authority.certificate_pem, authority.server(hosts).store_pem, random_text(24))


def stored_setup(folder: Path, hosts: Sequence[str], bootstrap: str = "") -> Setup:
    """Return the setup of a directory; create it, or renew its certificate, if necessary.

    `bootstrap` is the address for clients, `host:port`, if it is known. Slow: call it in a thread.

    Raises: ConfigurationError: the package `cryptography` is not installed. StorageError: a file
    is corrupt, or cannot be written.
    """
    DiskStorage(folder.parent).make_directory("")  # first: a data directory that does not exist must be private, too
    storage = DiskStorage(folder)
    storage.make_directory("")
    names = tuple(dict.fromkeys([*LOOPBACK, *(host for host in hosts if host not in WILDCARDS)]))
    try:
        authority = _authority(storage)
        password = _text(storage, "admin-password") or _write(storage, "admin-password", random_text(24))
        broker_pem = _broker_pem(storage, authority, names)
    except ValueError as error:
        raise StorageError(
            f"the certificates in {folder} are corrupt ({error}): delete the directory; clients then need its new "
            f"{PROPERTIES}"
        ) from error
    _write(storage, PROPERTIES, _properties(bootstrap, folder.absolute() / "ca.pem", password))
    return _setup(authority.certificate_pem, broker_pem, password)


def _authority(storage: Storage) -> CertificateAuthority:
    certificate, key = _text(storage, "ca.pem"), _text(storage, "ca-key.pem")
    if certificate and key:
        return _authority_class().load(certificate, key)
    authority = _authority_class().create()
    _write(storage, "ca-key.pem", authority.key_pem)
    _write(storage, "ca.pem", authority.certificate_pem)
    return authority


def _broker_pem(storage: Storage, authority: CertificateAuthority, names: tuple[str, ...]) -> str:
    """Return key and chain of the broker, renewed if the certificate expires or lacks names."""
    stored = _text(storage, "broker.pem")
    if stored and _is_usable(stored, names):
        return stored
    return _write(storage, "broker.pem", authority.server(names).store_pem)


def _is_usable(pem: str, names: tuple[str, ...]) -> bool:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate("".join(pem.partition(_CERTIFICATE)[1:]).encode())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    known = {str(one.value) for one in found}
    now = datetime.datetime.fromtimestamp(wall_ms() / 1000, datetime.UTC)
    return set(names) <= known and certificate.not_valid_after_utc - now > RENEW_AHEAD


def _setup(authority_pem: str, broker_pem: str, password: str) -> Setup:
    key, mark, chain = broker_pem.partition(_CERTIFICATE)
    tls = TlsOptions(keystore_certificate_chain=mark + chain, keystore_key=Secret(key))
    return Setup(authority_pem, tls, Secret(password))


def _authority_class() -> type[CertificateAuthority]:
    try:
        from aiokwire.security import CertificateAuthority
    except ImportError as error:
        raise ConfigurationError(
            "certificates can be created only with the package cryptography: pip install 'aiokwire[tls]'"
        ) from error
    return CertificateAuthority


def _text(storage: Storage, name: str) -> str:
    return (storage.read(name) or b"").decode().strip()


def _write(storage: Storage, name: str, text: str) -> str:
    write_atomically(storage, name, text.encode())
    return text


def _properties(bootstrap: str, truststore: Path, password: str) -> str:
    """Return a properties file of Java's clients."""
    login = (
        f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{ADMIN}" password="{password}";'
    )
    values = {
        **({"bootstrap.servers": bootstrap} if bootstrap else {}),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISMS[0],
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(truststore),
    }
    escaped = {name: value.replace("\\", "\\\\") for name, value in values.items()}
    return "".join(f"{name}={value}\n" for name, value in escaped.items())
