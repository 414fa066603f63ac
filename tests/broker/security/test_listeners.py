"""Several listeners: their options, their addresses in metadata, their ports at several nodes."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.broker import Broker, Listener
from aiokwire.errors import ConfigurationError, InvalidArgument
from aiokwire.protocol.messages import describe_cluster, find_coordinator, metadata
from tests.broker.raw import RawClient

TWO = [Listener(name="INSIDE"), Listener(name="OUTSIDE", advertised="broker.example:9999")]


async def addresses_at(client: RawClient) -> tuple[list[tuple[str, int]], ...]:
    """The addresses in the responses to Metadata, FindCoordinator and DescribeCluster."""
    brokers = (await client.ask(metadata.MetadataRequest(topics=[]), 9)).brokers
    found = await client.ask(find_coordinator.FindCoordinatorRequest(key="g"), 3)
    cluster = (await client.ask(describe_cluster.DescribeClusterRequest(), 0)).brokers
    return (
        [(one.host, one.port) for one in brokers],
        [(found.host, found.port)],
        [(one.host, one.port) for one in cluster],
    )


async def test_clients_receive_the_address_of_the_listener_that_they_use() -> None:
    async with Broker(listeners=TWO) as broker:
        inside = await RawClient.connect(broker, listener="INSIDE")
        for addresses in await addresses_at(inside):
            assert addresses == [("127.0.0.1", broker.port)]
        assert broker.address_of("OUTSIDE") == "broker.example:9999"
        bound = broker.state.configs.static["listeners"].partition("OUTSIDE://127.0.0.1:")[2]
        outside = await _connect(int(bound))
        for addresses in await addresses_at(outside):
            assert addresses == [("broker.example", 9999)]
        await inside.close()
        await outside.close()


async def _connect(port: int) -> RawClient:
    import asyncio

    return RawClient(*await asyncio.open_connection("127.0.0.1", port))


async def test_every_node_has_every_listener() -> None:
    async with Broker(listeners=[Listener(name="A"), Listener(name="B")], nodes=3) as broker:
        for name in "AB":
            client = await RawClient.connect(broker, listener=name) if name == "A" else None
            addresses = broker.address_of(name).split(",")
            assert len(set(addresses)) == 3
            if client is not None:
                brokers = (await addresses_at(client))[0]
                assert [f"{host}:{port}" for host, port in brokers] == addresses
                await client.close()
        assert not set(broker.address_of("A").split(",")) & set(broker.address_of("B").split(","))
        assert broker.bootstrap_servers == broker.address_of("A")


async def test_a_node_that_stops_and_starts_keeps_the_ports_of_all_listeners() -> None:
    async with Broker(listeners=[Listener(name="A"), Listener(name="B")], nodes=2) as broker:
        before = broker.address_of("A"), broker.address_of("B")
        await broker.faults.stop_node(2)
        await broker.faults.start_node(2)
        assert (broker.address_of("A"), broker.address_of("B")) == before
        port = int(before[1].rpartition(":")[2])
        client = await _connect(port)
        assert len((await addresses_at(client))[0]) == 2
        await client.close()


async def test_kafkas_configs_name_listeners() -> None:
    async with Broker(
        listeners="IN://127.0.0.1:0,SASL_PLAINTEXT://localhost:0",
        listener_security_protocol_map="IN:PLAINTEXT",
        advertised_listeners="IN://example.test:1234",
        sasl_enabled_mechanisms="PLAIN",
    ) as broker:
        assert [(one.name, one.protocol) for one in broker.listeners] == [
            ("IN", "PLAINTEXT"),
            ("SASL_PLAINTEXT", "SASL_PLAINTEXT"),
        ]
        assert broker.address_of("IN") == "example.test:1234"
        assert (
            broker.state.configs.text("listener.security.protocol.map") == "IN:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        )
        with pytest.raises(InvalidArgument, match="the broker has no listener 'X'; it has IN, SASL_PLAINTEXT"):
            broker.address_of("X")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"listeners": "x"}, "must be NAME://host:port"),
        ({"listeners": "X://:0"}, "add X:SASL_SSL"),
        ({"listeners": "PLAINTEXT://:0,PLAINTEXT://:0"}, "names PLAINTEXT twice"),
        ({"listeners": ""}, "at least one listener"),
        ({"listeners": "PLAINTEXT://:0", "advertised_listeners": "X://:0"}, "names X, which listeners does not name"),
        ({"listeners": "PLAINTEXT://:0", "listen": "127.0.0.1:1"}, "not both"),
        ({"listeners": [Listener()], "advertised": "a:1"}, "not both"),
        ({"listeners": [Listener(), "x"]}, "must be a list of Listener objects"),
        ({"listeners": [Listener(), Listener()]}, "names PLAINTEXT twice"),
        ({"listener_name_sasl_ssl_ssl_client_auth": "required"}, r"without listener\.name\.NAME\., for all listeners"),
    ],
)
def test_contradictory_listeners_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Broker(**options)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "TLS"}, "the protocol of a listener must be one of"),
        ({"name": "a b"}, "must consist of letters"),
        ({"client_auth": "maybe"}, "client_auth must be one of"),
        ({"address": "x"}, "host:port"),
        ({"advertised": "x"}, "host:port"),
    ],
)
def test_a_listener_checks_its_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Listener(**options)


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        (Listener(protocol="SASL_PLAINTEXT", mechanisms=["X"]), "the broker has no SASL mechanism X"),
        (Listener(protocol="SSL"), "a TLS listener needs a certificate"),
    ],
)
async def test_a_broker_with_a_listener_that_cannot_work_does_not_start(listener: Listener, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await Broker(listeners=[listener]).start()
