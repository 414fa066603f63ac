"""Contexts are built from files and texts; mistakes name the option and the remedy."""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.errors import ConfigurationError
from aiokwire.security import ClientTls, Secret, SecurityConfig, ServerTls, TlsOptions
from aiokwire.security.cipher_suites import openssl_ciphers
from aiokwire.security.keystores import private_file, read_key_store, read_trust_store
from tests.security.pki import PASSWORD, Files, alice, authority, server


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shake_hands(client: ssl.SSLContext, listener: ssl.SSLContext, host: str = "localhost") -> ssl.SSLObject:
    """Perform a handshake in memory and return the server's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = listener.wrap_bio(to_server, to_client, server_side=True)
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    finish([ours, theirs])
    return theirs


def finish(waiting: list[ssl.SSLObject]) -> None:
    """Perform the handshake of two sides."""
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue


def subject(side: ssl.SSLObject) -> dict[str, str]:
    certificate: Any = side.getpeercert()
    return {kind: value for part in certificate["subject"] for kind, value in part}


def listener(files: Files, **options: Any) -> ssl.SSLContext:
    """Return a listener's context that requires the certificate of a client."""
    tls = TlsOptions(keystore_location=files.store(server(), "server.pem"), truststore_location=files.ca(), **options)
    return ServerTls(tls, "required").context()


# --- key formats ------------------------------------------------------------------------------------------------------

FORMATS: dict[str, Callable[[Files], dict[str, Any]]] = {
    "two PEM files": lambda files: {
        "certfile": files.write("alice.crt", alice().certificate_pem),
        "keyfile": files.write("alice.key", alice().key_pem),
    },
    "one PEM file as aiokafka takes it": lambda files: {"certfile": files.store(alice())},
    "a PEM key store as Java reads it": lambda files: {"keystore_location": files.store(alice())},
    "a PEM key store with its type": lambda files: {"keystore_location": files.store(alice()), "keystore_type": "PEM"},
    "PEM texts": lambda _files: {
        "keystore_certificate_chain": alice().certificate_pem,
        "keystore_key": Secret(alice().key_pem),
    },
    "an encrypted PEM text": lambda _files: {
        "keystore_certificate_chain": alice().certificate_pem,
        "keystore_key": Secret(alice().encrypted_key_pem(PASSWORD)),
        "key_password": PASSWORD,
    },
    "an encrypted key and a callable": lambda files: {
        "certfile": files.write("alice.crt", alice().certificate_pem),
        "keyfile": files.write("alice.key", alice().encrypted_key_pem(PASSWORD)),
        "key_password": PASSWORD.reveal,
    },
    "PKCS12": lambda files: {
        "keystore_location": files.write("alice.p12", alice().pkcs12(PASSWORD)),
        "keystore_password": PASSWORD,
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_client_presents_its_certificate_from_every_format(files: Files, name: str) -> None:
    client = ClientTls(TlsOptions(truststore_location=files.ca(), **FORMATS[name](files)))
    assert client.has_certificate
    assert subject(shake_hands(client.context(), listener(files))) == {
        "commonName": "alice",
        "organizationName": "Test",
    }


def test_trusted_certificates_come_from_pem_texts_pkcs12_and_directories(files: Files, tmp_path: Path) -> None:
    ca = authority().certificate
    encryption = BestAvailableEncryption(PASSWORD.reveal().encode())
    java = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], encryption)
    hashed = tmp_path / "hashed"
    hashed.mkdir()
    digest = f"{ssl_subject_hash(files.ca()):08x}.0"
    (hashed / digest).write_text(authority().certificate_pem)
    for options in (
        {"truststore_certificates": authority().certificate_pem},
        {"truststore_certificates": "Ein Kommentar ohne ASCII: Größe\n" + authority().certificate_pem},
        {"truststore_location": files.write("trust.p12", java), "truststore_password": PASSWORD},
        {"truststore_location": str(hashed)},
    ):
        context = ClientTls(TlsOptions(**options)).context()
        no_client = ServerTls(TlsOptions(keystore_location=files.store(server()))).context()
        assert shake_hands(context, no_client).version() == "TLSv1.3"


def ssl_subject_hash(path: str) -> int:
    """Return the hash by which OpenSSL finds an authority in a directory."""
    import subprocess

    done = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", path], capture_output=True, check=True)
    return int(done.stdout, 16)


def test_without_a_truststore_the_authorities_of_the_system_are_trusted(files: Files) -> None:
    context = ClientTls(TlsOptions()).context()
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self-signed"):
        shake_hands(context, ServerTls(TlsOptions(keystore_location=files.store(server()))).context())


