"""The consumer as a member of a group of the consumer protocol (KIP-848), on the embedded
broker."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    FencedError,
    InvalidArgument,
    InvalidRequestError,
    UnsupportedVersion,
)
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import api_versions, metadata
from aiokwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import BrokerPattern, OffsetAndMetadata, TopicPartition
from tests.consumer import groups
from tests.consumer.groups import RecordingListener, assigned, fill, t, until
from tests.group.aside import broker_aside

__all__ = ["kafka_broker"]

BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
SESSION_MS = 600  # in tests that wait for the end of a session
BROKER: dict[str, Any] = {
    "nodes": 3,
    "topics": {"t": 4, "u": 2},
    "auto_create_topics": False,
    "group_consumer_heartbeat_interval_ms": 20,
    "group_consumer_min_heartbeat_interval_ms": 20,
}
SHORT: dict[str, Any] = BROKER | {
    "nodes": 1,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_session_timeout_ms": SESSION_MS,
}


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return BROKER


@pytest.fixture
async def short_broker() -> AsyncIterator[Broker]:
    async with Broker(**SHORT) as broker:
        yield broker


def member(broker: Broker, *topics: str | re.Pattern[str] | BrokerPattern, **options: Any) -> Consumer[bytes, bytes]:
    return groups.member(broker, *topics, **{"group_protocol": "consumer", **options})


def beats_of(broker: Broker) -> list[ConsumerGroupHeartbeatRequest]:
    return broker.journal.requests(ConsumerGroupHeartbeatRequest)


# --- assignment -------------------------------------------------------------------------------------------------------


async def test_a_single_member_reads_everything_and_resumes_at_its_position(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)
    async with member(kafka_broker) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(40)]
        await reader.commit()
        assert {(record.partition, record.offset) for record in seen} == {(p, o) for p in range(4) for o in range(10)}
        assert kafka_broker.faults.group("g").protocol == "consumer"
    await fill(kafka_broker, 4, 1)
    async with member(kafka_broker) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(4)]
        assert sorted((record.partition, record.offset) for record in seen) == [(p, 10) for p in range(4)]


@pytest.mark.parametrize("assignor", [None, "uniform", "range"])
async def test_members_share_the_partitions(kafka_broker: Broker, assignor: str | None) -> None:
    async with member(kafka_broker, group_remote_assignor=assignor) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker, group_remote_assignor=assignor) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            assert first.assignment | second.assignment == t(0, 1, 2, 3)
        await assigned(first, 0, 1, 2, 3)
    assert {beat.server_assignor for beat in beats_of(kafka_broker) if beat.member_epoch == 0} == {assignor}


async def test_a_listener_is_not_called_for_kept_partitions(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker) as second:
            await until(lambda: len(second.assignment) == 2)
            assert listener.events == [("assigned", t(0, 1, 2, 3)), ("revoked", set(second.assignment))]
        await assigned(first, 0, 1, 2, 3)
    assert [name for name, _ in listener.events] == ["assigned", "revoked", "assigned", "revoked"]


async def test_a_partition_is_reassigned_only_after_the_listener_returns(short_broker: Broker) -> None:
    """Heartbeats continue meanwhile, for longer than a session."""
    may_end, asked = anyio.Event(), anyio.Event()

    class Slow(RecordingListener):
        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            asked.set()
            await may_end.wait()
            await super().revoked(partitions)

    async with member(short_broker, listener=Slow()) as first:
        await assigned(first, 0, 1, 2, 3)
        (name,) = short_broker.faults.group("g").members
        async with member(short_broker) as second:
            await asked.wait()
            await short_broker.faults.on(BEAT, times=None).observe().hit(4 * SESSION_MS // 20)
            assert name in short_broker.faults.group("g").members
            assert not second.assignment
            may_end.set()
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)


async def test_heartbeats_contain_only_changes(kafka_broker: Broker) -> None:
    async with member(kafka_broker, client_rack="r1") as reader:
        await assigned(reader, 0, 1, 2, 3)
        await until(lambda: beats_of(kafka_broker)[-1].topic_partitions is None)
        first, second, *others = beats_of(kafka_broker)
        assert (first.member_epoch, first.rack_id, first.subscribed_topic_names) == (0, "r1", ["t"])
        assert first.topic_partitions == []
        assert first.rebalance_timeout_ms == 300_000
        assert second.topic_partitions is not None
        assert sorted(second.topic_partitions[0].partitions) == [0, 1, 2, 3]
        for beat in others:
            fields = (beat.subscribed_topic_names, beat.subscribed_topic_regex, beat.server_assignor, beat.rack_id)
            assert fields == (None, None, None, None)
            assert beat.rebalance_timeout_ms == -1


def _has_no_subscription(request: object) -> bool:
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    return request.subscribed_topic_names is None


async def test_after_a_heartbeat_without_a_response_a_full_one_is_sent(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        before = len(beats_of(kafka_broker))
        silent = kafka_broker.faults.on(BEAT, when=_has_no_subscription, times=None).close_after()
        await until(lambda: any(beat.subscribed_topic_names for beat in beats_of(kafka_broker)[before:]))
        assert silent.hits
        silent.remove()
        await kafka_broker.faults.on(BEAT).observe().hit()
        assert beats_of(kafka_broker)[-1].member_epoch == reader.group_metadata().generation
        assert [name for name, _ in listener.events] == ["assigned"]


# --- subscriptions ----------------------------------------------------------------------------------------------------


async def test_a_subscription_may_change(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        await reader.subscribe("u")
        await until(lambda: {tp.topic for tp in reader.assignment} == {"u"})
        await reader.subscribe("t", "u")
        await until(lambda: len(reader.assignment) == 6)


async def test_added_partitions_are_assigned(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader, Admin(kafka_broker.bootstrap_servers) as admin:
        await assigned(reader, 0, 1, 2, 3)
        await admin.create_partitions({"t": 6})
        await assigned(reader, 0, 1, 2, 3, 4, 5)


async def test_a_compiled_pattern_is_matched_by_the_client(kafka_broker: Broker) -> None:
    async with member(kafka_broker, re.compile("[tuv]")) as reader:
        await until(lambda: {tp.topic for tp in reader.assignment} == {"t", "u"})
        await kafka_broker.create_topic("v", 1)
        await reader.partitions_for_topic("v")
        await until(lambda: {tp.topic for tp in reader.assignment} == {"t", "u", "v"})


async def test_a_broker_pattern_is_matched_by_the_coordinator(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2, 1, "u")
    async with member(kafka_broker, BrokerPattern("[uv]")) as reader:
        assert {(await reader.getone(timeout=5)).topic for _ in range(2)} == {"u"}
        await kafka_broker.create_topic("v", 1)
        await until(lambda: {tp.topic for tp in reader.assignment} == {"u", "v"})
        await fill(kafka_broker, 1, 1, "v")
        assert (await reader.getone(timeout=5)).topic == "v"
        await reader.subscribe("t")
        await assigned(reader, 0, 1, 2, 3)
        await reader.subscribe(BrokerPattern("u"))
        await until(lambda: {tp.topic for tp in reader.assignment} == {"u"})
    asked = {name for one in kafka_broker.journal.requests(metadata.MetadataRequest) for name in _names(one)}
    assert asked >= {"u", "v"}


def _names(request: metadata.MetadataRequest) -> list[str | None]:
    assert request.topics is not None, "no request is for all topics"
    return [topic.name for topic in request.topics]


async def test_an_invalid_broker_pattern_is_an_error(kafka_broker: Broker) -> None:
    async with member(kafka_broker, BrokerPattern("(")) as reader:
        with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
            await reader.getone(timeout=5)


def test_a_broker_pattern_must_be_alone_and_needs_the_consumer_protocol() -> None:
    pattern = BrokerPattern("t.*")
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((pattern,), {"group_id": "g"}, 'needs group_protocol="consumer"'),
        ((pattern,), {"group_id": "g", "group_protocol": "auto"}, 'needs group_protocol="consumer"'),
        ((pattern, "t"), {"group_id": "g", "group_protocol": "consumer"}, "a topic must be a str"),
        ((BrokerPattern(""),), {"group_id": "g", "group_protocol": "consumer"}, "matches no topic"),
        ((pattern,), {}, "a topic must be a str"),
    ]
    for topics, options, message in cases:
        with pytest.raises(InvalidArgument, match=message):
            Consumer(*topics, **options)


async def test_an_assigned_partition_waits_for_the_name_of_its_topic(kafka_broker: Broker) -> None:
    """The metadata is older than the assignment."""
    kafka_broker.faults.on(ApiKey.METADATA, when=_asks_by_id).respond(metadata.MetadataResponse(brokers=[]))
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)


def _asks_by_id(request: object) -> bool:
    assert isinstance(request, metadata.MetadataRequest)
    return any(topic.topic_id != ZERO_UUID for topic in request.topics or ())


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
async def test_a_member_fenced_by_the_coordinator_loses_its_partitions_and_rejoins_at_once(
    kafka_broker: Broker, code: ErrorCode
) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        kafka_broker.faults.on(BEAT).error(code)
        await until(lambda: len(listener.events) == 3)
        assert listener.events[1:] == [("lost", t(0, 1, 2, 3)), ("assigned", t(0, 1, 2, 3))]


async def test_an_evicted_member_joins_again_with_its_id(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        (before,) = kafka_broker.faults.group("g").members
        epoch = kafka_broker.faults.group("g").generation
        kafka_broker.faults.evict("g", before)
        await until(lambda: kafka_broker.faults.group("g").generation > epoch + 1)
        await assigned(reader, 0, 1, 2, 3)
        assert list(kafka_broker.faults.group("g").members) == [before]


async def test_heartbeats_follow_a_coordinator_that_moves(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        for node in kafka_broker.nodes * 2:
            kafka_broker.faults.move_coordinator("g", node)
            beats = kafka_broker.faults.on(BEAT, node=node, times=None).observe()
            await beats.hit(2)
            beats.remove()
        assert reader.assignment == t(0, 1, 2, 3)
        assert [name for name, _ in listener.events] == ["assigned"]


async def test_the_member_follows_a_coordinator_that_stops(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        gone = kafka_broker.faults.coordinator("g")
        await kafka_broker.faults.stop_node(gone)
        other = kafka_broker.faults.coordinator("g")
        await kafka_broker.faults.on(BEAT, node=other, times=None).observe().hit(2)
        await reader.commit({TopicPartition("t", 0): 3})
        assert reader.assignment == t(0, 1, 2, 3)


@pytest.mark.parametrize("api", [ApiKey.FIND_COORDINATOR, BEAT])
@pytest.mark.parametrize(
    "fault", ["close", "close_after", ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
async def test_a_join_survives_transient_failures(kafka_broker: Broker, api: ApiKey, fault: str | ErrorCode) -> None:
    on = kafka_broker.faults.on(api, times=3)
    rule = on.error(fault) if isinstance(fault, ErrorCode) else on.close() if fault == "close" else on.close_after()
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
    assert rule.hits == 3


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, BrokerError),
        (ErrorCode.GROUP_ID_NOT_FOUND, BrokerError),
        (ErrorCode.INVALID_REQUEST, BrokerError),
    ],
)
async def test_a_refusal_is_raised_and_the_next_read_joins_again(
    kafka_broker: Broker, code: ErrorCode, kind: type[Exception]
) -> None:
    await fill(kafka_broker, 4)
    kafka_broker.faults.on(BEAT).error(code)
    async with member(kafka_broker) as reader:
        with pytest.raises(kind, match=f"group 'g'.*{code.name}"):
            await reader.getone(timeout=5)
        assert (await reader.getone(timeout=5)).offset == 0


async def test_an_assignor_unknown_to_the_coordinator_is_named(kafka_broker: Broker) -> None:
    async with member(kafka_broker, group_remote_assignor="fair") as reader:
        with pytest.raises(BrokerError, match=r"'fair' is not supported.*UNSUPPORTED_ASSIGNOR"):
            await reader.getone(timeout=5)


async def test_a_member_rejoins_after_its_session_ended_during_a_disconnection(short_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(short_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        cut = short_broker.faults.on(BEAT, times=None).close()
        await until(lambda: short_broker.faults.group("g").state == "Empty")
        cut.remove()
        await until(lambda: len(listener.events) == 3)
        assert listener.events[1:] == [("lost", t(0, 1, 2, 3)), ("assigned", t(0, 1, 2, 3))]


# --- static members ---------------------------------------------------------------------------------------------------


async def test_a_static_member_that_returns_gets_its_partitions_without_a_rebalance(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_instance_id="one", listener=listener) as first:
        async with member(kafka_broker, group_instance_id="two") as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            had = second.assignment
        events = list(listener.events)
        assert beats_of(kafka_broker)[-1].member_epoch in (-2, first.group_metadata().generation)
        assert len(kafka_broker.faults.group("g").members) == 2, "it does not leave"
        async with member(kafka_broker, group_instance_id="two") as second:
            await until(lambda: second.assignment == had)
        assert listener.events == events


async def test_a_join_waits_until_the_session_of_its_instance_id_ends(short_broker: Broker) -> None:
    """The first process was killed, and a new one replaces it."""
    killed = member(short_broker, group_instance_id="one")
    await killed.start()
    await assigned(killed, 0, 1, 2, 3)
    short_broker.faults.on(BEAT, when=lambda beat: getattr(beat, "member_epoch", 0) < 0).drop()
    await killed.close(timeout=0.05)
    async with member(short_broker, group_instance_id="one") as second:
        await assigned(second, 0, 1, 2, 3)


async def test_an_instance_id_that_stays_in_use_is_an_error(kafka_broker: Broker) -> None:
    async with member(kafka_broker, group_instance_id="one") as first:
        await assigned(first, 0, 1, 2, 3)
        short = {"session_timeout_ms": 100, "heartbeat_interval_ms": 20}
        async with member(kafka_broker, group_instance_id="one", **short) as second:
            with pytest.raises(InvalidRequestError, match="UNRELEASED_INSTANCE_ID"):
                await second.getone(timeout=5)
        assert first.assignment == t(0, 1, 2, 3)


async def test_a_member_fenced_by_its_instance_id_stops_permanently(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_instance_id="one", listener=listener) as first:
        await assigned(first, 0, 1, 2, 3)
        kafka_broker.faults.on(BEAT).error(ErrorCode.FENCED_INSTANCE_ID)
        for _ in range(2):
            with pytest.raises(FencedError, match="group 'g'"):
                await first.getone(timeout=5)
        await until(lambda: not first.assignment)
        assert listener.events[-1] == ("lost", t(0, 1, 2, 3))


# --- progress ---------------------------------------------------------------------------------------------------------


async def test_a_member_without_reads_leaves_until_the_next_read(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener, max_poll_interval_ms=100) as reader:
        await reader.getone(timeout=5)
        await until(lambda: kafka_broker.faults.group("g").state == "Empty")
        assert listener.events[-1] == ("lost", t(0, 1, 2, 3))
        assert (await reader.getone(timeout=5)).offset == 0, "buffered records are not committed"


async def test_a_member_stays_while_a_handler_blocks_the_loop_for_longer_than_a_session() -> None:
    listener = RecordingListener()
    with broker_aside(**SHORT) as broker:
        async with member(broker, listener=listener) as reader:
            await fill(broker, 1, 1)
            await reader.getone(timeout=5)
            epoch = reader.group_metadata().generation
            time.sleep(2.5 * SESSION_MS / 1000)  # noqa: ASYNC251 - the handler
            assert await reader.getmany(timeout=0.1) == []
            assert [name for name, _ in listener.events] == ["assigned"]
            assert reader.group_metadata().generation == epoch


# --- commits ----------------------------------------------------------------------------------------------------------


async def test_commits_contain_the_member_epoch(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        commits = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).observe()
        await reader.commit({TopicPartition("t", 0): 1})
        group = reader.group_metadata()
        (request,) = commits.requests
        assert getattr(request, "generation_id_or_member_epoch", None) == group.generation
        assert [group.member_id] == list(kafka_broker.faults.group("g").members)


async def test_a_commit_with_an_old_epoch_is_retried_with_the_new_one(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        refused = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=2).error(ErrorCode.STALE_MEMBER_EPOCH)
        await reader.commit({TopicPartition("t", 0): 7})
        assert refused.hits == 2
        committed = await reader.committed(TopicPartition("t", 0))
        assert committed[TopicPartition("t", 0)] == OffsetAndMetadata(7)


async def test_a_refused_commit_of_an_unknown_member_leads_to_a_new_join(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(ErrorCode.UNKNOWN_MEMBER_ID)
        with pytest.raises(Exception, match="were not committed"):
            await reader.commit({TopicPartition("t", 0): 7})
        await until(lambda: len(listener.events) == 3)
        assert listener.events[1:] == [("lost", t(0, 1, 2, 3)), ("assigned", t(0, 1, 2, 3))]


# --- leaving ----------------------------------------------------------------------------------------------------------


async def test_a_closed_member_leaves_at_once(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
    assert beats_of(kafka_broker)[-1].member_epoch == -1
    assert kafka_broker.faults.group("g").state == "Empty"


async def test_a_close_is_bounded_without_responses_of_the_coordinator(kafka_broker: Broker) -> None:
    reader = member(kafka_broker)
    await reader.start()
    await assigned(reader, 0, 1, 2, 3)
    kafka_broker.faults.on(BEAT, times=None).drop()
    started = anyio.current_time()
    await reader.close(timeout=0.2)
    assert anyio.current_time() - started < 10


async def test_a_close_during_a_join_is_not_delayed(kafka_broker: Broker) -> None:
    held = kafka_broker.faults.on(BEAT).hold()
    reader = member(kafka_broker)
    await reader.start()
    await held.arrived()
    started = anyio.current_time()
    await reader.close()
    assert anyio.current_time() - started < 4  # a close would give up after 5
    held.release()


# --- brokers without the protocol, or with its first version ----------------------------------------------------------


def limited(broker: Broker, newest: int | None) -> None:
    """Have the broker offer the protocol up to version `newest`, or not at all."""
    others = {
        ApiKey.JOIN_GROUP: 9,
        ApiKey.SYNC_GROUP: 5,
        ApiKey.HEARTBEAT: 4,
        ApiKey.LEAVE_GROUP: 5,
        ApiKey.FIND_COORDINATOR: 6,
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.METADATA: 12,
        ApiKey.LIST_OFFSETS: 9,
        ApiKey.FETCH: 12,
    }
    if newest is not None:
        others[BEAT] = newest
    offered = [api_versions.ApiVersion(api_key=int(key), max_version=version) for key, version in others.items()]
    for one in offered:
        one.min_version = 4 if one.api_key == ApiKey.FETCH else 0
    broker.faults.on(ApiKey.API_VERSIONS, times=None).respond(api_versions.ApiVersionsResponse(api_keys=offered))


async def test_in_the_first_version_the_coordinator_generates_member_ids(kafka_broker: Broker) -> None:
    limited(kafka_broker, 0)
    async with member(kafka_broker) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            await second.commit(dict.fromkeys(second.assignment, 5))
        await assigned(first, 0, 1, 2, 3)
    assert {beat.member_id for beat in beats_of(kafka_broker) if beat.member_epoch == 0} == {""}


async def test_a_broker_without_the_protocol_is_an_error(kafka_broker: Broker) -> None:
    limited(kafka_broker, None)
    async with member(kafka_broker) as reader:
        for _ in range(2):
            with pytest.raises(UnsupportedVersion, match="ConsumerGroupHeartbeat"):
                await reader.getone(timeout=5)


@pytest.mark.parametrize("why", ["not offered", ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_ID_NOT_FOUND])
async def test_auto_falls_back_to_the_classic_protocol(kafka_broker: Broker, why: str | ErrorCode) -> None:
    await fill(kafka_broker, 4)
    if isinstance(why, ErrorCode):
        kafka_broker.faults.on(BEAT).error(why)
    else:
        limited(kafka_broker, None)
    async with member(kafka_broker, group_protocol="auto") as reader:
        assert (await reader.getone(timeout=5)).offset == 0
        assert kafka_broker.faults.group("g").protocol == "classic"
        await reader.commit()
        assert reader.group_metadata().generation == 1
    assert kafka_broker.faults.group("g").state == "Empty"


async def test_a_member_that_leaves_during_protocol_selection_does_not_join(kafka_broker: Broker) -> None:
    held = kafka_broker.faults.on(BEAT).hold()
    joins = kafka_broker.faults.on(ApiKey.JOIN_GROUP, times=None).observe()
    async with member(kafka_broker, group_protocol="auto") as reader:
        await held.arrived()
        await reader.assign([TopicPartition("t", 0)])
        held.release()
        await fill(kafka_broker, 1, 1)
        assert (await reader.getone(timeout=5)).offset == 0
    assert joins.hits == 0


async def test_auto_uses_the_consumer_protocol_if_the_broker_supports_it(kafka_broker: Broker) -> None:
    async with member(kafka_broker, group_protocol="auto") as reader:
        await assigned(reader, 0, 1, 2, 3)
        assert kafka_broker.faults.group("g").protocol == "consumer"
        await reader.subscribe("u")
        await until(lambda: {tp.topic for tp in reader.assignment} == {"u"})
    assert kafka_broker.faults.group("g").state == "Empty"


def test_options_are_checked() -> None:
    for options, message in (
        ({"group_protocol": "modern"}, "group_protocol must be one of classic, consumer, auto, not 'modern'"),
        ({"group_remote_assignor": ""}, "group_remote_assignor must not be empty"),
        ({"group_remote_assignor": 3}, "group_remote_assignor"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Consumer("t", group_id="g", **options)
