"""Metadata is refreshed for waiting callers, with no more requests than needed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.backoff import Backoff
from aiokwire.broker import Broker
from aiokwire.cluster import Client, ClientConfig, Cluster
from aiokwire.cluster.bootstrap import MOST_BROKERS
from aiokwire.cluster.metadata import Metadata
from aiokwire.cluster.snapshot import SLICE
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    ConnectionFailed,
    InvalidRequestError,
    ProtocolViolation,
    RequestTimedOut,
    StaleMetadataError,
)
from aiokwire.hooks import Hooks
from aiokwire.protocol import ApiKey, RequestHeader
from aiokwire.protocol.messages import metadata
from aiokwire.types import TopicPartition
from tests.simulation.loop import SimLoop, run

Clusters = Callable[..., AbstractAsyncContextManager[Any]]

FAST: dict[str, Any] = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
    "metadata_min_interval_ms": 1,
}
TP = TopicPartition("t", 0)


def client_of(cluster: Any, hooks: Hooks | None = None, **options: Any) -> Client:
    return Client(ClientConfig(**{"bootstrap_servers": cluster.bootstrap, **FAST, **options}), hooks=hooks)


def asked_for(cluster: Any) -> list[list[str] | None]:
    """The topics of each metadata request."""
    return [
        None if request.topics is None else [topic.name for topic in request.topics]
        for node in cluster.nodes
        for header, request in node.asked
        if header.api_key == ApiKey.METADATA
    ]


async def test_a_topic_is_known_after_one_request(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        cluster.topic("t", [2, 1], epochs=[3, 4], topic_id=bytes(15) + b"\x07")
        async with client_of(cluster) as client:
            found = await client.metadata.wait_for_topics(["t"])
            assert [partition.leader for partition in found.topics["t"].partitions] == [2, 1]
            assert found.topic_name(bytes(15) + b"\x07") == "t"
            assert await client.metadata.wait_for_topics(["t"]) is found
            assert asked_for(cluster) == [[], ["t"]]


async def test_the_first_request_for_a_topic_does_not_wait_for_the_interval(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [1])
        async with client_of(cluster, metadata_min_interval_ms=60_000) as client:
            with anyio.fail_after(5):
                found = await client.metadata.wait_for_topics(["t"])
            assert [partition.leader for partition in found.topics["t"].partitions] == [1]


async def test_equal_requests_share_one_refresh(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        before = cluster.count(ApiKey.METADATA)
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(client.metadata.update, 10)
        assert cluster.count(ApiKey.METADATA) == before + 1


async def test_an_update_is_newer_than_its_call(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        version = client.cluster.version
        cluster.controller = 1
        assert (await client.metadata.update(10)).version > version


async def test_refreshes_without_changes_have_growing_pauses(clusters: Clusters) -> None:
    async with (
        clusters() as cluster,
        client_of(cluster, metadata_min_interval_ms=20, retry_backoff_ms=20, retry_backoff_max_ms=1000) as client,
    ):
        before = cluster.count(ApiKey.METADATA)
        with pytest.raises(StaleMetadataError):
            await client.metadata.wait_for_topics(["t"], 0.5)
        assert 2 <= cluster.count(ApiKey.METADATA) - before <= 6


async def test_a_topic_that_appears_while_it_is_waited_for_is_found(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.metadata.wait_for_topics, ["t"], 10)
            await cluster.until(lambda: asked_for(cluster).count(["t"]) == 2)
            cluster.topic("t", [1])
        assert client.cluster.leader(TP) == 1


async def test_a_topic_that_does_not_exist_is_reported_after_the_timeout(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        with pytest.raises(StaleMetadataError, match="allow_auto_create_topics is off: check its name") as caught:
            await client.metadata.wait_for_topics(["t"], 0.1)
        assert caught.value.topic == "t"
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidRequestError),
    ],
)
async def test_a_permanent_error_of_a_topic_is_raised_at_once(
    clusters: Clusters, code: int, kind: type[Exception]
) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [], error_code=code)
        async with client_of(cluster) as client:
            with anyio.fail_after(5), pytest.raises(kind, match="topic 't'"):
                await client.metadata.wait_for_topics(["t"], 60)


async def test_without_a_response_the_timeout_names_the_last_error(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster) as client:
        cluster.nodes[0].stop()
        with pytest.raises(RequestTimedOut, match="cannot connect to any of"):
            await client.metadata.wait_for_topics(["t"], 0.2)
        with pytest.raises(RequestTimedOut, match="refreshing the metadata"):
            await client.metadata.update(0.05)


async def test_auto_creation_is_requested_only_when_allowed(clusters: Clusters) -> None:
    for allowed in (False, True):
        async with clusters() as cluster:
            cluster.topic("t", [1])
            async with client_of(cluster, allow_auto_create_topics=allowed) as client:
                await client.metadata.wait_for_topics(["t"])
            assert {request.allow_auto_topic_creation for _, request in cluster.nodes[0].asked[1:]} == {allowed}


@pytest.mark.parametrize("newest", [0, 1, 3, 4, 7, 9, 12])
async def test_old_metadata_versions_are_enough(clusters: Clusters, newest: int) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [1, 1])
        cluster.nodes[0].ranges[ApiKey.METADATA] = (0, newest)
        async with client_of(cluster) as client:
            assert len((await client.metadata.wait_for_topics(["t"])).topics["t"].partitions) == 2
            assert set(client.cluster.topics) == {"t"}


async def test_all_topics_on_demand(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.topic("a", [1])
        cluster.topic("b", [1])
        async with client_of(cluster) as client:
            assert set(client.cluster.topics) == set()
            client.metadata.want_all()
            assert set((await client.metadata.update(10)).topics) == {"a", "b"}
            del cluster.topics["a"]
            assert set((await client.metadata.update(10)).topics) == {"b"}
            client.metadata.want_all(False)
            assert set((await client.metadata.update(10)).topics) == set()


def in_simulated_time(
    main: Callable[[Metadata], Coroutine[Any, Any, None]], existing: Callable[[float], set[str]], **options: Any
) -> None:
    """Run `main` on a loop with exact time; the cluster's topics depend on the time since start."""

    async def ask(topics: Collection[str] | None) -> metadata.MetadataResponse:
        has = existing(loop.elapsed)
        return metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=1, host="one", port=9092)],
            topics=[
                metadata.MetadataResponseTopic(
                    error_code=ErrorCode.NONE if name in has else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    name=name,
                    partitions=[metadata.MetadataResponsePartition(leader_id=1)] if name in has else [],
                )
                for name in topics or ()
            ],
        )

    async def run_it() -> None:
        backoff = Backoff(0.001, 0.005, rng=random.Random(1))
        kept = Metadata(ClientConfig(**{**FAST, **options}), ask=ask, backoff=backoff)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.run)
            await main(kept)
            tasks.cancel_scope.cancel()

    loop = SimLoop(1)
    run(loop, run_it())


