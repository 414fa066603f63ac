"""A consumer's positions: reset policies, seeking, pausing, and offset lookups."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import anyio
import pytest

from aiokwire import NoOffset, OffsetOutOfRange, Producer, TopicPartition
from integration.conftest import BrokerUnderTest
from integration.scenarios.common import PATIENCE, consumer, partitions, take, write

START = 1_700_000_000_000  # the first timestamp below; one record per minute
MINUTE = 60_000


async def timed(broker: BrokerUnderTest, place: TopicPartition, count: int) -> None:
    """Write records a minute apart, one per batch: old brokers look up timestamps by batch."""
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            await producer.send(
                place.topic, b"%d" % number, partition=place.partition, timestamp=START + number * MINUTE
            )


def numbers(values: Sequence[bytes | None]) -> list[int]:
    return [int(value or b"") for value in values]


async def test_earliest_reads_existing_records_and_latest_only_new_ones(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    await write(broker, place, [b"1", b"2", b"3"])
    async with (
        consumer(broker, [place], auto_offset_reset="earliest") as early,
        consumer(broker, [place], auto_offset_reset="latest") as late,
    ):
        assert await late.position(place, timeout=PATIENCE) == 3
        await write(broker, place, [b"4"])
        assert numbers([record.value for record in await take(early, 4)]) == [1, 2, 3, 4]
        assert numbers([record.value for record in await take(late, 1)]) == [4]


async def test_a_position_is_reset_to_a_point_in_time(broker: BrokerUnderTest) -> None:
    if not broker.has_timestamps:
        pytest.skip(f"{broker.name} stores no timestamps")
    place = TopicPartition(broker.create(), 0)
    await timed(broker, place, 10)
    moment = datetime.datetime.fromtimestamp((START + 6 * MINUTE) / 1000, datetime.UTC)
    async with consumer(broker, [place], auto_offset_reset=moment) as reader:
        assert numbers([record.value for record in await take(reader, 4)]) == [6, 7, 8, 9]


async def test_without_a_reset_policy_a_consumer_raises_no_offset(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    await write(broker, place, [b"1", b"2"])
    async with consumer(broker, [place], auto_offset_reset="none") as reader:
        with pytest.raises(NoOffset), anyio.fail_after(PATIENCE):
            await reader.getone()
        reader.seek(place, 1)
        assert numbers([record.value for record in await take(reader, 1)]) == [2]


async def test_a_position_out_of_range_is_an_error_or_a_reset(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    await write(broker, place, [b"1", b"2"])
    async with consumer(broker, [place], auto_offset_reset="none") as strict:
        strict.seek(place, 99)
        with pytest.raises(OffsetOutOfRange) as caught, anyio.fail_after(PATIENCE):
            await strict.getone()
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == (*place, 99)
    async with consumer(broker, [place]) as lenient:
        lenient.seek(place, 99)
        assert numbers([record.value for record in await take(lenient, 2)]) == [1, 2]


async def test_a_consumer_seeks_forwards_backwards_and_to_both_ends(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    await write(broker, place, [b"%d" % number for number in range(1000)], linger_ms=20)
    async with consumer(broker, [place]) as reader:
        assert numbers([record.value for record in await take(reader, 3)]) == [0, 1, 2]
        reader.seek(place, 777)  # in the middle of a batch
        assert numbers([record.value for record in await take(reader, 3)]) == [777, 778, 779]
        reader.seek(place, 5)
        assert numbers([record.value for record in await take(reader, 2)]) == [5, 6]
        await reader.seek_to_beginning(place)
        assert numbers([record.value for record in await take(reader, 1)]) == [0]
        await reader.seek_to_end(place)
        assert await reader.position(place, timeout=PATIENCE) == 1000
        await write(broker, place, [b"1000"])
        assert numbers([record.value for record in await take(reader, 1)]) == [1000]
        assert await reader.position(place) == 1001


async def test_paused_partitions_return_no_records_until_they_are_resumed(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    quiet, loud = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with consumer(broker, [quiet, loud]) as reader:
        reader.pause(quiet)
        await write(broker, quiet, [b"0", b"1"])
        await write(broker, loud, [b"10", b"11"])
        assert numbers([record.value for record in await take(reader, 2)]) == [10, 11]
        assert await reader.getmany(timeout=0.3) == []
        assert reader.paused() == {quiet}
        reader.resume(quiet)
        assert numbers([record.value for record in await take(reader, 2)]) == [0, 1]


async def test_offsets_are_looked_up_by_timestamp(broker: BrokerUnderTest) -> None:
    if not broker.has_timestamps:
        pytest.skip(f"{broker.name} stores no timestamps")
    place = TopicPartition(broker.create(), 0)
    await timed(broker, place, 5)
    async with consumer(broker, [place]) as reader:
        for moment, offset in ((START - 1, 0), (START, 0), (START + 1, 1), (START + 3 * MINUTE, 3)):
            found = (await reader.offsets_for_times({place: moment}, timeout=PATIENCE))[place]
            assert found is not None
            assert (found.offset, found.timestamp) == (offset, START + offset * MINUTE)
        assert await reader.offsets_for_times({place: START + 5 * MINUTE}, timeout=PATIENCE) == {place: None}


async def test_beginning_and_end_offsets_are_looked_up(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    await write(broker, TopicPartition(topic, 1), [b"a", b"b", b"c"])
    async with consumer(broker, partitions(topic)) as reader:
        assert await reader.beginning_offsets(partitions(topic), timeout=PATIENCE) == dict.fromkeys(
            partitions(topic), 0
        )
        ends = await reader.end_offsets(partitions(topic), timeout=PATIENCE)
        assert ends == {place: 3 if place.partition == 1 else 0 for place in partitions(topic)}
        assert await reader.partitions_for_topic(topic, timeout=PATIENCE) == {0, 1, 2, 3}


async def test_a_position_is_reset_by_duration(broker: BrokerUnderTest) -> None:
    if not broker.has_timestamps:
        pytest.skip(f"{broker.name} stores no timestamps")
    place = TopicPartition(broker.create(), 0)
    await timed(broker, place, 5)  # long ago
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send(place.topic, b"5", partition=0)
    async with consumer(broker, [place], auto_offset_reset="by_duration:PT1H") as reader:
        assert numbers([record.value for record in await take(reader, 1)]) == [5]


async def test_a_position_is_reset_to_the_nearest_end(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    await write(broker, place, [b"1", b"2", b"3"])
    async with consumer(broker, [place], auto_offset_reset="nearest") as reader:
        assert numbers([record.value for record in await take(reader, 3)]) == [1, 2, 3]
        reader.seek(place, 1000)
        assert await reader.getmany(timeout=0.5) == []
        await write(broker, place, [b"4"])
        assert numbers([record.value for record in await take(reader, 1)]) == [4]


async def test_partitions_that_are_sought_paused_and_written_in_turn_return_each_record_once(
    broker: BrokerUnderTest,
) -> None:
    """Fetch sessions must receive these changes; brokers without sessions must behave the same."""
    places = [place for _ in range(2) for place in partitions(broker.create())]
    async with consumer(broker, places) as reader:
        for turn in range(6):
            asleep = places[turn::4]
            awake = [place for place in places if place not in asleep]
            reader.pause(*asleep)
            for place in places:
                await write(broker, place, [b"%d" % turn])
            records = await take(reader, len(awake))
            assert sorted((r.topic, r.partition) for r in records) == sorted(awake)
            reader.resume(*asleep)
            assert len(await take(reader, len(asleep))) == len(asleep)
            reader.seek(places[turn], 0)
            assert numbers([r.value for r in await take(reader, turn + 1)]) == list(range(turn + 1))
        assert [await reader.position(place) for place in places] == [6] * len(places)
