"""`Client.metrics()`: connections, logins, bytes and latencies."""

from __future__ import annotations

import anyio
import pytest

import aiokwire
from aiokwire.broker import Broker, Listener
from aiokwire.cluster import Client, metrics
from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.net import metrics as net
from aiokwire.protocol.messages.metadata import MetadataRequest
from tests.cluster.test_secured_clients import LOGIN, new_broker
from tests.metric_values import value_of


async def test_connections_requests_and_bytes_are_counted() -> None:
    async with Broker() as broker, Client(broker.bootstrap_servers, client_id="me") as client:
        before = client.metrics()
        for _ in range(3):
            await client.request(MetadataRequest(topics=[]))
        found = client.metrics()
        assert value_of(found, net.CREATION, id="me") == 1
        assert value_of(found, metrics.CONNECTIONS) == 1
        assert value_of(found, metrics.IN_FLIGHT) == 0
        assert value_of(found, net.LATENCY, request="Metadata", id="1", port=str(broker.port)) == 3
        assert value_of(found, net.OUTGOING) > value_of(before, net.OUTGOING)
        assert value_of(found, net.INCOMING) > value_of(before, net.INCOMING)
        assert value_of(found, metrics.METADATA_AGE) >= 0


async def test_a_closed_connection_is_counted_as_closed_and_not_as_open() -> None:
    async with Broker() as broker:
        client = Client(broker.bootstrap_servers)
        assert value_of(client.metrics(), metrics.CONNECTIONS) == 0, "it was not started"
        async with client:
            assert value_of(client.metrics(), net.CLOSE) == 0
        assert value_of(client.metrics(), net.CLOSE) == 1
        assert value_of(client.metrics(), metrics.CONNECTIONS) == 0


async def test_attempts_to_connect_that_fail_are_counted(free_port: int) -> None:
    client = Client(f"127.0.0.1:{free_port}")
    with pytest.raises(ConnectionFailed):
        await client.start(timeout=0)
    assert value_of(client.metrics(), net.FAILURE) == 1
    assert value_of(client.metrics(), net.LOGIN_FAILURE) == 0


async def test_logins_and_refused_logins_are_counted() -> None:
    async with new_broker() as broker:
        async with aiokwire.Admin(broker.bootstrap_servers, **LOGIN) as admin:
            assert value_of(admin.metrics(), net.LOGIN) == 1
            assert value_of(admin.metrics(), net.LOGIN_FAILURE) == 0
        guess = Client(broker.bootstrap_servers, **{**LOGIN, "sasl_plain_password": "guess"})
        with anyio.fail_after(10), pytest.raises(AuthenticationFailed):
            await guess.start(timeout=60)
        assert value_of(guess.metrics(), net.LOGIN) == 0
        assert value_of(guess.metrics(), net.LOGIN_FAILURE) == 1


async def test_renewed_sessions_are_counted() -> None:
    async with (
        new_broker(Listener(protocol="SASL_PLAINTEXT"), connections_max_reauth_ms=3000) as broker,
        Client(broker.bootstrap_servers, **LOGIN) as client,
    ):
        with anyio.fail_after(20):
            while not value_of(client.metrics(), net.RENEWAL):
                await client.request(MetadataRequest(topics=[]))
        assert value_of(client.metrics(), net.LOGIN) >= 1
        assert value_of(client.metrics(), net.RENEWAL_FAILURE) == 0
