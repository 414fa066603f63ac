"""TLS contexts of clients and brokers, from Kafka's `ssl.*` options.

A context is rebuilt when its files have changed (renewed certificates): the files are checked every
30 seconds, and by `reload` after a failed handshake. A new file that cannot be used is logged once,
and the previous context stays in use. Connections keep the context that they were opened with.

Sessions: a server issues tickets, and clients that support them resume (`tls_sessions`).
"""

from __future__ import annotations

import ssl
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from aiokwire.clock import wall_ms
from aiokwire.errors import ConfigurationError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.certificate_info import PeerCertificate, read_pem
from aiokwire.security.cipher_suites import openssl_ciphers
from aiokwire.security.keystores import (
    KeyPair,
    Password,
    certificates_in,
    pem_key_pair,
    private_file,
    read_key_pair,
    read_key_store,
    read_trust_store,
)
from aiokwire.security.secret import Secret
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.security.config import SecurityConfig

logger: FieldLogger = get_logger(__name__)

CHECK_SECONDS: Final = 30.0  # the longest time that a renewed certificate is not seen
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

# The options that are plain texts, without ssl_.
_TEXTS: Final = (
    *("truststore_location", "truststore_certificates", "truststore_type", "crlfile", "certfile", "keyfile"),
    *("keystore_location", "keystore_certificate_chain", "keystore_type"),
)

ClientAuth = Literal["none", "requested", "required"]


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """The `ssl_*` options of a client or a listener; "" and None: not set.

    `key_password` may be a callable, which is called in a thread whenever a key is loaded. Without
    any truststore a client trusts the certificate authorities of the system.
    """

    context: ssl.SSLContext | None = None  # replaces all other options
    truststore_location: str = ""  # a PEM or PKCS12 file, or a directory as of `openssl rehash`
    truststore_certificates: str = ""  # PEM
    truststore_type: str = ""  # "PEM" or "PKCS12"; "": detected
    truststore_password: Secret | None = None
    certfile: str = ""
    keyfile: str = ""
    keystore_location: str = ""
    keystore_certificate_chain: str = ""  # PEM
    keystore_key: Secret | None = None  # PEM
    keystore_type: str = ""
    keystore_password: Secret | None = None
    key_password: Password = None
    check_hostname: bool = True
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()  # names of Java or OpenSSL; (): OpenSSL's default
    crlfile: str = ""

    @classmethod
    def of(cls, config: SecurityConfig) -> TlsOptions:
        """Return the options of a client's config."""
        return cls(
            context=config.ssl_context,
            check_hostname=config.ssl_endpoint_identification_algorithm != "",
            enabled_protocols=_names(config.ssl_enabled_protocols) or cls.enabled_protocols,
            cipher_suites=_names(config.ssl_cipher_suites),
            truststore_password=_secret(config.ssl_truststore_password),
            keystore_password=_secret(config.ssl_keystore_password),
            keystore_key=_secret(config.ssl_keystore_key),
            key_password=config.ssl_key_password
            if callable(config.ssl_key_password)
            else _secret(config.ssl_key_password),
            **{name: getattr(config, f"ssl_{name}") or "" for name in _TEXTS},
        )

    def files(self) -> list[str]:
        """Return the paths whose change makes another context."""
        paths = (self.truststore_location, self.certfile, self.keyfile, self.keystore_location, self.crlfile)
        return [path for path in paths if path]


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value or ()
    return tuple(name.strip() for name in names)


def _secret(value: str | Secret | None) -> Secret | None:
    return None if value is None else Secret(value)


