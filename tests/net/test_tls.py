"""Connections with TLS: the handshake, its errors, buffers and the end of a connection."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from aiokwire.cluster import ClientConfig
from aiokwire.errors import AuthenticationFailed, ConnectionFailed, KafkaError, ProtocolViolation
from aiokwire.net import Address, Connection, ConnectionConfig
from aiokwire.net.states import ConnectionState
from aiokwire.net.tls import AHEAD, TURN, WRITE, TlsTransport
from aiokwire.net.writing import JOIN_BELOW
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import metadata, produce
from aiokwire.security import ClientSecurity
from aiokwire.security.certificates import Issued
from tests.security import pki

Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])
PRODUCES = ((ApiKey.API_VERSIONS, 0, 4), (ApiKey.METADATA, 0, 13), (ApiKey.PRODUCE, 3, 8))


def server_context(issued: Issued | None = None, *, requires_certificate: bool = False) -> ssl.SSLContext:
    issued = issued or pki.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with issued_file(issued) as path:
        context.load_cert_chain(path)
    if requires_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pki.authority().certificate_pem)
    return context


def issued_file(issued: Issued) -> Any:
    from aiokwire.security.keystores import private_file

    return private_file(issued.store_pem.encode())


def security_of(**options: Any) -> ClientSecurity:
    given = {
        "security_protocol": "SSL",
        "ssl_truststore_certificates": pki.authority().certificate_pem,
        **options,
    }
    return ClientSecurity(ClientConfig(**given))


@pytest.fixture(scope="module")
def trusted() -> ssl.SSLContext:
    """The context of a server that clients trust."""
    return server_context()


async def echo(talk: Any) -> None:
    await talk.shake_hands(*PRODUCES)
    while True:
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse(cluster_id=str(header.correlation_id)))


async def close(connection: Connection) -> None:
    connection.close()
    with anyio.fail_after(5):
        await connection.wait_closed()
    assert connection.state is ConnectionState.CLOSED


async def refused(address: Address, **options: Any) -> KafkaError:
    """The error of an attempt that fails."""
    connection = Connection(address, node_id=1, security=security_of(**options))
    with pytest.raises(KafkaError) as caught:
        await connection.connect()
    await connection.wait_closed()
    assert connection.closed
    return caught.value


# --- the handshake ----------------------------------------------------------------------------------------------------


async def test_requests_and_responses_are_encrypted(serve: Serve, trusted: ssl.SSLContext) -> None:
    async with serve(echo, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        futures = [connection.send(ASK) for _ in range(5)]
        assert [(await future).cluster_id for future in futures] == ["1", "2", "3", "4", "5"]
        await close(connection)


async def test_the_certificate_is_checked_for_the_host_not_for_its_ip_address(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    context = server_context(pki.authority().server(["broker.example"]))
    context.sni_callback = lambda _socket, name, _context: asked.append(name)

    async def resolved(_address: Address) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr("aiokwire.net.connection.resolve", resolved)
    async with serve(echo, tls=context) as address:
        for host in ("broker.example", "broker.example."):  # with the root of the domain, too
            connection = Connection(Address(host, address.port), security=security_of())
            await connection.connect()
            await close(connection)
        error = await refused(Address("another.example", address.port))
    assert asked[:2] == ["broker.example"] * 2
    assert isinstance(error, AuthenticationFailed)
    assert "not for another.example; it is for broker.example" in str(error)


async def test_an_ip_address_must_be_in_the_certificate(serve: Serve) -> None:
    async with serve(echo, tls=server_context(pki.authority().server(["localhost"]))) as address:
        error = await refused(address)
    assert "not for 127.0.0.1" in str(error)
    async with serve(echo, tls=server_context(pki.authority().server(["127.0.0.1"]))) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        await close(connection)


async def test_a_client_certificate_is_presented(serve: Serve) -> None:
    seen: list[Any] = []

    async def script(talk: Any) -> None:
        seen.append(talk.writer.get_extra_info("peercert")["subject"])
        await echo(talk)

    alice = pki.alice()
    security = security_of(ssl_keystore_certificate_chain=alice.certificate_pem, ssl_keystore_key=alice.key_pem)
    async with serve(script, tls=server_context(requires_certificate=True)) as address:
        connection = Connection(address, security=security)
        await connection.connect()
        await close(connection)
    assert "alice" in str(seen)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("issue", "text"),
    [
        (lambda: pki.authority().expired_server(), "expired on"),
        (lambda: pki.authority().future_server(), "is not valid before"),
        (lambda: pki.authority("another CA").server(), "authority CN=another CA that is not trusted: set ssl_cafile"),
    ],
    ids=["expired", "not yet valid", "unknown authority"],
)
async def test_a_bad_certificate_of_a_broker_is_final_and_explained(
    serve: Serve, issue: Callable[[], Issued], text: str
) -> None:
    async with serve(echo, tls=server_context(issue())) as address:
        error = await refused(address)
    assert isinstance(error, AuthenticationFailed)
    assert text in str(error)
    assert f"node 1 at {address}" in str(error)
    assert error.address == str(address)


async def test_a_missing_client_certificate_is_final_although_it_is_noticed_late(serve: Serve) -> None:
    """In TLS 1.3 the client's handshake is complete before the server sees that there is none."""

    def accept_one(listener: socket.socket, context: ssl.SSLContext) -> None:
        """Unlike asyncio's servers, this one sends its alert, as brokers do."""
        accepted, _ = listener.accept()
        with accepted, accepted.dup() as raw:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(accepted, server_side=True)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1000):  # closing with unread bytes would reset the connection, and drop the alert
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address(*listener.getsockname())
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, accept_one, listener, server_context(requires_certificate=True))
            error = await refused(address)
    assert isinstance(error, AuthenticationFailed)
    assert "requires a client certificate" in str(error)


