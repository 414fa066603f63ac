"""Records by partition, watermarks, `unsubscribe`, and the hook for batches that were read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import BrokerError, InvalidArgument
from aiokwire.hooks import Hooks
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition, Watermarks
from tests.consumer.groups import QUICK, assigned, fill, member, until

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "other": 1}) as broker:
        await fill(broker, 2)
        yield broker


def reader_of(broker: Broker, **options: Any) -> Consumer[bytes, bytes]:
    return Consumer(partitions=[T0, T1], bootstrap_servers=broker.bootstrap_servers, **{**QUICK, **options})


async def test_getmany_by_partition_returns_a_list_for_each_partition(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        got: dict[TopicPartition, list[int]] = {T0: [], T1: []}
        while sum(map(len, got.values())) < 20:
            for tp, records in (await reader.getmany(max_records=7, timeout=5, by_partition=True)).items():
                assert records
                assert {record.topic_partition for record in records} == {tp}
                got[tp] += [record.offset for record in records]
        assert got == {T0: list(range(10)), T1: list(range(10))}
        assert await reader.getmany(timeout=0, by_partition=True) == {}


async def test_getmany_by_partition_merges_the_batches_of_a_partition(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(5):
            await producer.send("t", b"%d" % number, partition=0)  # one batch each
    async with reader_of(broker) as reader:
        await until(lambda: all(reader.lag(tp) is not None for tp in (T0, T1)))
        found = await reader.getmany(timeout=5, by_partition=True, partitions=[T0])
        assert [record.offset for record in found[T0]] == list(range(15))


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "7", T0])
async def test_a_wrong_number_of_records_is_refused(broker: Broker, wrong: Any) -> None:
    async with reader_of(broker) as reader:
        with pytest.raises(InvalidArgument, match="max_records"):
            await reader.getmany(wrong)
        with pytest.raises(InvalidArgument, match="max_records"):
            await reader.getarrow(wrong)


async def test_wrong_partitions_are_refused(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        for wrong in (T0, "t", 3):
            with pytest.raises(InvalidArgument, match="partitions must be a collection"):
                await reader.getmany(timeout=0, partitions=wrong)  # type: ignore[arg-type]  # the mistake


async def test_watermarks_are_requested_from_the_leader_or_taken_from_the_last_fetch(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        assert await reader.watermarks(T0) == Watermarks(0, 10)
        await until(lambda: reader.lag(T0) is not None)
        assert await reader.watermarks(T0, cached=True) == Watermarks(low=0, high=10)
        assert await reader.watermarks(TopicPartition("other", 0), cached=True) == Watermarks(0, 0)
        reader.pause()
        await fill(broker, 1, count=3)
        assert (await reader.watermarks(T0)).high == 13
        with pytest.raises(BrokerError):
            await reader.watermarks(TopicPartition("none", 0), timeout=1)


async def test_unsubscribe_leaves_the_group_and_subscribe_works_again(broker: Broker) -> None:
    async with member(broker) as reader:
        await assigned(reader, 0, 1)
        await reader.getmany(timeout=5)
        await reader.unsubscribe()
        assert not reader.assignment
        assert not reader.subscription
        assert await reader.getmany(timeout=0.05) == []
        async with member(broker) as other:
            await assigned(other, 0, 1)
        await reader.subscribe("t")
        await assigned(reader, 0, 1)
        assert await reader.getmany(timeout=5)


async def test_unsubscribe_before_the_start_and_without_a_group(broker: Broker) -> None:
    reader = reader_of(broker)
    await reader.unsubscribe()
    assert not reader.assignment
    async with reader:
        await reader.subscribe("t")
        await reader.getone(timeout=5)
        await reader.unsubscribe()
        assert await reader.getmany(timeout=0.05) == []


class Kept(Hooks):
    def __init__(self) -> None:
        self.batches: list[tuple[str, int, int, int]] = []

    def on_batch_read(self, topic: str, partition: int, base_offset: int, count: int, size: int) -> None:
        assert size > 0
        self.batches.append((topic, partition, base_offset, count))
        if len(self.batches) == 1:
            raise RuntimeError("a hook's faults stay its own")


async def test_the_hook_receives_each_batch_when_it_is_returned(broker: Broker) -> None:
    hooks = Kept()
    async with reader_of(broker, hooks=hooks) as reader:
        for _ in range(9):
            await reader.getone(timeout=5)
        assert hooks.batches == []
        with anyio.fail_after(5):
            while len(hooks.batches) < 2:
                await reader.getmany(timeout=0)
        assert sorted(hooks.batches) == [("t", 0, 0, 10), ("t", 1, 0, 10)]
        reader.seek(T0, 4)
        await reader.getarrow(timeout=5)
        assert hooks.batches[2][:3] == ("t", 0, 4)
