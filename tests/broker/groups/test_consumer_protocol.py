"""Consumer protocol (KIP-848) over sockets: epochs, partitions given up before others take them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import consumer_group_heartbeat as messages
from aiokwire.protocol.messages import leave_group
from tests.broker.grouped import ConsumerProtocolMember, Parts, RawMember, close, settle, started
from tests.broker.raw import RawClient


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    """A broker in memory with a topic "t" of four partitions."""
    async with Broker(topics={"t": 4, "u": 2}, rng=random.Random(7)) as running:
        yield running


async def member(broker: Broker, name: str, **options: object) -> ConsumerProtocolMember:
    return ConsumerProtocolMember(broker, await RawClient.connect(broker), name, **options)  # type: ignore[arg-type]  # any of its


async def joined(broker: Broker, *names: str, **options: object) -> list[ConsumerProtocolMember]:
    """Return members of a group that have their target assignment."""
    members = [await member(broker, name, **options) for name in names]
    for one in members:
        assert await one.beat(join=True) is ErrorCode.NONE
    await settle(*members)
    return members


def all_owned(*members: ConsumerProtocolMember) -> Parts:
    """Return all partitions of the members; each must have a single owner."""
    found: Parts = {}
    for one in members:
        for topic, partitions in one.owned.items():
            assert not set(found.get(topic, ())) & set(partitions)
            found[topic] = sorted([*found.get(topic, ()), *partitions])
    return found


async def test_a_member_alone_has_everything_at_once(broker: Broker) -> None:
    (one,) = await joined(broker, "a")
    assert one.owned == {"t": [0, 1, 2, 3]}
    assert one.epoch == 1
    assert broker.faults.group("g").state == "Stable"
    answer = await one.ask(epoch=1)
    assert answer.assignment is None, "nothing new"
    assert answer.heartbeat_interval_ms == 5000
    assert (await one.ask(epoch=1, full=True)).assignment is not None, "a full heartbeat gets a full response"
    await close(one)


async def test_partitions_are_given_up_before_others_take_them(broker: Broker) -> None:
    (one,) = await joined(broker, "a")
    two = await member(broker, "b")
    assert await two.beat(join=True) is ErrorCode.NONE
    assert two.owned == {}, "the other one still has them"
    assert broker.faults.group("g").state == "Reconciling"
    everything, kept = dict(one.owned), one.epoch
    answer = await one.ask(epoch=1, owned=one.owned)
    assert answer.member_epoch == kept, "until it gave them up"
    assert answer.assignment is not None
    assert len(answer.assignment.topic_partitions[0].partitions) == 2
    assert await two.beat() is ErrorCode.NONE
    assert two.owned == {}
    assert one.owned == everything, "it missed the response: a full heartbeat gets everything again"
    assert await one.beat(full=True) is ErrorCode.NONE
    await settle(one, two)
    assert all_owned(one, two) == {"t": [0, 1, 2, 3]}
    assert one.epoch == two.epoch == 2
    assert {len(one.owned["t"]), len(two.owned["t"])} == {2}
    await close(one, two)


async def test_the_partitions_of_a_member_that_leaves_are_reassigned(broker: Broker) -> None:
    one, two = await joined(broker, "a", "b")
    assert await one.leave() is ErrorCode.NONE
    await settle(two)
    assert two.owned == {"t": [0, 1, 2, 3]}
    assert await one.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert await two.leave() is ErrorCode.NONE
    assert broker.faults.group("g").state == "Empty"
    await close(one, two)


async def test_a_silent_member_is_evicted() -> None:
    options: dict[str, Any] = {"group_consumer_min_session_timeout_ms": 1, "group_consumer_session_timeout_ms": 60}
    async with Broker(topics={"t": 4}, rng=random.Random(7), **options) as broker:
        silent, one = await member(broker, "silent"), await member(broker, "a")
        assert await silent.beat(join=True) is ErrorCode.NONE
        assert await one.beat(join=True) is ErrorCode.NONE
        while one.owned != {"t": [0, 1, 2, 3]}:
            assert await one.beat() is ErrorCode.NONE
        assert list(broker.faults.group("g").members) == ["a"]
        await close(silent, one)


async def test_a_member_that_does_not_revoke_in_time_is_fenced(broker: Broker) -> None:
    one, two = await member(broker, "a"), await member(broker, "b")
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert (await one.client.ask(request, 1)).member_epoch == 1
    assert await two.beat(join=True) is ErrorCode.NONE
    await one.ask(epoch=1)  # ignores the revocation
    while two.owned != {"t": [0, 1, 2, 3]}:
        await one.ask(epoch=1)
        assert await two.beat() is ErrorCode.NONE
    assert (await one.ask(epoch=1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    await close(one, two)


async def test_epochs_are_checked(broker: Broker) -> None:
    (one,) = await joined(broker, "a")
    two = await member(broker, "b")
    assert await two.beat(join=True) is ErrorCode.NONE
    await settle(one, two)
    assert one.epoch == 2
    assert (await one.ask(epoch=3)).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert (await one.ask(epoch=1)).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "it does not report what it owns"
    answer = await one.ask(epoch=1, owned=one.owned)
    assert answer.error_code == 0, "it missed the answer that raised its epoch"
    assert answer.member_epoch == 2
    assert answer.assignment is not None
    assert await one.beat(join=True) is ErrorCode.NONE, "who lost everything joins again"
    assert one.epoch == 2
    assert len(one.owned["t"]) == 2
    await close(one, two)


async def test_a_topic_with_new_partitions_or_a_new_topic_raises_the_epoch(broker: Broker) -> None:
    one, two = await joined(broker, "a", "b", topics=["t", "later"])
    broker.state.topics.add_partitions(broker.state.topics.require("t"), 6)
    await settle(one, two)
    assert all_owned(one, two) == {"t": [0, 1, 2, 3, 4, 5]}
    await broker.create_topic("later", 2)
    await settle(one, two)
    assert all_owned(one, two) == {"t": [0, 1, 2, 3, 4, 5], "later": [0, 1]}
    await broker.delete_topic("t")
    await settle(one, two)
    assert all_owned(one, two) == {"later": [0, 1]}
    epoch = one.epoch
    await broker.create_topic("unrelated", 1)
    await settle(one, two)
    assert one.epoch == epoch
    await close(one, two)


async def test_a_subscription_changes(broker: Broker) -> None:
    one, two = await joined(broker, "a", "b")
    one.topics = ["u"]
    assert await one.beat(full=True) is ErrorCode.NONE
    await settle(one, two)
    assert (one.owned, two.owned) == ({"u": [0, 1]}, {"t": [0, 1, 2, 3]})
    await close(one, two)


async def test_a_pattern_follows_created_and_deleted_topics(broker: Broker) -> None:
    one = await member(broker, "a", topics=None, regex="(t|u|v).*")
    assert await one.beat(join=True) is ErrorCode.NONE
    assert one.owned == {"t": [0, 1, 2, 3], "u": [0, 1]}
    await broker.create_topic("v1", 1)
    await settle(one)
    assert one.owned == {"t": [0, 1, 2, 3], "u": [0, 1], "v1": [0]}
    one.regex = ""
    one.topics = ["u"]
    assert await one.beat(full=True) is ErrorCode.NONE
    await settle(one)
    assert one.owned == {"u": [0, 1]}
    one.regex = "("
    assert await one.beat(full=True) is ErrorCode.INVALID_REGULAR_EXPRESSION
    await close(one)


async def test_a_pattern_cannot_hang_the_broker_now_or_for_later_topics(broker: Broker) -> None:
    one = await member(broker, "a", topics=None, regex="(a+)+$")
    assert await one.beat(join=True) is ErrorCode.NONE
    assert one.owned == {}
    await broker.create_topic("a" * 40 + "-", 1)
    await broker.create_topic("a" * 249, 1)
    await settle(one)
    assert one.owned == {"a" * 249: [0]}
    await close(one)


@pytest.mark.parametrize("regex", ["(" * 10_000, "(?=t)t", r"(t)\1", "(t{1000}){1000}", "t" * 20_000])
async def test_patterns_outside_of_re2_or_too_large_are_refused(broker: Broker, regex: str) -> None:
    one = await member(broker, "a", topics=None, regex=regex)
    assert await one.beat(join=True) is ErrorCode.INVALID_REGULAR_EXPRESSION
    await close(one)


async def test_a_pattern_that_becomes_too_expensive_keeps_the_topics_that_it_had(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    one = await member(broker, "a", topics=None, regex="((t?){100}){40}|u")
    assert await one.beat(join=True) is ErrorCode.NONE
    assert one.owned == {"t": [0, 1, 2, 3], "u": [0, 1]}
    for number in range(20, 40):
        await broker.create_topic("t" * number, 1)
    await settle(one)
    assert one.owned == {"t": [0, 1, 2, 3], "u": [0, 1]}
    assert "keeping its current topics" in caplog.text
    await close(one)


async def test_members_choose_the_assignor(broker: Broker) -> None:
    one, two = await joined(broker, "a", "b", assignor="range", topics=["t", "u"])
    assert {tuple(one.owned["t"]), tuple(two.owned["t"])} == {(0, 1), (2, 3)}
    assert {tuple(one.owned["u"]), tuple(two.owned["u"])} == {(0,), (1,)}
    three = await member(broker, "c", assignor="none")
    assert await three.beat(join=True) is ErrorCode.UNSUPPORTED_ASSIGNOR
    await close(one, two, three)


async def test_a_static_member_returns_to_its_partitions(broker: Broker) -> None:
    one, two = await member(broker, "a", instance="i"), await member(broker, "b")
    for each in (one, two):
        assert await each.beat(join=True) is ErrorCode.NONE
    await settle(one, two)
    had = one.owned
    early = await member(broker, "c", instance="i")
    assert await early.beat(join=True) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert await one.leave(for_a_while=True) is ErrorCode.NONE
    await settle(two)
    assert await early.beat(join=True) is ErrorCode.NONE
    await settle(early, two)
    assert early.owned == had
    assert (early.epoch, two.epoch) == (2, 2), "no rebalance"
    assert await one.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert broker.faults.group("g").members == {"b": None, "c": "i"}
    await close(one, two, early)


async def test_a_static_member_may_keep_its_id(broker: Broker) -> None:
    (one,) = await joined(broker, "a", instance="i")
    assert await one.leave(for_a_while=True) is ErrorCode.NONE
    assert await one.beat(join=True) is ErrorCode.NONE
    assert one.owned == {"t": [0, 1, 2, 3]}
    assert one.epoch == 1
    assert await one.leave() is ErrorCode.NONE
    assert broker.faults.group("g").state == "Empty"
    await close(one)


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"rebalance_timeout_ms": -1},
        {"subscribed_topic_names": None},
        {"topic_partitions": [messages.TopicPartitions(topic_id=b"x" * 16, partitions=[0])]},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_malformed_heartbeats(client: RawClient, fields: dict[str, object]) -> None:
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    answer = await client.ask(request, 1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message


async def test_version_0_assigns_member_ids(broker: Broker, client: RawClient) -> None:
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    answer = await client.ask(request, 0)
    assert answer.error_code == 0
    assert list(broker.faults.group("g").members) == [answer.member_id]


async def test_unknown_groups_and_members(broker: Broker) -> None:
    one = await member(broker, "a")
    assert (await one.ask(epoch=1)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert await one.leave() is ErrorCode.GROUP_ID_NOT_FOUND
    assert await one.beat(join=True) is ErrorCode.NONE
    two = await member(broker, "b", instance="i")
    assert (await two.ask(epoch=1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert await two.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    await close(one, two)


async def test_a_group_has_a_largest_size() -> None:
    async with Broker(topics={"t": 1}, group_consumer_max_size=1) as broker:
        one, two = await member(broker, "a"), await member(broker, "b")
        assert await one.beat(join=True) is ErrorCode.NONE
        assert await two.beat(join=True) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert await one.beat() is ErrorCode.NONE
        await close(one, two)


# --- offsets --------------------------------------------------------------------------------------------------------


async def test_commits_and_fetches_are_checked_by_the_epoch(broker: Broker, client: RawClient) -> None:
    one, two = await joined(broker, "a", "b")
    mine, theirs = one.owned["t"][0], two.owned["t"][0]
    assert await one.commit(3, partition=mine) is ErrorCode.NONE
    assert await one.commit(3, partition=mine, epoch=9) is ErrorCode.STALE_MEMBER_EPOCH
    assert await one.commit(3, partition=mine, epoch=9, version=8) is ErrorCode.UNSUPPORTED_VERSION
    # it may still commit partitions that it had before its epoch rose (KIP-1251), but not those that it got with it
    assert await one.commit(4, partition=mine, epoch=one.epoch - 1) is ErrorCode.NONE
    assert await two.commit(4, partition=theirs, epoch=two.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert await two.commit(4, partition=mine, epoch=two.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    code, _ = await one.fetch()
    assert code is ErrorCode.NONE
    assert await one.fetch(epoch=9) == (ErrorCode.STALE_MEMBER_EPOCH, [])
    stranger = ConsumerProtocolMember(broker, client, "unknown")
    assert await stranger.commit(4, epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await stranger.fetch(epoch=1) == (ErrorCode.UNKNOWN_MEMBER_ID, [])
    stranger.member_id = ""
    assert await stranger.commit(4, epoch=-1) is ErrorCode.UNKNOWN_MEMBER_ID, "past the members"
    assert (await stranger.fetch(epoch=-1))[0] is ErrorCode.NONE, "a tool"
    for each in (one, two):
        assert await each.leave() is ErrorCode.NONE
    assert await stranger.commit(4, epoch=-1) is ErrorCode.NONE
    await close(one, two)


# --- both protocols -------------------------------------------------------------------------------------------------


async def test_a_group_changes_its_protocol_only_when_it_is_empty(broker: Broker) -> None:
    (old,) = await started(broker, 1)
    new = await member(broker, "a")
    assert await new.beat(join=True) is ErrorCode.GROUP_ID_NOT_FOUND
    assert await old.leave() is ErrorCode.NONE
    assert await new.beat(join=True) is ErrorCode.NONE
    assert broker.faults.group("g").protocol == "consumer"
    old.member_id = ""
    old.send_join()
    assert await old.take_join() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert await old.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    old.send_sync()
    assert (await old.take_sync())[0] is ErrorCode.UNKNOWN_MEMBER_ID
    assert await new.leave() is ErrorCode.NONE
    (again,) = await started(broker, 1)
    assert broker.faults.group("g").protocol == "classic"
    await close(old, new, again)


async def test_a_tool_removes_members(broker: Broker, client: RawClient) -> None:
    members = [await member(broker, "a", instance="i"), await member(broker, "b")]
    for one in members:
        assert await one.beat(join=True) is ErrorCode.NONE
    identities = [("", "i"), ("b", None), ("c", None), ("b", "i")]
    leavers = [leave_group.MemberIdentity(member_id=name, group_instance_id=i) for name, i in identities]
    answer = await client.ask(leave_group.LeaveGroupRequest(group_id="g", members=leavers), 5)
    assert [one.error_code for one in answer.members][:3] == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert broker.faults.group("g").state == "Empty"
    await close(*members)


async def test_a_classic_member_is_not_found_by_the_consumer_protocol(broker: Broker) -> None:
    one = await RawMember.connect(broker)
    await one.get_id()
    new = await member(broker, "a")
    assert await new.beat(join=True) is ErrorCode.GROUP_ID_NOT_FOUND, "a member is about to join"
    await close(one, new)
