"""A piece of a log for tools with their own state: from the embedded broker, and scripted ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import EARLIEST, LATEST, Client, ClientConfig
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import CorruptRecord, OffsetOutOfRange, RecordRejected, StaleMetadataError
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import fetch
from aiokwire.types import TopicPartition
from tests.consumer.conftest import Peer, batch

Peers = Callable[..., AbstractAsyncContextManager[Peer]]
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def client_of(bootstrap: str, **options: object) -> Client:
    return Client(ClientConfig(bootstrap_servers=bootstrap, retry_backoff_ms=5, retry_backoff_max_ms=20, **options))  # type: ignore[arg-type]  # options by name


async def test_a_log_is_read_piece_by_piece_without_any_state() -> None:
    async with Broker(topics={"t": 2}, nodes=2) as broker:
        async with Producer(broker.bootstrap_servers, compression_type="zstd") as producer:
            for index in range(50):
                await producer.send("t", b"%d" % index, partition=index % 2)
        async with client_of(broker.bootstrap_servers) as client:
            offsets = {tp: found.offset for tp, found in (await client.list_offsets({T0: EARLIEST, T1: 0})).items()}
            ends = await client.list_offsets({T0: LATEST, T1: LATEST})
            values: dict[TopicPartition, list[bytes | None]] = {T0: [], T1: []}
            while any(offsets[tp] < ends[tp].offset for tp in offsets):
                fetched = await client.fetch(offsets, max_bytes=100)
                for tp, piece in fetched.items():
                    values[tp] += [record.value for record in piece.records()]
                    assert piece.offset == offsets[tp]
                    assert (piece.high_watermark, piece.log_start_offset) == (25, 0)
                    offsets[tp] = piece.next_offset
            assert values == {T0: [b"%d" % n for n in range(0, 50, 2)], T1: [b"%d" % n for n in range(1, 50, 2)]}


async def test_records_of_a_batch_before_the_offset_are_left_out() -> None:
    async with Broker(topics={"t": 1}) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send_many("t", [b"0", b"1", b"2"])
        async with client_of(broker.bootstrap_servers) as client:
            piece = (await client.fetch({T0: 1}))[T0]
            assert [record.value for record in piece.records()] == [b"1", b"2"]
            assert piece.next_offset == 3


async def test_a_fetch_at_the_end_returns_nothing_after_its_wait() -> None:
    async with Broker(topics={"t": 1}) as broker, client_of(broker.bootstrap_servers) as client:
        started = anyio.current_time()
        piece = (await client.fetch({T0: 0}, max_wait=0.1))[T0]
        assert 0.05 < anyio.current_time() - started < 5
        assert (piece.records(), piece.next_offset) == ([], 0)


async def test_a_waiting_fetch_does_not_delay_other_requests() -> None:
    async with Broker(topics={"t": 1}, journal=100) as broker, client_of(broker.bootstrap_servers) as client:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: client.fetch({T0: 0}, max_wait=30))
                await broker.journal.wait_for(lambda entry: entry.api is ApiKey.FETCH)
                assert (await client.list_offsets({T0: LATEST}))[T0].offset == 0
                group.cancel_scope.cancel()


async def test_aborted_records_are_left_out_when_committed_ones_are_requested() -> None:
    async with Broker(topics={"t": 1}) as broker:
        async with Producer(broker.bootstrap_servers, transactional_id="x") as producer:
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send("t", b"aborted", partition=0)
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send("t", b"committed", partition=0)
        async with client_of(broker.bootstrap_servers) as client:
            for level, expected in (
                ("read_uncommitted", [b"aborted", b"committed"]),
                ("read_committed", [b"committed"]),
            ):
                piece = (await client.fetch({T0: 0}, isolation_level=level))[T0]
                assert [record.value for record in piece.records()] == expected
                assert piece.next_offset == 4, "behind the markers"


async def test_the_error_of_an_offset_out_of_range_names_its_place() -> None:
    async with Broker(topics={"t": 1}) as broker, client_of(broker.bootstrap_servers) as client:
        with pytest.raises(OffsetOutOfRange) as caught:
            await client.fetch({T0: 7})
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 7)


async def test_a_moved_leader_is_looked_up() -> None:
    async with Broker(topics={"t": 1}, nodes=2) as broker, client_of(broker.bootstrap_servers) as client:
        await client.list_offsets({T0: LATEST})
        other = next(node for node in broker.nodes if node != broker.faults.leader("t", 0))
        broker.faults.move_leader("t", 0, other)
        assert (await client.fetch({T0: 0}, max_wait=0.01))[T0].records() == []


async def test_a_missing_topic_is_awaited_until_the_timeout() -> None:
    async with Broker() as broker, client_of(broker.bootstrap_servers) as client:
        with pytest.raises(StaleMetadataError, match="or create it"):
            await client.fetch({U0: 0}, timeout=0.1)


@pytest.mark.parametrize("newest", [0, 2])
async def test_an_old_broker_is_asked_for_more_until_a_batch_fits(newest: int, make_peer: Peers) -> None:
    async with make_peer(newest={ApiKey.FETCH: newest}) as peer:
        peer.log("t").append(b"x" * 5000)
        async with client_of(peer.bootstrap_servers) as client:
            piece = (await client.fetch({T0: 0}, max_bytes=1000))[T0]
            assert [len(record.value or b"") for record in piece.records()] == [5000]
            limits = [
                request.topics[0].partitions[0].partition_max_bytes
                for request in peer.asked(fetch.FetchRequest)
                if isinstance(request, fetch.FetchRequest)
            ]
            assert limits == [1000, 2000, 4000, 8000]


async def test_the_error_names_a_batch_too_large_for_any_response(make_peer: Peers) -> None:
    async with make_peer(newest={ApiKey.FETCH: 2}) as peer:
        peer.log("t").append(b"x" * 5000)
        async with client_of(peer.bootstrap_servers, receive_message_max_bytes=8000) as client:
            with pytest.raises(RecordRejected, match="receive_message_max_bytes"):
                await client.fetch({T0: 0}, max_bytes=1000)


async def test_the_error_of_a_corrupt_batch_names_its_place(make_peer: Peers) -> None:
    async with make_peer() as peer:
        corrupt = bytearray(batch(0, [b"value"]))
        corrupt[-1] ^= 0xFF
        peer.log("t").add(bytes(corrupt), 1)
        async with client_of(peer.bootstrap_servers) as client:
            with pytest.raises(CorruptRecord, match=r"t\[0\]"):
                await client.fetch({T0: 0})


async def test_a_partition_missing_from_a_response_is_requested_again(make_peer: Peers) -> None:
    async with make_peer() as peer:
        peer.log("t").append(b"value")
        answered = False

        async def once(request: Request, version: int) -> Response | None:
            nonlocal answered
            if answered:
                del peer.on[ApiKey.FETCH]
            answered = True
            assert isinstance(request, fetch.FetchRequest)
            return fetch.FetchResponse()

        peer.on[ApiKey.FETCH] = once
        async with client_of(peer.bootstrap_servers) as client:
            assert len((await client.fetch({T0: 0}))[T0].records()) == 1
            assert len(peer.asked(fetch.FetchRequest)) == 3
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.retriable