def test_unused_topics_are_dropped_unless_pinned() -> None:
    async def main(kept: Metadata) -> None:
        kept.pin(["c"])
        await kept.wait_for_topics(["a", "b", "c"])
        await anyio.sleep(0.03)
        kept.want(["b"])
        await anyio.sleep(0.03)
        assert set((await kept.update(10)).topics) == {"b", "c"}
        kept.pin([])
        await anyio.sleep(0.05)
        assert set((await kept.update(10)).topics) == set()

    in_simulated_time(main, lambda elapsed: {"a", "b", "c"}, metadata_max_idle_ms=40)


def test_awaited_topics_stay_in_refreshes_beyond_the_idle_time() -> None:
    async def main(kept: Metadata) -> None:
        assert set((await kept.wait_for_topics(["late"], 5)).topics) == {"late"}

    in_simulated_time(main, lambda elapsed: {"late"} if elapsed > 1 else set(), metadata_max_idle_ms=40)


async def test_metadata_is_refreshed_by_age(clusters: Clusters) -> None:
    async with clusters() as cluster, client_of(cluster, metadata_max_age_ms=20):
        before = cluster.count(ApiKey.METADATA)
        await cluster.until(lambda: cluster.count(ApiKey.METADATA) >= before + 3)


async def test_listeners_see_each_snapshot(clusters: Clusters) -> None:
    seen: list[int] = []

    def listener(cluster: Cluster) -> None:
        seen.append(cluster.version)

    async with clusters() as cluster, client_of(cluster) as client:
        client.metadata.add_listener(listener)
        first = (await client.metadata.update(10)).version
        second = (await client.metadata.update(10)).version
        client.metadata.remove_listener(listener)
        client.metadata.remove_listener(listener)
        await client.metadata.update(10)
        assert seen == [first, second]


