"""The client's connections to nodes that start and stop."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import Client, ClientConfig
from aiokwire.errors import ConnectionFailed
from aiokwire.protocol.messages import metadata
from aiokwire.testing import ApiKey

ASK = metadata.MetadataRequest(topics=[])


async def test_a_node_that_left_the_metadata_before_its_connection_broke_is_a_failed_connection() -> None:
    """Its slot was still there, its address was not: the KeyError ended the whole client."""
    async with (
        Broker(nodes=2) as broker,
        Client(ClientConfig(bootstrap_servers=broker.address(1), reconnect_backoff_ms=1)) as client,
    ):
        connection = await client.connection(2)
        held = broker.faults.on(ApiKey.METADATA, node=2).hold()
        answer = connection.send(ASK, timeout=10)
        await held.arrived()
        host, _, port = broker.address(1).rpartition(":")
        alone = metadata.MetadataResponseBroker(node_id=1, host=host, port=int(port))
        broker.faults.on(ApiKey.METADATA, times=None).respond(
            metadata.MetadataResponse(brokers=[alone], controller_id=1)
        )
        await client.metadata.update(5)
        await broker.faults.stop_node(2)
        with pytest.raises(ConnectionFailed):
            await answer
        with pytest.raises(ConnectionFailed, match="not in the metadata"):
            await client.connection(2)
        assert (await client.connection(1)).ready
