"""Group scenarios that failed in other clients, on the embedded broker; docs/scenarios.md lists all
scenarios."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import CommitFailed
from aiokwire.group.subscription_format import decode_assignment, encode_subscription
from aiokwire.protocol.messages import offset_fetch
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.broker.grouped import RawMember
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

COOPERATIVE = "cooperative-sticky"


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {
        "topics": {"t": 4, "u": 2},
        "auto_create_topics": False,
        "group_consumer_heartbeat_interval_ms": 20,
        "group_consumer_min_heartbeat_interval_ms": 20,
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_16_a_member_reads_a_recreated_topic_from_its_start(kafka_broker: Broker, protocol: str) -> None:
    """The new topic has fewer partitions, and the committed offsets belong to the old one."""
    await fill(kafka_broker, 4)
    async with member(kafka_broker, group_protocol=protocol, metadata_max_age_ms=20) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(40)]
        assert {record.partition for record in seen} == {0, 1, 2, 3}
        await reader.commit()
        await kafka_broker.delete_topic("t")
        await kafka_broker.create_topic("t", 2)
        await fill(kafka_broker, 2, 3)
        await read_recreated(reader)
        await until(lambda: reader.assignment == t(0, 1))
        with anyio.fail_after(5):
            while {place and place.offset for place in (await reader.committed()).values()} != {3}:
                await reader.getmany(timeout=0.01)
                await reader.commit()


async def read_recreated(reader: Consumer[bytes, bytes]) -> None:
    """Read all of the new topic. Records that were read before the rebalance and not committed may
    be repeated."""
    wanted = {(partition, offset) for partition in (0, 1) for offset in range(3)}
    seen: set[tuple[int, int]] = set()
    while seen != wanted:
        record = await reader.getone(timeout=5)
        seen.add((record.partition, record.offset))
        assert seen <= wanted


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_16_a_partition_missing_in_a_recreated_topic_is_not_an_error_before_it_is_revoked(protocol: str) -> None:
    """Heartbeats are seconds apart, so the member learns of it from the metadata first."""
    async with Broker(topics={"t": 4}) as broker:
        await fill(broker, 4)
        options: dict[str, Any] = {"group_protocol": protocol, "metadata_max_age_ms": 20}
        async with member(broker, **options) as reader:
            assert len([await reader.getone(timeout=5) for _ in range(40)]) == 40
            await broker.delete_topic("t")
            await broker.create_topic("t", 2)
            await fill(broker, 2, 3)
            await read_recreated(reader)


class Foreigner:
    """A member of another client, which claims the partitions that a test chooses."""

    def __init__(self, raw: RawMember) -> None:
        self.raw = raw
        self.generation = -1
        self.owned: set[TopicPartition] = set()

    async def join(self, claims: set[TopicPartition], generation: int) -> None:
        """Join until a generation is complete, and take over the assignment."""
        subscription = encode_subscription({"t"}, b"", claims, generation)
        while True:
            self.raw.send_join(protocols=[(COOPERATIVE, subscription)])
            if await self.raw.take_join() is ErrorCode.MEMBER_ID_REQUIRED:
                continue
            assert not self.raw.leads, "the reader joined first"
            self.raw.send_sync(version=4)
            code, given = await self.raw.take_sync(version=4)
            if code is ErrorCode.NONE:
                self.generation, self.owned = self.raw.generation, set(decode_assignment(given)[0])
                return

    async def settle(self, reader: Consumer[Any, Any]) -> None:
        """Follow every rebalance until both members have partitions, and no partition has two
        owners."""
        with anyio.fail_after(10):
            while not (self.owned and self.owned | reader.assignment == t(0, 1, 2, 3)):
                if await self.raw.beat() is not ErrorCode.NONE:
                    await self.join(self.owned, self.generation)
        assert not self.owned & reader.assignment


@pytest.mark.parametrize("newer", [False, True])
async def test_40_of_two_claims_of_a_partition_the_newer_generation_counts(kafka_broker: Broker, newer: bool) -> None:
    """A member that missed a generation still claims partitions that others received in it."""
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1, 2, 3)
        generation = reader.group_metadata().generation
        stranger = Foreigner(await RawMember.connect(kafka_broker))
        await stranger.join(t(0, 1), generation + 5 if newer else generation - 1)
        assert stranger.owned <= (t(0, 1) if newer else set()), "an older claim gets only revoked partitions"
        await stranger.settle(reader)
        assert stranger.owned == t(0, 1) or not newer
        kept = reader.assignment
        assert all(not (gone & kept) for name, gone in listener.events if name != "assigned"), (
            "kept partitions are not revoked"
        )
        await stranger.raw.leave()
        await stranger.raw.client.close()
        await assigned(reader, 0, 1, 2, 3)


async def test_40_a_partition_claimed_twice_in_one_generation_is_first_revoked_from_both(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1, 2, 3)
        stranger = Foreigner(await RawMember.connect(kafka_broker))
        await stranger.join(t(0, 1), reader.group_metadata().generation)
        assert not stranger.owned & t(0, 1), "they must be revoked first"
        await stranger.settle(reader)
        await stranger.raw.client.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_40_a_member_that_returns_after_a_takeover_loses_its_partitions_first(
    kafka_broker: Broker, protocol: str
) -> None:
    """It still assumes its assignment: its commits are refused, and `lost` is called before it
    receives partitions."""
    await fill(kafka_broker, 4)
    listener = RecordingListener()
    options = {"group_protocol": protocol, "enable_auto_commit": False}
    async with member(kafka_broker, listener=listener, client_id="old", **options) as old:
        await assigned(old, 0, 1, 2, 3)
        (name,) = kafka_broker.faults.group("g").members
        beat = ApiKey.HEARTBEAT if protocol == "classic" else ApiKey.CONSUMER_GROUP_HEARTBEAT
        silenced = kafka_broker.faults.on(beat, client_id="old", times=None).hold()
        await silenced.arrived()
        kafka_broker.faults.evict("g", name)
        async with member(kafka_broker, **options) as young:
            await assigned(young, 0, 1, 2, 3)
            assert len(await young.getmany(40, timeout=5)) > 0
            await young.commit()
            assert old.assignment == t(0, 1, 2, 3), "it does not know yet"
            with pytest.raises(CommitFailed):
                await old.commit(dict.fromkeys(t(0, 1, 2, 3), 0))
            silenced.remove()
            silenced.release()
            await until(lambda: len(old.assignment) == len(young.assignment) == 2)
            assert old.assignment | young.assignment == t(0, 1, 2, 3)
            assert [event for event, _ in listener.events][:2] == ["assigned", "lost"]
            assert listener.events[1][1] == t(0, 1, 2, 3)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_40_a_partition_missing_in_a_response_is_delayed_briefly(kafka_broker: Broker, protocol: str) -> None:
    """The first response leaves out partition 1, the second one all partitions."""
    await fill(kafka_broker, 4)

    def some(request: offset_fetch.OffsetFetchRequest) -> offset_fetch.OffsetFetchResponse:
        group = request.groups[0]
        topics = [
            offset_fetch.OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartitions(partition_index=number, committed_offset=-1)
                    for number in topic.partition_indexes
                    if number != 1
                ],
            )
            for topic in group.topics or []
        ]
        return offset_fetch.OffsetFetchResponse(
            groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)]
        )

    kafka_broker.faults.on(ApiKey.OFFSET_FETCH).respond(some)
    nothing = offset_fetch.OffsetFetchResponse(groups=[offset_fetch.OffsetFetchResponseGroup(group_id="g")])
    left_out = kafka_broker.faults.on(ApiKey.OFFSET_FETCH).respond(nothing)
    async with member(kafka_broker, group_protocol=protocol) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(40)]
        assert {record.partition for record in seen} == {0, 1, 2, 3}
        assert [record.partition for record in seen].index(1) > 9, "the other partitions do not wait"
        assert left_out.hits == 1


async def test_40_a_subscription_that_changes_during_a_heartbeat_is_sent_next(
    kafka_broker: Broker,
) -> None:
    """KIP-848: a heartbeat with the old subscription is in flight."""
    for nth in (1, 2):
        held = kafka_broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, nth=nth).hold()
        async with member(kafka_broker, group_protocol="consumer") as reader:
            await held.arrived()
            await reader.subscribe("u")
            held.release()
            await until(lambda: {tp.topic for tp in reader.assignment} == {"u"})


async def test_partitions_in_a_running_listener_are_not_reassigned_after_a_lost_heartbeat(
    kafka_broker: Broker,
) -> None:
    """The next heartbeat is a full one, which must contain the partitions that the listener
    handles."""

    class Slow(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            begun.set()
            await done.wait()

    begun, done = anyio.Event(), anyio.Event()
    options = {"group_protocol": "consumer", "enable_auto_commit": False}
    async with member(kafka_broker, listener=Slow(), client_id="slow", **options) as slow:
        await begun.wait()
        async with member(kafka_broker, **options) as other:
            await until(lambda: len(kafka_broker.faults.group("g").members) == 2)
            await kafka_broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id="slow").close().hit()
            full = kafka_broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id="slow", times=None).observe()
            await full.hit(5)
            assert slow.assignment == t(0, 1, 2, 3)
            assert not other.assignment
            done.set()
            await until(lambda: len(slow.assignment) == len(other.assignment) == 2)
            assert not slow.assignment & other.assignment


@pytest.mark.parametrize("code", [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID])
async def test_a_member_of_the_consumer_protocol_leaves_a_deleted_group(kafka_broker: Broker, code: ErrorCode) -> None:
    """In other heartbeats the same code ends the member's epoch."""
    leaving = kafka_broker.faults.on(
        ApiKey.CONSUMER_GROUP_HEARTBEAT, when=lambda request: getattr(request, "member_epoch", 0) < 0
    ).error(code)
    listener = RecordingListener()
    async with member(kafka_broker, group_protocol="consumer", listener=listener) as reader:
        await assigned(reader, 0, 1, 2, 3)
    assert leaving.hits == 1
    assert [event for event, _ in listener.events] == ["assigned", "revoked"]
