"""Our copier and Kafka's TransactionalMessageCopier in a chain, on both brokers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import anyio
from anyio.to_thread import run_sync

from aiokwire import Consumer, ConsumerRecord, Producer, TopicPartition, Transaction, TransactionAborted, transform
from integration.chaos.transactions import read_with_librdkafka
from integration.conftest import BrokerUnderTest
from integration.kafka import JavaTools
from integration.scenarios.common import consumer, take

_MAIN = "org.apache.kafka.tools.TransactionalMessageCopier"
_SECONDS = 90.0
_LOOK_SECONDS = 0.05

Tools = Callable[[BrokerUnderTest], JavaTools]
Records = list[ConsumerRecord[bytes, bytes]]


class GaveUp(Exception):
    """The failure of a program."""


async def write(broker: BrokerUnderTest, topic: str, *, transactions: int = 20, size: int = 10) -> list[bytes]:
    """Write in transactions, every third of which aborts; return the committed values."""
    kept = []
    async with Producer(broker.bootstrap_servers, transactional_id=f"{topic}-writer") as producer:

        async def one(values: list[bytes], *, fail: bool) -> None:
            async with producer.transaction():
                for value in values:
                    await producer.submit(topic, value, partition=0)
                if fail:
                    await producer.flush()
                    raise GaveUp

        for number in range(transactions):
            values = [b"%d-%d" % (number, each) for each in range(size)]
            try:
                await one(values, fail=number % 3 == 1)
            except GaveUp:
                continue
            kept += values
    return kept


def copy_with_java(tools: JavaTools, broker: BrokerUnderTest, source: str, target: str, count: int) -> None:
    """Copy with Kafka's tool, in transactions of which some abort at random."""
    who = ("--transactional-id", f"{target}-java", "--consumer-group", f"{target}-java")
    where = ("--broker-list", broker.bootstrap_servers, "--input-topic", source, "--output-topic", target)
    what = ("--input-partition", "0", "--max-messages", str(count), "--transaction-size", "15")
    printed = tools.run(_MAIN, *who, *where, *what, "--enable-random-aborts", "--use-group-metadata").checked().stdout
    assert json.loads(printed.splitlines()[-1])["totalProcessed"] == count


async def copy_with_ours(broker: BrokerUnderTest, source: str, target: str, last: bytes) -> None:
    """Copy with `transform`, aborting some turns, until the last value was copied."""
    group = f"{target}-ours"
    place = TopicPartition(source, 0)
    turns = 0
    seen_last = False
    async with (
        consumer(broker, [place], group_id=group) as reader,
        Producer(broker.bootstrap_servers, transactional_id=group) as producer,
        anyio.create_task_group() as tasks,
    ):

        async def work(records: Records, tx: Transaction) -> None:
            nonlocal turns, seen_last
            turns += 1
            for record in records:
                await producer.submit(target, record.value, partition=0)
            if turns % 3 == 1:
                raise TransactionAborted("by its program")
            seen_last = records[-1].value == last

        async def end(reader: Consumer[bytes, bytes] = reader) -> None:
            """End when the offset after the last value is committed."""
            while True:
                await anyio.sleep(_LOOK_SECONDS)
                stands = reader.positions()[place]
                committed = (await reader.committed(place))[place] if seen_last else None
                if committed is not None and stands is not None and committed.offset >= stands.offset:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(end)
        await transform(reader, producer, work, max_records=12, poll=0.2)


async def committed(broker: BrokerUnderTest, topic: str, count: int) -> list[bytes]:
    """Read partition 0 with our read_committed consumer; expect exactly `count` records."""
    async with consumer(broker, [TopicPartition(topic, 0)], isolation_level="read_committed") as reader:
        records = await take(reader, count)
        assert await reader.getmany(timeout=0.3) == []
    return [record.value or b"" for record in records]


async def test_a_chain_of_copiers_copies_each_record_once_and_in_order(
    modern_broker: BrokerUnderTest, java: Tools
) -> None:
    """We produce; then Java's tool, ours and Java's copy in turn."""
    topics = [modern_broker.create(f"copy-{uuid.uuid4().hex[:6]}") for _ in range(4)]
    tools = java(modern_broker)
    with anyio.fail_after(_SECONDS):
        values = await write(modern_broker, topics[0])
        await run_sync(copy_with_java, tools, modern_broker, topics[0], topics[1], len(values))
        assert await committed(modern_broker, topics[1], len(values)) == values
        await copy_with_ours(modern_broker, topics[1], topics[2], values[-1])
        await run_sync(copy_with_java, tools, modern_broker, topics[2], topics[3], len(values))
        for topic in topics[2:]:
            assert await committed(modern_broker, topic, len(values)) == values
            found = await run_sync(read_with_librdkafka, modern_broker.bootstrap_servers, topic)
            assert found == [values, [], [], []]
