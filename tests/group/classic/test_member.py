"""The consumer as a member of a classic group, on the embedded broker."""

from __future__ import annotations

import re
import threading
from typing import Any

import anyio
import pytest

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigurationError,
    FencedError,
    InvalidArgument,
    KafkaError,
)
from aiokwire.producer import Producer
from aiokwire.protocol.messages import api_versions, heartbeat, join_group, leave_group
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

STRATEGIES = ["cooperative-sticky", "range", "roundrobin", "sticky"]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 4, "u": 2, "one": 1}, "auto_create_topics": False}


async def test_a_single_member_reads_everything_and_resumes_at_its_position(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)
    async with member(kafka_broker) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(40)]
        await reader.commit()
        assert {(record.partition, record.offset) for record in seen} == {(p, o) for p in range(4) for o in range(10)}
    await fill(kafka_broker, 4, 1)
    async with member(kafka_broker) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(4)]
        assert sorted((record.partition, record.offset) for record in seen) == [(p, 10) for p in range(4)]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_members_share_the_partitions(kafka_broker: Broker, strategy: str) -> None:
    options = {"partition_assignment_strategy": strategy}
    async with member(kafka_broker, **options) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker, **options) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            assert first.assignment | second.assignment == t(0, 1, 2, 3)
        await assigned(first, 0, 1, 2, 3)


async def test_a_list_of_eager_and_cooperative_assignors_matches_a_single_one(kafka_broker: Broker) -> None:
    both, one = ["cooperative-sticky", "range"], "range"
    async with (
        member(kafka_broker, partition_assignment_strategy=both) as first,
        member(kafka_broker, partition_assignment_strategy=one) as second,
    ):
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        assert first.assignment | second.assignment == t(0, 1, 2, 3)


async def test_a_cooperative_member_keeps_partitions_that_do_not_move(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker) as second:
            await until(lambda: len(second.assignment) == 2)
            assert listener.events == [("assigned", t(0, 1, 2, 3)), ("revoked", set(second.assignment))]
        await assigned(first, 0, 1, 2, 3)
        assert listener.events[2][0] == "assigned"
        assert len(listener.events[2][1]) == 2
    assert listener.events[3:] == [("revoked", t(0, 1, 2, 3))]


async def test_an_eager_member_revokes_all_partitions_first(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener, partition_assignment_strategy="range") as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker, partition_assignment_strategy="range") as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            assert listener.events == [
                ("assigned", t(0, 1, 2, 3)),
                ("revoked", t(0, 1, 2, 3)),
                ("assigned", set(first.assignment)),
            ]


async def test_kept_partitions_keep_their_positions_and_no_record_is_read_twice(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)
    async with member(kafka_broker, enable_auto_commit=False) as first:
        mine = [await first.getone(timeout=5) for _ in range(20)]
        async with member(kafka_broker, enable_auto_commit=False) as second:
            await until(lambda: len(second.assignment) == 2)
            kept = first.assignment
            with anyio.fail_after(5):
                while sum((record.topic, record.partition) in kept for record in mine) < 20:
                    mine += await first.getmany()
            places = [(record.partition, record.offset) for record in mine if (record.topic, record.partition) in kept]
            assert sorted(places) == sorted((tp.partition, offset) for tp in kept for offset in range(10))


async def test_fetch_memory_of_revoked_partitions_is_waited_for(kafka_broker: Broker) -> None:
    """The lanes of the revoked partitions used all memory, and their end must wake the new
    lanes."""
    options = {"partition_assignment_strategy": "range", "fetch_memory": 1_000_000}
    held = kafka_broker.faults.on(ApiKey.FETCH, times=None).hold()
    async with member(kafka_broker, "one", **options) as reader:
        for lanes in (1, 2):  # each has half of the memory until its fetch completes
            await until(lambda lanes=lanes: reader.memory_in_use == lanes * 500_000)  # type: ignore[misc]  # bound now
            generation = kafka_broker.faults.group("g").generation
            kafka_broker.faults.rebalance("g")
            await until(lambda before=generation: kafka_broker.faults.group("g").generation > before)  # type: ignore[misc]  # as above
            await until(lambda: kafka_broker.faults.group("g").state == "Stable")
        await fill(kafka_broker, 1, topic="one")
        held.release()
        assert (await reader.getone(timeout=5)).offset == 0


