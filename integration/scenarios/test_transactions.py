"""Transactions: the records that read_committed consumers see, and how transactions end."""

from __future__ import annotations

import uuid
from typing import Any

import anyio
import confluent_kafka
import pytest
from anyio.to_thread import run_sync

from aiokwire import (
    FencedError,
    GroupMetadata,
    Producer,
    TopicPartition,
    TransactionAborted,
    TransactionStateError,
    UnsupportedVersion,
)
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.scenarios.common import PATIENCE, consumer, partitions, take, write

RECOVERY = 60.0


def transactional(broker: BrokerUnderTest, name: str | None = None, **options: Any) -> Producer[bytes, bytes]:
    """Create a producer with a new transactional id, unless one is given."""
    name = name or f"tx-{uuid.uuid4().hex[:10]}"
    return Producer(broker.bootstrap_servers, transactional_id=name, **options)


async def committed(broker: BrokerUnderTest, topic: str, count: int) -> list[bytes]:
    """Read with our read_committed consumer; expect exactly `count` values."""
    async with consumer(broker, partitions(topic), isolation_level="read_committed") as reader:
        records = await take(reader, count)
        assert await reader.getmany(timeout=0.3) == []
    return sorted(record.value or b"" for record in records)


def committed_of_confluent(broker: BrokerUnderTest, topic: str, count: int) -> list[bytes]:
    """Read the same with librdkafka."""
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"reader-{uuid.uuid4().hex[:10]}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    reader.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int] = set()
    try:
        while len(ended) < PARTITIONS:
            message = reader.poll(PATIENCE)
            assert message is not None, f"{len(values)} of {count} records were read"
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                ended.add(message.partition() or 0)
    finally:
        reader.close()
    return sorted(values)


async def give_up(producer: Producer[bytes, bytes], topic: str, values: list[bytes]) -> None:
    """Run a transaction that ends with an exception after the broker has its records."""

    async def work() -> None:
        async with producer.transaction():
            for number, value in enumerate(values):
                await producer.submit(topic, value, partition=number % PARTITIONS)
            await producer.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()


async def test_only_committed_records_are_read(modern_broker: BrokerUnderTest) -> None:
    topic = modern_broker.create("tx")
    expected = []
    with anyio.fail_after(RECOVERY):
        async with transactional(modern_broker) as producer:
            for number in range(6):
                values = [b"%d-%d" % (number, each) for each in range(10)]
                if number % 3 == 2:
                    await give_up(producer, topic, values)
                    continue
                async with producer.transaction():
                    for each, value in enumerate(values):
                        await producer.submit(topic, value, partition=each % PARTITIONS)
                expected += values
        assert await committed(modern_broker, topic, len(expected)) == sorted(expected)
    assert await run_sync(committed_of_confluent, modern_broker, topic, len(expected)) == sorted(expected)


async def test_offsets_are_committed_and_discarded_with_their_transaction(modern_broker: BrokerUnderTest) -> None:
    topic, group = modern_broker.create("tx"), f"group-{uuid.uuid4().hex[:10]}"
    place = TopicPartition(topic, 1)
    with anyio.fail_after(RECOVERY):
        async with transactional(modern_broker) as producer:
            async with producer.transaction() as tx:
                await producer.send(topic, b"done", partition=0)
                await tx.send_offsets({place: 5}, GroupMetadata(group))
            async with producer.transaction() as tx:
                await tx.send_offsets({place: 9}, group)
                await tx.abort()
    reader = confluent_kafka.Consumer({"bootstrap.servers": modern_broker.bootstrap_servers, "group.id": group})
    try:
        (found,) = await run_sync(reader.committed, [confluent_kafka.TopicPartition(topic, 1)], PATIENCE)
        assert found.offset == 5
    finally:
        reader.close()


async def test_a_newer_instance_fences_the_older_and_aborts_its_transaction(modern_broker: BrokerUnderTest) -> None:
    topic, name = modern_broker.create("tx"), f"tx-{uuid.uuid4().hex[:10]}"
    async with transactional(modern_broker, name) as older, transactional(modern_broker, name) as newer:

        async def work() -> None:
            async with older.transaction():
                await older.send(topic, b"older")

        with anyio.fail_after(RECOVERY), pytest.raises(FencedError):
            await work()
        with pytest.raises(FencedError):
            await work()
        async with newer.transaction():
            await newer.send(topic, b"newer")
    assert await committed(modern_broker, topic, 1) == [b"newer"]


async def test_a_restart_after_a_crash_aborts_the_open_transaction(modern_broker: BrokerUnderTest) -> None:
    topic, name = modern_broker.create("tx"), f"tx-{uuid.uuid4().hex[:10]}"
    crashed = transactional(modern_broker, name)
    await crashed.start()
    await crashed.transaction().__aenter__()
    await crashed.send(topic, b"left open", partition=0)
    with anyio.fail_after(RECOVERY):
        async with transactional(modern_broker, name) as producer, producer.transaction():
            await producer.send(topic, b"after", partition=0)
        assert await committed(modern_broker, topic, 1) == [b"after"]
    await crashed.close()


async def test_the_broker_aborts_a_transaction_at_its_timeout(modern_broker: BrokerUnderTest) -> None:
    topic = modern_broker.create("tx")
    with anyio.fail_after(RECOVERY):
        async with transactional(modern_broker, transaction_timeout_ms=1000) as producer:

            async def work() -> None:
                async with producer.transaction():
                    await producer.send(topic, b"late", partition=0)
                    await write(modern_broker, TopicPartition(topic, 0), [b"behind it"])
                    # readable only after the previous transaction has ended
                    assert await committed(modern_broker, topic, 1) == [b"behind it"]

            with pytest.raises((TransactionAborted, FencedError)):
                await work()


async def test_a_kill_of_the_broker_does_not_end_an_open_transaction(modern_broker: BrokerUnderTest) -> None:
    server = modern_broker.may_be_killed
    topic = modern_broker.create("tx")
    with anyio.fail_after(RECOVERY):
        async with transactional(modern_broker) as producer:
            async with producer.transaction():
                await producer.send(topic, b"before", partition=0)
                await run_sync(server.kill)
                await run_sync(server.restart)
                await producer.send(topic, b"after", partition=1)
            async with producer.transaction():
                await producer.send(topic, b"next", partition=2)
        assert await committed(modern_broker, topic, 3) == [b"after", b"before", b"next"]


async def test_a_record_outside_of_a_transaction_is_refused(modern_broker: BrokerUnderTest) -> None:
    async with transactional(modern_broker) as producer:
        with pytest.raises(TransactionStateError, match="no transaction is open"):
            await producer.send("unused", b"a")


async def test_a_broker_without_transactions_is_an_error_at_the_start(broker: BrokerUnderTest) -> None:
    if broker.has_headers:
        pytest.skip(f"{broker.name} has transactions")
    with anyio.fail_after(PATIENCE), pytest.raises(UnsupportedVersion):
        await transactional(broker).start()