async def test_a_missing_client_certificate_is_the_likely_cause_of_a_hang_up(serve: Serve) -> None:
    """asyncio's servers send no alert."""
    async with serve(echo, tls=server_context(requires_certificate=True)) as address:
        error = await refused(address)
    assert isinstance(error, ConnectionFailed)
    assert "requires a client certificate (set ssl_keystore_location)" in str(error)


async def test_a_server_sends_its_alert_before_it_closes() -> None:
    """Although the first request of the client may have come, and is not read."""
    loop = asyncio.get_running_loop()
    context = server_context(requires_certificate=True)
    accepted: list[TlsTransport] = []

    def accept() -> TlsTransport:
        accepted.append(TlsTransport(asyncio.BufferedProtocol(), context, server_side=True))
        return accepted[-1]

    server = await loop.create_server(accept, "127.0.0.1", 0)
    async with server:
        error = await refused(Address(*server.sockets[0].getsockname()))
        with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
            await accepted[0].shake_hands(5)
    assert isinstance(error, AuthenticationFailed)
    assert "TLSV13_ALERT_CERTIFICATE_REQUIRED: it requires a client certificate" in str(error)


async def test_a_port_without_tls_is_named_as_the_cause(serve: Serve) -> None:
    """A plaintext broker reads the client's greeting as a frame of 369 MB, and hangs up."""

    async def hang_up(talk: Any) -> None:
        await talk.reader.readexactly(4)
        talk.hang_up()

    async def speak_plaintext(talk: Any) -> None:
        talk.writer.write(b"\x00\x00\x00\x10 not TLS at all")
        await talk.until_closed()

    async with serve(hang_up) as address:
        error = await refused(address)
    assert isinstance(error, ConnectionFailed)
    assert error.stage == "tls"
    assert "set security_protocol=PLAINTEXT or SASL_PLAINTEXT" in str(error)
    async with serve(speak_plaintext) as address:
        error = await refused(address)
    assert isinstance(error, AuthenticationFailed)
    assert "PLAINTEXT" in str(error)


async def test_a_plaintext_client_at_a_tls_port_gets_the_option_to_set(serve: Serve, trusted: ssl.SSLContext) -> None:
    async with serve(echo, tls=trusted) as address:
        connection = Connection(address)
        with pytest.raises((ProtocolViolation, ConnectionFailed), match="set security_protocol=SSL or SASL_SSL"):
            await connection.connect()
        await connection.wait_closed()