async def test_a_leader_hint_moves_the_leader_or_asks(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        cluster.topic("t", [1], epochs=[5])
        async with client_of(cluster) as client:
            await client.metadata.wait_for_topics(["t"])
            client.metadata.update_leader(TP, 2, 6)
            client.metadata.update_leader(TP, 1, 5)
            await anyio.lowlevel.checkpoint()
            assert client.cluster.leader(TP) == 2
            client.metadata.update_leader(TP, 1, 5)
            await anyio.lowlevel.checkpoint()
            assert client.cluster.leader(TP) == 2
            asked = cluster.count(ApiKey.METADATA)
            client.metadata.update_leader(TP, 7, 9)
            await cluster.until(lambda: cluster.count(ApiKey.METADATA) > asked)
            client.metadata.update_leader(TP, 7, 9, "h", 1)
            await anyio.lowlevel.checkpoint()
            assert client.cluster.leader(TP) == 7


async def test_the_leader_hints_of_one_response_are_one_snapshot(clusters: Clusters) -> None:
    """Each of 1,000 hints made a snapshot of 3,000 partitions; each listener read it all: 13 s."""
    seen: list[Cluster] = []
    async with clusters(2) as cluster:
        cluster.topic("t", [1] * 3000, epochs=[5] * 3000)
        async with client_of(cluster) as client:
            before = await client.metadata.wait_for_topics(["t"])
            client.metadata.add_listener(seen.append)
            for partition in range(1000):
                client.metadata.update_leader(TopicPartition("t", partition), 2, 6)
            await anyio.lowlevel.checkpoint()
            [after] = seen
            assert after is client.cluster
            assert after.version == before.version + 1
            assert [partition.leader for partition in after.topics["t"].partitions] == [2] * 1000 + [1] * 2000


async def test_a_partition_without_a_leader_is_checked_again(clusters: Clusters) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [-1], epochs=[5])
        async with client_of(cluster) as client:
            await client.metadata.wait_for_topics(["t"])
            cluster.topic("t", [1], epochs=[6])
            with anyio.fail_after(5):
                while client.cluster.leader(TP) is None:
                    await anyio.lowlevel.checkpoint()
            assert client.cluster.leader(TP) == 1


async def test_a_response_without_brokers_changes_nothing(clusters: Clusters) -> None:
    """A broker that is starting returns no brokers; the last snapshot is kept."""
    async with clusters() as cluster, client_of(cluster) as client:
        cluster.nodes[0].handlers[ApiKey.METADATA] = lambda header, request: metadata.MetadataResponse()
        with pytest.raises(RequestTimedOut, match="without brokers"):
            await client.metadata.update(0.1)
        assert sorted(client.cluster.brokers) == [1]


@pytest.mark.parametrize("when", ["at a refresh", "at the start"])
async def test_an_implausible_response_counts_as_a_failure(clusters: Clusters, when: str) -> None:
    async with clusters() as cluster:
        cluster.topic("t", [1])
        [node] = cluster.nodes

        def impossible(header: RequestHeader, request: Any) -> metadata.MetadataResponse:
            answer: metadata.MetadataResponse = cluster.metadata(request, header.api_version)
            for topic in answer.topics:
                topic.partitions[0].partition_index = -1
            return answer

        client = client_of(cluster)
        if when == "at the start":
            node.handlers[ApiKey.METADATA] = impossible
            client.metadata.pin(["t"])
            with pytest.raises(ProtocolViolation, match="names 1 partitions of 't'"):
                await client.start()
            with anyio.fail_after(5):
                while node.open:
                    await anyio.lowlevel.checkpoint()
            return
        async with client:
            await client.metadata.wait_for_topics(["t"])
            node.handlers[ApiKey.METADATA] = impossible
            with pytest.raises(RequestTimedOut, match="names 1 partitions of 't'"):
                await client.metadata.update(0.1)
            del node.handlers[ApiKey.METADATA]
            assert (await client.metadata.update()).leader(TP) == 1


