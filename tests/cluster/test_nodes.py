"""Connections by node and lane."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from aiokwire.cluster import Client, ClientConfig
from aiokwire.errors import ConnectionFailed
from aiokwire.net import Connection
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import metadata

Clusters = Callable[..., AbstractAsyncContextManager[Any]]

ASK = metadata.MetadataRequest(topics=[])
FAST: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


def client_of(cluster: Any, **options: Any) -> Client:
    return Client(ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **FAST, **options}))


async def test_each_lane_has_its_own_connection(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        main = await client.connection(1)
        fetch = await client.connection(1, "fetch")
        assert main is not fetch
        assert await client.connection(1) is main
        assert await client.connection(1, "fetch") is fetch
        assert client.connection_nowait(1, "fetch") is fetch
        assert client.connection_nowait(1, "fetch-1") is None
        assert cluster.nodes[0].open == 2


async def test_callers_share_one_connection_attempt_and_each_can_be_cancelled(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]
        node.silent = {ApiKey.API_VERSIONS}
        before = node.accepted
        found: list[Connection] = []
        left = 0

        async def want(scope: anyio.CancelScope) -> None:
            nonlocal left
            with scope:
                found.append(await client.connection(1, "fetch"))
            if scope.cancelled_caught:
                left += 1

        scopes = [anyio.CancelScope() for _ in range(6)]
        async with anyio.create_task_group() as group:
            for scope in scopes:
                group.start_soon(want, scope)
            await cluster.until(lambda: node.count(ApiKey.API_VERSIONS) == 2)
            for scope in scopes[::2]:
                scope.cancel()
            node.silent = set()
            node.drop()  # the handshake is retried in an older form, which succeeds
        assert left == 3
        assert len(found) == 3
        assert len(set(map(id, found))) == 1
        assert node.accepted <= before + 2, "one attempt, of two sockets"


async def test_an_unreachable_node_fails_all_waits_and_backs_off(clusters: Clusters) -> None:
    async with (
        clusters(2) as cluster,
        client_of(cluster, reconnect_backoff_ms=30_000, reconnect_backoff_max_ms=30_000) as client,
    ):
        cluster.nodes[1].stop()
        with pytest.raises(ConnectionFailed, match="Connection refused"):
            await client.connection(2, "fetch", timeout=5)
        with anyio.fail_after(10), pytest.raises(ConnectionFailed, match="Connection refused"):
            await client.connection(2, "fetch", timeout=20)  # the pause is longer, whatever its jitter: no wait


async def test_after_the_pause_the_node_is_tried_again(clusters: Clusters) -> None:
    async with clusters(2) as cluster, client_of(cluster) as client:
        node = cluster.nodes[1]
        node.stop()
        for _ in range(3):
            with pytest.raises(ConnectionFailed):
                await client.connection(2, "fetch")
        await node.start()
        assert (await client.connection(2, "fetch")).ready


async def test_one_lane_retries_an_unreachable_node_for_all(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int | None] = []
    connect = Connection.connect

    async def counted(self: Connection, timeout: float | None = None) -> None:
        attempts.append(self.node_id)
        await connect(self, timeout)

    async with clusters(2) as cluster, client_of(cluster) as client:
        node = cluster.nodes[1]
        node.stop()
        monkeypatch.setattr(Connection, "connect", counted)
        rounds, failures = 20, 0

        async def want(lane: str) -> None:
            nonlocal failures
            for _ in range(rounds):
                with pytest.raises(ConnectionFailed, match="Connection refused"):
                    await client.connection(2, lane)
                failures += 1

        lanes = ("fetch", "fetch-1", "coordinator")
        async with anyio.create_task_group() as group:
            for lane in lanes:
                group.start_soon(want, lane)
        assert failures == rounds * len(lanes)
        assert rounds <= attempts.count(2) <= 2 * rounds, "each lane tries by itself only now and then"
        await node.start()
        found = [await client.connection(2, lane) for lane in lanes]
        assert len(set(map(id, found))) == len(lanes)


async def test_a_failed_handshake_does_not_affect_other_lanes(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker was reached: a failure of one connection does not affect another."""
    connect = Connection.connect
    attempts = 0
    under_way, release = anyio.Event(), anyio.Event()

    async def troubled(self: Connection, timeout: float | None = None) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ConnectionFailed("hung up on", stage="handshake")
        if attempts == 2:
            under_way.set()
            await release.wait()
        await connect(self, timeout)

    async with clusters(2) as cluster, client_of(cluster) as client:
        monkeypatch.setattr(Connection, "connect", troubled)
        with pytest.raises(ConnectionFailed, match="hung up on"):
            await client.connection(2, "fetch")
        async with anyio.create_task_group() as group:
            group.start_soon(client.connection, 2, "fetch")
            await under_way.wait()
            with anyio.fail_after(5):
                assert (await client.connection(2, "fetch-1")).ready
            release.set()


