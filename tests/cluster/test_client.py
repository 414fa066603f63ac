"""The life cycle of a client, and its requests during failures."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.cluster import (
    ANY,
    CONTROLLER,
    LATEST,
    Client,
    ClientConfig,
    Coordinator,
    CoordinatorKind,
    Leader,
    Node,
    ProduceUncertain,
    list_offsets,
)
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    ClosedError,
    ConnectionFailed,
    RequestTimedOut,
    RetriableError,
    StaleMetadataError,
    UnsupportedVersion,
)
from aiokwire.net import Connection
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import create_topics, heartbeat, list_groups, metadata, produce
from aiokwire.types import TopicPartition

Clusters = Callable[..., AbstractAsyncContextManager[Any]]

ASK = metadata.MetadataRequest(topics=[])
GROUP = Coordinator(CoordinatorKind.GROUP, "g")
HEARTBEAT = heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FAST: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


def client_of(cluster: Any, **options: Any) -> Client:
    return Client(ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **FAST, **options}))


def client_without_broker(port: int) -> Client:
    return Client(ClientConfig(bootstrap_servers=f"127.0.0.1:{port}", bootstrap_timeout_ms=0))


# --- life ------------------------------------------------------------------------------------------------------------


def test_making_a_client_needs_no_event_loop() -> None:
    client = Client(ClientConfig())
    assert repr(client) == "<Client aiokwire new, 0 brokers>"
    with pytest.raises(ClosedError, match="was not started"):
        client.check()


async def test_a_client_starts_and_closes(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        client = client_of(cluster)
        async with client:
            await client.start()
            assert repr(client) == "<Client aiokwire ready, 2 brokers>"
            assert sorted(client.cluster.brokers) == [1, 2]
            assert (await client.request(ASK)).controller_id == 1
        assert client.closed
        await client.close()
        with pytest.raises(ClosedError, match="was closed"):
            await client.request(ASK)
        with pytest.raises(ClosedError, match="was closed"):
            await client.start()


async def test_start_and_close_may_run_in_different_tasks(clusters: Clusters) -> None:
    async with clusters() as cluster:
        client = client_of(cluster)
        for step in (client.start, client.close):
            task = asyncio.get_running_loop().create_task(step())
            await asyncio.wait([task])
            task.result()
        assert client.closed


async def test_the_bootstrap_connection_becomes_the_nodes_own(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        await client.request(ASK)
        assert cluster.nodes[0].accepted == 1
        connection = client.connection_nowait(1)
        assert connection is not None
        assert connection.node_id == 1


async def test_unable_to_bootstrap_lists_every_address_and_how_far_each_came(
    clusters: Clusters, free_port: int
) -> None:
    async with clusters() as cluster:
        cluster.nodes[0].silent = {ApiKey.METADATA}
        addresses = [f"127.0.0.1:{free_port}", *cluster.bootstrap, "no-such-host.invalid:9092"]
        client = client_of(cluster, bootstrap_servers=addresses, request_timeout_ms=100, bootstrap_timeout_ms=0)
        with pytest.raises(ConnectionFailed, match=r"cannot connect to any of 3 bootstrap address\(es\)") as caught:
            await client.start()
        message = str(caught.value)
        assert f"127.0.0.1:{free_port} (stage 'connect', resolved to 127.0.0.1)" in message
        assert "Connection refused" in message
        assert f"{cluster.bootstrap[0]} (stage" in message
        assert "did not respond to MetadataRequest" in message or "no response in time" in message
        assert "no-such-host.invalid:9092 (stage 'resolve')" in message
        assert not client.closed


async def test_a_second_start_waits_for_the_first(clusters: Clusters) -> None:
    async with clusters() as cluster:
        client = client_of(cluster)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.start)
            await anyio.lowlevel.checkpoint()
            await client.start()
            assert set(client.cluster.brokers) == {1}
        await client.close()


async def test_a_second_start_fails_with_the_first(free_port: int) -> None:
    client = client_without_broker(free_port)
    failures: list[Exception] = []

    async def start() -> None:
        try:
            await client.start()
        except ConnectionFailed as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        tasks.start_soon(start)
    assert len(failures) == 2
    assert failures[0] is failures[1]


async def test_a_client_whose_start_failed_can_be_started_again(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.stop()
        client = client_of(cluster, bootstrap_timeout_ms=0)
        for _ in range(2):
            with pytest.raises(ConnectionFailed, match="Connection refused"):
                await client.start()
            with pytest.raises(ClosedError, match="was not started"):
                client.check()
        await node.start()
        await client.start()
        assert (await client.request(ASK)).brokers
        await client.close()
        with pytest.raises(ClosedError, match="was closed"):
            await client.start()


async def test_a_client_whose_start_was_cancelled_can_be_started_again(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.silent = {ApiKey.METADATA}
        client = client_of(cluster)
        with anyio.move_on_after(0.05) as scope:
            await client.start()
        assert scope.cancelled_caught
        node.silent = set()
        await client.start()
        assert (await client.request(ASK)).brokers
        await client.close()


async def test_a_start_retries_and_logs_it_once_at_first(clusters: Clusters, caplog: pytest.LogCaptureFixture) -> None:
    """Services start before their brokers: one attempt made them fail."""
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.stop()
        client = client_of(cluster)
        async with anyio.create_task_group() as group:
            group.start_soon(client.start)
            with anyio.fail_after(5):
                while not caplog.records:
                    await anyio.lowlevel.checkpoint()
            await node.start()
        assert sorted(client.cluster.brokers) == [1]
        await client.close()
    [line] = [record.getMessage() for record in caplog.records if "bootstrap_timeout_ms" in record.getMessage()]
    assert "no broker has responded yet, retrying for up to 30 s" in line
    assert "Connection refused" in line


async def test_the_error_of_a_start_names_its_attempts_and_their_duration(free_port: int) -> None:
    client = Client(
        ClientConfig(**{**FAST, "bootstrap_servers": f"127.0.0.1:{free_port}", "bootstrap_timeout_ms": 300})
    )
    with pytest.raises(
        ConnectionFailed, match=r"Connection refused.*tried \d+ times in \d\.\d s \(bootstrap_timeout_ms"
    ):
        await client.start()


async def test_a_start_fails_at_once_where_retrying_changes_nothing(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.nodes[0].ranges = {ApiKey.API_VERSIONS: (0, 4)}
        for address in (cluster.bootstrap[0], "x" * 70 + ":9092"):  # no such API; not a host name
            with anyio.fail_after(5), pytest.raises(ConnectionFailed):
                await Client(ClientConfig(bootstrap_servers=address)).start()


async def test_close_ends_a_start_that_is_under_way(free_port: int) -> None:
    client = Client(ClientConfig(bootstrap_servers=f"127.0.0.1:{free_port}"))
    ended: list[str] = []

    async def start() -> None:
        try:
            await client.start()
        except ClosedError as error:
            ended.append(str(error))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            await client.close()
    assert ended == ["this client was closed; create a new one"]


async def test_a_failed_start_leaves_nothing_open(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.nodes[0].ranges = {ApiKey.API_VERSIONS: (0, 4)}
        with pytest.raises(ConnectionFailed, match="does not support MetadataRequest"):
            await client_of(cluster).start()
        while cluster.nodes[0].open:
            await anyio.lowlevel.checkpoint()


class Jitter(random.Random):
    """Sets `drawn` when a first delay is drawn: an attempt has failed."""

    drawn: anyio.Event

    def uniform(self, a: float, b: float) -> float:
        self.drawn.set()
        return super().uniform(a, b)


async def test_start_with_a_timeout_waits_for_a_broker_that_comes_up(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.stop()
        jitter = Jitter(1)
        jitter.drawn = anyio.Event()
        client = Client(ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **FAST}), rng=jitter)
        async with anyio.create_task_group() as group:
            group.start_soon(client.start, 10.0)
            await jitter.drawn.wait()
            await node.start()
        assert sorted(client.cluster.brokers) == [1]
        await client.close()


async def test_close_is_bounded_and_fails_all_waits(clusters: Clusters) -> None:
    async with clusters() as cluster:
        client = client_of(cluster)
        await client.start()
        cluster.nodes[0].silent = {ApiKey.METADATA}
        ended: list[BaseException] = []

        async def wait(what: Callable[[], Any]) -> None:
            try:
                await what()
            except (ClosedError, ConnectionFailed) as error:
                ended.append(error)

        async with anyio.create_task_group() as group:
            for what in (
                lambda: client.request(ASK),
                client.metadata.update,
                lambda: client.metadata.wait_for_topics(["t"]),
            ):
                group.start_soon(wait, what)
            await anyio.lowlevel.checkpoint()
            with anyio.fail_after(5):
                await client.close(timeout=1)
        assert len(ended) == 3


async def test_a_failed_background_task_ends_the_client_and_is_reported(
    clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(what: str) -> None:
        raise ZeroDivisionError(what)

    async with clusters() as cluster:
        client = client_of(cluster)
        await client.start()
        client.spawn(broken, "a fault")
        with pytest.raises(ClosedError):
            await client.metadata.update()
        assert client.closed
        with pytest.raises(ClosedError, match="ZeroDivisionError") as caught:
            await client.request(ASK)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(ClosedError):
            client.spawn(broken, "again")
        await client.close()
    assert "a fault" in caplog.text


async def test_use_from_another_loop_is_refused(clusters: Clusters) -> None:
    messages: list[str] = []

    def elsewhere(client: Client) -> None:
        async def main() -> None:
            for use in (lambda: client.request(ASK), client.close):
                try:
                    await use()
                except ClosedError as error:
                    messages.append(str(error))

        asyncio.run(main())

    async with clusters() as cluster, client_of(cluster) as client:
        thread = threading.Thread(target=elsewhere, args=(client,))
        thread.start()
        while thread.is_alive():
            await anyio.lowlevel.checkpoint()
        thread.join()
    assert ["another event loop" in text for text in messages] == [True, True]


async def test_use_after_a_fork_is_refused(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(ClosedError, match="after the fork"):
                await client.request(ASK)
            await client.close()
        assert (await client.request(ASK)).controller_id == 1, "the parent's client is not touched by its fork"


# --- requests --------------------------------------------------------------------------------------------------------


async def test_requests_go_to_their_targets(clusters: Clusters) -> None:
    async with clusters(3) as cluster:
        cluster.topic("t", [3, 2])
        cluster.controller = 2
        cluster.coordinator = 3
        for node in cluster.nodes:
            node.ranges[ApiKey.LIST_GROUPS] = (0, 4)
            node.handlers[ApiKey.LIST_GROUPS] = lambda header, request: list_groups.ListGroupsResponse()
        async with client_of(cluster) as client:
            ask = list_groups.ListGroupsRequest()
            for to, node_id in (
                (Node(1), 1),
                (CONTROLLER, 2),
                (Leader(TopicPartition("t", 0)), 3),
                (Leader(TopicPartition("t", 1)), 2),
                (GROUP, 3),
            ):
                before = cluster.nodes[node_id - 1].count(ApiKey.LIST_GROUPS)
                await client.request(ask, to=to)
                assert cluster.nodes[node_id - 1].count(ApiKey.LIST_GROUPS) == before + 1, to
            await client.request(ask, to=ANY)
            assert cluster.count(ApiKey.LIST_GROUPS) == 6
            assert client.connection_nowait(3, "coordinator") is not None


async def test_a_lost_connection_is_retried(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]
        answers = iter([None, None])
        node.handlers[ApiKey.METADATA] = lambda header, request: next(
            answers, cluster.metadata(request, header.api_version)
        )
        assert (await client.request(ASK, timeout=10)).controller_id == 1


async def test_another_node_is_asked_when_any_can_respond(clusters: Clusters) -> None:
    async with (
        clusters(3) as cluster,
        client_of(cluster, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000) as client,
    ):
        for node in cluster.nodes[:2]:
            node.stop()
        with anyio.fail_after(10):  # without the pause between attempts, which is a minute here
            for _ in range(4):
                assert (await client.request(ASK)).controller_id == 1


async def test_the_error_of_a_deadline_names_the_attempts_and_the_last_error(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        cluster.nodes[0].stop()
        with pytest.raises(
            RequestTimedOut, match=r"MetadataRequest to any broker: did not succeed within 0\.\d+ s"
        ) as caught:
            await client.request(ASK, timeout=0.1)
        assert "Connection refused" in str(caught.value) or "closed the connection" in str(caught.value)
        assert "attempt(s)" in str(caught.value)


async def test_a_deadline_of_one_caller_leaves_the_connection_to_the_others(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        node = cluster.nodes[0]
        node.silent = {ApiKey.METADATA}
        with pytest.raises(RequestTimedOut):
            await client.request(ASK, timeout=0.05)
        connection = client.connection_nowait(1)
        assert connection is not None
        assert connection.in_flight == 1


async def test_a_short_offset_lookup_leaves_the_connection_to_the_others(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [1])
        node = cluster.nodes[0]
        node.ranges[ApiKey.LIST_OFFSETS] = (1, 10)
        node.silent = {ApiKey.LIST_OFFSETS}
        async with client_of(cluster) as client:
            with pytest.raises(RequestTimedOut, match="looking up offsets"):
                await list_offsets(client, {TopicPartition("t", 0): LATEST}, timeout=0.05)
            connection = client.connection_nowait(1)
            assert connection is not None
            assert connection.in_flight == 1


async def test_an_attempt_past_its_timeout_is_retried_on_a_new_connection(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster, request_timeout_ms=50) as client:
        node = cluster.nodes[0]
        node.silent = {ApiKey.METADATA}
        async with anyio.create_task_group() as group:
            before = node.accepted

            async def ask() -> None:
                assert (await client.request(ASK, timeout=10)).controller_id == 1

            group.start_soon(ask)
            await cluster.until(lambda: node.accepted > before)
            node.silent = set()


async def test_a_moved_coordinator_is_looked_up_again(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        for node in cluster.nodes:
            node.ranges[ApiKey.HEARTBEAT] = (0, 4)
        cluster.nodes[1].handlers[ApiKey.HEARTBEAT] = lambda header, request: heartbeat.HeartbeatResponse()

        def moves(header: Any, request: Any) -> heartbeat.HeartbeatResponse:
            cluster.coordinator = 2
            return heartbeat.HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)

        cluster.nodes[0].handlers[ApiKey.HEARTBEAT] = moves
        async with client_of(cluster) as client:
            assert (await client.request(HEARTBEAT, to=GROUP)).error_code == 0
            assert cluster.nodes[1].count(ApiKey.HEARTBEAT) == 1


async def test_a_dead_coordinator_is_looked_up_again(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        for node in cluster.nodes:
            node.ranges[ApiKey.HEARTBEAT] = (0, 4)
            node.handlers[ApiKey.HEARTBEAT] = lambda header, request: heartbeat.HeartbeatResponse()
        async with client_of(cluster) as client:
            await client.request(HEARTBEAT, to=GROUP)
            cluster.nodes[0].stop()
            cluster.coordinator = 2
            await client.request(HEARTBEAT, to=GROUP, timeout=10)
            assert cluster.nodes[1].count(ApiKey.HEARTBEAT) == 1


async def test_a_code_that_stays_is_raised_at_the_deadline(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.ranges[ApiKey.HEARTBEAT] = (0, 4)
        loading = heartbeat.HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        node.handlers[ApiKey.HEARTBEAT] = lambda header, request: loading
        async with client_of(cluster) as client:
            with pytest.raises(RetriableError, match="COORDINATOR_LOAD_IN_PROGRESS"):
                await client.request(HEARTBEAT, to=GROUP, timeout=0.1)
            assert node.count(ApiKey.HEARTBEAT) > 1
            assert node.count(ApiKey.FIND_COORDINATOR) == 1, "it is the right node, only not ready"


async def test_other_error_codes_are_left_to_the_caller(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.ranges[ApiKey.HEARTBEAT] = (0, 4)
        answer = heartbeat.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        node.handlers[ApiKey.HEARTBEAT] = lambda header, request: answer
        async with client_of(cluster) as client:
            assert (await client.request(HEARTBEAT, to=GROUP)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            assert node.count(ApiKey.HEARTBEAT) == 1


async def test_a_new_controller_is_found(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        request = create_topics.CreateTopicsRequest(topics=[create_topics.CreatableTopic(name="t")])

        def answer(code: int) -> create_topics.CreateTopicsResponse:
            return create_topics.CreateTopicsResponse(
                topics=[create_topics.CreatableTopicResult(name="t", error_code=code)]
            )

        for node in cluster.nodes:
            node.ranges[ApiKey.CREATE_TOPICS] = (2, 4)
        cluster.nodes[0].handlers[ApiKey.CREATE_TOPICS] = lambda header, request: answer(ErrorCode.NOT_CONTROLLER)
        cluster.nodes[1].handlers[ApiKey.CREATE_TOPICS] = lambda header, request: answer(0)
        async with client_of(cluster) as client:
            cluster.controller = 2
            response = await client.request(request, to=CONTROLLER, timeout=10)
            assert response.topics[0].error_code == 0


async def test_an_unsupported_request_is_not_retried(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        with pytest.raises(UnsupportedVersion, match="does not support HeartbeatRequest"):
            await client.request(HEARTBEAT)
        assert cluster.count(ApiKey.HEARTBEAT) == 0


async def test_a_produce_that_may_have_been_written_is_not_sent_again(clusters: Clusters) -> None:
    async with clusters() as cluster:
        node = cluster.nodes[0]
        node.ranges[ApiKey.PRODUCE] = (3, 9)
        node.handlers[ApiKey.PRODUCE] = lambda header, request: None
        async with client_of(cluster) as client:
            with pytest.raises(ProduceUncertain, match="may have been written"):
                await client.request(produce.ProduceRequest(acks=1, timeout_ms=10))
        assert node.count(ApiKey.PRODUCE) == 1


async def test_a_throttled_client_waits(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.throttle_ms = 100
        async with client_of(cluster) as client:
            clock = asyncio.get_running_loop().time
            await client.request(ASK)
            before = clock()
            assert client.throttled_until(1) > before
            await client.request(ASK)
            assert clock() - before >= 0.09
            assert client.throttled_until(7) == 0


async def test_a_throttle_longer_than_the_call_is_named_when_the_call_ends(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.throttle_ms = 2**31 - 1
        async with client_of(cluster) as client:
            with pytest.raises(RequestTimedOut, match=r"node 1 at .* throttles this client for another 21474\d+\.\d s"):
                await client.request(ASK, timeout=0.05)


async def test_another_node_is_asked_while_one_does_not_respond(clusters: Clusters) -> None:
    async with clusters(2) as cluster, client_of(cluster, bootstrap_servers=cluster.bootstrap[0]) as client:
        cluster.nodes[0].silent = {ApiKey.METADATA}
        with anyio.fail_after(8):
            assert len((await client.request(ASK)).brokers) == 2


async def test_a_request_waits_for_a_missing_leader(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [-1], epochs=[4])
        async with client_of(cluster) as client:
            with pytest.raises(StaleMetadataError, match="no leader known"):
                await client.request(ASK, to=Leader(TopicPartition("t", 0)), timeout=0.1)
            cluster.topic("t", [1], epochs=[5])
            await client.request(ASK, to=Leader(TopicPartition("t", 0)), timeout=10)
            with pytest.raises(StaleMetadataError, match="1 partitions"):
                await client.request(ASK, to=Leader(TopicPartition("t", 7)), timeout=0.1)


@pytest.mark.parametrize("turns", range(0, 40, 2))
async def test_cancelled_at_any_await_a_request_leaves_a_client_that_works(clusters: Clusters, turns: int) -> None:
    async with clusters(2) as cluster, client_of(cluster) as client:
        for node in cluster.nodes:
            node.drop()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def ask() -> None:
                    await client.request(ASK, to=GROUP if turns % 4 else CONTROLLER)

                group.start_soon(ask)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        for node in cluster.nodes:
            node.ranges[ApiKey.METADATA] = (0, 13)
        assert (await client.request(ASK, to=GROUP, timeout=10)).controller_id == 1
        assert (await client.request(ASK, timeout=10)).controller_id == 1


@pytest.mark.parametrize("turns", range(0, 24, 2))
async def test_cancelled_at_any_await_a_start_leaves_nothing_behind(clusters: Clusters, turns: int) -> None:
    async with clusters(2) as cluster:
        client = client_of(cluster)
        task = asyncio.get_running_loop().create_task(client.start())
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == ("new" in repr(client)) or turns == 0
        await client.close()
        for _ in range(1000):
            if not any(node.open for node in cluster.nodes):
                break
            await anyio.lowlevel.checkpoint()
        assert [node.open for node in cluster.nodes] == [0, 0]


async def test_with_every_broker_down_a_client_sleeps_most_of_the_time(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No busy loop: retries pause, by default from 100 ms to 1 s, reconnects from 50 ms to 5 s."""
    async with clusters(2) as cluster:
        client = Client(ClientConfig(bootstrap_servers=cluster.bootstrap))
        async with client:
            for node in cluster.nodes:
                node.stop()
            attempts = 0
            connect = Connection.connect

            async def counted(self: Connection, timeout: float | None = None) -> None:
                nonlocal attempts
                attempts += 1
                await connect(self, timeout)

            monkeypatch.setattr(Connection, "connect", counted)

            async def ask() -> None:
                with pytest.raises(RequestTimedOut):
                    await client.request(ASK, timeout=1.5)

            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(ask)
                group.start_soon(client.pause, 1.5)
            assert 4 <= attempts <= 30
            assert client.cluster.brokers, "what was known is kept"


