"""TLS listeners: handshakes, clients' certificates, strangers, renewed certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import pytest_asyncio

from aiokwire.broker import Broker, Listener, acceptor
from aiokwire.broker.connection import ServerConnection
from aiokwire.protocol.messages import api_versions
from aiokwire.security import TlsOptions
from tests.broker.raw import PATIENCE, RawClient, batch, log_in, produce_one
from tests.broker.security.test_logins import new_broker, sasl_client
from tests.security.pki import Files, alice, authority, server


def trusting(certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A client's context that trusts the tests' authority."""
    context = ssl.create_default_context(cadata=authority().certificate_pem)
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context


def listener(folder: Path, protocol: str = "SSL", *, client_auth: str = "none") -> Listener:
    """A TLS listener with the tests' certificate."""
    files = Files(folder)
    tls = TlsOptions(keystore_location=files.store(server()), truststore_location=files.ca())
    return Listener(protocol=protocol, tls=tls, client_auth=client_auth)


@pytest_asyncio.fixture
async def secured(tmp_path: Path) -> AsyncIterator[Broker]:
    """A broker with an SSL listener, which requests certificates, and a SASL_SSL listener."""
    listeners = [listener(tmp_path, client_auth="requested"), listener(tmp_path, "SASL_SSL")]
    async with new_broker(listeners=listeners) as running:
        yield running


def connections(broker: Broker) -> list[ServerConnection]:
    """The connections of a broker."""
    serving = broker._serving
    assert serving is not None
    return [one for each in serving.listeners._servers.values() for one in each.connections]


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait for a log line."""
    with anyio.fail_after(PATIENCE):
        while text not in caplog.text:
            await anyio.lowlevel.checkpoint()


async def test_a_client_without_a_certificate_is_anonymous(secured: Broker) -> None:
    client = await RawClient.connect(secured, tls=trusting())
    assert (await produce_one(client, "t", batch([b"a" * 500_000]))).error_code == 0
    assert str(connections(secured)[0]._origin.principal) == "User:ANONYMOUS"
    await client.close()


async def test_the_certificate_of_a_client_names_its_user(secured: Broker, tmp_path: Path) -> None:
    store = Files(tmp_path).store(alice(), "alice.pem")
    client = await RawClient.connect(secured, tls=trusting(store))
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    assert str(connections(secured)[0]._origin.principal) == "User:O=Test,CN=alice"
    await client.close()


async def test_mapping_rules_shorten_the_name(tmp_path: Path) -> None:
    store = Files(tmp_path).store(alice(), "alice.pem")
    rules = "RULE:.*CN=([^,]*).*/$1/U"
    required = listener(tmp_path, client_auth="required")
    async with Broker(listeners=[required], ssl_principal_mapping_rules=rules) as broker:
        client = await RawClient.connect(broker, tls=trusting(store))
        await client.ask(api_versions.ApiVersionsRequest(), 0)
        assert str(connections(broker)[0]._origin.principal) == "User:ALICE"
        await client.close()


async def test_a_required_certificate_is_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(listeners=[listener(tmp_path, client_auth="required")]) as broker:
        client = await RawClient.connect(broker, tls=trusting())
        with pytest.raises(ssl.SSLError, match="certificate required"):  # TLS 1.3: the client sees it when it reads
            await client.reader.read(1)
        await logged(caplog, "the client has no certificate: it needs ssl_keystore_location")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_login_over_tls(secured: Broker, mechanism: str) -> None:
    client = await RawClient.connect(secured, listener="SASL_SSL", tls=trusting())
    assert (await log_in(client, sasl_client(mechanism))).error_code == 0
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    assert str(connections(secured)[0]._origin.principal) == "User:alice"
    await client.close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x00\x00\x00\x1a\x00\x12\x00\x04\x00\x00\x00\x01\x00\x03raw\x00", "it needs security_protocol=SSL"),
        (b"GET / HTTP/1.1\r\n\r\n", "the client sent an HTTP request"),
    ],
)
async def test_a_client_without_tls_leaves_one_clear_line(
    secured: Broker, caplog: pytest.LogCaptureFixture, sent: bytes, reason: str
) -> None:
    with caplog.at_level(logging.WARNING):
        client = await RawClient.connect(secured)
        client.writer.write(sent)
        with contextlib.suppress(ConnectionError):
            await client.reader.read()
        await logged(caplog, reason)
    assert len(caplog.records) == 1
    await client.close()


async def test_a_probe_that_only_connects_leaves_no_warning(secured: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "aiokwire.broker.acceptor"):
        client = await RawClient.connect(secured)
        await client.close()
        await logged(caplog, "closed during the TLS handshake")
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


async def test_unfinished_handshakes_are_bounded(secured: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "MOST_HANDSHAKES", 3)
    silent = [await RawClient.connect(secured) for _ in range(3)]
    await _until(lambda: _handshakes(secured) == 3)
    client = await RawClient.connect(secured, tls=trusting())
    await client.ask(api_versions.ApiVersionsRequest(), 0)
    assert await silent[0].closed_by_broker(), "the oldest one is aborted"
    for one in (*silent, client):
        await one.close()


def _handshakes(broker: Broker) -> int:
    serving = broker._serving
    assert serving is not None
    return sum(len(one._handshakes) for each in serving.listeners._servers.values() for one in each._acceptors)


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def test_a_handshake_that_does_not_end_is_aborted(
    secured: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "HANDSHAKE_SECONDS", 0.05)
    client = await RawClient.connect(secured)
    assert await client.closed_by_broker()
    await logged(caplog, "not complete within 0.05 s")
    await client.close()


async def test_a_broker_closes_within_handshakes(tmp_path: Path) -> None:
    async with Broker(listeners=[listener(tmp_path)]) as broker:
        client = await RawClient.connect(broker)
        await _until(lambda: _handshakes(broker) == 1)
    assert await client.closed_by_broker()
    await client.close()


async def test_a_renewed_certificate_is_used_by_new_connections_and_a_bad_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(listeners=[listener(tmp_path)], topics={"t": 1}) as broker:
        old = await RawClient.connect(broker, tls=trusting())
        before = _serial(old)
        Files(tmp_path).store(authority().server())
        await broker.reload_tls()
        renewed = await RawClient.connect(broker, tls=trusting())
        assert _serial(renewed) != before
        Files(tmp_path).write("store.pem", "not a certificate")
        await broker.reload_tls()
        assert "the changed TLS files cannot be used" in caplog.text
        later = await RawClient.connect(broker, tls=trusting())
        assert _serial(later) == _serial(renewed)
        for client in (old, renewed, later):
            assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
            await client.close()


def _serial(client: RawClient) -> str:
    return str(client.writer.get_extra_info("peercert")["serialNumber"])


async def test_kafkas_configs_describe_the_certificate(tmp_path: Path) -> None:
    async with Broker(
        listeners="SSL://127.0.0.1:0",
        ssl_keystore_location=Files(tmp_path).store(server()),
        ssl_keystore_type="PEM",
        ssl_enabled_protocols="TLSv1.2",
    ) as broker:
        client = await RawClient.connect(broker, tls=trusting())
        assert client.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        await client.ask(api_versions.ApiVersionsRequest(), 0)
        await client.close()


async def test_many_clients_at_once(secured: Broker) -> None:
    async def one() -> None:
        client = await RawClient.connect(secured, tls=trusting())
        await client.ask(api_versions.ApiVersionsRequest(), 0)
        await client.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(one())
