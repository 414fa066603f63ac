"""The consumer against a peer that injects the faults of real brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio
import pytest

from aiokwire.consumer import Consumer
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    CorruptRecord,
    OffsetOutOfRange,
    RecordRejected,
)
from aiokwire.hooks import Hooks
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import fetch, list_offsets, metadata, offset_for_leader_epoch
from aiokwire.types import Compression, TopicPartition

T0 = TopicPartition("t", 0)
KEPT_SHORT = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "metadata_min_interval_ms": 1,
    "reconnect_backoff_ms": 1,
}

MakePeer = Callable[..., AbstractAsyncContextManager[Any]]


class Log(Protocol):
    def append(self, *values: bytes | None, **how: object) -> None: ...


def consumer(peer: Any, *topics: str, **options: Any) -> Consumer[Any, Any]:
    return Consumer(
        *topics, bootstrap_servers=peer.bootstrap_servers, **{"auto_offset_reset": "earliest", **KEPT_SHORT, **options}
    )


async def offsets(reader: Consumer[Any, Any], count: int) -> list[int]:
    seen: list[int] = []
    with anyio.fail_after(5):
        while len(seen) < count:
            seen += [record.offset for record in await reader.getmany()]
    return seen


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until `condition` is true."""
    with anyio.fail_after(5):
        while not condition():
            await anyio.lowlevel.checkpoint()


# --- transient and permanent errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 74, 75, 78, 100, -1])
async def test_reading_resumes_after_a_transient_error_without_a_reset(make_peer: MakePeer, code: int) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 5)
        async with consumer(peer, "t") as reader:
            assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
            lookups = len(peer.asked(list_offsets.ListOffsetsRequest))
            log.error = code
            peer.wake_fetches()
            before = len(peer.asked(fetch.FetchRequest))
            await until(lambda: len(peer.asked(fetch.FetchRequest)) > before + 2)
            assert await reader.position(T0) == 5
            log.append(*[b"x"] * 5)
            log.error = 0
            peer.wake_fetches()
            assert await offsets(reader, 5) == [5, 6, 7, 8, 9]
            assert len(peer.asked(list_offsets.ListOffsetsRequest)) == lookups


