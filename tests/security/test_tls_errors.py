"""Each failed handshake with a real server on loopback raises one text with cause and remedy."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from aiokwire.security import ClientTls, PeerCertificate, ServerTls, TlsOptions, explain_tls_error, is_final, read_der
from aiokwire.security.certificates import CertificateAuthority, Issued
from tests.security.pki import Files, alice, authority, server

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


class Caller(asyncio.Protocol):
    """A client that sends one byte after the handshake and keeps how its connection ended."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.error: Exception | None = None
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(b"x")

    def connection_lost(self, error: Exception | None) -> None:
        self.error = error
        self.ended.set()


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Serve TLS on loopback in a thread, and provide the port.

    Not on the loop: servers of asyncio and uvloop end a failed handshake without an alert.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, context))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listening: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _address = listening.accept()
        except OSError:  # closed by the test
            return
        with connection:
            connection.settimeout(10)
            with contextlib.suppress(OSError), context.wrap_socket(connection.dup(), server_side=True) as secure:
                secure.recv(1)
            with contextlib.suppress(OSError):  # the rest, so that no reset overtakes the alert
                connection.shutdown(socket.SHUT_WR)
                connection.recv(65536)


@asynccontextmanager
async def serving_plaintext(handler: Handler) -> AsyncIterator[int]:
    """Serve on loopback without TLS, and provide the port."""
    listening = await asyncio.start_server(handler, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


async def failure(client: ClientTls, port: int, *, host: str = "localhost", timeout: float = 5.0) -> BaseException:
    """Return the error of a handshake, or of the connection after it (TLS 1.3)."""
    loop = asyncio.get_running_loop()
    context = await client.fresh_context()
    try:
        with anyio.fail_after(timeout + 5):
            _transport, caller = await loop.create_connection(
                Caller, "127.0.0.1", port, ssl=context, server_hostname=host, ssl_handshake_timeout=timeout
            )
    except (OSError, ssl.SSLError) as error:
        return error
    with anyio.fail_after(timeout):
        await caller.ended.wait()
    assert caller.error is not None, "the handshake succeeded"
    return caller.error


async def presented(client: ClientTls, port: int) -> PeerCertificate:
    """Return the certificate of a server by a connection that accepts every certificate."""
    loop = asyncio.get_running_loop()
    transport, caller = await loop.create_connection(
        Caller, "127.0.0.1", port, ssl=client.probe_context(), server_hostname="localhost"
    )
    der = transport.get_extra_info("ssl_object").getpeercert(True)
    transport.abort()
    await caller.ended.wait()
    return read_der(der)


def listener(files: Files, issued: Issued) -> ssl.SSLContext:
    """Return a listener's context, which may have an expired certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.store(issued, "listener.pem"))
    return context


async def new_listener(files: Files, **options: Any) -> ssl.SSLContext:
    """Return a listener's context by its options."""
    return await ServerTls(TlsOptions(keystore_location=files.store(server()), **options)).fresh_context()


async def explained(files: Files, issued: Issued, *, host: str = "localhost", **options: Any) -> str:
    """Return the text of a failed handshake with a server of this certificate; it is final."""
    client = ClientTls(TlsOptions(**{"truststore_location": files.ca(), **options}))
    async with serving(listener(files, issued)) as port:
        error = await failure(client, port, host=host)
        certificate = await presented(client, port)
    assert is_final(error)
    without_probe = explain_tls_error(error, host=host)
    assert "the broker's certificate" in without_probe or "ssl_crlfile" in without_probe
    return explain_tls_error(error, host=host, certificate=certificate)


async def test_an_expired_certificate_is_reported_with_its_owner_and_date(files: Files) -> None:
    issued = authority().expired_server()
    when = f"{issued.certificate.not_valid_after_utc:%b %e %H:%M:%S %Y}"
    assert await explained(files, issued) == (
        f"the broker's certificate (CN=localhost) expired on {when} GMT: renew it, or check the clock of this machine"
    )


async def test_a_certificate_of_the_future_is_reported_with_its_date(files: Files) -> None:
    text = await explained(files, authority().future_server())
    assert text.startswith("the broker's certificate (CN=localhost) is not valid before ")
    assert text.endswith(" GMT: check the clocks of both machines")


async def test_a_wrong_host_is_reported_with_the_names_of_the_certificate(files: Files) -> None:
    issued = authority().server(["kafka-1.example", "10.0.0.1"])
    assert await explained(files, issued, host="localhost") == (
        "the broker's certificate (CN=kafka-1.example) is not for localhost; it is for kafka-1.example, 10.0.0.1: "
        "connect by one of its names (bootstrap_servers, the broker's advertised.listeners), or add the name to the "
        "certificate"
    )


async def test_a_wrong_ip_address_is_reported_like_a_wrong_name(files: Files) -> None:
    text = await explained(files, authority().server(["kafka-1.example"]), host="127.0.0.1")
    assert "is not for 127.0.0.1; it is for kafka-1.example: connect by one of its names" in text


async def test_an_unknown_authority_is_reported_with_its_name_and_the_option(files: Files) -> None:
    issued = CertificateAuthority.create("another CA").server()
    assert await explained(files, issued) == (
        "the broker's certificate (CN=localhost) is signed by an authority CN=another CA that is not trusted: set "
        "ssl_cafile (ssl_truststore_location) to the certificate of the authority that signs the brokers'"
    )


async def test_a_self_signed_certificate_is_reported(files: Files) -> None:
    own = CertificateAuthority.create("localhost")
    path = files.write("self.pem", own.key_pem + own.certificate_pem)
    client = ClientTls(TlsOptions(truststore_location=files.ca()))
    async with serving(await ServerTls(TlsOptions(certfile=path)).fresh_context()) as port:
        error = await failure(client, port)
    assert is_final(error)
    text = explain_tls_error(error, host="localhost")
    assert text == "the broker's certificate is self-signed and not trusted: set ssl_cafile to it"


async def test_a_revoked_certificate_and_an_incomplete_list_are_reported(files: Files) -> None:
    revoked = authority().server()
    crl = files.write("list.pem", authority().revocation_list([revoked]))
    text = await explained(files, revoked, crlfile=crl)
    assert text == "the broker's certificate (CN=localhost) is revoked by ssl_crlfile: replace the certificate"
    crl = files.write("list.pem", CertificateAuthority.create("another CA").revocation_list())
    text = await explained(files, revoked, crlfile=crl)
    assert text.startswith("ssl_crlfile has no current list of CN=test CA: fetch")


async def test_a_certificate_of_a_client_does_not_identify_a_broker(files: Files) -> None:
    text = await explained(files, alice())
    assert (
        text == "the broker's certificate (CN=alice,O=Test) is not for servers: its extended key usage lacks serverAuth"
    )


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_missing_client_certificate_is_reported(files: Files, version: str) -> None:
    tls = TlsOptions(keystore_location=files.store(server()), truststore_location=files.ca())
    client = ClientTls(TlsOptions(truststore_location=files.ca(), enabled_protocols=(version,)))
    async with serving(await ServerTls(tls, "required").fresh_context()) as port:
        error = await failure(client, port)
    assert is_final(error)
    text = explain_tls_error(error, host="localhost", has_certificate=client.has_certificate)
    assert "requires" in text or "require" in text
    assert "set ssl_keystore_location, or ssl_certfile and ssl_keyfile, to a certificate" in text


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: CertificateAuthority.create("another CA").client("mallory"), "does not trust the authority"),
        (lambda: authority().server(["mallory"]), None),
    ],
)
async def test_a_client_certificate_of_another_authority_is_reported(
    files: Files, version: str, make: Callable[[], Issued], cause: str | None
) -> None:
    tls = TlsOptions(keystore_location=files.store(server()), truststore_location=files.ca())
    own = files.store(make(), "mallory.pem")
    client = ClientTls(TlsOptions(truststore_location=files.ca(), certfile=own, enabled_protocols=(version,)))
    async with serving(await ServerTls(tls, "required").fresh_context()) as port:
        if cause is None:  # its key usage has clientAuth
            with pytest.raises(AssertionError, match="the handshake succeeded"):
                await failure(client, port)
            return
        error = await failure(client, port)
    assert is_final(error)
    text = explain_tls_error(error, host="localhost", has_certificate=client.has_certificate)
    assert cause in text
    assert "its truststore must contain the authority of the client's certificate" in text


