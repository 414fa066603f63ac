"""Lookup of coordinators: one request, cached, repeated when the coordinator has moved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from aiokwire.cluster import Client, ClientConfig, CoordinatorKind
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, ClosedError, RequestTimedOut
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import find_coordinator

Clusters = Callable[..., AbstractAsyncContextManager[Any]]

FAST: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}
GROUP, TRANSACTION = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION


def client_of(cluster: Any, **options: Any) -> Client:
    return Client(ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **FAST, **options}))


def requests(cluster: Any) -> list[find_coordinator.FindCoordinatorRequest]:
    return [
        request for node in cluster.nodes for header, request in node.asked if header.api_key == ApiKey.FIND_COORDINATOR
    ]


async def find_all(client: Client, *keys: str, kind: CoordinatorKind = GROUP) -> list[int]:
    found: list[int] = []

    async def find(key: str) -> None:
        found.append(await client.coordinators.find(kind, key, 10))

    async with anyio.create_task_group() as group:
        for key in keys:
            group.start_soon(find, key)
    return found


async def test_equal_lookups_share_one_request_and_the_result_is_cached(clusters: Clusters) -> None:
    async with clusters(2) as cluster, client_of(cluster) as client:
        cluster.coordinator = 2
        assert await find_all(client, *["g"] * 10) == [2] * 10
        assert await find_all(client, "g") == [2]
        assert len(requests(cluster)) == 1
        client.coordinators.forget(GROUP, "g")
        client.coordinators.forget(GROUP, "never seen")
        cluster.coordinator = 1
        assert await find_all(client, "g") == [1]


async def test_different_keys_are_requested_together_and_kinds_separately(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        await find_all(client, "a", "b", "c")
        await find_all(client, "a", kind=TRANSACTION)
        assert [(request.key_type, sorted(request.coordinator_keys)) for request in requests(cluster)] == [
            (0, ["a", "b", "c"]),
            (1, ["a"]),
        ]


@pytest.mark.parametrize("newest", [0, 1, 3])
async def test_old_brokers_are_asked_one_key_at_a_time(clusters: Clusters, newest: int) -> None:
    async with clusters() as cluster:
        cluster.nodes[0].ranges[ApiKey.FIND_COORDINATOR] = (0, newest)
        async with client_of(cluster) as client:
            assert await find_all(client, "a", "b") == [1, 1]
            assert [request.key for request in requests(cluster)] == ["a", "b"]


async def test_an_old_broker_can_be_asked_for_many_keys(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.nodes[0].ranges[ApiKey.FIND_COORDINATOR] = (0, 3)
        async with client_of(cluster) as client:
            groups = [f"g{number}" for number in range(1200)]
            assert set(await find_all(client, *groups)) == {1}


async def test_a_response_without_a_node_is_not_a_coordinator(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]

        def empty(header: Any, request: Any) -> find_coordinator.FindCoordinatorResponse:
            del node.handlers[ApiKey.FIND_COORDINATOR]
            return find_coordinator.FindCoordinatorResponse()

        node.handlers[ApiKey.FIND_COORDINATOR] = empty
        assert await find_all(client, "g") == [1]
        assert len(requests(cluster)) == 2


async def test_an_unavailable_coordinator_is_looked_up_again(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]

        def answer(header: Any, request: Any) -> find_coordinator.FindCoordinatorResponse:
            del node.handlers[ApiKey.FIND_COORDINATOR]
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return find_coordinator.FindCoordinatorResponse(
                coordinators=[find_coordinator.Coordinator(key="g", node_id=-1, error_code=code)]
            )

        node.handlers[ApiKey.FIND_COORDINATOR] = answer
        assert await find_all(client, "g") == [1]
        assert len(requests(cluster)) == 2


async def test_a_lookup_is_repeated_after_a_lost_connection(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]

        def hang_up(header: Any, request: Any) -> None:
            del node.handlers[ApiKey.FIND_COORDINATOR]

        node.handlers[ApiKey.FIND_COORDINATOR] = hang_up
        assert await find_all(client, "g") == [1]


async def test_a_refusal_is_final_for_its_key_alone(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:

        def answer(header: Any, request: Any) -> find_coordinator.FindCoordinatorResponse:
            return find_coordinator.FindCoordinatorResponse(
                coordinators=[
                    find_coordinator.Coordinator(
                        key=key,
                        node_id=1,
                        host="127.0.0.1",
                        port=cluster.nodes[0].port,
                        error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED if key == "secret" else 0,
                    )
                    for key in request.coordinator_keys
                ]
            )

        cluster.nodes[0].handlers[ApiKey.FIND_COORDINATOR] = answer

        async def refused() -> None:
            with pytest.raises(AuthorizationError, match="group 'secret'"):
                await client.coordinators.find(GROUP, "secret", 10)

        async with anyio.create_task_group() as group:
            group.start_soon(refused)
            assert await client.coordinators.find(GROUP, "open", 10) == 1


async def test_a_cancelled_lookup_does_not_cancel_the_lookup_of_others(clusters: Clusters) -> None:
    """A commit that is cancelled must not cancel the heartbeat's lookup of the same coordinator."""
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]
        node.silent = {ApiKey.FIND_COORDINATOR}
        found: list[int] = []

        async def patient() -> None:
            found.append(await client.coordinators.find(GROUP, "g", 10))

        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as hasty:
                async with anyio.create_task_group() as inner:
                    inner.start_soon(client.coordinators.find, GROUP, "g", 10)
                    await anyio.lowlevel.checkpoint()
                    group.start_soon(patient)
                    await cluster.until(lambda: node.count(ApiKey.FIND_COORDINATOR) == 1)
                    hasty.cancel()
            node.silent = set()
            node.drop()
        assert found == [1]