async def test_a_forbidden_topic_raises_and_is_read_when_it_is_allowed(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(b"a")
        log.error = 29
        async with consumer(peer, "t") as reader:
            with pytest.raises(AuthorizationError) as caught:
                await reader.getone(timeout=5)
            assert (caught.value.topic, caught.value.partition) == T0
            log.error = 0
            assert (await reader.getone(timeout=5)).value == b"a"


async def test_an_error_of_one_partition_does_not_block_the_others(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t", 0).error = 29
        peer.log("t", 1).append(b"a", b"b")
        async with consumer(peer, "t") as reader:
            seen: list[bytes | None] = []
            errors = 0
            while len(seen) < 2 or not errors:
                try:
                    seen += [record.value for record in await reader.getmany(timeout=5)]
                except AuthorizationError:
                    errors += 1
            assert seen == [b"a", b"b"]


async def test_an_error_ends_a_loop_and_a_new_loop_resumes(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(b"a")
        async with consumer(peer, "t") as reader:
            seen = []

            async def read() -> None:
                async for record in reader:
                    seen.append(record.offset)
                    log.error = 29
                    peer.wake_fetches()

            with pytest.raises(AuthorizationError):
                await read()
            log.error = 0
            log.append(b"b")
            async for record in reader:
                seen.append(record.offset)
                break
            assert seen == [0, 1]


@pytest.mark.parametrize("way", ["getmany", "getarrow"])
async def test_corruption_raises_with_its_offset_after_the_valid_records_before_it(
    make_peer: MakePeer, way: str
) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(b"a", b"b")
        log.append(b"c")
        first, after, data = log.batches[1]
        broken = bytearray(data)
        broken[-2] ^= 0xFF
        log.batches[1] = (first, after, bytes(broken))
        log.append(b"d")
        async with consumer(peer, "t") as reader:
            read = getattr(reader, way)
            assert len(await read(timeout=5)) == 2
            for _ in range(2):
                with pytest.raises(CorruptRecord) as caught:
                    await read(timeout=5)
                assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 2)
                assert caught.value.next_offset == 3
                assert await reader.position(T0) == 2
            reader.seek(T0, caught.value.next_offset)
            assert (await reader.getone(timeout=5)).value == b"d"


@pytest.mark.parametrize("way", ["getmany", "getarrow"])
@pytest.mark.parametrize("size", [100, 200_000])
async def test_a_corrupt_compressed_batch_raises_and_keeps_the_position(
    make_peer: MakePeer, size: int, way: str
) -> None:
    """Small batches are decompressed on the loop, large ones in a thread."""
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(b"a" * size, bytes(index % 251 for index in range(size)), compression=Compression.GZIP)
        first, after, data = log.batches[0]
        broken = bytearray(data)
        broken[-6] ^= 0xFF
        log.batches[0] = (first, after, bytes(broken))
        async with consumer(peer, "t", check_crcs=False) as reader:
            with pytest.raises(CorruptRecord):
                await getattr(reader, way)(timeout=5)
            assert await reader.position(T0) == 0


async def test_a_lost_connection_is_reestablished_and_no_record_is_lost_or_duplicated(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 10)
        async with consumer(peer, "t") as reader:
            assert await offsets(reader, 10) == list(range(10))
            peer.hang_up()
            log.append(*[b"x"] * 10)
            assert await offsets(reader, 10) == list(range(10, 20))


async def test_a_partition_is_read_from_its_new_leader(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 3)
        async with consumer(peer, "t") as reader:
            assert await offsets(reader, 3) == [0, 1, 2]
            log.leader, log.leader_epoch = 1, 1
            log.append(*[b"x"] * 3, leader_epoch=1)
            peer.wake_fetches()
            assert await offsets(reader, 3) == [3, 4, 5]


async def test_a_partition_without_leader_waits_for_one(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(b"a")
        log.leader = -1
        async with consumer(peer, "t") as reader:
            assert await reader.getmany(timeout=0.02) == []
            log.leader = 0
            assert (await reader.getone(timeout=5)).value == b"a"


async def test_a_reset_is_logged_with_the_old_and_the_new_position(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokwire.consumer")
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 5)
        async with consumer(peer, "t") as reader:
            await offsets(reader, 5)
            log.start = log.end = 40
            log.batches.clear()
            log.append(b"new")
            peer.wake_fetches()
            assert (await reader.getone(timeout=5)).offset == 40
    assert "t[0]: position reset from 5 to 40 (earliest; offset 5 is out of range" in caplog.text


async def test_buffered_records_are_returned_before_a_reset(make_peer: MakePeer) -> None:
    """The prefetch is out of range while the consumer still has buffered records."""
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 5)
        async with consumer(peer, "t") as reader:
            assert (await reader.getone(timeout=5)).offset == 0
            log.start = log.end = 40
            log.batches.clear()
            log.append(b"new")
            peer.wake_fetches()
            await until(lambda: len(peer.asked(list_offsets.ListOffsetsRequest)) > 1)
            assert await offsets(reader, 5) == [1, 2, 3, 4, 40]


# --- truncation (KIP-320) ---------------------------------------------------------------------------------------------


async def test_a_log_truncated_by_a_new_leader_is_detected(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 10)
        async with consumer(peer, "t", metadata_max_age_ms=20) as reader:
            assert await offsets(reader, 10) == list(range(10))
            log.batches.clear()
            log.end = 6
            log.append(*[b"y"] * 6, leader_epoch=1)
            log.leader_epoch = 1

            async def epochs(request: Request, version: int) -> Response:
                assert isinstance(request, offset_for_leader_epoch.OffsetForLeaderEpochRequest)
                assert request.topics[0].partitions[0].leader_epoch == 0
                answer = peer.epochs(request)
                answer.topics[0].partitions[0].end_offset = 6
                return answer  # type: ignore[no-any-return]  # the peer is untyped here

            peer.on[ApiKey.OFFSET_FOR_LEADER_EPOCH] = epochs
            records = await reader.getmany(timeout=5)
            assert [(record.offset, record.value) for record in records][:2] == [(6, b"y"), (7, b"y")]


async def test_a_truncated_log_raises_when_the_policy_is_none(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 10)
        async with consumer(peer, partitions=[T0], auto_offset_reset="none", metadata_max_age_ms=20) as reader:
            reader.seek(T0, 0)
            await offsets(reader, 10)
            log.leader_epoch = 1

            async def epochs(request: Request, version: int) -> Response:
                answer = peer.epochs(request)
                answer.topics[0].partitions[0].end_offset = 6
                return answer  # type: ignore[no-any-return]  # the peer is untyped here

            peer.on[ApiKey.OFFSET_FOR_LEADER_EPOCH] = epochs
            with pytest.raises(OffsetOutOfRange):
                await reader.getone(timeout=5)
            assert await reader.position(T0) == 10


async def test_a_new_leader_without_epochs_does_not_reset_the_position(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        log = peer.log("t")
        log.append(*[b"x"] * 3)
        async with consumer(peer, "t", metadata_max_age_ms=20) as reader:
            await offsets(reader, 3)

            async def epochs(request: Request, version: int) -> Response:
                answer = peer.epochs(request)
                answer.topics[0].partitions[0].end_offset = -1
                return answer  # type: ignore[no-any-return]  # the peer is untyped here

            peer.on[ApiKey.OFFSET_FOR_LEADER_EPOCH] = epochs
            log.leader_epoch = 5
            await until(lambda: bool(peer.asked(offset_for_leader_epoch.OffsetForLeaderEpochRequest)))
            log.append(b"next", leader_epoch=5)
            peer.wake_fetches()
            assert await offsets(reader, 1) == [3]


# --- fetches in flight ------------------------------------------------------------------------------------------------


class Held:
    """A peer's Fetch responses, built when the request arrives and held until `go` is set."""

    def __init__(self, peer: Any) -> None:
        self.arrived = asyncio.Event()
        self.go = asyncio.Event()
        self.peer = peer
        peer.on[ApiKey.FETCH] = self

    async def __call__(self, request: Request, version: int) -> Response:
        assert isinstance(request, fetch.FetchRequest)
        answer = self.peer.fetch_now(0, request, version)
        self.arrived.set()
        await self.go.wait()
        self.peer.on.pop(ApiKey.FETCH, None)
        return answer  # type: ignore[no-any-return]  # the peer is untyped here


async def test_the_response_of_a_fetch_in_flight_at_a_seek_is_ignored(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(*[b"x"] * 10)
        held = Held(peer)
        async with consumer(peer, "t") as reader:
            await held.arrived.wait()
            reader.seek(T0, 7)
            held.go.set()
            assert await offsets(reader, 3) == [7, 8, 9]


async def test_an_offset_lookup_that_fails_after_a_seek_does_not_delay_reading(make_peer: MakePeer) -> None:
    arrived, may_fail, failed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Ends(Hooks):
        def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
            failed.set()

    async def hang_up(request: Request, version: int) -> None:
        arrived.set()
        await may_fail.wait()

    slow = {"retry_backoff_ms": 60_000, "retry_backoff_max_ms": 60_000}
    async with make_peer() as peer:
        log = peer.log("t")
        peer.on[ApiKey.LIST_OFFSETS] = hang_up
        async with consumer(peer, "t", hooks=Ends(), **slow) as reader:
            await arrived.wait()
            reader.seek(T0, 0)
            may_fail.set()
            await failed.wait()
            for number in range(3):
                log.append(b"x")
                peer.wake_fetches()
                assert await offsets(reader, 1) == [number]


async def test_the_response_of_a_fetch_in_flight_at_a_pause_is_kept(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(*[b"x"] * 10)
        held = Held(peer)
        async with consumer(peer, "t") as reader:
            await held.arrived.wait()
            reader.pause(T0)
            held.go.set()
            assert await reader.getmany(timeout=0.02) == []
            reader.resume(T0)
            assert await offsets(reader, 10) == list(range(10))


async def test_the_response_of_a_fetch_for_an_unassigned_partition_is_ignored(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t", 0).append(*[b"x"] * 10)
        peer.log("t", 1).append(*[b"y"] * 2)
        held = Held(peer)
        async with consumer(peer, partitions=[T0]) as reader:
            await held.arrived.wait()
            await reader.assign([TopicPartition("t", 1)])
            held.go.set()
            assert {record.partition for record in await reader.getmany(timeout=5)} == {1}


async def test_idle_partitions_do_not_delay_a_busy_one(make_peer: MakePeer) -> None:
    """The main lane waits at the broker for the idle partition; the side lane serves the seek."""
    async with make_peer() as peer:
        peer.log("t", 0).append(*[b"x"] * 3)
        peer.log("t", 1).end = 0
        async with consumer(peer, "t", fetch_max_wait_ms=60_000) as reader:
            await offsets(reader, 3)
            await until(lambda: peer.asked(fetch.FetchRequest)[-1].max_wait_ms == 60_000)
            reader.seek(T0, 0)
            assert (await reader.getone(timeout=5)).offset == 0


# --- bounds -----------------------------------------------------------------------------------------------------------


async def test_buffered_and_in_flight_bytes_stay_within_fetch_memory(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        for partition in range(8):
            for _ in range(40):
                peer.log("t", partition).append(b"v" * 10_000)
        async with consumer(peer, "t", fetch_memory=200_000, max_partition_fetch_bytes=50_000) as reader:
            used: list[int] = []

            async def measured(request: Request, version: int) -> Response:
                used.append(reader.memory_in_use)
                assert isinstance(request, fetch.FetchRequest)
                return peer.fetch_now(0, request, version)  # type: ignore[no-any-return]  # the peer is untyped here

            peer.on[ApiKey.FETCH] = measured
            seen = 0
            with anyio.fail_after(10):
                while seen < 320:
                    seen += len(await reader.getmany(max_records=3))
                    used.append(reader.memory_in_use)
            assert 50_000 < max(used) <= 200_000 + 11_000, "one batch may exceed the budget"


async def test_paused_partitions_that_fill_the_memory_are_dropped_from_the_buffer(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        for partition in range(2):
            for _ in range(30):
                peer.log("t", partition).append(b"v" * 10_000)
        async with consumer(peer, "t", fetch_memory=100_000, max_partition_fetch_bytes=100_000) as reader:
            first = await reader.getone(timeout=5)
            held = TopicPartition("t", first.partition)
            reader.pause(held)
            others: list[int] = []
            with anyio.fail_after(5):
                while len(others) < 30:
                    others += [record.offset for record in await reader.getmany()]
            assert others == list(range(30))
            reader.resume(held)
            assert await offsets(reader, 29) == list(range(1, 30))


async def test_a_batch_larger_than_every_limit_is_returned(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(b"v" * 300_000)
        async with consumer(
            peer, "t", fetch_memory=1000, fetch_max_bytes=1000, max_partition_fetch_bytes=500
        ) as reader:
            assert (await reader.getone(timeout=5)).value == b"v" * 300_000


@pytest.mark.parametrize("newest", [0, 1, 2])
async def test_the_fetch_limit_for_an_old_broker_grows_until_a_large_batch_fits(
    make_peer: MakePeer, newest: int
) -> None:
    async with make_peer(newest={ApiKey.FETCH: newest, ApiKey.LIST_OFFSETS: 1}) as peer:
        log = peer.log("t")
        log.append(b"v" * 50_000)
        log.append(b"small")
        async with consumer(peer, "t", max_partition_fetch_bytes=1000, isolation_level="read_uncommitted") as reader:
            assert await offsets(reader, 2) == [0, 1]


async def test_the_error_for_a_batch_larger_than_any_response_names_the_option(make_peer: MakePeer) -> None:
    async with make_peer(newest={ApiKey.FETCH: 2, ApiKey.LIST_OFFSETS: 1}) as peer:
        peer.log("t").append(b"v" * 200_000)
        options = {"fetch_max_bytes": 10_000, "receive_message_max_bytes": 100_000}
        async with consumer(peer, "t", **options) as reader:
            with pytest.raises(RecordRejected, match="receive_message_max_bytes"):
                await reader.getone(timeout=5)


@pytest.mark.parametrize("newest", [3, 4, 6, 9, 11, 12, 13, 15, 18])
async def test_every_fetch_version_can_be_read(make_peer: MakePeer, newest: int) -> None:
    async with make_peer(newest={ApiKey.FETCH: newest}) as peer:
        peer.log("t").append(b"a", b"b")
        async with consumer(peer, "t") as reader:
            assert await offsets(reader, 2) == [0, 1]


async def test_a_broker_without_topic_ids_receives_topic_names(make_peer: MakePeer) -> None:
    """An old inter-broker protocol has new Fetch versions, but no ids (librdkafka 4806)."""
    async with make_peer(newest={ApiKey.FETCH: 18}) as peer:
        peer.topic_ids["t"] = bytes(16)
        peer.log("t").append(b"a", b"b")
        async with consumer(peer, "t") as reader:
            assert await offsets(reader, 2) == [0, 1]


# --- idleness ---------------------------------------------------------------------------------------------------------


async def _requests_during(peer: Any, kind: type[Request], turns: int) -> int:
    before = len(peer.asked(kind))
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    return len(peer.asked(kind)) - before


def _is_long_and_whole(request: fetch.FetchRequest) -> bool:
    asked = {partition.partition: partition.fetch_offset for partition in request.topics[0].partitions}
    return request.max_wait_ms == 60_000 and asked == {0: 1, 1: 0}


async def test_an_idle_consumer_sends_one_long_fetch_and_nothing_else(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t", 0).append(b"a")
        peer.log("t", 1).end = 0
        async with consumer(peer, "t", fetch_max_wait_ms=60_000) as reader:
            await offsets(reader, 1)
            # Both partitions are in one long fetch, and no other request is sent until it ends.
            await until(lambda: _is_long_and_whole(peer.asked(fetch.FetchRequest)[-1]))
            assert await _requests_during(peer, fetch.FetchRequest, 300) == 0


async def test_a_consumer_of_paused_partitions_sends_no_fetch(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(b"a")
        async with consumer(peer, "t") as reader:
            reader.pause()
            assert await reader.getmany(timeout=0.02) == []
            assert await _requests_during(peer, fetch.FetchRequest, 300) == 0


async def test_a_consumer_of_a_dead_broker_does_not_spin(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(b"a")
        options = {"reconnect_backoff_ms": 50, "retry_backoff_ms": 50, "metadata_min_interval_ms": 50}
        async with consumer(peer, "t", **options) as reader:
            await offsets(reader, 1)
            peer.down.add(0)
            peer.hang_up()
            loop = asyncio.get_running_loop()
            before = len(peer.seen)
            started = loop.time()
            assert await reader.getmany(timeout=0.3) == []
            elapsed = loop.time() - started
            assert len(peer.seen) - before < 100 * elapsed
            peer.down.clear()
            peer.log("t").append(b"b")
            assert (await reader.getone(timeout=5)).value == b"b"


async def test_a_forbidden_topic_in_the_metadata_raises_once(make_peer: MakePeer) -> None:
    async with make_peer() as peer:
        peer.log("t").append(b"a")
        async with consumer(peer, "t", metadata_max_age_ms=10) as reader:
            await offsets(reader, 1)

            async def forbidden(request: Request, version: int) -> Response:
                assert isinstance(request, metadata.MetadataRequest)
                answer = peer.describe(request)
                for topic in answer.topics:
                    topic.error_code, topic.partitions = 29, []
                return answer  # type: ignore[no-any-return]  # the peer is untyped here

            peer.on[ApiKey.METADATA] = forbidden
            with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
                await reader.getone(timeout=5)
            assert await reader.getmany(timeout=0.1) == []
            del peer.on[ApiKey.METADATA]
            peer.log("t").append(b"b")
            assert (await reader.getone(timeout=5)).value == b"b"


# --- transactions -----------------------------------------------------------------------------------------------------


async def test_read_committed_skips_aborted_records_and_stops_before_open_transactions(make_peer: MakePeer) -> None:
    from tests.consumer.conftest import batch, marker

    async with make_peer() as peer:
        log = peer.log("t")
        log.add(batch(0, [b"kept"], producer_id=1, transactional=True), 1)
        log.add(batch(1, [b"gone"], producer_id=2, transactional=True), 1)
        log.add(marker(2, 1, commit=True), 1)
        log.add(marker(3, 2, commit=False), 1)
        log.append(b"plain")
        log.aborted = [(2, 1)]
        async with consumer(peer, "t") as reader:
            records = [await reader.getone(timeout=5) for _ in range(2)]
            assert [(record.offset, record.value) for record in records] == [(0, b"kept"), (4, b"plain")]
        async with consumer(peer, "t", isolation_level="read_uncommitted") as reader:
            values = [(await reader.getone(timeout=5)).value for _ in range(3)]
            assert values == [b"kept", b"gone", b"plain"]
