"""Records are read as sent, with every codec and every `acks`."""

from __future__ import annotations

import anyio
import pytest

from aiokwire import Consumer, InvalidArgument, Producer, TopicPartition, UnsupportedVersion
from integration.conftest import BrokerUnderTest
from integration.scenarios.common import PATIENCE, consumer, partitions, take, write

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGE = bytes(range(256)) * 3600  # 900 KiB


async def test_keys_values_nulls_and_empty_values_are_read_as_sent(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 2)
    sent = [
        (b"key", b"value"),
        (None, b"no key"),
        (b"no value", None),
        (b"", b""),
        (None, b""),
        ("ключ".encode(), b"\0\xff"),
    ]
    async with Producer(broker.bootstrap_servers) as producer:
        acknowledged = [
            await producer.send(place.topic, value, key=key, partition=place.partition) for key, value in sent
        ]
    assert [(meta.topic_partition, meta.offset) for meta in acknowledged] == [(place, n) for n in range(len(sent))]
    async with consumer(broker, [place]) as reader:
        records = await take(reader, len(sent))
    assert [(record.key, record.value) for record in records] == sent
    assert [record.offset for record in records] == list(range(len(sent)))
    assert {(record.topic, record.partition) for record in records} == {place}


async def test_headers_are_read_in_order(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    headers = [("traceparent", b"00-1"), ("same", b"1"), ("same", b"2"), ("größe", b""), ("null", None)]
    async with Producer(broker.bootstrap_servers) as producer:
        if not broker.has_headers:
            with pytest.raises(InvalidArgument, match="headers"):
                await producer.send(place.topic, b"value", headers=headers, partition=place.partition)
            return
        await producer.send(place.topic, b"value", headers=headers, partition=place.partition)
    async with consumer(broker, [place]) as reader:
        (record,) = await take(reader, 1)
    assert list(record.headers) == headers


async def test_timestamps_are_read_as_sent(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    async with Producer(broker.bootstrap_servers) as producer:
        meta = await producer.send(place.topic, b"then", partition=0, timestamp=1_600_000_000_123)
    async with consumer(broker, [place]) as reader:
        (record,) = await take(reader, 1)
    if broker.has_timestamps:
        assert record.timestamp == meta.timestamp == 1_600_000_000_123
    else:
        assert record.timestamp == -1


@pytest.mark.parametrize("codec", CODECS)
async def test_every_codec_works_for_small_and_large_values(broker: BrokerUnderTest, codec: str) -> None:
    if codec not in broker.codecs:
        pytest.skip(f"{broker.name} does not support {codec}")
    place = TopicPartition(broker.create(), 1)
    values = [b"%d" % number * 5 for number in range(2000)] + [LARGE] + [b"after"]
    await write(broker, place, values, compression_type=codec)
    async with consumer(broker, [place]) as reader:
        records = await take(reader, len(values))
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(len(values)))


async def test_a_codec_that_the_broker_does_not_support_is_refused(broker: BrokerUnderTest) -> None:
    if "zstd" in broker.codecs:
        pytest.skip(f"{broker.name} supports every codec")
    place = TopicPartition(broker.create(), 0)
    with pytest.raises(UnsupportedVersion, match="zstd"):
        await write(broker, place, [b"value"], compression_type="zstd")


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_records_are_sent_with_each_setting_of_acks(broker: BrokerUnderTest, acks: int | str) -> None:
    place = TopicPartition(broker.create(), 3)
    await write(broker, place, [b"first"])  # metadata may name a leader before it serves, and acks=0 is not retried
    values = [b"%d" % number for number in range(300)]
    acknowledged = await write(broker, place, values, acks=acks)
    offsets = [meta.offset for meta in acknowledged]
    assert offsets == ([-1] * len(values) if acks == 0 else list(range(1, len(values) + 1)))
    async with consumer(broker, [place]) as reader:
        assert [record.value for record in await take(reader, len(values) + 1)] == [b"first", *values]


async def test_many_records_over_all_partitions_keep_their_order_within_each(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    count, keys = 40_000, 97
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            await producer.submit(topic, b"%d" % number, key=b"%d" % (number % keys))
        await producer.flush(timeout=PATIENCE)
    async with consumer(broker, partitions(topic)) as reader:
        records = await take(reader, count)
    seen: dict[bytes | None, list[int]] = {}
    for record in records:
        seen.setdefault(record.key, []).append(int(record.value or b""))
    assert {key: numbers for key, numbers in seen.items() if numbers != sorted(numbers)} == {}
    assert sorted(number for numbers in seen.values() for number in numbers) == list(range(count))
    assert len({(record.partition, record.key) for record in records}) == keys


async def test_many_values_are_sent_with_one_call(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    values = [b"%d" % number for number in range(5000)]
    async with Producer(broker.bootstrap_servers) as producer:
        with anyio.fail_after(PATIENCE):
            await producer.send_many(topic, values)
    async with consumer(broker, partitions(topic)) as reader:
        assert sorted(record.value or b"" for record in await take(reader, len(values))) == sorted(values)


async def test_a_subscribed_topic_is_read_while_it_is_written(broker: BrokerUnderTest) -> None:
    topic = broker.create()
    got: list[bytes | None] = []

    async def read() -> None:
        async with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as reader:
            async for record in reader:
                got.append(record.value)
                if len(got) == 100:
                    return

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group, Producer(broker.bootstrap_servers) as producer:
            group.start_soon(read)
            for number in range(100):
                await producer.send(topic, b"%d" % number)
    assert sorted(int(value or b"") for value in got) == list(range(100))


async def test_batches_become_arrow_tables(broker: BrokerUnderTest) -> None:
    place = TopicPartition(broker.create(), 0)
    values = [b"%d" % number for number in range(3000)]
    await write(broker, place, values, compression_type="gzip")
    read: list[bytes | None] = []
    async with consumer(broker, [place]) as reader:
        with anyio.fail_after(PATIENCE):
            async for batch in reader.batches():
                table = batch.to_arrow()
                assert table.column("offset").to_pylist() == list(range(len(read), len(read) + table.num_rows))
                read += table.column("value").to_pylist()
                if len(read) == len(values):
                    break
    assert read == values
