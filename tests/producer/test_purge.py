"""Purging during a transaction, a topic lookup, a bulk call and a flush."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import DeliveryFailed, TransactionAborted
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import produce
from tests.producer.conftest import scripted_cluster

Quick = dict[str, Any]
LONG: dict[str, Any] = {"linger_ms": 30_000}


@pytest.mark.parametrize("transaction_v2", [False, True], ids=["first protocol", "second protocol"])
@pytest.mark.parametrize("sent", [0, 1])
async def test_a_transaction_that_lost_records_to_a_purge_cannot_commit(
    transaction_v2: bool, sent: int, quick: Quick
) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=transaction_v2)
        async with Producer(cluster.bootstrap_servers, transactional_id="tx", **quick, **LONG) as producer:
            await producer.partitions_for("t")

            async def work() -> None:
                async with producer.transaction():
                    for _ in range(sent):
                        await producer.send("t", b"sent")
                    purged = producer.submit_nowait("t", b"purged")
                    assert producer.purge() == 1
                    with pytest.raises(DeliveryFailed) as caught:
                        await purged
                    assert caught.value.stage == "purged"
                    with pytest.raises(TransactionAborted, match="purged"):
                        await producer.submit("t", b"more")

            with pytest.raises(TransactionAborted, match="purged"):
                await work()
            ends = [request.committed for request in cluster.coordinator.of(ApiKey.END_TXN)]
            assert ends == [False] * sent, "nothing to end where nothing was sent"
            assert producer.buffered == 0
            async with producer.transaction():
                await producer.send("t", b"next")
            assert cluster.values() == [b"sent"] * sent + [b"next"]


async def test_a_purge_that_drops_nothing_leaves_the_transaction_whole(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        async with Producer(cluster.bootstrap_servers, transactional_id="tx", **quick) as producer:
            async with producer.transaction():
                await producer.send("t", b"a")
                assert producer.purge() == 0
            assert [request.committed for request in cluster.coordinator.of(ApiKey.END_TXN)] == [True]


async def test_a_purge_while_the_commit_delivers_turns_it_into_an_abort(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        held = anyio.Event()

        async def hold(request: produce.ProduceRequest) -> bool | None:
            held.set()
            await anyio.sleep_forever()
            return None

        options = {**quick, **LONG, "max_in_flight_requests_per_connection": 1, "batch_size": 200}
        async with Producer(
            cluster.bootstrap_servers, transactional_id="tx", transaction_timeout_ms=40_000, **options
        ) as producer:
            await producer.partitions_for("t")
            cluster.node.on_request = hold

            async def work() -> None:
                async with producer.transaction():
                    for _ in range(5):
                        producer.submit_nowait("t", b"x" * 150)

            async def purge() -> None:
                await held.wait()
                assert producer.purge() == 4
                cluster.node.stop()
                cluster.node.on_request = handle_as_usual
                await cluster.node.start()

            async with anyio.create_task_group() as group:
                group.start_soon(purge)
                with pytest.raises(TransactionAborted):
                    await work()
            assert True not in [request.committed for request in cluster.coordinator.of(ApiKey.END_TXN)]


async def handle_as_usual(request: produce.ProduceRequest) -> bool | None:
    return None


async def test_a_purge_of_records_that_wait_for_their_topic_leaves_the_topic_usable(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        purged = [producer.submit_nowait("t", b"purged", partition=number) for number in (0, 5)]
        assert producer.purge() == 2
        assert producer.buffered == 0
        for delivery in purged:
            with pytest.raises(DeliveryFailed, match="purged"):
                await delivery
        assert (await producer.send("t", b"a")).offset == 0
        assert producer.purge() == 0


async def test_a_purge_under_a_bulk_call_and_a_flush_lets_both_end(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **LONG) as producer:
        await producer.partitions_for("t")
        waiting = producer.submit_nowait("t", b"waits")
        results = []
        async with anyio.create_task_group() as group:

            async def bulk() -> None:
                results.append(await producer.send_many("t", [b"bulk"] * 10))

            cluster.leaders["t"] = [-1]
            producer._core.topics.refresh("t", "by the test")
            while producer._core.accumulator.topics["t"].partitions[0].leader >= 0:
                await anyio.lowlevel.checkpoint()
            group.start_soon(bulk)
            group.start_soon(producer.flush)
            while producer.buffered < 100:
                await anyio.lowlevel.checkpoint()
            assert producer.purge() == 11
        assert (results[0].delivered, results[0].failed) == (0, 10)
        assert waiting.exception() is not None
