"""The offsets that a member commits, and when, on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import (
    BrokerError,
    CommitFailed,
    ConfigurationError,
    FencedError,
    InvalidArgument,
    RequestTimedOut,
)
from aiokwire.producer import Producer
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.transforming import transform
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.consumer.groups import QUICK, RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

ONE = TopicPartition("t", 0)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 2, "out": 1}, "auto_create_topics": False}


async def committed(broker: Broker, partitions: Iterable[TopicPartition] = (ONE,)) -> list[int | None]:
    """Return the committed offsets that another consumer reads."""
    async with Consumer(
        partitions=list(partitions), bootstrap_servers=broker.bootstrap_servers, group_id="g", **QUICK
    ) as reader:
        found = await reader.committed()
        return [place and place.offset for place in found.values()]


async def until_committed(broker: Broker, offset: int, partition: TopicPartition = ONE) -> None:
    with anyio.fail_after(10):
        while await committed(broker, [partition]) != [offset]:
            pass


# --- by the application -----------------------------------------------------------------------------------------------


async def test_a_commit_covers_the_returned_records_or_the_given_offsets(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await reader.getmany(4, partitions=None, timeout=5)
        await until(lambda: reader.assignment == t(0, 1))
        await reader.commit()
        assert sum(offset or 0 for offset in await committed(kafka_broker, t(0, 1))) == 4
        note = OffsetAndMetadata(7, "half done", 0)
        await reader.commit({ONE: note})
        assert (await reader.committed(ONE))[ONE] == note
        await reader.commit({ONE: 2})
        assert await committed(kafka_broker) == [2], "a program may commit an earlier offset"


async def test_of_several_commit_nowait_the_last_one_counts(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        for offset in range(1, 30):
            reader.commit_nowait({ONE: offset})
        await until_committed(kafka_broker, 29)
        with pytest.raises(InvalidArgument):
            reader.commit_nowait({ONE: -1})


async def test_commit_nowait_is_not_lost_on_close(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        reader.commit_nowait({ONE: 8})
        await anyio.lowlevel.checkpoint()
        reader.commit_nowait({ONE: 9})
    assert await committed(kafka_broker) == [9]


async def test_commit_nowait_is_not_lost_when_the_consumer_closes_at_once(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        records = [*await reader.getmany(4, timeout=5)]
        while len(records) < 4:
            records += await reader.getmany(4, timeout=5)
        reader.commit_nowait()
    assert sum(offset or 0 for offset in await committed(kafka_broker, t(0, 1))) == 4


async def test_commit_without_a_group_raises(kafka_broker: Broker) -> None:
    async with Consumer("t", bootstrap_servers=kafka_broker.bootstrap_servers) as reader:
        with pytest.raises(ConfigurationError, match="group_id"):
            await reader.commit({ONE: 1})
        with pytest.raises(ConfigurationError, match="group_id"):
            reader.commit_nowait()


async def test_a_member_cannot_commit_partitions_that_it_is_not_assigned(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as first:
        await assigned(first, 0, 1)
        async with member(kafka_broker) as second:
            await until(lambda: len(second.assignment) == 1)
            (other,) = second.assignment
            with pytest.raises(CommitFailed, match="not assigned to this member, which has") as caught:
                await first.commit({other: 1})
            assert caught.value.partitions == {other}


# --- automatically ----------------------------------------------------------------------------------------------------


async def test_processed_records_are_committed_at_intervals(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker, auto_commit_interval_ms=10) as reader:
        for _ in range(4):
            await reader.getone(timeout=5)
        await until_committed(kafka_broker, 3)
        await reader.getone(timeout=5)
        await until_committed(kafka_broker, 4)
        assert await reader.getmany(timeout=5)
        assert await reader.getmany(timeout=0.01) == []
        await until_committed(kafka_broker, 10)


async def test_the_first_position_is_committed_so_that_a_restart_resumes_there(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker, auto_offset_reset="latest") as reader:
        await assigned(reader, 0, 1)
        assert await reader.position(ONE) == 10
    await fill(kafka_broker, 1, 1)
    async with member(kafka_broker, auto_offset_reset="latest") as reader:
        assert (await reader.getone(timeout=5)).offset == 10


async def test_the_record_being_processed_on_close_is_delivered_again_unless_acked(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker) as reader:
        async for record in reader:
            if record.offset == 3:
                break
    assert await committed(kafka_broker) == [3]
    async with member(kafka_broker) as reader:
        async for record in reader:
            if record.offset == 5:
                reader.ack(record)
                break
    assert await committed(kafka_broker) == [6]


async def test_an_ack_commits_the_leader_epoch_of_its_record(kafka_broker: Broker) -> None:
    """Without it, a consumer that resumes there cannot detect an unclean leader election."""
    await fill(kafka_broker, 1)
    async with member(kafka_broker, enable_auto_commit="acked") as reader:
        record = await reader.getone(timeout=5)
        assert record.leader_epoch >= 0
        reader.ack(record)
    async with member(kafka_broker) as reader:
        (offset,) = (await reader.committed(*t(0))).values()
        assert offset == OffsetAndMetadata(1, "", record.leader_epoch)


async def test_with_acked_only_acked_records_are_committed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    async with member(kafka_broker, enable_auto_commit="acked", auto_commit_interval_ms=10) as reader:
        records = [await reader.getone(timeout=5) for _ in range(20)]
        assert await reader.getmany(timeout=0.05) == []
        mine = [record for record in records if record.partition == 0]
        reader.ack(mine[6])
        reader.ack(mine[4])
        await until_committed(kafka_broker, 7)
    assert await committed(kafka_broker, t(0, 1)) in ([7, None], [None, 7])


async def test_a_late_ack_of_a_partition_assigned_again_does_not_undo_a_commit(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    async with member(kafka_broker, enable_auto_commit="acked") as first:
        records = [await first.getone(timeout=5) for _ in range(20)]
        async with member(kafka_broker) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 1)
            (moved,) = second.assignment
            assert len(await second.getmany(timeout=5)) == 10
            await second.commit()
        await assigned(first, 0, 1)
        await first.position(moved)
        (other,) = t(0, 1) - {moved}
        by_place = {(record.partition, record.offset): record for record in records}
        first.ack(by_place[moved.partition, 0])
        first.ack(by_place[other.partition, 5])
    assert [await committed(kafka_broker, [tp]) for tp in (moved, other)] == [[10], [6]]


async def test_nothing_is_committed_when_automatic_commits_are_off(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker, enable_auto_commit=False, auto_commit_interval_ms=1) as reader:
        for _ in range(10):
            await reader.getone(timeout=5)
        assert await reader.getmany(timeout=0.02) == []
    assert await committed(kafka_broker) == [None]


async def test_an_automatic_commit_does_not_undo_a_manual_one(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker, auto_commit_interval_ms=5) as reader:
        await reader.getmany(8, timeout=5)
        await reader.commit()
        with anyio.move_on_after(0.05):
            await anyio.sleep_forever()
        assert await committed(kafka_broker) == [8]
        reader.seek(ONE, 2)
        await until_committed(kafka_broker, 2)


async def test_an_automatic_commit_does_not_undo_a_manual_one_in_flight(
    kafka_broker: Broker,
) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker, auto_commit_interval_ms=5) as reader:
        await reader.getmany(3, timeout=5)
        await reader.getmany(3, timeout=5)
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).delay(0.1)
        await reader.commit()  # 6, while 3 are processed
        with anyio.move_on_after(0.05):
            await anyio.sleep_forever()
        assert await committed(kafka_broker) == [6]


async def test_processed_records_are_committed_before_a_partition_is_revoked(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    async with member(kafka_broker) as first:
        seen = [await first.getone(timeout=5) for _ in range(20)]
        assert await first.getmany(timeout=0.01) == []
        async with member(kafka_broker) as second:
            await until(lambda: len(second.assignment) == 1)
            assert await second.getmany(timeout=0.1) == [], "all records were processed"
        assert len(seen) == 20


async def test_offsets_committed_by_a_transaction_end_automatic_commits(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 2)
    servers = kafka_broker.bootstrap_servers
    async with (
        member(kafka_broker, auto_commit_interval_ms=5) as reader,
        Producer(servers, transactional_id="x", retry_backoff_ms=2) as producer,
        anyio.create_task_group() as tasks,
    ):
        done = anyio.Event()
        count = 0

        async def copy(records: Any, _tx: object) -> None:
            nonlocal count
            for record in records:
                await producer.submit("out", record.value)
            count += len(records)
            if count >= 20:
                done.set()

        tasks.start_soon(transform, reader, producer, copy)
        with anyio.fail_after(10):
            await done.wait()
        await until_committed(kafka_broker, 10)
        metadata = reader.group_metadata()
        assert metadata.generation > 0
        assert metadata.member_id in kafka_broker.faults.group("g").members
        tasks.cancel_scope.cancel()


# --- commits and joins ------------------------------------------------------------------------------------------------


async def test_a_commit_arrives_while_the_join_waits_for_other_members(kafka_broker: Broker) -> None:
    async with (
        member(kafka_broker, enable_auto_commit=False) as reader,
        member(kafka_broker, client_id="other") as other,
    ):
        await until(lambda: len(reader.assignment) == len(other.assignment) == 1)
        (mine,) = reader.assignment
        before = reader.group_metadata().generation
        held = kafka_broker.faults.on(ApiKey.JOIN_GROUP, client_id="other").hold()
        reader.rejoin()
        await held.arrived()
        with anyio.fail_after(5):
            await reader.commit({mine: 3})
        assert kafka_broker.faults.group("g").generation == before
        held.release()
        await until(lambda: kafka_broker.faults.group("g").generation > before)
    assert kafka_broker.state.offsets.of_group("g")[mine].offset == 3


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS])
async def test_a_commit_that_arrives_after_the_join_is_repeated_in_the_new_generation(
    kafka_broker: Broker, code: ErrorCode
) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, enable_auto_commit=False, listener=listener) as reader:
        await assigned(reader, 0, 1)
        before = reader.group_metadata().generation
        commits = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=1).error(code)
        held = kafka_broker.faults.on(ApiKey.JOIN_GROUP).hold(handled=True)
        reader.rejoin()
        await held.arrived()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 3})
            await commits.hit()
            held.release()
        assert reader.group_metadata().generation == before + 1
        assert [name for name, _ in listener.events] == ["assigned"]
    assert await committed(kafka_broker) == [3]


async def test_a_commit_waits_for_the_end_of_a_sync_and_names_the_new_generation(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        before = reader.group_metadata().generation
        held = kafka_broker.faults.on(ApiKey.SYNC_GROUP).hold()
        commits = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=None).observe()
        reader.rejoin()
        await held.arrived()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 3})
            with anyio.move_on_after(0.03):
                await anyio.sleep_forever()
            assert not commits.requests
            held.release()
        (request,) = commits.requests
        assert request.generation_id_or_member_epoch == before + 1
    assert await committed(kafka_broker) == [3]


async def test_the_error_of_a_commit_that_times_out_during_a_join_names_the_rebalance(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.SYNC_GROUP).hold()
        reader.rejoin()
        await held.arrived()
        with pytest.raises(RequestTimedOut, match="rebalancing"):
            await reader.commit({ONE: 3}, timeout=0.05)
        held.release()


async def test_a_commit_in_flight_when_a_rebalance_starts_succeeds(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, enable_auto_commit=False, listener=listener) as reader:
        await assigned(reader, 0, 1)
        generation = kafka_broker.faults.group("g").generation
        held = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).hold()
        joins = kafka_broker.faults.on(ApiKey.JOIN_GROUP, times=None).observe()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 3})
            await held.arrived()
            kafka_broker.faults.rebalance("g")
            with anyio.move_on_after(0.05):
                await anyio.sleep_forever()
            assert not joins.requests, "the join waits for the commit"
            held.release()
        await until(lambda: kafka_broker.faults.group("g").generation > generation)
        assert [name for name, _ in listener.events] == ["assigned"]
    assert await committed(kafka_broker) == [3]


async def test_a_commit_refused_by_a_rebalance_in_progress_keeps_the_membership(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, enable_auto_commit=False, listener=listener) as reader:
        await assigned(reader, 0, 1)
        (before,) = kafka_broker.faults.group("g").members
        refused = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(ErrorCode.REBALANCE_IN_PROGRESS)
        await reader.commit({ONE: 3})
        assert refused.hits == 1
        assert list(kafka_broker.faults.group("g").members) == [before]
        assert [name for name, _ in listener.events] == ["assigned"]
    assert await committed(kafka_broker) == [3]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
async def test_a_member_unknown_at_a_commit_loses_its_partitions_and_rejoins_at_once(
    kafka_broker: Broker, code: ErrorCode
) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, enable_auto_commit=False, listener=listener, heartbeat_interval_ms=5000) as reader:
        await assigned(reader, 0, 1)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            kafka_broker.faults.evict("g", *kafka_broker.faults.group("g").members)
        else:
            kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(code)
        with pytest.raises(CommitFailed, match="another may read them") as caught:
            await reader.commit({ONE: 3})
        assert isinstance(caught.value.__cause__, BrokerError)
        assert caught.value.__cause__.code is code
        await until(lambda: [name for name, _ in listener.events] == ["assigned", "lost", "assigned"], seconds=2)
        await reader.commit({ONE: 4})
    assert await committed(kafka_broker) == [4]


async def test_a_member_fenced_at_a_commit_stops(kafka_broker: Broker) -> None:
    async with member(kafka_broker, group_instance_id="i", enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(ErrorCode.FENCED_INSTANCE_ID)
        with pytest.raises(FencedError):
            await reader.commit({ONE: 3})
        with pytest.raises(FencedError):
            await reader.getone(timeout=5)


async def test_a_commit_error_unrelated_to_membership_keeps_the_membership(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        generation = kafka_broker.faults.group("g").generation
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).error(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        with pytest.raises(BrokerError, match="OFFSET_METADATA_TOO_LARGE"):
            await reader.commit({ONE: 3})
        assert kafka_broker.faults.group("g").generation == generation


async def test_38_a_cancelled_commit_does_not_cancel_the_shared_coordinator_lookup(kafka_broker: Broker) -> None:
    """Regression: a cancelled commit cancelled the heartbeat's lookup; the member was evicted."""
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        (before,) = kafka_broker.faults.group("g").members
        held = kafka_broker.faults.on(ApiKey.FIND_COORDINATOR).hold()
        node = kafka_broker.faults.coordinator("g")
        kafka_broker.faults.move_coordinator("g", next(other for other in kafka_broker.nodes if other != node))
        with anyio.move_on_after(0.03):
            await reader.commit({ONE: 3})
        held.release()
        await reader.commit({ONE: 4})
        await (
            kafka_broker.faults.on(ApiKey.HEARTBEAT, node=kafka_broker.faults.coordinator("g"), times=None)
            .observe()
            .hit(2)
        )
        assert list(kafka_broker.faults.group("g").members) == [before]
    assert await committed(kafka_broker) == [4]