async def test_a_peer_that_is_silent_in_the_handshake_ends_it_by_the_setup_timeout(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address, security=security_of())
        with pytest.raises(ConnectionFailed, match="with a TLS handshake"):
            await connection.connect(0.1)
        await connection.wait_closed()


async def test_older_requests_are_not_tried_after_a_failed_handshake(serve: Serve) -> None:
    connections = 0

    async def hang_up(talk: Any) -> None:
        nonlocal connections
        connections += 1
        await talk.reader.readexactly(4)
        talk.hang_up()

    async with serve(hang_up) as address:
        await refused(address)
    assert connections == 1


async def test_a_renewed_trust_store_is_used_at_once_after_a_failed_handshake(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(pki.authority("another CA").certificate_pem)
    security = security_of(ssl_truststore_certificates=None, ssl_cafile=str(path))
    await security.prepare()
    async with serve(echo, tls=server_context()) as address:
        connection = Connection(address, security=security)
        with pytest.raises(AuthenticationFailed):
            await connection.connect()
        await connection.wait_closed()
        path.write_text(pki.authority().certificate_pem)
        connection = Connection(address, security=security)
        await connection.connect()
        await close(connection)


async def test_a_later_connection_resumes_the_session(serve: Serve, trusted: ssl.SSLContext) -> None:
    resumed: list[bool] = []

    async def script(talk: Any) -> None:
        resumed.append(talk.writer.get_extra_info("ssl_object").session_reused)
        await echo(talk)

    async with serve(script, tls=trusted) as address:
        security = security_of()
        for _ in range(3):
            connection = Connection(address, security=security)
            await connection.connect()
            await close(connection)
        connection = Connection(address, security=security_of())  # another client
        await connection.connect()
        await close(connection)
    assert resumed == [False, True, True, False]


async def test_changed_certificates_end_the_sessions(serve: Serve, trusted: ssl.SSLContext, tmp_path: Path) -> None:
    resumed: list[bool] = []

    async def script(talk: Any) -> None:
        resumed.append(talk.writer.get_extra_info("ssl_object").session_reused)
        await echo(talk)

    store = tmp_path / "trust.pem"
    store.write_text(pki.authority().certificate_pem)
    security = security_of(ssl_truststore_certificates=None, ssl_truststore_location=str(store))
    async with serve(script, tls=trusted) as address:
        for changed in (False, True):
            if changed:
                store.write_text(pki.authority().certificate_pem * 2)
                assert await security.reload_tls()
            connection = Connection(address, security=security)
            await connection.connect()
            await close(connection)
    assert resumed == [False, False]


async def test_a_broker_that_does_not_know_the_session_performs_a_full_handshake(
    serve: Serve, trusted: ssl.SSLContext
) -> None:
    security = security_of()
    sessions, context = security.tls_sessions, await security.ssl_context()
    async with serve(echo, tls=trusted) as first, serve(echo, tls=server_context()) as second:
        for address in (first, second):
            if address is second:  # as after a restart at the same address
                session = sessions.find(context, str(first))
                assert session is not None
                sessions.keep(context, str(second), session)
            connection = Connection(address, security=security)
            await connection.connect()
            await connection.request(ASK)
            await close(connection)


# --- writing and reading ----------------------------------------------------------------------------------------------


def big_produce(records: Any) -> produce.ProduceRequest:
    partition = produce.PartitionProduceData(index=0, records=records)
    topic = produce.TopicProduceData(name="t", partition_data=[partition])
    return produce.ProduceRequest(acks=0, timeout_ms=1, topic_data=[topic])


async def test_large_requests_arrive_unchanged(serve: Serve, trusted: ssl.SSLContext) -> None:
    received: list[bytes] = []

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        for _ in range(3):
            _, request = await talk.read()
            received.append(bytes(request.topic_data[0].partition_data[0].records))
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse())
        await talk.until_closed()

    bodies = [bytes([number]) * size for number, size in enumerate((100, JOIN_BELOW + 5, 3_000_000))]
    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        for body in bodies:
            connection.send(big_produce(body), expect_response=False)
        await connection.request(ASK)
        await close(connection)
    assert received == bodies


