"""`Producer.events()`: the events of a producer."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import aiokwire
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConnectionFailed, DeliveryFailed, FencedError, TransactionAborted
from aiokwire.events import EventStream
from aiokwire.producer import (
    BatchFailed,
    BufferFree,
    BufferFull,
    LeadersChanged,
    Producer,
    ProducerEvent,
    ProducerFailed,
    ProducerIdChanged,
    TransactionAbortRequired,
)
from aiokwire.protocol import ApiKey
from tests.producer.conftest import scripted_cluster
from tests.producer.test_back_pressure import SMALL
from tests.producer.test_submit import Gate, submit_unawaited

Quick = dict[str, Any]


async def rest(stream: EventStream[ProducerEvent]) -> list[ProducerEvent]:
    """The rest of a stream that has ended."""
    with anyio.fail_after(5):
        return [event async for event in stream]


async def first(stream: EventStream[ProducerEvent], kind: type[ProducerEvent]) -> ProducerEvent:
    """The next event of a kind."""
    with anyio.fail_after(5):
        async for event in stream:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the stream ended without {kind.__name__}")


async def test_a_batch_that_failed_is_reported_with_its_place_count_and_error(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick)
        stream = producer.events()
        async with producer:
            cluster.node.on_partition = lambda tp, data: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            deliveries = [producer.submit_nowait("t", b"x", partition=0) for _ in range(3)]
            await asyncio.gather(*deliveries, return_exceptions=True)  # noqa: TID251
        failed = [event for event in await rest(stream) if isinstance(event, BatchFailed)]
    assert [(event.topic, event.partition, event.records) for event in failed] == [("t", 0, 3)]
    assert "TOPIC_AUTHORIZATION_FAILED" in str(failed[0].error)


async def test_records_that_close_cannot_deliver_are_reported_before_the_stream_ends(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick)
        await producer.start()
        stream = producer.events()
        await producer.partitions_for("t")
        gate = Gate(cluster)
        producer.submit_nowait("t", b"x", partition=0)
        left = await producer.close(timeout=0)
        gate.open()
        events = await rest(stream)
        assert len(left) == 1
        assert [event.records for event in events if isinstance(event, BatchFailed)] == [1]
        assert await rest(producer.events()) == [], "it is closed"


async def test_a_full_buffer_is_reported_once_and_once_when_it_is_free(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        gate = Gate(cluster)
        stream = producer.events()
        submit_unawaited(producer, range(600))
        full = await first(stream, BufferFull)
        assert isinstance(full, BufferFull)
        assert 0 < full.memory_in_use <= SMALL["buffer_memory"]
        assert full.waiting
        gate.open()
        await producer.flush()
        await first(stream, BufferFree)
        await producer.close()
        assert not [event for event in await rest(stream) if isinstance(event, BufferFull | BufferFree)]


async def test_throttling_is_reported_while_batches_wait_for_it(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        stream = producer.events()
        cluster.node.throttle_time_ms = 200
        await producer.send("t", b"1")
        cluster.node.throttle_time_ms = 0
        await producer.send("t", b"2")
        event = await first(stream, aiokwire.Throttled)
        assert isinstance(event, aiokwire.Throttled)
        assert event.node_id == cluster.node.node_id
        assert 0 < event.seconds <= 0.2 + 1e-6


async def test_producer_ids_and_epochs_are_reported(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, **quick)
        stream = producer.events()
        async with producer:
            await producer.send("t", b"1", partition=0)
            cluster.node.on_partition = lambda tp, data: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(aiokwire.KafkaError):
                await producer.send("t", b"2", partition=0)
            cluster.node.on_partition = lambda tp, data: None
            await producer.send("t", b"3", partition=0)
        changes = [event for event in await rest(stream) if isinstance(event, ProducerIdChanged)]
    assert changes == [ProducerIdChanged(4001, 0), ProducerIdChanged(4001, 1)]


async def test_leaders_that_moved_are_reported_by_topic(quick: Quick) -> None:
    async with scripted_cluster(2) as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        await producer.send("t", b"1", partition=0)
        was = cluster.leaders["t"][0]
        now = 3 - was
        stream = producer.events()
        cluster.leaders["t"][0] = now
        await producer.send("t", b"2", partition=0)
        assert await first(stream, LeadersChanged) == LeadersChanged("t", {0: now})


async def test_a_transaction_that_has_to_be_aborted_and_a_fenced_producer_are_reported(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=False)
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, transactional_id="tx", **quick)
        stream = producer.events()
        async with producer:
            cluster.node.on_partition = lambda tp, data: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(TransactionAborted):
                async with producer.transaction():
                    await producer.submit("t", b"1")
            required = await first(stream, TransactionAbortRequired)
            assert isinstance(required, TransactionAbortRequired)
            assert required.transactional_id == "tx"
            cluster.node.on_partition = lambda tp, data: None
            cluster.coordinator.codes[ApiKey.ADD_PARTITIONS_TO_TXN] = [int(ErrorCode.PRODUCER_FENCED)]
            with pytest.raises(FencedError):
                async with producer.transaction():
                    await producer.submit("t", b"2")
        failed = [event for event in await rest(stream) if isinstance(event, ProducerFailed)]
    assert [type(event.error) for event in failed] == [FencedError]


async def test_no_event_is_created_without_a_listener(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr("aiokwire.producer.events.BatchFailed", lambda *args: made.append(args))
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(aiokwire.KafkaError):
            await producer.send("t", b"x")
    assert not made


async def test_a_stream_that_was_opened_before_a_failed_start_reports_of_the_next_one(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer[bytes, bytes](cluster.bootstrap_servers, bootstrap_timeout_ms=0, **quick)
        stream = producer.events()
        cluster.node.stop()
        with pytest.raises(ConnectionFailed):
            await producer.start()
        await cluster.node.start()
        async with producer:
            gate = Gate(cluster)
            delivery = producer.submit_nowait("t", b"x", partition=0)
            assert producer.purge() == 1
            with pytest.raises(DeliveryFailed):
                await delivery
            gate.open()
        assert [event.records for event in await rest(stream) if isinstance(event, BatchFailed)] == [1]