async def test_sides_without_a_common_version_are_reported(files: Files) -> None:
    client = ClientTls(TlsOptions(truststore_location=files.ca(), enabled_protocols=("TLSv1.3",)))
    async with serving(await new_listener(files, enabled_protocols=("TLSv1.2",))) as port:
        error = await failure(client, port)
    assert is_final(error)
    text = explain_tls_error(error, host="localhost")
    assert text == (
        "the peer supports no TLS version of ssl_enabled_protocols: allow TLSv1.2 and TLSv1.3 on both sides"
    )


async def test_sides_without_a_common_cipher_suite_are_reported(files: Files) -> None:
    suites = ("ECDHE-ECDSA-AES128-GCM-SHA256",), ("ECDHE-ECDSA-AES256-GCM-SHA384",)
    client = ClientTls(TlsOptions(truststore_location=files.ca(), cipher_suites=suites[0]))
    async with serving(await new_listener(files, cipher_suites=suites[1])) as port:
        error = await failure(client, port)
    assert is_final(error)
    assert "no cipher suite in common (ssl_cipher_suites)" in explain_tls_error(error, host="localhost")


async def test_a_plaintext_peer_is_reported(files: Files) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\x00\x00\x20 not TLS at all, but a response")
        await writer.drain()
        writer.close()

    client = ClientTls(TlsOptions(truststore_location=files.ca()))
    async with serving_plaintext(greet) as port:
        error = await failure(client, port)
    assert is_final(error)
    text = explain_tls_error(error, host="localhost")
    assert text == (
        "the peer does not speak TLS: set security_protocol=PLAINTEXT or SASL_PLAINTEXT, or use its TLS port"
    )


async def test_a_peer_that_closes_during_the_handshake_is_reported_and_may_pass(files: Files) -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    client = ClientTls(TlsOptions(truststore_location=files.ca()))
    async with serving_plaintext(hang_up) as port:
        error = await failure(client, port)
    assert not is_final(error)
    text = explain_tls_error(error, host="localhost")
    assert text.startswith("the peer closed the connection during the TLS handshake: the port may expect plaintext")


async def test_a_peer_that_does_not_respond_is_reported_as_transient(files: Files) -> None:
    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    client = ClientTls(TlsOptions(truststore_location=files.ca()))
    async with serving_plaintext(stay_silent) as port:
        error = await failure(client, port, timeout=0.2)
    assert not is_final(error)
    text = explain_tls_error(error, host="localhost")
    assert text.startswith("the TLS handshake timed out: the port may expect plaintext")
    assert explain_tls_error(TimeoutError(), host="localhost") == text


def test_other_errors_keep_their_text() -> None:
    assert explain_tls_error(OSError("strange"), host="x") == "the TLS handshake failed: strange"
    assert not is_final(OSError("strange"))
    unknown = ssl.SSLError(1, "[SSL: LIBRARY_BUG] library bug (_ssl.c:1)")
    assert "library bug" in explain_tls_error(unknown, host="x")