def test_the_options_of_a_client_build_its_context(files: Files) -> None:
    config = SecurityConfig(
        security_protocol="SSL",
        ssl_cafile=files.ca(),
        ssl_keystore_certificate_chain=alice().certificate_pem,
        ssl_keystore_key=alice().encrypted_key_pem(PASSWORD),
        ssl_key_password=PASSWORD.reveal,
        ssl_enabled_protocols="TLSv1.2",
        ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256",
        ssl_check_hostname=False,
    )
    theirs = shake_hands(ClientTls(config.tls).context(), listener(files), "elsewhere")
    assert subject(theirs)["commonName"] == "alice"
    assert (theirs.version(), theirs.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")  # type: ignore[index]
    defaults = SecurityConfig(security_protocol="SSL").tls
    assert defaults == TlsOptions()


def test_a_ready_context_replaces_the_options() -> None:
    ready = ssl.create_default_context()
    ready.check_hostname = False
    client = ClientTls(TlsOptions(context=ready))
    assert client.context() is ready
    assert not client.check_hostname
    assert client.has_certificate is None
    assert not client.reload()


# --- options ----------------------------------------------------------------------------------------------------------


def test_the_host_name_is_checked_unless_switched_off_which_is_logged_once(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = ServerTls(TlsOptions(keystore_location=files.store(server()))).context()
    strict = ClientTls(TlsOptions(truststore_location=files.ca()))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(strict.context(), theirs, "broker-1.example")
    lax = ClientTls(TlsOptions(truststore_location=files.ca(), check_hostname=False))
    shake_hands(lax.context(), theirs, "broker-1.example")
    files.write("ca.pem", authority().certificate_pem + "\n")
    assert lax.reload()
    assert [record.levelname for record in caplog.records if "not checked" in record.message] == ["WARNING"]


def test_versions_and_cipher_suites_are_restricted(files: Files) -> None:
    trusted = files.ca()
    theirs = ServerTls(TlsOptions(keystore_location=files.store(server()))).context()

    def agreed(**options: Any) -> tuple[str | None, str]:
        side = shake_hands(ClientTls(TlsOptions(truststore_location=trusted, **options)).context(), theirs)
        cipher = side.cipher()
        assert cipher is not None
        return side.version(), cipher[0]

    assert agreed()[0] == "TLSv1.3"
    assert agreed(enabled_protocols=("TLSv1.2",))[0] == "TLSv1.2"
    java = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert agreed(cipher_suites=(java,)) == ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    assert agreed(cipher_suites=("ECDHE-ECDSA-AES256-GCM-SHA384",)) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
    assert agreed(cipher_suites=("TLS_AES_256_GCM_SHA384", java))[0] == "TLSv1.3"
    assert agreed(cipher_suites=("TLS_AES_256_GCM_SHA384",))[0] == "TLSv1.3"


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", "ECDHE-ECDSA-AES256-CCM8"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
    ],
)
def test_cipher_suites_have_the_names_of_java(java: str, openssl: str) -> None:
    assert openssl_ciphers([java, "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]) == [openssl]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(openssl)
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}


def test_a_revoked_certificate_is_refused(files: Files) -> None:
    revoked = authority().server()
    crl = files.write("revoked.crl", authority().revocation_list([revoked]))
    client = ClientTls(TlsOptions(truststore_location=files.ca(), crlfile=crl))
    good = ServerTls(TlsOptions(keystore_location=files.store(server(), "good.pem"))).context()
    shake_hands(client.context(), good)
    bad = ServerTls(TlsOptions(keystore_location=files.store(revoked, "bad.pem"))).context()
    with pytest.raises(ssl.SSLCertVerificationError, match="revoked"):
        shake_hands(client.context(), bad)


def test_a_listener_asks_for_certificates_as_configured(files: Files) -> None:
    tls = TlsOptions(keystore_location=files.store(server()), truststore_location=files.ca())
    anonymous = ClientTls(TlsOptions(truststore_location=files.ca())).context()
    assert not shake_hands(anonymous, ServerTls(tls, "requested").context()).getpeercert()
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        shake_hands(anonymous, ServerTls(tls, "required").context())
    known = ClientTls(TlsOptions(truststore_location=files.ca(), certfile=files.store(alice(), "alice.pem"))).context()
    assert subject(shake_hands(known, ServerTls(tls, "requested").context()))["commonName"] == "alice"
    with pytest.raises(ConfigurationError, match="none, requested or required"):
        ServerTls(tls, "want")  # type: ignore[arg-type]  # a user's mistake
    with pytest.raises(ConfigurationError, match=r"ssl_client_auth=required needs ssl_truststore_location"):
        ServerTls(TlsOptions(keystore_location=files.store(server())), "required")
    with pytest.raises(ConfigurationError, match="set ssl_keystore_location"):
        ServerTls(TlsOptions())


# --- mistakes ---------------------------------------------------------------------------------------------------------

Mistake = tuple[Callable[[Files], dict[str, Any]], str]
MISTAKES: dict[str, Mistake] = {
    "a file that is missing": (
        lambda files: {"truststore_location": str(files.directory / "none.pem")},
        r"cannot read ssl_truststore_location=.*none\.pem: No such file or directory; check the path",
    ),
    "a directory as the certificate": (
        lambda files: {"certfile": str(files.directory)},
        r"cannot read ssl_certfile=.*: Is a directory",
    ),
    "a truststore that is not PEM": (
        lambda files: {"truststore_location": files.write("ca.txt", "hello")},
        r"ssl_truststore_location=.*ca\.txt has no certificate: .*BEGIN CERTIFICATE",
    ),
    "a DER certificate": (
        lambda files: {"certfile": files.write("a.der", alice().certificate.public_bytes(Encoding.DER))},
        r"openssl x509 -inform DER",
    ),
    "a truststore with a corrupt certificate": (
        lambda _files: {"truststore_certificates": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
        r"ssl_truststore_certificates: a certificate is corrupt",
    ),
    "a corrupt certificate": (
        lambda files: {
            "certfile": files.write(
                "a.pem", alice().key_pem + "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
            )
        },
        r"ssl_certfile=.*the certificate is corrupt",
    ),
    "a corrupt key": (
        lambda files: {
            "certfile": files.write("a.pem", alice().certificate_pem),
            "keyfile": files.write("a.key", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----"),
        },
        r"the private key in ssl_keyfile=.*a\.key cannot be read",
    ),
    "a certificate without its key": (
        lambda files: {"certfile": files.write("a.pem", alice().certificate_pem)},
        r"ssl_certfile=.* has no private key: .*BEGIN PRIVATE KEY",
    ),
    "a key store without a certificate": (
        lambda files: {"keystore_location": files.write("a.pem", alice().key_pem)},
        r"ssl_keystore_location=.* has no certificate",
    ),
    "the key of another certificate": (
        lambda files: {
            "certfile": files.write("a.pem", alice().certificate_pem),
            "keyfile": files.write("s.key", server().key_pem),
        },
        r"the private key in ssl_keyfile=.*s\.key does not belong to the certificate of CN=alice,O=Test",
    ),
    "an encrypted key without a password": (
        lambda files: {"certfile": files.write("a.pem", alice().encrypted_key_pem(PASSWORD) + alice().certificate_pem)},
        r"the private key in ssl_certfile=.* is encrypted: set ssl_key_password",
    ),
    "a wrong password of a key": (
        lambda _files: {
            "keystore_certificate_chain": alice().certificate_pem,
            "keystore_key": Secret(alice().encrypted_key_pem(PASSWORD)),
            "key_password": Secret("wrong"),
        },
        r"the password of the private key in ssl_keystore_key is wrong \(ssl_key_password\)",
    ),
    "a callable of the password that fails": (
        lambda _files: {
            "keystore_certificate_chain": alice().certificate_pem,
            "keystore_key": Secret(alice().encrypted_key_pem(PASSWORD)),
            "key_password": lambda: os.environ["NO_SUCH_VARIABLE"],
        },
        r"the password function failed with KeyError\('NO_SUCH_VARIABLE'\)",
    ),
    "a callable of the password that returns something else": (
        lambda files: {
            "keystore_location": files.write("a.p12", alice().pkcs12(PASSWORD)),
            "key_password": lambda: None,
        },
        r"the password function returned a NoneType: it must return a str, and not be async",
    ),
    "a wrong password of PKCS12": (
        lambda files: {
            "keystore_location": files.write("a.p12", alice().pkcs12(PASSWORD)),
            "keystore_password": Secret("wrong"),
        },
        r"ssl_keystore_location=.*a\.p12: the password of ssl_keystore_password is wrong",
    ),
    "PKCS12 without its password": (
        lambda files: {"keystore_location": files.write("a.p12", alice().pkcs12(PASSWORD))},
        r"a\.p12 is encrypted: set ssl_keystore_password",
    ),
    "PKCS12 that is corrupt": (
        lambda files: {
            "keystore_location": files.write("a.p12", b"\x30\x82" + bytes(40)),
            "keystore_password": PASSWORD,
        },
        r"a\.p12 is not a readable PKCS12 file",
    ),
    "a JKS key store": (
        lambda files: {"keystore_location": files.write("a.jks", bytes.fromhex("feedfeed00000002"))},
        r"a\.jks is a JKS file, .*keytool -importkeystore -srckeystore .*a\.jks -destkeystore .*a\.p12 ",
    ),
    "the type JKS": (
        lambda files: {"truststore_location": files.ca(), "truststore_type": "JKS"},
        r"keytool -importkeystore",
    ),
    "the wrong type": (
        lambda files: {"keystore_location": files.store(alice()), "keystore_type": "PKCS12"},
        r"is a PEM file, but ssl_keystore_type is PKCS12",
    ),
    "an unknown type": (
        lambda files: {"keystore_location": files.store(alice()), "keystore_type": "BKS"},
        r"ssl_keystore_type='BKS' must be PEM or PKCS12",
    ),
    "an own certificate that has expired": (
        lambda files: {"certfile": files.store(authority().expired_client("alice"))},
        r"the certificate of CN=alice in ssl_certfile=.* expired on .* GMT: renew it",
    ),
    "an own certificate of the future": (
        lambda files: {"certfile": files.store(authority().future_server())},
        r"is valid from .* GMT on: check the clock",
    ),
    "two own certificates": (
        lambda files: {"certfile": files.store(alice()), "keystore_location": files.store(alice())},
        r"set one of ssl_certfile, ssl_keystore_location",
    ),
    "a key without a certificate": (
        lambda files: {"keyfile": files.store(alice())},
        r"ssl_keyfile needs ssl_certfile",
    ),
    "half of the PEM texts": (
        lambda _files: {"keystore_key": Secret(alice().key_pem)},
        r"set both ssl_keystore_certificate_chain and ssl_keystore_key",
    ),
    "two truststores": (
        lambda files: {"truststore_location": files.ca(), "truststore_certificates": "x"},
        r"ssl_truststore_location or ssl_truststore_certificates, not both",
    ),
    "an old version": (
        lambda _files: {"enabled_protocols": ("TLSv1.1", "TLSv1.2")},
        r"ssl_enabled_protocols='TLSv1.1,TLSv1.2': use TLSv1.2, TLSv1.3 or both; older versions are insecure",
    ),
    "an unknown cipher suite": (
        lambda _files: {"cipher_suites": ("TLS_RSA_WITH_ENIGMA",)},
        r"OpenSSL supports none of ssl_cipher_suites=TLS_RSA_WITH_ENIGMA: `openssl ciphers",
    ),
    "a suite of another version": (
        lambda _files: {"cipher_suites": ("TLS_AES_128_GCM_SHA256",), "enabled_protocols": ("TLSv1.2",)},
        r"no suite of ssl_cipher_suites belongs to a version of ssl_enabled_protocols",
    ),
    "a list of revoked certificates that is not one": (
        lambda files: {"crlfile": files.write("crl.pem", "hello")},
        r"cannot read ssl_crlfile=.*crl\.pem: .*certificate revocation list in PEM",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_the_option_the_path_and_the_remedy(files: Files, name: str) -> None:
    options, text = MISTAKES[name]
    client = ClientTls(TlsOptions(**options(files)))
    with pytest.raises(ConfigurationError, match=text) as caught:
        client.context()
    shown = str(caught.value) + repr(caught.value)
    assert PASSWORD.reveal() not in shown
    assert "PRIVATE KEY-----\nM" not in shown


def test_a_file_that_may_not_be_read_is_named(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.store(alice())

    def refuse(self: Path, *_args: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigurationError, match=rf"cannot read ssl_certfile={path}: Permission denied; check"):
        ClientTls(TlsOptions(certfile=path)).context()


def test_pkcs12_without_the_extra_names_it(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write("a.p12", alice().pkcs12(PASSWORD))
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'aiokwire\[tls\]', or convert it to PEM with"):
        ClientTls(TlsOptions(keystore_location=path, keystore_password=PASSWORD)).context()


def test_a_key_never_lies_in_a_file_that_others_can_read(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without files in memory the key passes through a private file, which is removed."""
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(files.directory))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, path: str, **rest: Any) -> None:
        modes.extend(each.stat().st_mode & 0o777 for each in (Path(path), Path(path).parent))
        load(self, path, **rest)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    options = FORMATS["PEM texts"](files)
    context = ClientTls(TlsOptions(truststore_location=files.ca(), **options)).context()
    assert modes == [0o600, 0o700]
    assert not list(files.directory.glob("aiokwire-*"))
    monkeypatch.undo()
    assert subject(shake_hands(context, listener(files)))["commonName"] == "alice"


# --- renewed files ----------------------------------------------------------------------------------------------------


class Clock:
    """The wall clock of `aiokwire.security.tls`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from aiokwire.clock import wall_ms

        self.ahead = 0.0
        monkeypatch.setattr("aiokwire.security.tls.wall_ms", lambda: wall_ms() + int(self.ahead * 1000))


def test_a_renewed_certificate_is_used_after_at_most_thirty_seconds(
    files: Files, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = Clock(monkeypatch)
    path = files.store(alice(), "own.pem")
    client = ClientTls(TlsOptions(truststore_location=files.ca(), keystore_location=path))
    before = client.context()
    files.store(authority().client("alice-2"), "own.pem")
    assert client.context() is before
    clock.ahead = 31.0
    after = client.context()
    assert after is not before
    assert subject(shake_hands(after, listener(files)))["commonName"] == "alice-2"
    assert [record.message for record in caplog.records] == [
        f"new connections use the changed TLS files: {files.ca()}, {path}"
    ]


def test_reload_reads_the_files_at_once(files: Files) -> None:
    path = files.ca()
    client = ClientTls(TlsOptions(truststore_location=path))
    before = client.context()
    assert not client.reload()
    files.write("ca.pem", authority("another CA").certificate_pem)
    assert client.reload()
    assert client.context() is not before


def test_a_bad_new_file_keeps_the_context_and_is_logged_once(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    path = files.ca()
    client = ClientTls(TlsOptions(truststore_location=path), check_seconds=0.0)
    before = client.context()
    for content in ("half a fi", "half a file"):
        files.write("ca.pem", content)
        assert client.context() is before
    Path(path).unlink()
    assert client.context() is before
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 2
    assert "has no certificate" in errors[0].message
    assert "new connections use the previous ones" in errors[0].message
    assert "No such file" in errors[1].message
    files.write("ca.pem", authority("another CA").certificate_pem)
    assert client.context() is not before


async def test_the_files_are_read_outside_of_the_loop(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite fails a test whose loop reads a file."""
    clock = Clock(monkeypatch)
    path = files.ca()
    client = ClientTls(TlsOptions(truststore_location=path))
    before = await client.fresh_context()
    clock.ahead = 31.0
    assert await client.fresh_context() is before
    assert await client.fresh_context() is before


def test_threads_share_one_context(files: Files) -> None:
    client = ClientTls(TlsOptions(truststore_location=files.ca()))
    found: list[ssl.SSLContext] = []
    start = threading.Barrier(8)

    def get() -> None:
        start.wait()
        found.append(client.context())

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


# --- any bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER:UserWarning")
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=60).map(lambda rest: b"\x30\x82" + rest)))
def test_any_bytes_in_a_store_are_refused(content: bytes) -> None:
    with private_file(content) as path:
        for kind in ("", "PEM", "PKCS12"):
            with pytest.raises(ConfigurationError):
                read_key_store(path, kind, PASSWORD, None)
            with pytest.raises(ConfigurationError):
                read_trust_store(path, kind, PASSWORD)


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER:UserWarning")
@settings(max_examples=30)
@given(st.integers(0, 5_000), st.binary(min_size=1, max_size=3))
def test_a_corrupt_key_store_is_used_or_refused(place: int, noise: bytes) -> None:
    trusted = authority().certificate_pem
    for store in (alice().store_pem.encode(), alice().pkcs12(PASSWORD)):
        content = bytearray(store)
        start = place % len(content)
        content[start : start + len(noise)] = noise
        with private_file(bytes(content)) as path, contextlib.suppress(ConfigurationError):
            own = TlsOptions(keystore_location=path, keystore_password=PASSWORD, truststore_certificates=trusted)
            ClientTls(own).context()


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_a_client_that_supports_tickets_resumes_its_session(
    files: Files, client_auth: Literal["none", "required"]
) -> None:
    """asyncio cannot pass a session; Java's client and OpenSSL's can."""
    tls = TlsOptions(keystore_location=files.store(server()), truststore_location=files.ca())
    theirs = ServerTls(tls, client_auth).context()
    own = TlsOptions(truststore_location=files.ca(), certfile=files.store(alice(), "alice.pem"))
    context = ClientTls(own).context()
    first = resumed(context, theirs, None)
    assert not first.session_reused
    assert resumed(context, theirs, first.session).session_reused


def resumed(client: ssl.SSLContext, listener: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLObject:
    """Perform a handshake in memory, with a session of an earlier one; return the client's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = listener.wrap_bio(to_server, to_client, server_side=True)
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    finish([ours, theirs])
    with pytest.raises(ssl.SSLWantReadError):
        ours.read(1)  # the ticket arrives after the handshake (TLS 1.3)
    return ours