async def test_a_node_with_an_invalid_address_is_only_unreachable(clusters: Clusters) -> None:
    async with clusters(2) as cluster:
        cluster.advertised[2] = ("127.0.0.1", 70_000)
        async with client_of(cluster) as client:
            while 2 not in client.cluster.brokers:
                await client.metadata.update()
            with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:70000 is not the address"):
                await client.connection(2)
            assert not client.closed


async def test_a_silent_node_does_not_hold_a_refresh_up(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiokwire.cluster.client.STAGGER", 0.02)
    async with clusters(3) as cluster, client_of(cluster) as client:
        for node in cluster.nodes[:2]:
            node.silent = {ApiKey.METADATA}
        with anyio.fail_after(5):
            for _ in range(4):
                await client.metadata.update()
        assert client.metadata.last_error is None


async def test_hooks_receive_snapshots_and_may_fail(clusters: Clusters, caplog: pytest.LogCaptureFixture) -> None:
    class Recorder(Hooks):
        seen: tuple[int, int] | None = None

        def on_metadata(self, version: int, brokers: int, topics: int) -> None:
            self.seen = (brokers, topics)
            raise ValueError("a hook with a fault")

    hooks = Recorder()
    async with clusters(2) as cluster:
        cluster.topic("t", [1])
        async with client_of(cluster, hooks) as client:
            await client.metadata.wait_for_topics(["t"])
        assert hooks.seen == (2, 1)
    assert "a hook with a fault" in caplog.text


# --- large responses --------------------------------------------------------------------------------------------------


def topics_led_by(leader: int, count: int, epoch: int) -> list[metadata.MetadataResponseTopic]:
    partition = metadata.MetadataResponsePartition(leader_id=leader, leader_epoch=epoch)
    return [metadata.MetadataResponseTopic(name=f"t{number}", partitions=[partition]) for number in range(count)]


async def adopting(kept: Metadata, meanwhile: Callable[[], object]) -> int:
    """Let a client adopt thousands of topics; return how many turns others had."""
    brokers = [metadata.MetadataResponseBroker(node_id=node, host="h", port=9092) for node in (1, 2)]
    turns = 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            kept.accept_first, metadata.MetadataResponse(brokers=brokers, topics=topics_led_by(1, 10 * SLICE, 1))
        )
        version = kept.cluster.version
        while kept.cluster.version == version:
            await anyio.lowlevel.checkpoint()
            turns += 1
            if turns == 3:
                meanwhile()
    return turns


async def test_other_tasks_run_while_a_large_response_is_adopted() -> None:
    kept = Metadata(ClientConfig(**FAST), ask=never, backoff=Backoff(0.001, 0.005, rng=random.Random(1)))
    kept.want_all()
    for _ in range(2):
        assert await adopting(kept, lambda: None) >= 20, "each topic and its partition count"
    assert len(kept.cluster.topics) == 10 * SLICE


async def never(topics: Collection[str] | None) -> metadata.MetadataResponse:
    raise AssertionError(f"asked for {topics}")


async def test_a_leader_that_another_response_names_meanwhile_is_kept() -> None:
    kept = Metadata(ClientConfig(**FAST), ask=never, backoff=Backoff(0.001, 0.005, rng=random.Random(1)))
    kept.want_all()
    await adopting(kept, lambda: None)
    moved = TopicPartition("t7", 0)
    await adopting(kept, lambda: kept.update_leader(moved, 2, 5))
    assert kept.cluster.leader(moved) == 2
    assert kept.cluster.leader(TopicPartition("t8", 0)) == 1


async def test_more_brokers_than_a_cluster_has_are_refused() -> None:
    crowd = [metadata.MetadataResponseBroker(node_id=node, host="h", port=9092) for node in range(MOST_BROKERS + 1)]
    async with Broker() as broker:
        broker.faults.on(ApiKey.METADATA).respond(metadata.MetadataResponse(brokers=crowd))
        with pytest.raises(ConnectionFailed, match="metadata of 10001 brokers, more than 10000"):
            await Client(ClientConfig(bootstrap_servers=broker.bootstrap_servers)).start()
