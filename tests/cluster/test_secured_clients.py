"""Clients whose brokers require a login or TLS, at the embedded broker."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import aiokwire
from aiokwire.broker import Broker, Listener
from aiokwire.cluster import Client
from aiokwire.errors import AuthenticationFailed, ConnectionFailed, DeliveryFailed
from aiokwire.hooks import Hooks
from aiokwire.protocol.messages import metadata
from aiokwire.security import Secret, TlsOptions, UserPassword
from tests.security import pki

ASK = metadata.MetadataRequest(topics=[])
LOGIN: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "SCRAM-SHA-256",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "secret",
}


def new_broker(*listeners: Listener, **options: Any) -> Broker:
    return Broker(
        listeners=listeners or (Listener(protocol="SASL_PLAINTEXT"),),
        users={"alice": "secret"},
        topics={"t": 2},
        connection_failed_authentication_delay_ms=0,
        **options,
    )


class Passwords:
    """Credentials that change while clients run."""

    def __init__(self) -> None:
        self.present = "secret"

    def __call__(self) -> UserPassword:
        return UserPassword("alice", Secret(self.present))


def changing(passwords: Passwords) -> dict[str, Any]:
    names = ("sasl_plain_username", "sasl_plain_password")
    return {name: value for name, value in LOGIN.items() if name not in names} | {
        "sasl_credentials_provider": passwords
    }


async def change_password(broker: Broker, password: str) -> None:
    """Change it at the broker, and end every connection."""
    await broker.state.users.give({"alice": Secret(password)})
    await broker.faults.stop_node(1, fail_over=False)
    await broker.faults.start_node(1)


# --- the start --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [0, 400, 1500])
async def test_a_start_without_a_token_endpoint_names_it(
    timeout_ms: int, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with new_broker(Listener(protocol="SASL_PLAINTEXT", allow_unsecured_tokens=True)) as broker:
        client = aiokwire.Admin(
            broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=f"http://127.0.0.1:{free_port}/token",
            sasl_oauthbearer_client_credentials_client_id="app",
            sasl_oauthbearer_client_credentials_client_secret="app-secret",
            socket_connection_setup_timeout_ms=1000,
            bootstrap_timeout_ms=timeout_ms,
        )
        with pytest.raises(ConnectionFailed, match=rf"no OAuth token after .*:{free_port}/token: .*refused"):
            await client.start()
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("aiokwire.")]
    assert "no OAuth token yet, retrying for up to" in line


async def test_a_wrong_password_ends_the_start_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async with new_broker() as broker:
        twice = [broker.bootstrap_servers, broker.bootstrap_servers.replace("127.0.0.1", "localhost")]
        for servers in (twice[:1], twice):
            client = Client(bootstrap_servers=servers, **{**LOGIN, "sasl_plain_password": "guess"})
            with anyio.fail_after(10), pytest.raises(AuthenticationFailed) as caught:
                await client.start(timeout=60)
            text = str(caught.value)
            assert "login by SCRAM-SHA-256 failed" in text
            assert "sasl_plain_password" in text
            assert "guess" not in text
    assert "retrying" not in caplog.text


async def test_a_client_without_a_login_at_a_port_that_requires_one_gets_a_hint() -> None:
    async with new_broker() as broker:
        client = Client(bootstrap_servers=broker.bootstrap_servers)
        with pytest.raises(ConnectionFailed, match=r"may require a login .set security_protocol=SASL_PLAINTEXT"):
            await client.start(timeout=0)


async def test_a_login_at_a_port_without_one_gets_a_hint() -> None:
    async with new_broker(Listener()) as broker:
        client = Client(bootstrap_servers=broker.bootstrap_servers, **LOGIN)
        with pytest.raises(AuthenticationFailed, match="set security_protocol to PLAINTEXT or SSL"):
            await client.start(timeout=60)


async def test_a_start_that_was_refused_may_be_repeated_with_corrected_credentials() -> None:
    passwords = Passwords()
    passwords.present = "guess"
    async with new_broker() as broker:
        client = Client(bootstrap_servers=broker.bootstrap_servers, **changing(passwords))
        with pytest.raises(AuthenticationFailed):
            await client.start()
        passwords.present = "secret"
        async with client:
            assert (await client.request(ASK)).brokers


# --- while it runs ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def client_of(broker: Broker, passwords: Passwords) -> AsyncIterator[Client]:
    async with Client(
        bootstrap_servers=broker.bootstrap_servers, client_id="me", reconnect_backoff_max_ms=100, **changing(passwords)
    ) as client:
        yield client


async def test_a_changed_password_fails_requests_until_the_client_has_it(caplog: pytest.LogCaptureFixture) -> None:
    passwords = Passwords()
    async with new_broker() as broker, client_of(broker, passwords) as client:
        await client.request(ASK)
        address = broker.bootstrap_servers
        await change_password(broker, "other")
        for _ in range(3):
            with anyio.fail_after(10), pytest.raises(AuthenticationFailed, match="sasl_plain_password"):
                await client.request(ASK, timeout=5)
        passwords.present = "other"
        with anyio.fail_after(10):
            while True:
                try:
                    await client.request(ASK)
                    break
                except AuthenticationFailed:
                    continue
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING and "aiokwire.cl" in record.name]
    refusals = [record for record in lines if "login by" in record.getMessage()]
    assert len(refusals) == 1, [record.getMessage() for record in lines]
    assert refusals[0].levelno == logging.ERROR
    assert "client 'me'" in refusals[0].getMessage()
    assert address in refusals[0].getMessage()


async def test_waiting_for_metadata_ends_when_the_login_is_refused() -> None:
    passwords = Passwords()
    async with new_broker() as broker, client_of(broker, passwords) as client:
        await change_password(broker, "other")
        with anyio.fail_after(10), pytest.raises(AuthenticationFailed):
            await client.metadata.update()
        with anyio.fail_after(10), pytest.raises(AuthenticationFailed):
            await client.metadata.wait_for_topics(["t"] if "t" not in client.cluster.topics else ["another"])


async def test_records_wait_for_a_login_and_are_delivered_after_it() -> None:
    passwords = Passwords()
    async with (
        new_broker() as broker,
        aiokwire.Producer(
            broker.bootstrap_servers, reconnect_backoff_max_ms=100, linger_ms=0, **changing(passwords)
        ) as producer,
    ):
        await producer.send("t", b"before", partition=0)
        await change_password(broker, "other")
        waiting = await producer.submit("t", b"after", partition=0)
        unknown = await producer.submit("u", b"new")  # its topic is not known yet
        with anyio.move_on_after(0.5):
            await waiting
        assert not waiting.done()
        passwords.present = "other"
        with anyio.fail_after(15):
            assert (await waiting).offset == 1
        unknown.cancel()


async def test_records_that_no_login_delivers_name_it_when_their_time_is_over() -> None:
    passwords = Passwords()
    async with (
        new_broker() as broker,
        aiokwire.Producer(
            broker.bootstrap_servers,
            reconnect_backoff_max_ms=100,
            linger_ms=0,
            request_timeout_ms=500,
            delivery_timeout_ms=1_000,
            **changing(passwords),
        ) as producer,
    ):
        await producer.send("t", b"before", partition=0)
        await change_password(broker, "other")
        for topic in ("t", "u"):
            with anyio.fail_after(10), pytest.raises(DeliveryFailed, match="login by SCRAM-SHA-256 failed"):
                await producer.send(topic, b"after", partition=0)


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_a_consumer_raises_the_refused_login_and_continues_after_it(group_protocol: str) -> None:
    passwords = Passwords()
    options: dict[str, Any] = {
        "group_protocol": group_protocol,
        "auto_offset_reset": "earliest",
        "reconnect_backoff_max_ms": 100,
    }
    async with (
        new_broker() as broker,
        aiokwire.Producer(broker.bootstrap_servers, reconnect_backoff_max_ms=100, **changing(passwords)) as producer,
        aiokwire.Consumer(
            "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", **options, **changing(passwords)
        ) as consumer,
    ):
        await producer.send("t", b"one", partition=0)
        with anyio.fail_after(15):
            assert (await consumer.getone()).value == b"one"
        await change_password(broker, "other")
        with anyio.fail_after(15), pytest.raises(AuthenticationFailed):
            await consumer.getone()
        passwords.present = "other"
        with anyio.fail_after(15):
            await producer.send("t", b"two", partition=0)
        with anyio.fail_after(30):
            while True:
                try:
                    record = await consumer.getone()
                    break
                except AuthenticationFailed:
                    continue
        assert record.value in (b"one", b"two")  # what is not committed may be delivered again


class Losses(Hooks):
    """Counts connections that were lost."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        if error is not None:
            self.errors.append(error)


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_sessions_are_renewed_under_load_without_a_lost_connection(group_protocol: str) -> None:
    """The broker closes a connection whose session has ended."""
    hooks = Losses()
    count = 400
    received: list[bytes] = []
    async with (
        new_broker(connections_max_reauth_ms=2_500) as broker,
        aiokwire.Producer(broker.bootstrap_servers, hooks=hooks, **LOGIN) as producer,
        aiokwire.Consumer(
            "t",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            group_protocol=group_protocol,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            hooks=hooks,
            **LOGIN,
        ) as consumer,
        anyio.create_task_group() as group,
    ):

        async def produce() -> None:
            for number in range(count):
                await producer.send("t", b"%d" % number)
                await anyio.sleep(0.008)

        group.start_soon(produce)
        with anyio.fail_after(60):
            while len(received) < count:
                received.extend(record.value or b"" for record in await consumer.getmany(timeout=1.0))
    assert hooks.errors == []
    assert sorted(received, key=int) == [b"%d" % number for number in range(count)]


