"""Private keys with their certificates, and trusted certificates, from PEM and PKCS12.

A PEM key store is one file with the key and the certificate chain, as Kafka's Java client reads it
(KIP-651). PKCS12 files need the extra `tls`. JKS files are rejected with the command that converts
them. Everything here reads files: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from aiokwire.errors import ConfigurationError
from aiokwire.security.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

Password = Secret | Callable[[], str | Secret] | None

JKS: Final = "JKS"
PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
MAX_BYTES: Final = 16 * 1024 * 1024  # of a file; the CA bundles of Linux distributions have 250 KiB

_MAGIC: Final = {bytes.fromhex("feedfeed"): JKS, bytes.fromhex("cececece"): "JCEKS"}
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.+?-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.DOTALL
)
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)


class KeyPair(NamedTuple):
    """A private key and its certificate chain, the certificate of the key first."""

    certificates: bytes  # PEM
    key: bytes  # PEM, as it was: encrypted or not
    password: Password
    certificate_source: str  # the option with its path, for messages
    key_source: str

    @property
    def is_encrypted(self) -> bool:
        """Whether the key needs a password."""
        return b"ENCRYPTED" in self.key

    def reveal_password(self) -> str:
        """Return the password of an encrypted key.

        Raises: ConfigurationError: none is configured, or its callable failed.
        """
        if self.password is None:
            raise ConfigurationError(
                f"the private key in {self.key_source} is encrypted: set ssl_key_password, or decrypt it with "
                "`openssl pkcs8 -in key.pem -out plain.pem`"
            )
        if isinstance(self.password, Secret):
            return self.password.reveal()
        return _call(self.password).reveal()


def _call(password: Callable[[], str | Secret]) -> Secret:
    """Return the password of a user's function.

    Raises: ConfigurationError: it failed, or returned something else.
    """
    try:
        text = password()
    except Exception as error:
        raise ConfigurationError(f"the password function failed with {error!r}") from error
    if not isinstance(text, str | Secret):
        raise ConfigurationError(
            f"the password function returned a {type(text).__name__}: it must return a str, and not be async"
        )
    return Secret(text)


# --- key stores -------------------------------------------------------------------------------------------------------


def read_key_pair(certfile: str, keyfile: str, password: Password) -> KeyPair:
    """Return the key pair of two PEM files; without `keyfile` the first file has the key, too.

    Raises: ConfigurationError: a file cannot be read or misses its part.
    """
    certificate_source = f"ssl_certfile={certfile}"
    certificates = _read(certfile, certificate_source)
    key_source = f"ssl_keyfile={keyfile}" if keyfile else certificate_source
    key = _read(keyfile, key_source) if keyfile else certificates
    return pem_key_pair(certificates, key, password, certificate_source, key_source)


def read_key_store(location: str, kind: str, store_password: Secret | None, key_password: Password) -> KeyPair:
    """Return the key pair of a key store: a PEM file with key and chain, or PKCS12.

    `kind` is "PEM", "PKCS12", or "" to detect it.

    Raises: ConfigurationError: the file cannot be read, is of another type, or the password is
    wrong.
    """
    source = f"ssl_keystore_location={location}"
    content = _read(location, source)
    _require_kind(content, kind, "ssl_keystore", location)
    if (kind or detect_kind(content)) == PKCS12:
        return _pkcs12_key_pair(content, store_password or key_password, source)
    return pem_key_pair(content, content, key_password or store_password, source, source)


def pem_key_pair(
    certificates: bytes, key: bytes, password: Password, certificate_source: str, key_source: str
) -> KeyPair:
    """Return the key pair of PEM texts, without their other contents.

    Raises: ConfigurationError: the certificate or the key is missing.
    """
    chain = certificates_in(certificates, certificate_source)
    found = _KEY.search(key)
    if found is None:
        raise ConfigurationError(
            f"{key_source} has no private key: it must contain a block -----BEGIN PRIVATE KEY----- (PEM){_hint(key)}"
        )
    return KeyPair(b"\n".join(chain), found.group(), password, certificate_source, key_source)


def _pkcs12_key_pair(content: bytes, password: Password, source: str) -> KeyPair:
    store = _open_pkcs12(content, password, source, "ssl_keystore_password")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        raise ConfigurationError(
            f"{source} has no private key with a certificate: is it a trust store? Set it as ssl_truststore_location"
        )
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [store.cert.certificate, *(each.certificate for each in store.additional_certs)]
    certificates = b"".join(each.public_bytes(Encoding.PEM) for each in chain)
    return KeyPair(certificates, key, None, source, source)


# --- trust stores -----------------------------------------------------------------------------------------------------


def read_trust_store(location: str, kind: str, password: Secret | None) -> bytes:
    """Return the trusted certificates of a file, PEM or PKCS12, as PEM.

    Raises: ConfigurationError: the file cannot be read, is of another type, has no certificates, or
    the password is wrong.
    """
    source = f"ssl_truststore_location={location}"
    content = _read(location, source)
    _require_kind(content, kind, "ssl_truststore", location)
    if (kind or detect_kind(content)) == PKCS12:
        return _pkcs12_certificates(content, password, source)
    return b"\n".join(certificates_in(content, source))


def _pkcs12_certificates(content: bytes, password: Secret | None, source: str) -> bytes:
    store = _open_pkcs12(content, password, source, "ssl_truststore_password")
    from cryptography.hazmat.primitives.serialization import Encoding

    found = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    if not found:
        raise ConfigurationError(f"{source} has no certificates: import one with `keytool -importcert`")
    return b"".join(each.certificate.public_bytes(Encoding.PEM) for each in found)


def certificates_in(content: bytes, source: str) -> list[bytes]:
    """Return the certificates of a PEM text, each with its first and last line.

    Raises: ConfigurationError: it has none.
    """
    found: list[bytes] = _CERTIFICATE.findall(content)
    if not found:
        raise ConfigurationError(
            f"{source} has no certificate: it must contain a block -----BEGIN CERTIFICATE----- (PEM){_hint(content)}"
        )
    return found


# --- files ------------------------------------------------------------------------------------------------------------


def detect_kind(content: bytes) -> str:
    """Return "PEM", "PKCS12", "JKS" or "JCEKS", by the first bytes of a file."""
    if content[:4] in _MAGIC:
        return _MAGIC[content[:4]]
    is_der = content[:1] == b"\x30"  # a SEQUENCE: PKCS12, but also a lone certificate or key
    return PKCS12 if is_der and b"-----BEGIN" not in content else PEM


def _read(location: str, source: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"cannot read {source}: {reason}; check the path and its permissions") from error
    if len(content) > MAX_BYTES:
        raise ConfigurationError(f"{source} is larger than {MAX_BYTES} bytes: it is not a file of certificates")
    return content


def _require_kind(content: bytes, kind: str, option: str, location: str) -> None:
    """Raise unless the type is supported and the content is of that type."""
    found = detect_kind(content)
    if kind.upper() in ("JKS", "JCEKS") or found in ("JKS", "JCEKS"):
        converted = str(Path(location).with_suffix(".p12"))
        raise ConfigurationError(
            f"{option}_location={location} is a {found if found in _MAGIC.values() else kind.upper()} file, which only "
            f"Java reads: convert it with `keytool -importkeystore -srckeystore {location} -destkeystore {converted} "
            f"-deststoretype PKCS12` and set {option}_location={converted}"
        )
    if kind not in ("", PEM, PKCS12):
        raise ConfigurationError(f"{option}_type={kind!r} must be PEM or PKCS12")
    if kind and kind != found and content:
        raise ConfigurationError(f"{option}_location={location} is a {found} file, but {option}_type is {kind}")


def _hint(content: bytes) -> str:
    if detect_kind(content) == PKCS12:
        return "; a DER file is converted by `openssl x509 -inform DER -in FILE -out FILE.pem`"
    return ""


def _open_pkcs12(content: bytes, password: Password, source: str, option: str) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise ConfigurationError(
            f"{source} is a PKCS12 file, which needs the extra tls: pip install 'aiokwire[tls]', or convert it to PEM "
            f"with `openssl pkcs12 -in FILE -out FILE.pem`"
        ) from error
    text = password if isinstance(password, Secret | None) else _call(password)
    try:
        return pkcs12.load_pkcs12(content, text.reveal().encode() if text is not None else None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(_pkcs12_error(str(error), text, source, option)) from error


def _pkcs12_error(reason: str, password: Secret | None, source: str, option: str) -> str:
    if "assword" not in reason:
        return f"{source} is not a readable PKCS12 file ({reason}); check it with `openssl pkcs12 -info -in FILE`"
    if password is None:
        return f"{source} is encrypted: set {option}"
    return f"{source}: the password of {option} is wrong, or the file is corrupt"


@contextlib.contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """Provide content as a file that other users cannot read, removed at the end.

    OpenSSL loads keys from files only. On Linux it is a file in memory, which needs /proc.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("aiokwire", os.MFD_CLOEXEC), "wb") as memory:
            os.pwrite(memory.fileno(), content, 0)  # does not wait: it is memory
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    import tempfile  # elsewhere it is not needed

    with tempfile.TemporaryDirectory(prefix="aiokwire-") as directory:  # its mode is 0700
        file = Path(directory, "store.pem")
        file.touch(mode=0o600)
        file.write_bytes(content)
        yield str(file)
