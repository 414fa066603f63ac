"""Commits never decrease an offset: those of one consumer take effect in the order of the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import RebalanceListener
from aiokwire.errors import CommitFailed, RequestTimedOut
from aiokwire.protocol.messages.offset_commit import OffsetCommitRequest
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import assigned, fill, member, t, until

__all__ = ["kafka_broker"]

ONE = TopicPartition("t", 0)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"t": 2}, "auto_create_topics": False}


def sent(requests: Sequence[Any]) -> list[int]:
    """Return the offsets of partition 0 in commits, in order of arrival."""
    return [
        partition.committed_offset
        for request in requests
        for topic in request.topics
        for partition in topic.partitions
        if partition.partition_index == 0
    ]


def stored(broker: Broker) -> int | None:
    """Return the committed offset of partition 0."""
    found = broker.state.offsets.of_group("g").get(ONE)
    return None if found is None else found.offset


async def quiet(seconds: float = 0.05) -> None:
    """Wait, so that a wrong commit would have arrived."""
    with anyio.move_on_after(seconds):
        await anyio.sleep_forever()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_retried_automatic_commit_takes_effect_before_a_newer_manual_one(
    kafka_broker: Broker, protocol: str
) -> None:
    """Regression: the retry after REBALANCE_IN_PROGRESS followed the newer commit and undid it."""
    again = ErrorCode.REBALANCE_IN_PROGRESS if protocol == "classic" else ErrorCode.STALE_MEMBER_EPOCH
    await fill(kafka_broker, 1)
    refused = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, nth=2).error(again)
    options = {"group_protocol": protocol, "retry_backoff_ms": 20, "auto_commit_interval_ms": 5}
    async with member(kafka_broker, **options) as reader:
        assert len(await reader.getmany(3, timeout=5)) == 3
        await until(lambda: stored(kafka_broker) == 0)
        assert len(await reader.getmany(3, timeout=5)) == 3  # 3 are processed
        await refused.hit()
        await reader.commit()
        assert stored(kafka_broker) == 6
        await quiet()
        assert stored(kafka_broker) == 6
    offsets = sent(kafka_broker.journal.requests(OffsetCommitRequest))
    assert offsets == sorted(offsets)
    assert {*offsets} == {0, 3, 6}
    assert offsets.count(3) >= 2


async def test_commit_nowait_does_not_undo_the_next_commit(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        reader.commit_nowait({ONE: 5})
        await reader.commit({ONE: 8})
        await quiet()
        assert stored(kafka_broker) == 8
        kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).delay(0.02)
        reader.commit_nowait({ONE: 9})
        await anyio.lowlevel.checkpoint()
        reader.commit_nowait({ONE: 10})
        await reader.commit({ONE: 11})
        await quiet()
        assert stored(kafka_broker) == 11


async def test_commits_that_waited_for_a_join_are_sent_before_later_ones(kafka_broker: Broker) -> None:
    class Commits(RebalanceListener):
        """A listener that commits before the waiting commits resume."""

        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            if partitions == t(0, 1) and begun:
                await reader.commit({ONE: 9})

    begun: list[int] = []
    options = {"partition_assignment_strategy": "range", "enable_auto_commit": False}
    async with member(kafka_broker, listener=Commits(), **options) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.SYNC_GROUP).hold()
        reader.rejoin()
        await held.arrived()
        begun.append(1)
        async with anyio.create_task_group() as tasks:
            for offset in (3, 4, 5):
                tasks.start_soon(reader.commit, {ONE: offset})
            await quiet(0.02)
            held.release()
        await until(lambda: stored(kafka_broker) == 9)
        await quiet(0.02)
        assert stored(kafka_broker) == 9
    assert sent(kafka_broker.journal.requests(OffsetCommitRequest)) == [3, 4, 5, 9]


async def test_a_commit_that_times_out_waiting_for_earlier_ones_is_not_sent_later(kafka_broker: Broker) -> None:
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).hold()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 1})
            await held.arrived()
            with pytest.raises(RequestTimedOut, match="earlier commits"):
                await reader.commit({ONE: 2}, timeout=0.02)
            tasks.start_soon(reader.commit, {ONE: 3})
            await anyio.lowlevel.checkpoint()
            held.release()
    assert sent(kafka_broker.journal.requests(OffsetCommitRequest)) == [1, 3]


async def test_an_automatic_commit_is_not_retried_after_a_transaction_takes_over(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 1)
    refused = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, nth=2).error(ErrorCode.REBALANCE_IN_PROGRESS)
    async with member(kafka_broker, retry_backoff_ms=20, auto_commit_interval_ms=5) as reader:
        assert len(await reader.getmany(3, timeout=5)) == 3
        await until(lambda: stored(kafka_broker) == 0)
        assert len(await reader.getmany(3, timeout=5)) == 3
        await refused.hit()
        reader.group_metadata()
        await quiet()
    assert sent(kafka_broker.journal.requests(OffsetCommitRequest)) == [0, 3]


async def test_a_commit_of_a_partition_that_was_lost_meanwhile_fails(kafka_broker: Broker) -> None:
    """A join loses the partition and refuses the commit; the next join assigns it again.

    Another member may have committed a later offset in between.
    """
    async with member(kafka_broker, enable_auto_commit=False) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.JOIN_GROUP).hold()
        reader.rejoin()
        await held.arrived()
        async with anyio.create_task_group() as tasks:

            async def old() -> None:
                with pytest.raises(CommitFailed, match=r"has removed this member|not assigned to this member"):
                    await reader.commit({ONE: 3})

            tasks.start_soon(old)
            await anyio.lowlevel.checkpoint()
            kafka_broker.faults.evict("g", *kafka_broker.faults.group("g").members)
            held.release()
        await assigned(reader, 0, 1)
        await reader.commit({ONE: 4})
    assert sent(kafka_broker.journal.requests(OffsetCommitRequest)) == [3, 4]
    assert stored(kafka_broker) == 4


async def test_a_commit_by_an_eager_member_between_two_generations_succeeds(kafka_broker: Broker) -> None:
    """The member revokes all partitions before a join, and no other member owned them meanwhile."""
    options = {"partition_assignment_strategy": "range", "enable_auto_commit": False}
    async with member(kafka_broker, **options) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.JOIN_GROUP).hold()
        reader.rejoin()
        await held.arrived()
        assert not reader.assignment
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 3})
            await quiet(0.01)
            held.release()
        assert stored(kafka_broker) == 3