async def test_the_timeout_of_a_lookup_names_the_last_error(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:

        def answer(header: Any, request: Any) -> find_coordinator.FindCoordinatorResponse:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return find_coordinator.FindCoordinatorResponse(
                coordinators=[find_coordinator.Coordinator(key="g", node_id=-1, error_code=code)]
            )

        cluster.nodes[0].handlers[ApiKey.FIND_COORDINATOR] = answer
        with pytest.raises(RequestTimedOut, match=r"coordinator of group 'g'.*COORDINATOR_NOT_AVAILABLE"):
            await client.coordinators.find(GROUP, "g", 0.1)
        asked = len(requests(cluster))
        await client.pause(0.05)
        assert len(requests(cluster)) <= asked + 1, "no request without a waiting caller"


async def test_closing_ends_a_lookup(clusters: Clusters) -> None:
    async with clusters() as cluster:
        client = client_of(cluster)
        await client.start()
        cluster.nodes[0].silent = {ApiKey.FIND_COORDINATOR}

        async def find() -> None:
            with pytest.raises(ClosedError):
                await client.coordinators.find(GROUP, "g", 10)

        async with anyio.create_task_group() as group:
            group.start_soon(find)
            await anyio.lowlevel.checkpoint()
            await client.close()


async def test_a_silent_node_costs_a_second_and_not_the_request_timeout(clusters: Clusters) -> None:
    """A member waited 30 s and more for its first record: each request went to the silent node."""
    async with clusters(3) as cluster:
        silent = cluster.nodes[0]
        silent.silent = {ApiKey.FIND_COORDINATOR}
        cluster.coordinator = 2
        async with Client(ClientConfig(bootstrap_servers=cluster.bootstrap[0], **FAST)) as client:  # connected to it
            with anyio.fail_after(8):
                assert await client.coordinators.find(GROUP, "g", 60) == 2
            assert silent.count(ApiKey.FIND_COORDINATOR) == 1, "the test asks the silent node first"


async def test_a_node_that_missed_a_deadline_is_the_last_to_be_asked(clusters: Clusters) -> None:
    async with clusters(3) as cluster:
        silent = cluster.nodes[0]
        silent.silent = {ApiKey.FIND_COORDINATOR}
        cluster.coordinator = 2
        bootstrap = cluster.bootstrap[0]
        async with Client(ClientConfig(bootstrap_servers=bootstrap, request_timeout_ms=1_200, **FAST)) as client:
            await client.coordinators.find(GROUP, "g", 60)
            connection = client.connection_nowait(1)
            assert connection is not None
            with anyio.fail_after(8):
                await connection.wait_closed()
            started = anyio.current_time()
            for number in range(20):
                assert await client.coordinators.find(GROUP, f"g{number}", 60) == 2
            assert anyio.current_time() - started < 10  # each would take a second
            assert silent.count(ApiKey.FIND_COORDINATOR) == 1