async def test_a_buffer_is_not_reused_while_the_transport_holds_it(serve: Serve, trusted: ssl.SSLContext) -> None:
    """With acks=0 no response shows when the transport is done; an export of the buffer does."""
    received: list[bytes] = []
    resume = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        await resume.wait()
        for _ in range(8):
            _, request = await talk.read()
            received.append(bytes(request.topic_data[0].partition_data[0].records))
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse())
        await talk.until_closed()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        buffers = [bytearray(bytes([number + 1]) * 2_000_000) for number in range(8)]
        for buffer in buffers:
            connection.send(big_produce(memoryview(buffer)), expect_response=False)
        gc.collect()
        for buffer in buffers:
            try:
                buffer.clear()  # what the producer's pool does to reuse it
            except BufferError:
                continue  # the transport holds it
            buffer.extend(bytes(2_000_000))
        resume.set()
        await connection.request(ASK)
        await close(connection)
    assert [set(body) for body in received] == [{number + 1} for number in range(8)]


async def test_data_for_a_slow_peer_waits_unencrypted(serve: Serve, trusted: ssl.SSLContext) -> None:
    """Encrypted it would be a copy, as large as all requests in flight."""
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        await over.wait()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        body = bytes(64_000_000)  # more than the system buffers
        connection.send(big_produce(body), expect_response=False)
        transport: Any = connection._wire._transport  # type: ignore[union-attr]  # it is connected
        assert isinstance(transport, TlsTransport)
        assert transport.get_write_buffer_size() >= len(body) - TURN, "one turn of the loop encrypts a part"
        assert connection.write_paused
        assert connection.write_paused
        with anyio.fail_after(10):
            while not transport._is_socket_full:
                await anyio.lowlevel.checkpoint()
        assert transport.get_write_buffer_size() > 1_000_000
        assert transport._socket is not None
        assert transport._socket.get_write_buffer_size() <= AHEAD + 2 * WRITE
        connection.abort()
        over.set()


async def test_small_requests_of_one_turn_share_a_record(serve: Serve, trusted: ssl.SSLContext) -> None:
    sent = bytearray()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, copy: bytearray) -> None:
        while data := await reader.read(65536):
            copy += data
            writer.write(data)
        writer.close()

    async def relay(talk: Any) -> None:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        async with anyio.create_task_group() as group:
            group.start_soon(pump, talk.reader, writer, sent)
            group.start_soon(pump, reader, talk.writer, bytearray())

    async with serve(echo, tls=trusted) as address, serve(relay) as relayed:
        connection = Connection(relayed, security=security_of())
        await connection.connect()
        await connection.request(ASK)
        before = count_records(sent)
        futures = [connection.send(ASK) for _ in range(50)]
        assert [int((await future).cluster_id or 0) for future in futures] == list(range(2, 52))
        assert count_records(sent) == before + 2, "the first request leaves at once, the others together"
        await close(connection)


def count_records(stream: bytes | bytearray) -> int:
    """The TLS records in a stream."""
    count = at = 0
    while at < len(stream):
        at += 5 + int.from_bytes(stream[at + 3 : at + 5], "big")
        count += 1
    return count