# --- listeners --------------------------------------------------------------------------------------------------------


async def test_no_record_is_returned_before_the_listener_has_set_the_positions(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)

    class Seeks(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            for tp in partitions:
                assert await reader.position(tp) == 0
                reader.seek(tp, 7)
            reader.pause(TopicPartition("t", 3))

    reader = member(kafka_broker, listener=Seeks())
    async with reader:
        seen = [await reader.getone(timeout=5) for _ in range(9)]
        assert sorted((record.partition, record.offset) for record in seen) == [
            (p, o) for p in range(3) for o in range(7, 10)
        ]
        assert reader.paused() == t(3)


async def test_a_listener_may_commit_revoked_partitions(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)

    class Commits(RebalanceListener):
        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            await reader.commit({tp: await reader.position(tp) for tp in partitions})

    reader = member(kafka_broker, listener=Commits(), enable_auto_commit=False)
    async with reader:
        for _ in range(40):
            await reader.getone(timeout=5)
    async with member(kafka_broker) as other:
        assert {place and place.offset for place in (await other.committed(*t(0, 1, 2, 3))).values()} == {10}


async def test_no_record_is_returned_during_a_revocation(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4, 50)
    begun = anyio.Event()
    proceed = anyio.Event()

    class Slow(RebalanceListener):
        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            begun.set()
            await proceed.wait()

    async with member(kafka_broker, listener=Slow(), partition_assignment_strategy="range") as first:
        await first.getone(timeout=5)
        async with member(kafka_broker, partition_assignment_strategy="range"):
            await begun.wait()
            assert await first.getmany(timeout=0.02) == []
            proceed.set()
            assert await first.getmany(timeout=5)


async def test_an_exception_of_a_listener_reaches_the_reader_and_the_rebalance_continues(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)

    class Fails(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            raise LookupError("no such table")

    async with member(kafka_broker, listener=Fails()) as reader:
        with pytest.raises(KafkaError, match="LookupError: no such table"):
            await reader.getone(timeout=5)
        assert (await reader.getone(timeout=5)).offset == 0


async def test_a_listener_that_hangs_delays_the_group_until_its_timeout(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)

    class Hangs(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            await anyio.sleep_forever()

    async with member(kafka_broker, listener=Hangs(), rebalance_listener_timeout_ms=20) as reader:
        with pytest.raises(KafkaError, match="rebalance_listener_timeout_ms"):
            await reader.getone(timeout=5)
        assert (await reader.getone(timeout=5)).offset == 0


async def test_a_consumer_may_be_closed_while_a_listener_runs(kafka_broker: Broker) -> None:
    begun = anyio.Event()

    class Hangs(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            begun.set()
            await anyio.sleep_forever()

    async with member(kafka_broker, listener=Hangs()):
        await begun.wait()
        started = anyio.current_time()
    assert anyio.current_time() - started < 4  # a close would give up after 5
    assert kafka_broker.faults.group("g").state == "Empty"


def test_a_listener_has_three_methods(kafka_broker_options: object) -> None:
    with pytest.raises(InvalidArgument, match="has no revoked, lost"):
        Consumer("t", group_id="g", listener=type("Half", (), {"assigned": print})())
    with pytest.raises(InvalidArgument, match="group_id"):
        Consumer("t", listener=RecordingListener())


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_member_of_an_old_generation_loses_its_partitions_and_rejoins_at_once(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        kafka_broker.faults.on(ApiKey.HEARTBEAT).error(ErrorCode.ILLEGAL_GENERATION)
        await until(lambda: len(listener.events) == 3)
        assert listener.events[1:] == [("lost", t(0, 1, 2, 3)), ("assigned", t(0, 1, 2, 3))]


async def test_an_evicted_member_joins_at_once_as_a_new_member(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        (before,) = kafka_broker.faults.group("g").members
        kafka_broker.faults.evict("g", before)
        await until(lambda: len(listener.events) == 3)
        assert listener.events[1:] == [("lost", t(0, 1, 2, 3)), ("assigned", t(0, 1, 2, 3))]
        assert list(kafka_broker.faults.group("g").members) != [before]


async def test_an_evicted_member_leaves_no_phantom_at_a_coordinator_that_reloads_the_group(
    kafka_broker: Broker,
) -> None:
    """The new coordinator must not wait for the id that the old one had refused until its session
    ends. It happened with a Kafka that had been suspended for longer than its session with the
    controller."""

    def move(request: join_group.JoinGroupRequest) -> join_group.JoinGroupResponse:
        kafka_broker.faults.move_coordinator(
            "g", next(n for n in kafka_broker.nodes if n != kafka_broker.faults.coordinator("g"))
        )
        return join_group.JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)

    options = {"session_timeout_ms": 60_000}
    async with member(kafka_broker, **options) as first, member(kafka_broker, **options) as second:
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        members = set(kafka_broker.faults.group("g").members)
        refused = kafka_broker.faults.on(
            join_group.JoinGroupRequest, when=lambda request: not request.member_id
        ).respond(move)
        # The other member learns of it later: alone it would complete a generation, which the new coordinator loads.
        beats = kafka_broker.faults.on(
            ApiKey.HEARTBEAT, when=lambda beat: beat.member_id != min(members), times=None
        ).hold()
        kafka_broker.faults.evict("g", min(members))
        await refused.hit()
        beats.release()
        await until(lambda: len(first.assignment) == len(second.assignment) == 2)
        assert set(kafka_broker.faults.group("g").members) == members


async def test_a_member_keeps_its_partitions_during_a_rebalance(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        (before,) = kafka_broker.faults.group("g").members
        generation = kafka_broker.faults.group("g").generation
        kafka_broker.faults.rebalance("g")
        await until(lambda: kafka_broker.faults.group("g").generation > generation)
        await until(lambda: kafka_broker.faults.group("g").state == "Stable")
        assert list(kafka_broker.faults.group("g").members) == [before]
        assert listener.events == [("assigned", t(0, 1, 2, 3))]


async def test_heartbeats_follow_a_coordinator_that_moves(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
        for node in kafka_broker.nodes * 2:
            kafka_broker.faults.move_coordinator("g", node)
            beats = kafka_broker.faults.on(ApiKey.HEARTBEAT, node=node, times=None).observe()
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
        assert other != gone
        await kafka_broker.faults.on(ApiKey.HEARTBEAT, node=other, times=None).observe().hit(2)
        await reader.commit({TopicPartition("t", 0): 3})
        assert reader.assignment == t(0, 1, 2, 3)


@pytest.mark.parametrize("api", [ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP])
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
        (ErrorCode.GROUP_MAX_SIZE_REACHED, BrokerError),
        (ErrorCode.INVALID_SESSION_TIMEOUT, BrokerError),
        (ErrorCode.INVALID_GROUP_ID, BrokerError),
    ],
)
async def test_a_refusal_is_raised_and_the_next_read_joins_again(
    kafka_broker: Broker, code: ErrorCode, kind: type[Exception]
) -> None:
    await fill(kafka_broker, 4)
    kafka_broker.faults.on(ApiKey.JOIN_GROUP).error(code)
    async with member(kafka_broker) as reader:
        with pytest.raises(kind, match=f"group 'g'.*{code.name}"):
            await reader.getone(timeout=5)
        assert (await reader.getone(timeout=5)).offset == 0


async def test_a_refused_coordinator_lookup_before_the_join_is_raised(kafka_broker: Broker) -> None:
    kafka_broker.faults.on(ApiKey.FIND_COORDINATOR).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    async with member(kafka_broker) as reader:
        with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
            await reader.getone(timeout=5)
        await until(lambda: not reader.assignment)


async def test_a_failing_assignor_is_named(kafka_broker: Broker) -> None:
    class Broken:
        name = "broken"
        cooperative = False

        def user_data(self, topics: object) -> bytes:
            return b""

        def assign(self, members: object, partitions: object) -> Any:
            raise ZeroDivisionError("no members")

        def on_assignment(self, partitions: object, generation: int) -> None: ...

    async with member(kafka_broker, partition_assignment_strategy=Broken()) as reader:
        with pytest.raises(KafkaError, match="'broken' failed: ZeroDivisionError"):
            await reader.getone(timeout=5)


# --- static members ---------------------------------------------------------------------------------------------------


async def test_a_static_member_that_returns_causes_no_rebalance(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_instance_id="one", listener=listener) as first:
        async with member(kafka_broker, group_instance_id="two") as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            had = second.assignment
        generation, events = kafka_broker.faults.group("g").generation, list(listener.events)
        assert len(kafka_broker.faults.group("g").members) == 2, "it does not leave"
        async with member(kafka_broker, group_instance_id="two") as second:
            await until(lambda: second.assignment == had)
        assert kafka_broker.faults.group("g").generation == generation
        assert listener.events == events


async def test_a_member_whose_instance_id_is_taken_stops_permanently(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_instance_id="one", listener=listener) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker, group_instance_id="one") as second:
            await assigned(second, 0, 1, 2, 3)
            with pytest.raises(FencedError, match="group 'g'"):
                await first.getone(timeout=5)
            await until(lambda: not first.assignment)
            assert listener.events[-1] == ("lost", t(0, 1, 2, 3))
            with pytest.raises(FencedError):
                await first.getone(timeout=5)
            assert second.assignment == t(0, 1, 2, 3)


async def test_every_request_of_a_static_member_contains_its_instance_id(kafka_broker: Broker) -> None:
    async with member(kafka_broker, group_instance_id="one") as reader:
        await assigned(reader, 0, 1, 2, 3)
        await kafka_broker.faults.on(ApiKey.HEARTBEAT).observe().hit()
        commits = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).observe()
        await reader.commit({TopicPartition("t", 0): 1})
    asked = [
        request
        for kind in (join_group.JoinGroupRequest, heartbeat.HeartbeatRequest)
        for request in kafka_broker.journal.requests(kind)
    ]
    assert {request.group_instance_id for request in (*asked, *commits.requests)} == {"one"}


# --- progress ---------------------------------------------------------------------------------------------------------


async def test_a_member_without_reads_leaves_until_the_next_read(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 4)
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener, max_poll_interval_ms=100) as reader:
        await reader.getone(timeout=5)
        await until(lambda: kafka_broker.faults.group("g").state == "Empty")
        assert listener.events[-1] == ("lost", t(0, 1, 2, 3))
        assert (await reader.getone(timeout=5)).offset == 0, "buffered records are not committed"


async def test_a_member_that_waits_for_records_stays(kafka_broker: Broker) -> None:
    async with member(kafka_broker, max_poll_interval_ms=500) as reader:
        await assigned(reader, 0, 1, 2, 3)
        (before,) = kafka_broker.faults.group("g").members
        assert await reader.getmany(timeout=1.5) == []
        assert list(kafka_broker.faults.group("g").members) == [before]


# --- topics -----------------------------------------------------------------------------------------------------------


async def test_added_partitions_are_read_from_their_start(kafka_broker: Broker) -> None:
    async with (
        member(kafka_broker, auto_offset_reset="latest", metadata_max_age_ms=20) as reader,
        Admin(kafka_broker.bootstrap_servers) as admin,
    ):
        await assigned(reader, 0, 1, 2, 3)
        kafka_broker.faults.freeze_metadata()
        await admin.create_partitions({"t": 6})
        async with Producer(kafka_broker.bootstrap_servers) as producer:
            kafka_broker.faults.thaw_metadata()
            kafka_broker.faults.on(ApiKey.METADATA, client_id="aiokwire", times=3).error(ErrorCode.LEADER_NOT_AVAILABLE)
            await producer.send("t", b"early", partition=5)
        record = await reader.getone(timeout=10)
        assert (record.partition, record.value) == (5, b"early")
        await assigned(reader, *range(6))


async def test_a_pattern_subscribes_to_all_matching_topics(kafka_broker: Broker) -> None:
    async with member(kafka_broker, re.compile("t|orders.*"), metadata_max_age_ms=20) as reader:
        await assigned(reader, 0, 1, 2, 3)
        await kafka_broker.create_topic("orders-eu", 2)
        async with Producer(kafka_broker.bootstrap_servers) as producer:
            await producer.send("orders-eu", b"first", partition=1)
        assert (await reader.getone(timeout=10)).topic == "orders-eu"
        assert reader.subscription == {"t", "orders-eu"}
        await kafka_broker.delete_topic("orders-eu")
        await assigned(reader, 0, 1, 2, 3)


async def test_a_pattern_may_exclude_topics_and_never_matches_internal_ones(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as other:
        await assigned(other, 0, 1, 2, 3)  # now the topic of offsets exists
    async with member(kafka_broker, group_id="h") as reader:
        await reader.subscribe(re.compile(".*"), exclude=re.compile("u|one"))
        await assigned(reader, 0, 1, 2, 3)
        assert reader.subscription == {"t"}


def test_patterns_are_checked() -> None:
    for wrong, message in (
        ((re.compile("a"), "b"), "one pattern"),
        ((re.compile(b"a"),), "not of bytes"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            Consumer(*wrong, group_id="g")
    with pytest.raises(InvalidArgument, match="pass group_id="):
        Consumer(re.compile("a"))


async def test_a_subscription_may_change(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        await reader.subscribe("t", "u", listener=listener)
        await until(lambda: len(reader.assignment) == 6)
        await reader.subscribe("u", listener=listener)
        await until(lambda: len(reader.assignment) == 2)
        u = {TopicPartition("u", number) for number in range(2)}
        assert listener.events == [("assigned", u), ("revoked", t(0, 1, 2, 3))]
        await reader.assign([TopicPartition("t", 0)])
        assert kafka_broker.faults.group("g").state == "Empty"
        assert reader.assignment == t(0)
        await reader.subscribe("u")
        await until(lambda: reader.assignment == u)


async def test_40_a_subscription_that_changes_during_a_join_leads_to_another_join(kafka_broker: Broker) -> None:
    for api in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
        held = kafka_broker.faults.on(api).hold()
        async with member(kafka_broker) as reader:
            await held.arrived()
            await reader.subscribe("u")
            held.release()
            await until(lambda: {tp.topic for tp in reader.assignment} == {"u"})


# --- leaving ----------------------------------------------------------------------------------------------------------


async def test_a_closed_member_leaves_at_once_with_its_reason(kafka_broker: Broker) -> None:
    leaving = kafka_broker.faults.on(ApiKey.LEAVE_GROUP).observe()
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
    (request,) = leaving.requests
    assert isinstance(request, leave_group.LeaveGroupRequest)
    assert request.members[0].reason == "the consumer was closed"
    assert kafka_broker.faults.group("g").state == "Empty"
    with pytest.raises(ClosedError):
        await reader.getone()


@pytest.mark.parametrize("api", [ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT])
async def test_40_a_close_is_bounded_without_responses_of_the_coordinator(kafka_broker: Broker, api: ApiKey) -> None:
    await fill(kafka_broker, 4)
    kafka_broker.faults.on(api, times=None).drop()
    reader = member(kafka_broker)
    await reader.start()
    await reader.getone(timeout=5)
    started = anyio.current_time()
    await reader.close(timeout=0.2)
    assert anyio.current_time() - started < 10


async def test_40_a_close_is_bounded_without_any_broker(kafka_broker: Broker) -> None:
    reader = member(kafka_broker)
    await reader.start()
    await assigned(reader, 0, 1, 2, 3)
    for node in kafka_broker.nodes:
        await kafka_broker.faults.stop_node(node)
    started = anyio.current_time()
    await reader.close(timeout=0.2)
    assert anyio.current_time() - started < 10


async def test_a_close_during_a_join_is_not_delayed(kafka_broker: Broker) -> None:
    for api in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
        held = kafka_broker.faults.on(api).hold()
        reader = member(kafka_broker)
        await reader.start()
        await held.arrived()
        started = anyio.current_time()
        await reader.close()
        assert anyio.current_time() - started < 4  # a close would give up after 5
        held.release()


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("age", range(10))
async def test_every_version_of_the_protocol_works(kafka_broker: Broker, age: int) -> None:
    """`age`: how many versions the broker is behind the newest."""
    newest = {
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
    least = {ApiKey.FETCH: 4, ApiKey.OFFSET_COMMIT: 2, ApiKey.OFFSET_FETCH: 1, ApiKey.LIST_OFFSETS: 1}
    offered = [
        api_versions.ApiVersion(api_key=int(key), min_version=0, max_version=max(version - age, least.get(key, 0)))
        for key, version in newest.items()
    ]
    kafka_broker.faults.on(ApiKey.API_VERSIONS, times=None).respond(api_versions.ApiVersionsResponse(api_keys=offered))
    async with member(kafka_broker) as first:
        async with member(kafka_broker) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 2)
            await second.commit(dict.fromkeys(second.assignment, 5))
        await assigned(first, 0, 1, 2, 3)
        await until(lambda: len(kafka_broker.faults.group("g").members) == 1)


def test_options_of_a_group_are_checked() -> None:
    for options, message in (
        ({"group_id": ""}, "group_id must not be empty"),
        ({"group_instance_id": "i"}, "needs a group_id"),
        ({"heartbeat_interval_ms": 50_000}, "must be less than session_timeout_ms"),
        ({"enable_auto_commit": "sometimes"}, "must be True, False or 'acked'"),
        ({"partition_assignment_strategy": "fair"}, "unknown assignor 'fair'"),
        ({"partition_assignment_strategy": ["range", "range"]}, "each assignor once"),
        ({"partition_assignment_strategy": [3]}, "3 is not an assignor"),
        ({"partition_assignment_strategy": []}, "at least one"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Consumer("t", **options)


async def test_a_close_without_a_coordinator_keeps_its_timeout_and_leaves_no_task() -> None:
    broker = Broker(topics={"t": 1})
    await broker.start()
    reader = member(broker)
    await reader.start()
    await assigned(reader, 0)
    await broker.close()
    began = anyio.current_time()
    await reader.close(timeout=1)  # a task that outlives the test fails it
    assert anyio.current_time() - began < 10


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_heartbeat_thread_ends_before_a_leave_that_times_out(protocol: str) -> None:
    """A tenth of the timeout, as before, is too short on a loaded machine."""
    broker = Broker(topics={"t": 1})
    await broker.start()
    reader = member(broker, group_protocol=protocol, client_id="ends early")
    await reader.start()
    await assigned(reader, 0)
    await broker.close()
    async with anyio.create_task_group() as tasks:
        began = anyio.current_time()
        tasks.start_soon(reader.close, 2)
        await until(lambda: not any("ends early" in thread.name for thread in threading.enumerate()))
        assert anyio.current_time() - began < 1
