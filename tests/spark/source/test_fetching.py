"""Fetches of a task from scripted brokers: preferred replicas, old versions, gaps, faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aiokwire.cluster import Client
from aiokwire.consumer import ConsumerConfig
from aiokwire.errors import BrokerError, CorruptRecord, RequestTimedOut
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import fetch
from aiokwire.spark.source.fetching import Cursor, Fetching, LostData
from aiokwire.spark.source.planning import Range
from tests.consumer.conftest import TOPIC_ID, Peer, make_peer

__all__ = ["make_peer"]

Make = Callable[..., Any]


async def read(peer: Peer, end: int, start: int = 0, **options: Any) -> list[bytes | None]:
    """Return the values of one range."""
    options = {"retry_backoff_ms": 1, "fetch_max_wait_ms": 20} | options
    config = ConsumerConfig(bootstrap_servers=peer.bootstrap_servers, **options)
    values: list[bytes | None] = []
    async with Client(config) as client:
        fetching = Fetching(client, config)
        cursor = Cursor(Range("orders", 0, start, end), TOPIC_ID, config)
        while not cursor.done:
            piece = await fetching.finish(cursor, await fetching.start(cursor))
            for batch in piece.batches:
                values += [record.value for record in batch.records(piece.start) if record.offset < piece.end]
    return values


async def test_a_range_is_read_by_topic_id_and_by_name(make_peer: Make) -> None:
    for newest in (12, 13):
        async with make_peer(newest={ApiKey.FETCH: newest}) as peer:
            peer.log("orders").append(b"a", b"b", b"c")
            assert await read(peer, 3) == [b"a", b"b", b"c"]
            (asked,) = peer.asked(fetch.FetchRequest)
            assert asked.topics[0].topic == ("orders" if newest == 12 else "")


async def test_the_preferred_replica_of_the_leader_is_read(make_peer: Make) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("orders")
        log.append(b"a", b"b")
        log.preferred = 1
        assert await read(peer, 2, client_rack="here") == [b"a", b"b"]
        assert [asked.rack_id for asked in peer.asked(fetch.FetchRequest)] == ["here", "here"]


@pytest.mark.parametrize("code", [1, 6, 56])
async def test_the_leader_is_read_when_the_preferred_replica_fails(make_peer: Make, code: int) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("orders")
        log.append(b"a", b"b")
        log.preferred = 1
        log.follower_error = code
        assert await read(peer, 2, client_rack="here") == [b"a", b"b"]


async def test_a_partition_is_followed_to_its_new_leader(make_peer: Make) -> None:
    async with make_peer(nodes=2) as peer:
        log = peer.log("orders")
        log.append(b"a")

        async def move(request: Request[Any], version: int) -> Response:
            log.leader, log.leader_epoch = 1, 1
            del peer.on[ApiKey.FETCH]
            response: Response = peer.fetch_now(0, request, version)
            return response

        peer.on[ApiKey.FETCH] = move
        assert await read(peer, 1) == [b"a"]


async def test_a_batch_that_an_old_broker_truncates_is_fetched_with_a_larger_limit(make_peer: Make) -> None:
    async with make_peer(newest={ApiKey.FETCH: 2}) as peer:
        peer.log("orders").append(b"x" * 5000)
        assert await read(peer, 1, max_partition_fetch_bytes=1000) == [b"x" * 5000]
        assert len(peer.asked(fetch.FetchRequest)) == 4


async def test_a_range_ends_where_compaction_has_removed_its_last_records(make_peer: Make) -> None:
    async with make_peer() as peer:
        log = peer.log("orders")
        log.append(b"a")
        log.end = 10
        assert await read(peer, 10) == [b"a"]


async def test_a_range_without_a_response_ends_with_an_error(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders").append(b"a")
        with pytest.raises(RequestTimedOut, match=r"reading orders\[0\] at offset 1"):
            await read(peer, 5, default_api_timeout_ms=200)


async def test_a_partition_missing_in_a_response_is_fetched_again(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders").append(b"a")

        async def throttled(request: Request[Any], version: int) -> Response:
            del peer.on[ApiKey.FETCH]
            return fetch.FetchResponse()

        peer.on[ApiKey.FETCH] = throttled
        assert await read(peer, 1) == [b"a"]


async def test_a_lost_connection_is_opened_again(make_peer: Make) -> None:
    async with make_peer() as peer:
        peer.log("orders").append(b"a")

        async def hang_up(request: Request[Any], version: int) -> None:
            del peer.on[ApiKey.FETCH]

        peer.on[ApiKey.FETCH] = hang_up
        assert await read(peer, 1) == [b"a"]


async def test_a_corrupt_batch_is_an_error_that_names_the_offset(make_peer: Make) -> None:
    async with make_peer() as peer:
        log = peer.log("orders")
        log.append(b"abc")
        start, end, data = log.batches[0]
        log.batches[0] = (start, end, data[:-2] + b"\xff" + data[-1:])
        with pytest.raises(CorruptRecord, match=r"orders\[0\] at offset 0"):
            await read(peer, 1)


async def test_an_authorization_error_is_raised_without_retry(make_peer: Make) -> None:
    async with make_peer() as peer:
        log = peer.log("orders")
        log.append(b"a")
        log.error = 29
        with pytest.raises(BrokerError, match="fetching orders"):
            await read(peer, 1)


async def test_offsets_deleted_by_retention_are_lost_data(make_peer: Make) -> None:
    async with make_peer() as peer:
        log = peer.log("orders")
        log.append(b"a", b"b", b"c")
        log.start = 2
        with pytest.raises(LostData, match="offsets 0 to 1 cannot be read: the log begins at 2") as caught:
            await read(peer, 3)
        assert (caught.value.loss.start, caught.value.loss.end) == (0, 2)