async def test_a_large_response_is_read_into_a_buffer_of_its_size(serve: Serve, trusted: ssl.SSLContext) -> None:
    size = 5_000_000

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse(cluster_id="x" * 30_000))
        header, _ = await talk.read()
        brokers = [metadata.MetadataResponseBroker(host="b" * 30_000, node_id=n) for n in range(size // 30_000)]
        await talk.answer(header, metadata.MetadataResponse(brokers=brokers))
        await talk.until_closed()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        assert (await connection.request(ASK)).cluster_id == "x" * 30_000
        assert len((await connection.request(ASK)).brokers) == size // 30_000
        await close(connection)


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_written_bytes_are_sent_before_a_clean_close(serve: Serve, trusted: ssl.SSLContext) -> None:
    size = 3_000_000
    received = 0
    closed = anyio.Event()
    resume = anyio.Event()

    async def script(talk: Any) -> None:
        nonlocal received
        await talk.shake_hands(*PRODUCES)
        await resume.wait()
        while data := await talk.reader.read(1 << 20):
            received += len(data)
        closed.set()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(bytes(size)), expect_response=False)
        assert connection.write_paused
        connection.close()
        resume.set()
        with anyio.fail_after(20):
            await closed.wait()
            await connection.wait_closed()
        assert received > 5 * size


async def test_a_peer_that_takes_no_bytes_does_not_hold_a_closed_connection_open(
    serve: Serve, trusted: ssl.SSLContext
) -> None:
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        await over.wait()

    async with serve(script, tls=trusted) as address:
        config = ConnectionConfig(request_timeout=0.1)
        connection = Connection(address, config=config, security=security_of())
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(bytes(4_000_000)), expect_response=False)
        connection.close()
        with anyio.fail_after(5):
            await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED
        over.set()


async def test_a_peer_that_reads_no_bytes_is_detected(serve: Serve, trusted: ssl.SSLContext) -> None:
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        await over.wait()

    async with serve(script, tls=trusted) as address:
        config = ConnectionConfig(request_timeout=0.2)
        connection = Connection(address, config=config, security=security_of())
        await connection.connect()

        async def keep_writing() -> None:
            for _ in range(100):  # the TLS transport passes what it holds to the socket's, which it does not count
                connection.send(big_produce(bytes(4_000_000)), expect_response=False)
                await connection.drained()

        with pytest.raises(ConnectionFailed, match="accepted no bytes"):
            await keep_writing()
        with anyio.fail_after(5):
            await connection.wait_closed()
        over.set()


async def test_abort_drops_unwritten_bytes(serve: Serve, trusted: ssl.SSLContext) -> None:
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        await over.wait()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(bytes(4_000_000)), expect_response=False)
        connection.abort()
        with anyio.fail_after(1):
            await connection.wait_closed()
        over.set()


@pytest.mark.parametrize("polite", [True, False], ids=["close_notify", "reset"])
async def test_a_broker_that_hangs_up_fails_the_requests_in_flight(
    serve: Serve, trusted: ssl.SSLContext, polite: bool
) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*PRODUCES)
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse())
        await talk.read()
        if polite:
            talk.writer.close()
            await talk.until_closed()
        else:
            talk.hang_up()

    async with serve(script, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        await connection.connect()
        await connection.request(ASK)
        with pytest.raises(ConnectionFailed):
            await connection.request(ASK)
        with anyio.fail_after(5):
            await connection.wait_closed()
        assert isinstance(connection.error, ConnectionFailed)


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_cancelled_at_any_turn_a_handshake_leaves_nothing_open(
    serve: Serve, trusted: ssl.SSLContext, turns: int
) -> None:
    async with serve(echo, tls=trusted) as address:
        connection = Connection(address, security=security_of())
        task = asyncio.get_running_loop().create_task(connection.connect())
        for _ in range(turns):
            if not task.done():
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        task.cancel()
        await asyncio.wait([task])
        await close(connection)


async def test_cancelled_as_the_handshake_completes_the_transport_is_closed(
    serve: Serve, trusted: ssl.SSLContext
) -> None:
    lost = asyncio.Event()

    class Cancelling(asyncio.BufferedProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            task.cancel()

        def get_buffer(self, sizehint: int) -> memoryview:
            return memoryview(bytearray(1024))

        def connection_lost(self, exc: Exception | None) -> None:
            lost.set()

    async def connect(address: Address) -> None:
        context = ssl.create_default_context(cadata=pki.authority().certificate_pem)
        _, transport = await asyncio.get_running_loop().create_connection(
            lambda: TlsTransport(Cancelling(), context, server_hostname="localhost"), address.host, address.port
        )
        await transport.shake_hands(5)

    async with serve(echo, tls=trusted) as address:
        task = asyncio.get_running_loop().create_task(connect(address))
        await asyncio.wait([task])
        assert task.cancelled()
        with anyio.fail_after(5):
            await lost.wait()
