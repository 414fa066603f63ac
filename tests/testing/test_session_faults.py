"""Fetch sessions against a broker that forgets them, loses their requests, or has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.protocol.messages import fetch, list_offsets
from aiokwire.testing import ApiKey, ErrorCode, JournalEntry
from aiokwire.types import TopicPartition
from tests.testing.clients import Quick, fill, read, reader_of


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 2, "topics": {"t": 20, "one": 1}, "auto_create_topics": False}


def fetches(broker: Broker) -> list[fetch.FetchRequest]:
    return broker.journal.requests(fetch.FetchRequest)


def named(request: fetch.FetchRequest) -> int:
    return sum(len(topic.partitions) for topic in request.topics)


def is_fetch(entry: JournalEntry, meets: Callable[[fetch.FetchRequest], bool]) -> bool:
    return isinstance(entry.request, fetch.FetchRequest) and meets(entry.request)


async def wait_for(
    broker: Broker, meets: Callable[[fetch.FetchRequest], bool], count: int = 1, node: int | None = None
) -> list[fetch.FetchRequest]:
    """Wait for `count` matching fetches and return them."""
    found = await broker.journal.wait_for(
        lambda entry: is_fetch(entry, meets) and node in (None, entry.node), count=count
    )
    return [entry.request for entry in found if isinstance(entry.request, fetch.FetchRequest)]


async def idle(broker: Broker, count: int = 4) -> None:
    """Wait for `count` fetches that change nothing in the session."""
    broker.journal.clear()
    await wait_for(broker, lambda request: named(request) == 0, count)


async def test_an_idle_consumer_names_nothing_again(kafka_broker: Broker, quick: Quick) -> None:
    async with reader_of(kafka_broker, quick, "t") as reader:
        await idle(kafka_broker)
        kafka_broker.journal.clear()
        await fill(kafka_broker, [b"x"], topic="t", partition=7)
        assert await read(reader, 1) == [b"x"]
        await idle(kafka_broker, 2)
    assert max(named(request) for request in fetches(kafka_broker)) <= 1


async def test_pause_and_resume_change_the_fetch_session(kafka_broker: Broker, quick: Quick) -> None:
    await fill(kafka_broker, [b"a"], topic="t", partition=0)
    async with reader_of(kafka_broker, quick, "t") as reader:
        assert await read(reader, 1) == [b"a"]
        paused = TopicPartition("t", 0)
        reader.pause(paused)
        forgotten = await wait_for(kafka_broker, lambda request: bool(request.forgotten_topics_data))
        (gone,) = forgotten[0].forgotten_topics_data
        assert gone.partitions == [0]
        await fill(kafka_broker, [b"b"], topic="t", partition=0)
        assert await reader.getmany(timeout=0.1) == []
        reader.resume(paused)
        assert await read(reader, 1) == [b"b"]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
async def test_a_session_that_the_broker_rejects_is_restarted_at_once(
    kafka_broker: Broker, quick: Quick, code: ErrorCode
) -> None:
    async with reader_of(
        kafka_broker, {**quick, "retry_backoff_ms": 60_000, "retry_backoff_max_ms": 60_000}, "one"
    ) as reader:
        await fill(kafka_broker, [b"a"])
        assert await read(reader, 1) == [b"a"]
        refused = kafka_broker.faults.on(fetch.FetchRequest, when=lambda request: request.session_epoch > 0).respond(
            fetch.FetchResponse(error_code=code)
        )
        await refused.hit(1)
        await fill(kafka_broker, [b"b"])
        assert await read(reader, 1) == [b"b"]


async def test_a_broker_that_refuses_every_session_is_asked_again_only_after_a_pause(
    kafka_broker: Broker, quick: Quick
) -> None:
    kafka_broker.faults.on(ApiKey.FETCH, times=None).respond(
        fetch.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    )
    slow = {**quick, "retry_backoff_ms": 100, "retry_backoff_max_ms": 100}
    async with reader_of(kafka_broker, slow, "one") as reader:
        assert await reader.getmany(timeout=0.3) == []
    assert len(fetches(kafka_broker)) < 12


async def test_the_broker_may_have_no_room_for_sessions(quick: Quick) -> None:
    async with Broker(topics={"one": 1}, journal=1000, max_incremental_fetch_session_cache_slots=0) as broker:
        await fill(broker, [b"a"])
        async with reader_of(broker, quick, "one") as reader:
            assert await read(reader, 1) == [b"a"]
            await fill(broker, [b"b"])
            assert await read(reader, 1) == [b"b"]
        assert {(request.session_id, request.session_epoch) for request in fetches(broker)} == {(0, 0)}


@pytest.mark.parametrize("fault", ["close", "close_after", "drop"])
async def test_a_new_session_names_everything_after_a_lost_request_or_response(
    kafka_broker: Broker, quick: Quick, fault: str
) -> None:
    async with reader_of(kafka_broker, quick, "t", request_timeout_ms=150) as reader:
        await idle(kafka_broker)
        rule = kafka_broker.faults.on(fetch.FetchRequest, when=lambda request: request.session_epoch > 0)
        lost = getattr(rule, fault)()
        await lost.hit(1)
        kafka_broker.journal.clear()
        (again, *_) = await wait_for(kafka_broker, lambda request: request.session_epoch == 0)
        assert again.session_id > 0, "the old one may be dropped"
        assert named(again) == 10
        await fill(kafka_broker, [b"x"], topic="t", partition=3)
        assert await read(reader, 1) == [b"x"]
        assert len(kafka_broker.journal.requests(list_offsets.ListOffsetsRequest)) == 0


async def test_sessions_are_ended_when_the_consumer_is_closed(kafka_broker: Broker, quick: Quick) -> None:
    async with reader_of(kafka_broker, quick, "t"):
        await idle(kafka_broker)
        open_before = [len(kafka_broker.state.nodes.get(node).sessions) for node in kafka_broker.nodes]
        assert min(open_before) >= 1
    await wait_for(kafka_broker, lambda request: request.session_epoch == -1, sum(open_before))
    await anyio.wait_all_tasks_blocked()
    assert [len(kafka_broker.state.nodes.get(node).sessions) for node in kafka_broker.nodes] == [0, 0]


async def test_a_session_is_ended_at_a_node_that_leads_nothing_any_more(kafka_broker: Broker, quick: Quick) -> None:
    leader = kafka_broker.faults.leader("one", 0)
    async with reader_of(kafka_broker, quick, "one") as reader:
        await idle(kafka_broker, 2)
        kafka_broker.faults.move_leader("one", 0, 3 - leader)
        await fill(kafka_broker, [b"x"])
        assert await read(reader, 1) == [b"x"]
        await wait_for(kafka_broker, lambda request: request.session_epoch == -1, node=leader)
