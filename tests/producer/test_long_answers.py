"""Requests and responses for thousands of partitions do not block the loop's other callbacks."""

# ruff: noqa: TID251

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from aiokwire.error_codes import ErrorCode
from aiokwire.producer import Producer
from aiokwire.protocol.messages import produce
from aiokwire.types import TopicPartition
from tests.producer.conftest import Answer, ScriptedCluster, scripted_cluster

Quick = dict[str, Any]
PARTITIONS = 3000
# Seconds of CPU time; 20 ms is the aim, the rest is for slow machines and garbage collection.
LONGEST = 0.08


@contextmanager
def cluster_in_a_thread(nodes: int) -> Iterator[ScriptedCluster]:
    """Its work is not part of this thread's time."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(scripted_cluster(nodes)) as cluster,
    ):
        yield cluster


class Turns:
    """The CPU time of the longest turn of the loop, while it is entered; without that of the
    garbage collector, which goes through all that the process holds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Turns:
        gc.disable()
        self._task = asyncio.get_running_loop().create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        gc.enable()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest = max(self.longest, now - before)
            before = now


def move_a_third(cluster: ScriptedCluster) -> None:
    """Move every third partition to the other node, which the first response names (KIP-951)."""
    leaders = cluster.leaders["t"]
    moved = {index: 3 - leaders[index] for index in range(0, PARTITIONS, 3)}
    for index, leader in moved.items():
        leaders[index] = leader
    for node in cluster.nodes.values():
        here = node.node_id

        def answer(tp: TopicPartition, data: bytes, here: int = here) -> Answer | None:
            leader = leaders[tp.partition]
            if leader == here:
                return None
            hint = produce.LeaderIdAndEpoch(leader_id=leader, leader_epoch=2)
            return Answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1, current_leader=hint)

        node.on_partition = answer


@pytest.mark.timeout(60)
async def test_a_response_for_thousands_of_partitions_does_not_block_the_loop(quick: Quick) -> None:
    """1,500 partitions took 60 ms in one turn, and 52 ms more until the next request."""
    with cluster_in_a_thread(2) as cluster:
        cluster.leaders["t"] = [1 + index % 2 for index in range(PARTITIONS)]
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            await producer.partitions_for("t")
            for round_ in range(3):
                if round_ == 1:
                    move_a_third(cluster)
                for index in range(PARTITIONS):
                    producer.submit_nowait("t", b"%d" % round_, partition=index)
                async with Turns() as turns:
                    await producer.flush()
                if round_ == 1:
                    assert turns.longest < LONGEST
            assert producer.buffered == 0
        assert all(cluster.values(index) == [b"0", b"1", b"2"] for index in range(PARTITIONS))


@pytest.mark.timeout(60)
async def test_requests_for_thousands_of_partitions_that_are_lost_are_sent_again_in_order(quick: Quick) -> None:
    with cluster_in_a_thread(1) as cluster:
        cluster.leaders["t"] = [1] * PARTITIONS
        lost: list[produce.ProduceRequest] = []

        async def hang_up(request: produce.ProduceRequest) -> bool | None:
            lost.append(request)
            return len(lost) > 3

        cluster.node.on_request = hang_up
        async with Producer(cluster.bootstrap_servers, **quick, max_in_flight_requests_per_connection=2) as producer:
            await producer.partitions_for("t")
            for round_ in range(2):
                for index in range(PARTITIONS):
                    producer.submit_nowait("t", b"%d" % round_, partition=index)
            await producer.flush()
            assert producer.buffered == 0
        assert all(cluster.values(index) == [b"0", b"1"] for index in range(PARTITIONS))


async def test_a_producer_that_closes_while_a_response_is_handled_accounts_for_every_batch(quick: Quick) -> None:
    with cluster_in_a_thread(1) as cluster:
        cluster.leaders["t"] = [1] * PARTITIONS
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick)
        await producer.start()
        await producer.partitions_for("t")
        deliveries = [producer.submit_nowait("t", b"x", partition=index) for index in range(PARTITIONS)]
        await deliveries[0]
        left = await producer.close(timeout=0)
        outcomes = await asyncio.gather(*deliveries, return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(failed) == len(left)
        assert producer.buffered == 0