async def test_the_error_for_an_unknown_node_lists_the_known_ones(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        with pytest.raises(ConnectionFailed, match=r"node 9 is not in the metadata \(known: \[1\]\)"):
            await client.connection(9)


async def test_a_lost_connection_that_had_worked_is_replaced_at_once(clusters: Clusters) -> None:
    async with (
        clusters() as cluster,
        client_of(cluster, reconnect_backoff_ms=30_000, reconnect_backoff_max_ms=30_000) as client,
    ):
        connection = await client.connection(1, "fetch")
        await connection.request(ASK)
        cluster.nodes[0].drop()
        await connection.wait_closed()
        with anyio.fail_after(5):
            assert (await client.connection(1, "fetch")).ready


async def test_an_idle_connection_is_closed_and_reopened_on_demand(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster, connections_max_idle_ms=100) as client:
        connection = await client.connection(1, "fetch")
        await connection.wait_closed()
        assert connection.error is None
        assert (await client.request(ASK)).controller_id == 1


async def test_a_connection_that_waits_for_a_response_is_not_idle(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster, connections_max_idle_ms=50) as client:
        idle = await client.connection(1, "fetch")
        busy = await client.connection(1, "fetch-1")
        cluster.nodes[0].silent = {ApiKey.METADATA}
        busy.send(ASK)
        await idle.wait_closed()
        assert busy.ready


async def test_the_least_loaded_connected_node_is_chosen(clusters: Clusters) -> None:
    async with clusters(3) as cluster, client_of(cluster) as client:
        connections = [await client.connection(node_id) for node_id in (1, 2, 3)]
        for node in cluster.nodes:
            node.silent = {ApiKey.METADATA}
        waiting = [connections[0].send(ASK), connections[2].send(ASK), connections[2].send(ASK)]
        assert client.nodes.least_loaded() == 2
        waiting += [connections[1].send(ASK), connections[1].send(ASK)]
        assert client.nodes.least_loaded() == 1
        await client.close()
        for future in waiting:
            with pytest.raises(ConnectionFailed):
                await future


async def test_the_choice_among_equals_is_spread(clusters: Clusters) -> None:
    async with clusters(3) as cluster, client_of(cluster) as client:
        for node_id in (1, 2, 3):
            await client.connection(node_id)
        assert {client.nodes.least_loaded() for _ in range(100)} == {1, 2, 3}


async def test_a_node_that_moves_is_reached_at_its_new_address(clusters: Clusters) -> None:
    async with clusters(2) as cluster, client_of(cluster) as client:
        old = await client.connection(2)
        cluster.nodes[1].stop()
        cluster.nodes[1].port = 0
        await cluster.nodes[1].start()
        await old.wait_closed()
        await client.metadata.update(10)
        new = await client.connection(2)
        assert new.address.port == cluster.nodes[1].port
        assert new.address != old.address


async def test_a_node_that_advertises_localhost_to_a_remote_client_is_explained(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        cluster.nodes[1].stop()
        client = client_of(cluster, bootstrap_servers=[cluster.bootstrap[0], "no-such-host.invalid:9092"])
        async with client:
            with pytest.raises(ConnectionFailed, match=r"check the broker's advertised\.listeners"):
                await client.connection(2)


async def test_a_reachable_node_ends_the_pause_of_every_lane(clusters: Clusters) -> None:
    """Metadata returns through the bootstrap address long before the reconnect backoff ends."""
    async with (
        clusters() as cluster,
        client_of(cluster, reconnect_backoff_ms=60_000, reconnect_backoff_max_ms=60_000) as client,
    ):
        node = cluster.nodes[0]
        main = await client.connection(1)
        node.stop()
        await main.wait_closed()
        for lane in ("main", "fetch"):
            with pytest.raises(ConnectionFailed):
                await client.connection(1, lane)
        found: list[Connection] = []

        async def want(lane: str) -> None:
            found.append(await client.connection(1, lane, timeout=120))

        async with anyio.create_task_group() as group:
            for lane in ("main", "fetch"):
                group.start_soon(want, lane)
            await anyio.lowlevel.checkpoint()
            await node.start()
            with anyio.fail_after(10):
                await client.metadata.update()
        assert [connection.ready for connection in found] == [True, True]