# --- everything together ----------------------------------------------------------------------------------------------


def tls_listener(folder: Path, protocol: str, client_auth: str = "none") -> Listener:
    files = pki.Files(folder)
    tls = TlsOptions(keystore_location=files.store(pki.server()), truststore_location=files.ca())
    return Listener(protocol=protocol, tls=tls, client_auth=client_auth)


def tls_options() -> dict[str, Any]:
    return {"ssl_truststore_certificates": pki.authority().certificate_pem}


async def test_the_end_of_a_client_waits_for_every_connection_that_closes(tmp_path: Path) -> None:
    """With TLS a transport closes some turns of the loop later, when the peer has agreed."""
    async with new_broker(tls_listener(tmp_path, "SSL")) as broker:
        client = Client(bootstrap_servers=broker.bootstrap_servers, security_protocol="SSL", **tls_options())
        await client.start()
        connection = client.nodes.new_connection(client.config.addresses[0], None)
        await connection.connect()
        connection.close()
        assert not connection.is_gone
        await client.close()
        assert connection.is_gone


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
async def test_a_round_trip_with_tls(protocol: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {**tls_options(), "security_protocol": protocol}
    if protocol == "SSL":
        alice = pki.alice()
        options |= {"ssl_keystore_certificate_chain": alice.certificate_pem, "ssl_keystore_key": alice.key_pem}
    else:
        options = LOGIN | options | {"sasl_mechanism": "PLAIN"}
    listener = tls_listener(tmp_path, protocol, "required" if protocol == "SSL" else "none")
    async with new_broker(listener) as broker:
        servers = broker.bootstrap_servers
        async with (
            aiokwire.Producer(servers, transactional_id="tx", **options) as producer,
            producer.transaction(),
        ):
            for number in range(50):
                await producer.submit("t", bytes([number]) * 30_000)
        read: list[bytes] = []
        async with aiokwire.Consumer(
            "t",
            bootstrap_servers=servers,
            group_id="g",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            **options,
        ) as consumer:
            with anyio.fail_after(30):
                while len(read) < 50:
                    read.extend(record.value or b"" for record in await consumer.getmany(timeout=1.0))
            await consumer.commit()
        assert sorted(read) == [bytes([number]) * 30_000 for number in range(50)]
        async with aiokwire.Admin(servers, **options) as admin:
            assert "t" in [topic.name for topic in await admin.list_topics()]
