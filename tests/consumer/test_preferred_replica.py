"""Reading from the replica that the leader names (KIP-392), and from the leader if that fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from aiokwire.consumer import Consumer
from aiokwire.consumer.positions import SHUN_SECONDS, PartitionState, expire_replicas, rack_for
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import fetch, list_offsets
from aiokwire.types import TopicPartition

MakePeer = Callable[..., AbstractAsyncContextManager[Any]]
QUICK = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, "metadata_min_interval_ms": 1, "reconnect_backoff_ms": 1}


def led_by(leader: int) -> PartitionState:
    state = PartitionState(TopicPartition("t", 0))
    state.source.follow_leader(leader)
    return state


# --- decisions --------------------------------------------------------------------------------------------------------


def test_a_partition_is_read_from_its_leader_unless_the_leader_names_a_replica() -> None:
    state = led_by(1)
    assert state.source.node_id == 1
    assert state.source.can_prefer(2, now=0.0)
    state.source.prefer(2, until=10.0)
    assert state.source.node_id == 2
    assert not state.source.can_prefer(2, now=0.0), "it is preferred already"


def test_a_leader_that_names_itself_changes_nothing() -> None:
    state = led_by(1)
    assert not state.source.can_prefer(1, now=0.0)
    assert state.source.replica is None


def test_a_preference_expires_without_waiting_for_a_fetch_in_flight() -> None:
    states = [led_by(1), led_by(1), led_by(1)]
    states[0].source.prefer(2, until=10.0)
    states[1].source.prefer(2, until=20.0)
    states[0].attempt.start()
    assert expire_replicas(states, 5.0) == (False, 10.0)
    assert expire_replicas(states, 10.0) == (True, 20.0)
    assert [state.source.node_id for state in states] == [1, 2, 1]
    assert not states[0].attempt.in_flight
    assert expire_replicas(states, 20.0) == (True, math.inf)


def test_after_an_error_of_a_replica_the_rack_is_left_out_for_a_while() -> None:
    state = led_by(1)
    state.source.prefer(2, until=100.0)
    assert rack_for([state], "here", 10.0) == "here"
    state.source.shun_replicas(10.0 + SHUN_SECONDS)
    assert not state.source.can_prefer(2, now=10.0)
    assert state.source.can_prefer(2, now=10.0 + SHUN_SECONDS)
    assert state.source.node_id == 1
    assert rack_for([led_by(1), state], "here", 10.0) == ""
    assert rack_for([state], "here", 10.0 + SHUN_SECONDS) == "here"
    assert rack_for([state], "", 100.0) == ""


# --- requests ---------------------------------------------------------------------------------------------------------


def reader_of(peer: Any, **options: Any) -> Consumer[bytes, bytes]:
    settings = {"auto_offset_reset": "earliest", "client_rack": "here", "fetch_max_wait_ms": 20, **QUICK, **options}
    return Consumer("t", bootstrap_servers=peer.bootstrap_servers, **settings)


async def offsets(reader: Consumer[bytes, bytes], count: int) -> list[int]:
    seen: list[int] = []
    with anyio.fail_after(5):
        while len(seen) < count:
            seen += [record.offset for record in await reader.getmany()]
    return seen


def watch(peer: Any) -> list[tuple[int, str]]:
    """Return a list that collects the node and the rack of each Fetch request from now on."""
    asked: list[tuple[int, str]] = []
    long_poll = peer.long_poll

    async def note(node: int, request: fetch.FetchRequest, version: int) -> fetch.FetchResponse:
        asked.append((node, request.rack_id))
        response: fetch.FetchResponse = await long_poll(node, request, version)
        return response

    peer.long_poll = note
    return asked


async def test_records_are_fetched_from_the_replica_that_the_leader_names(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(*[b"x"] * 5)
        asked = watch(peer)
        async with reader_of(peer) as reader:
            assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
            log.append(b"y")
            peer.wake_fetches()
            assert await offsets(reader, 1) == [5]
            assert (1, "here") in asked


async def test_without_a_rack_records_are_fetched_from_the_leader(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(b"x")
        asked = watch(peer)
        async with reader_of(peer, client_rack="") as reader:
            assert await offsets(reader, 1) == [0]
        assert set(asked) == {(0, "")}


async def test_the_leader_is_asked_again_when_the_preference_expires(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(b"x")
        asked = watch(peer)
        async with reader_of(peer, metadata_max_age_ms=50) as reader:
            assert await offsets(reader, 1) == [0]
            asked.clear()
            with anyio.fail_after(5):
                while (0, "here") not in asked:
                    await anyio.lowlevel.checkpoint()
                log.append(b"y")
                peer.wake_fetches()
                assert await offsets(reader, 1) == [1]


@pytest.mark.parametrize("code", [1, 3, 6, 9, 56, 74, 75, 78, -1, 29, 2])
async def test_34_after_any_error_of_a_replica_the_leader_is_read_without_a_reset(
    make_peer: MakePeer, code: int
) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(*[b"x"] * 5)
        async with reader_of(peer) as reader:
            assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
            looked_up = len(peer.asked(list_offsets.ListOffsetsRequest))
            asked = watch(peer)
            log.follower_error = code
            log.append(*[b"y"] * 5)
            peer.wake_fetches()
            assert await offsets(reader, 5) == [5, 6, 7, 8, 9]
            assert (0, "") in asked
            assert len(peer.asked(list_offsets.ListOffsetsRequest)) == looked_up


async def test_34_a_replica_whose_log_starts_later_does_not_make_the_consumer_skip_or_spin(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.follower_start = 3
        log.append(*[b"x"] * 3)
        log.append(*[b"x"] * 2)
        asked = watch(peer)
        async with reader_of(peer, fetch_max_bytes=1) as reader:
            assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
            assert len(asked) < 20
            assert asked.count((1, "here")) == 1, "the replica is avoided for a while"
            assert len(peer.asked(list_offsets.ListOffsetsRequest)) == 1


async def test_34_a_position_out_of_range_at_the_leader_too_is_looked_up_there(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(*[b"x"] * 5)
        nodes: list[int] = []
        async with reader_of(peer) as reader:
            assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
            answer = peer.answer

            async def note(node: int, request: Request[Any], version: int) -> Response | None:
                if request.API == ApiKey.LIST_OFFSETS:
                    nodes.append(node)
                response: Response | None = await answer(node, request, version)
                return response

            peer.answer = note
            log.follower_start = log.start = 7
            log.end = 7
            log.append(b"y")
            peer.wake_fetches()
            assert await offsets(reader, 1) == [7]
        assert nodes == [0]


async def test_34_a_corrupt_batch_of_a_replica_is_read_from_the_leader(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(b"x")
        broken = bytearray(log.batches[0][2])
        broken[-2] ^= 0xFF
        log.follower_records = bytes(broken)
        async with reader_of(peer) as reader:
            assert await offsets(reader, 1) == [0]


async def test_the_leader_is_read_when_a_replica_is_unreachable(make_peer: MakePeer) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("t")
        log.preferred = 1
        log.append(b"x")
        async with reader_of(peer) as reader:
            assert await offsets(reader, 1) == [0]
            peer.down.add(1)
            peer.hang_up(1)
            log.append(b"y")
            peer.wake_fetches()
            assert await offsets(reader, 1) == [1]


async def test_an_unknown_replica_is_not_used(make_peer: MakePeer) -> None:
    async with make_peer(nodes=1) as peer:
        log = peer.log("t")
        log.preferred = 9
        log.append(b"x")
        asked = watch(peer)
        async with reader_of(peer, fetch_max_wait_ms=5) as reader:
            assert await reader.getmany(timeout=0.05) == []
            log.preferred = -1
            assert await offsets(reader, 1) == [0]
        assert {node for node, _ in asked} == {0}


async def test_a_new_leader_in_the_metadata_is_read_while_the_old_one_has_not_responded(
    make_peer: MakePeer,
) -> None:
    async with make_peer(nodes=2, newest={ApiKey.LIST_OFFSETS: 3}) as peer:
        log = peer.log("t")  # without an epoch to validate the position with
        async with reader_of(peer, fetch_max_wait_ms=60_000, metadata_max_age_ms=20) as reader:
            with anyio.fail_after(5):
                while not peer.asked(fetch.FetchRequest):
                    await anyio.lowlevel.checkpoint()
            log.leader, log.leader_epoch = 1, 1
            log.append(b"x")
            assert await offsets(reader, 1) == [0]