class ClientTls:
    """The TLS of all connections of a client. Thread-safe."""

    def __init__(self, options: TlsOptions, *, check_seconds: float = CHECK_SECONDS) -> None:
        self._options = options
        self._contexts = _Contexts(self._build, options.files(), check_seconds)
        self._has_warned = False

    @property
    def check_hostname(self) -> bool:
        """Whether the broker's certificate must contain the host name of its address."""
        ready = self._options.context
        return ready.check_hostname if ready is not None else self._options.check_hostname

    @property
    def has_certificate(self) -> bool | None:
        """Whether the client presents a certificate; None: unknown, with a ready context."""
        return None if self._options.context is not None else _has_key_pair(self._options)

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection; may read files.

        Raises: ConfigurationError: an option or a file is wrong; only if no context was built yet.
        """
        return self._contexts.get()

    async def fresh_context(self) -> ssl.SSLContext:
        """Return the context for a new connection; files are read in a thread.

        Raises: ConfigurationError: as `context`.
        """
        return await self._contexts.fresh()

    def reload(self) -> bool:
        """Read the files if they have changed; return whether another context is in use.

        Raises: ConfigurationError: as `context`.
        """
        return self._contexts.reload()

    def probe_context(self) -> ssl.SSLContext:
        """Return a context that accepts every certificate, to find out why one was rejected.

        It sends no certificate of the client. No credentials may follow on its connections.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def _build(self) -> ssl.SSLContext:
        options = self._options
        if options.context is not None:
            return options.context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = options.check_hostname
        if not options.check_hostname and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the host names in the brokers' certificates are not checked: the owner of any certificate of a "
                "trusted authority can pose as a broker; remove ssl_endpoint_identification_algorithm='' "
                "(ssl_check_hostname=False) and add the advertised host names to the certificates"
            )
        _configure(context, options)
        _load_trusted(context, options)
        _load_own(context, options)
        return context


class ServerTls:
    """The TLS of a listener. Thread-safe."""

    def __init__(
        self, options: TlsOptions, client_auth: ClientAuth = "none", *, check_seconds: float = CHECK_SECONDS
    ) -> None:
        """Check the options; the files are read by the first `context`.

        `client_auth` is Kafka's `ssl.client.auth`: whether clients present a certificate.

        Raises: ConfigurationError: options are missing or contradict each other.
        """
        self._options = options
        self._client_auth = client_auth
        self._contexts = _Contexts(self._build, options.files(), check_seconds)
        self._check()

    @property
    def client_auth(self) -> ClientAuth:
        """Whether clients present a certificate: "none", "requested" or "required"."""
        return self._client_auth

    @property
    def check_hostname(self) -> bool:
        """False: a server does not check the host names of its clients."""
        return False

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection; may read files.

        Raises: ConfigurationError: an option or a file is wrong; only if no context was built yet.
        """
        return self._contexts.get()

    async def fresh_context(self) -> ssl.SSLContext:
        """Return the context for a new connection; files are read in a thread.

        Raises: ConfigurationError: as `context`.
        """
        return await self._contexts.fresh()

    def reload(self) -> bool:
        """Read the files if they have changed; return whether another context is in use.

        Raises: ConfigurationError: as `context`.
        """
        return self._contexts.reload()

    def _check(self) -> None:
        options = self._options
        if self._client_auth not in _CLIENT_AUTH:
            raise ConfigurationError(f"ssl_client_auth={self._client_auth!r} must be none, requested or required")
        if options.context is not None:
            return
        if not _has_key_pair(options):
            raise ConfigurationError(
                "a TLS listener needs a certificate: set ssl_keystore_location, or ssl_certfile and ssl_keyfile"
            )
        if self._client_auth != "none" and not (options.truststore_location or options.truststore_certificates):
            raise ConfigurationError(
                f"ssl_client_auth={self._client_auth} needs ssl_truststore_location: the authority that signs the "
                "clients' certificates"
            )

    def _build(self) -> ssl.SSLContext:
        options = self._options
        if options.context is not None:
            return options.context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _configure(context, options)
        context.verify_mode = _CLIENT_AUTH[self._client_auth]
        if self._client_auth != "none":
            _load_trusted(context, options)
        _load_own(context, options)
        return context


# --- the context in use -----------------------------------------------------------------------------------------------


class _Contexts:
    """The context in use, built again when one of its files has changed."""

    def __init__(self, build: Callable[[], ssl.SSLContext], files: Iterable[str], check_seconds: float) -> None:
        self._build = build
        self._files = list(files)
        self._check_ms = check_seconds * 1000
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._stamps: list[object] = []  # of the files, as of the last attempt
        self._checked_at = 0  # milliseconds of the wall clock, which threads and loops share
        self._logged = ""  # the last error of a reload

    @property
    def is_current(self) -> bool:
        """Whether `get` returns without reading files."""
        if self._context is None:
            return False
        return not self._files or abs(wall_ms() - self._checked_at) < self._check_ms

    def get(self) -> ssl.SSLContext:
        context = self._context
        if context is None or not self.is_current:
            with self._lock:
                if not self.is_current:  # another thread may have built it
                    self._refresh()
                context = self._context
        assert context is not None
        return context

    async def fresh(self) -> ssl.SSLContext:
        return self.get() if self.is_current else await run_in_thread(self.get)

    def reload(self) -> bool:
        with self._lock:
            before = self._context
            self._refresh()
            return self._context is not before

    def _refresh(self) -> None:
        self._checked_at = wall_ms()
        stamps = [_stamp(path) for path in self._files]
        if self._context is None:
            self._context, self._stamps = self._build(), stamps
        elif stamps != self._stamps:
            self._stamps = stamps
            self._rebuild()

    def _rebuild(self) -> None:
        try:
            self._context = self._build()
        except ConfigurationError as error:
            text = str(error)
            if text != self._logged:
                self._logged = text
                logger.error(
                    "the changed TLS files cannot be used: %s; new connections use the previous ones; correct the "
                    "file: it is read again within %g s",
                    text,
                    self._check_ms / 1000,
                )
        else:
            self._logged = ""
            logger.info("new connections use the changed TLS files: %s", ", ".join(self._files))


def _stamp(path: str) -> object:
    """Return what differs when a file is replaced; None if it cannot be read."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# --- building ---------------------------------------------------------------------------------------------------------


