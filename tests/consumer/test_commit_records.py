"""`commit(record)` and `commit(records)` commit the next offset with the record's leader epoch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import InvalidArgument
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.consumer.groups import QUICK, fill

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}) as broker:
        await fill(broker, 2)
        yield broker


def reader_of(broker: Broker) -> Consumer[bytes, bytes]:
    return Consumer(
        partitions=[T0, T1],
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        enable_auto_commit=False,
        **QUICK,
    )


async def test_a_record_has_its_topic_partition(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        record = await reader.getone(timeout=5)
        assert record.topic_partition == TopicPartition(record.topic, record.partition)
    async with Consumer(
        partitions=[T0], bootstrap_servers=broker.bootstrap_servers, value_deserializer=int, **QUICK
    ) as numbers:
        assert (await numbers.getone(timeout=5)).topic_partition == T0


async def test_committing_a_record_commits_the_offset_after_it_with_its_leader_epoch(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        records = await reader.getmany(max_records=4, timeout=5)
        await reader.commit(records[2])
        tp = records[2].topic_partition
        assert (await reader.committed(tp))[tp] == OffsetAndMetadata(3, "", records[2].leader_epoch)
        assert records[2].leader_epoch >= 0


async def test_committing_records_commits_the_last_of_each_partition_in_any_order(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        records: list[Any] = []
        while len(records) < 20:
            records += await reader.getmany(timeout=5)
        chosen = [record for record in reversed(records) if record.offset < (4 if record.partition else 7)]
        await reader.commit(chosen)
        offsets = await reader.committed(T0, T1)
        assert {tp: offset and offset.offset for tp, offset in offsets.items()} == {T0: 7, T1: 4}
        reader.commit_nowait(record for record in records)
        await reader.commit([])


@pytest.mark.parametrize("wrong", ["t", T0, 3, [T0], [3], {T0: None}, {"t": 1}])
async def test_a_value_that_is_neither_a_record_nor_offsets_is_refused(broker: Broker, wrong: Any) -> None:
    async with reader_of(broker) as reader:
        with pytest.raises(InvalidArgument):
            await reader.commit(wrong)