@pytest.mark.parametrize("fault", [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.NOT_COORDINATOR])
async def test_40_offsets_that_are_unavailable_for_a_while_do_not_block_partitions_forever(
    kafka_broker: Broker, fault: ErrorCode
) -> None:
    await fill(kafka_broker, 2)
    kafka_broker.faults.on(ApiKey.OFFSET_FETCH, times=3).error(fault)
    async with member(kafka_broker) as reader:
        seen = [await reader.getone(timeout=5) for _ in range(20)]
        assert {record.partition for record in seen} == {0, 1}


async def test_the_commit_of_a_deleted_topic_does_not_delay_others_or_close(kafka_broker: Broker) -> None:
    async with member(kafka_broker, "t", "out", metadata_max_age_ms=20, auto_commit_interval_ms=5) as reader:
        await until(lambda: len(reader.assignment) == 3)
        await kafka_broker.delete_topic("out")
        await until(lambda: reader._client.cluster.topics["out"].error_code != 0)
        await fill(kafka_broker, 2)
        for _ in range(20):
            await reader.getone(timeout=5)
        assert await reader.getmany(timeout=0.01) == []
        await until_committed(kafka_broker, 10)
        started = anyio.current_time()
    assert anyio.current_time() - started < 3


async def test_a_commit_of_lost_partitions_in_a_listener_raises(kafka_broker: Broker) -> None:
    failures: list[Exception] = []

    class Commits(RebalanceListener):
        async def lost(self, partitions: frozenset[TopicPartition]) -> None:
            try:
                await reader.commit(dict.fromkeys(partitions, 1))
            except CommitFailed as error:
                failures.append(error)

    reader = member(kafka_broker, listener=Commits(), enable_auto_commit=False)
    async with reader:
        await assigned(reader, 0, 1)
        kafka_broker.faults.evict("g", *kafka_broker.faults.group("g").members)
        await until(lambda: len(failures) == 1)


async def test_a_tool_can_commit_offsets_of_an_empty_group_only(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    async with member(kafka_broker) as reader:
        await assigned(reader, 0, 1)
        async with Consumer(
            partitions=[ONE], bootstrap_servers=kafka_broker.bootstrap_servers, group_id="g", **QUICK
        ) as tool:
            with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
                await tool.commit({ONE: 5})
    async with Consumer(
        partitions=[ONE], bootstrap_servers=kafka_broker.bootstrap_servers, group_id="g", **QUICK
    ) as tool:
        await tool.commit({ONE: 5})
    async with member(kafka_broker) as reader:
        assert (await reader.getone(timeout=5)).offset == 5