def _configure(context: ssl.SSLContext, options: TlsOptions) -> None:
    """Set the protocol versions and the cipher suites."""
    unknown = [name for name in options.enabled_protocols if name not in _VERSIONS]
    if unknown or not options.enabled_protocols:
        raise ConfigurationError(
            f"ssl_enabled_protocols={','.join(options.enabled_protocols)!r}: use TLSv1.2, TLSv1.3 or both"
            + ("; older versions are insecure (RFC 8996)" if unknown else "")
        )
    versions = [_VERSIONS[name] for name in options.enabled_protocols]
    with warnings.catch_warnings():  # a system's policy may make these deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = min(versions), max(versions)
    if options.cipher_suites:
        _restrict_ciphers(context, options.cipher_suites)


def _restrict_ciphers(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Allow these suites only; Python cannot select among those of TLS 1.3."""
    older = openssl_ciphers(suites)
    if len(older) == len(suites):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    elif not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise ConfigurationError("no suite of ssl_cipher_suites belongs to a version of ssl_enabled_protocols")
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"OpenSSL supports none of ssl_cipher_suites={','.join(suites)}: `openssl ciphers -stdname` lists the "
                "names"
            ) from error


def _load_trusted(context: ssl.SSLContext, options: TlsOptions) -> None:
    """Load the trusted authorities and the list of revoked certificates."""
    location, text = options.truststore_location, options.truststore_certificates
    if location and text:
        raise ConfigurationError("set ssl_truststore_location or ssl_truststore_certificates, not both")
    if text:
        source = "ssl_truststore_certificates"
        _trust(context, b"\n".join(certificates_in(text.encode(), source)), source)
    elif location and Path(location).is_dir():
        context.load_verify_locations(capath=location)
    elif location:
        pem = read_trust_store(location, options.truststore_type, options.truststore_password)
        _trust(context, pem, f"ssl_truststore_location={location}")
    else:
        context.load_default_certs(
            ssl.Purpose.SERVER_AUTH if context.protocol == ssl.PROTOCOL_TLS_CLIENT else ssl.Purpose.CLIENT_AUTH
        )
    if options.crlfile:
        _load_revoked(context, options.crlfile)


def _trust(context: ssl.SSLContext, pem: bytes, source: str) -> None:
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(f"{source}: a certificate is corrupt ({_reason(error)}); copy it again") from error


def _load_revoked(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f"cannot read ssl_crlfile={path}: {_reason(error)}; it must be a certificate revocation list in PEM"
        ) from error
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _has_key_pair(options: TlsOptions) -> bool:
    return bool(options.certfile or options.keystore_location or options.keystore_certificate_chain)


def _load_own(context: ssl.SSLContext, options: TlsOptions) -> None:
    """Load the own certificate and its key."""
    pair = _own_key_pair(options)
    if pair is None:
        return
    leaf = _read_leaf(pair)
    try:
        _load_chain(context, pair)
    except ssl.SSLError as error:
        raise ConfigurationError(_explain_load_error(error, pair, leaf)) from error
    now = wall_ms() / 1000
    if leaf.not_after < now:
        raise ConfigurationError(
            f"the certificate of {leaf.subject} in {pair.certificate_source} expired on {leaf.expiry}: renew it"
        )
    if leaf.not_before > now:
        raise ConfigurationError(
            f"the certificate of {leaf.subject} in {pair.certificate_source} is valid from {leaf.start} on: check the "
            "clock of this machine"
        )


def _own_key_pair(options: TlsOptions) -> KeyPair | None:
    given = [
        name
        for name, value in (
            ("ssl_certfile", options.certfile),
            ("ssl_keystore_location", options.keystore_location),
            ("ssl_keystore_certificate_chain", options.keystore_certificate_chain),
        )
        if value
    ]
    if len(given) > 1:
        raise ConfigurationError(f"set one of {', '.join(given)}: each of them sets the certificate of this side")
    if options.certfile:
        return read_key_pair(options.certfile, options.keyfile, options.key_password)
    if options.keyfile:
        raise ConfigurationError("ssl_keyfile needs ssl_certfile: the certificate that belongs to the key")
    if options.keystore_location:
        return read_key_store(
            options.keystore_location, options.keystore_type, options.keystore_password, options.key_password
        )
    return _inline_key_pair(options)


def _inline_key_pair(options: TlsOptions) -> KeyPair | None:
    """Return the key pair that the options contain as PEM texts (KIP-651)."""
    chain, key = options.keystore_certificate_chain, options.keystore_key
    if not chain and key is None:
        return None
    if not chain or key is None:
        raise ConfigurationError("set both ssl_keystore_certificate_chain and ssl_keystore_key, or neither")
    names = ("ssl_keystore_certificate_chain", "ssl_keystore_key")
    return pem_key_pair(chain.encode(), key.reveal().encode(), options.key_password, *names)


def _load_chain(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Load a key pair; the password is always given: without one OpenSSL asks at the terminal."""
    password = pair.reveal_password() if pair.is_encrypted else ""
    with private_file(pair.certificates + b"\n" + pair.key + b"\n") as path:
        context.load_cert_chain(path, password=lambda: password)


def _read_leaf(pair: KeyPair) -> PeerCertificate:
    with private_file(pair.certificates) as path:
        try:
            return read_pem(path)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"{pair.certificate_source}: the certificate is corrupt ({_reason(error)}); copy it again"
            ) from error


def _explain_load_error(error: ssl.SSLError, pair: KeyPair, leaf: PeerCertificate) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return (
            f"the private key in {pair.key_source} does not belong to the certificate of {leaf.subject} in "
            f"{pair.certificate_source}: the certificate of the key must be the first one of the chain"
        )
    if error.reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"OpenSSL rejects the certificate in {pair.certificate_source} as too weak ({error.reason}): renew it"
    if pair.is_encrypted:
        return f"the password of the private key in {pair.key_source} is wrong (ssl_key_password), or it is corrupt"
    return f"the private key in {pair.key_source} cannot be read ({_reason(error)}); copy it again"


def _reason(error: Exception) -> str:
    """Return the reason of OpenSSL or the system, without the place in CPython's source."""
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", None) or str(error.args[-1] if error.args else error).partition(" (_ssl")[0]
    return getattr(error, "strerror", None) or str(error)