async def test_the_cluster_is_found_again_through_the_bootstrap_addresses(clusters: Clusters) -> None:
    """All brokers moved, as in a Kubernetes restart: only the bootstrap name is valid (KIP-899)."""
    async with clusters(1) as lasting, clusters(2) as moving:
        lasting.nodes[0].handlers[ApiKey.METADATA] = lambda header, request: moving.metadata(
            request, header.api_version
        )
        async with client_of(lasting) as client:
            assert sorted(client.cluster.brokers) == [1, 2]
            for node in moving.nodes:
                node.stop()
                node.port = 0
                await node.start()
            assert (await client.request(ASK, timeout=10)).controller_id == 1
            assert client.cluster.brokers[1].port == moving.nodes[0].port


async def test_without_recovery_only_known_brokers_are_asked(clusters: Clusters) -> None:
    async with clusters(1) as lasting, clusters(1) as moving:
        answered = 0

        def answer(header: Any, request: Any) -> Any:
            nonlocal answered
            answered += 1
            return moving.metadata(request, header.api_version)

        lasting.nodes[0].handlers[ApiKey.METADATA] = answer
        async with client_of(lasting, metadata_recovery_strategy="none") as client:
            moving.nodes[0].stop()
            with pytest.raises(RequestTimedOut):
                await client.request(ASK, timeout=0.1)
            assert answered == 1


async def test_a_broker_can_require_a_new_bootstrap(clusters: Clusters) -> None:
    """KIP-1102: the error REBOOTSTRAP_REQUIRED."""
    async with clusters(1) as lasting, clusters(1) as moving:
        lasting.nodes[0].handlers[ApiKey.METADATA] = lambda header, request: moving.metadata(
            request, header.api_version
        )
        refusal = metadata.MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        moving.nodes[0].handlers[ApiKey.METADATA] = lambda header, request: refusal
        async with client_of(lasting) as client:
            await client.metadata.update(10)
            assert moving.nodes[0].count(ApiKey.METADATA) == 1
            assert lasting.nodes[0].count(ApiKey.METADATA) == 2
