"""A consumer whose offsets are part of the producer's transactions, on the embedded broker."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import (
    ConfigurationError,
    FencedError,
    InvalidArgument,
    TransactionAborted,
    TransactionFailed,
)
from aiokwire.producer import Producer
from aiokwire.protocol.messages import end_txn, txn_offset_commit
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker, kafka_broker_options
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.producer.cancelling import WAYS, cancel_at

__all__ = ["kafka_broker", "kafka_broker_options"]

COUNT = 40
INPUT = [TopicPartition("in", 0), TopicPartition("in", 1)]
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "reconnect_backoff_ms": 2,
}


@pytest.fixture
async def broker(kafka_broker: Broker) -> Broker:
    """Topic `in` with 40 numbers, the even ones in partition 0, and topic `out`."""
    for topic in ("in", "out"):
        await kafka_broker.create_topic(topic, 2)
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        for number in range(COUNT):
            await producer.submit("in", b"%d" % number, partition=number % 2)
    return kafka_broker


class Pair(NamedTuple):
    consumer: Consumer[bytes, bytes]
    producer: Producer[bytes, bytes]

    async def copy(self, count: int, *only: TopicPartition) -> list[bytes]:
        """Read `count` records and send them."""
        copied: list[bytes] = []
        while len(copied) < count:
            for record in await self.consumer.getmany(count - len(copied), timeout=5, partitions=only or None):
                copied.append(record.value or b"")
                await self.producer.submit("out", record.value, partition=record.partition)
        return copied

    async def copy_rest(self) -> None:
        """Run transactions until no record is left."""
        while True:
            async with self.producer.transaction(self.consumer):
                records = await self.consumer.getmany(7, timeout=0.2)
                for record in records:
                    await self.producer.submit("out", record.value, partition=record.partition)
            if not records:
                return


def reader_of(broker: Broker, **options: Any) -> Consumer[bytes, bytes]:
    given = {"group_id": "g", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50, **QUICK, **options}
    return Consumer(partitions=INPUT, bootstrap_servers=broker.bootstrap_servers, **given)


def writer_of(broker: Broker, **options: Any) -> Producer[bytes, bytes]:
    return Producer(broker.bootstrap_servers, transactional_id="tx", **{**QUICK, **options})


@asynccontextmanager
async def pair_of(broker: Broker, **options: Any) -> AsyncIterator[Pair]:
    async with reader_of(broker) as consumer, writer_of(broker, **options) as producer:
        yield Pair(consumer, producer)


async def copied(broker: Broker) -> list[list[bytes]]:
    """The output that a reader of committed records sees, by partition."""
    places = [TopicPartition("out", 0), TopicPartition("out", 1)]
    found: list[list[bytes]] = [[], []]
    async with Consumer(
        partitions=places, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", **QUICK
    ) as consumer:
        ends = await consumer.end_offsets(places)
        with anyio.fail_after(10):
            while any([(await consumer.position(place)) < ends[place] for place in places]):
                for record in await consumer.getmany(timeout=0.1):
                    found[record.partition].append(record.value or b"")
    return found


ALL = [[b"%d" % number for number in range(first, COUNT, 2)] for first in (0, 1)]


# --- commits ----------------------------------------------------------------------------------------------------------


async def test_the_offsets_of_returned_records_are_committed_with_the_transaction(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        async with pair.producer.transaction(pair.consumer):
            await pair.copy(15)
        committed = await pair.consumer.committed()
        assert sum(place.offset for place in committed.values() if place) == 15
        (request,) = broker.journal.requests(txn_offset_commit.TxnOffsetCommitRequest)
        assert request.group_id == "g"
    async with pair_of(broker) as pair:
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_without_progress_no_offsets_are_sent(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        async with pair.producer.transaction(pair.consumer):
            await pair.copy(COUNT)
        broker.journal.clear()
        async with pair.producer.transaction(pair.consumer):
            assert await pair.consumer.getmany(timeout=0.05) == []
        assert not broker.journal.requests(txn_offset_commit.TxnOffsetCommitRequest)
        assert not broker.journal.requests(end_txn.EndTxnRequest)


async def test_only_partitions_that_moved_are_committed_and_others_may_be_added(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        await pair.consumer.position(INPUT[0])
        await pair.consumer.position(INPUT[1])
        async with pair.producer.transaction(pair.consumer) as tx:
            await pair.consumer.getmany(3, partitions=[INPUT[0]])
            await tx.send_offsets({TopicPartition("out", 0): 8}, "another")
        assert await pair.consumer.committed() == {INPUT[0]: OffsetAndMetadata(3, "", 0), INPUT[1]: None}


# --- aborts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["raise", "abort", "cancel"])
async def test_after_an_abort_the_reader_returns_the_same_records_again(broker: Broker, how: str) -> None:
    async with pair_of(broker) as pair:
        seen: list[list[bytes]] = []

        async def work(fail: bool) -> None:
            async with pair.producer.transaction(pair.consumer) as tx:
                seen.append(await pair.copy(12, INPUT[0]))
                if fail and how == "abort":
                    await tx.abort()
                elif fail and how == "raise":
                    raise ZeroDivisionError
                elif fail:
                    await anyio.sleep_forever()

        if how == "raise":
            with pytest.raises(ZeroDivisionError):
                await work(True)
        else:
            with anyio.move_on_after(0.5 if how == "cancel" else 10):
                await work(True)
        assert await pair.consumer.committed() == dict.fromkeys(INPUT)
        await work(False)
        assert seen == [ALL[0][:12]] * 2
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_records_read_before_the_block_count_from_the_given_positions(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        since = pair.consumer.positions()
        await pair.consumer.getmany(10, timeout=5, partitions=INPUT[:1])
        with pytest.raises(ZeroDivisionError):
            async with pair.producer.transaction(pair.consumer, since=since):
                raise ZeroDivisionError
        async with pair.producer.transaction(pair.consumer, since=since):
            assert await pair.copy(10, INPUT[0]) == ALL[0][:10]
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_refused_offsets_abort_and_rewind_the_reader(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        broker.faults.on(ApiKey.TXN_OFFSET_COMMIT).error(ErrorCode.ILLEGAL_GENERATION)
        with pytest.raises(TransactionAborted, match=r"was aborted, because.*ILLEGAL_GENERATION"):
            async with pair.producer.transaction(pair.consumer):
                await pair.copy(10)
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_a_partition_that_the_reader_lost_aborts(broker: Broker) -> None:
    async with pair_of(broker) as pair:

        async def work() -> None:
            async with pair.producer.transaction(pair.consumer):
                await pair.copy(10)
                await pair.consumer.assign(INPUT[:1])

        with pytest.raises(TransactionAborted, match=r"lost in\[1\]"):
            await work()
        await pair.consumer.assign(INPUT)
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_a_partition_that_is_added_within_the_block_rewinds_to_its_start(broker: Broker) -> None:
    async with pair_of(broker) as pair:
        await pair.consumer.assign(INPUT[:1])

        async def work() -> None:
            async with pair.producer.transaction(pair.consumer):
                await pair.consumer.assign(INPUT)
                await pair.copy(30)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        await pair.copy_rest()
    assert await copied(broker) == ALL


async def test_a_reader_without_a_group_is_refused_before_the_transaction_begins(broker: Broker) -> None:
    async with pair_of(broker) as pair, reader_of(broker, group_id=None) as alone:
        with pytest.raises(ConfigurationError, match="group_id"):
            async with pair.producer.transaction(alone):
                pass
        with pytest.raises(InvalidArgument, match="since"):
            pair.producer.transaction(since={})
        await pair.copy_rest()
    assert await copied(broker) == ALL


# --- an unknown result ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
async def test_the_records_of_a_commit_with_unknown_result_are_neither_repeated_nor_skipped(
    broker: Broker, done: bool
) -> None:
    """Scenario 30: EndTxn returns UNKNOWN_SERVER_ERROR, without and with an effect."""
    async with reader_of(broker) as consumer:
        rule = broker.faults.on(end_txn.EndTxnRequest, times=None if done else 1)
        if done:
            rule.close_after()
        else:
            rule.error(ErrorCode.UNKNOWN_SERVER_ERROR)

        async def work() -> None:
            timeout = 3_000 if done else 60_000  # the test waits for all of it, a slow machine for half
            async with (
                writer_of(broker, transaction_timeout_ms=timeout) as producer,
                producer.transaction(consumer),
            ):
                await Pair(consumer, producer).copy(10, INPUT[0])

        with pytest.raises(TransactionFailed, match="whether the transaction was committed is not known"):
            await work()
        broker.faults.clear_rules()
        if not done:
            assert await consumer.getmany(timeout=0.1, partitions=INPUT[:1]) == [], (
                "whether they count is not settled yet"
            )
        async with writer_of(broker) as producer:
            await Pair(consumer, producer).copy_rest()
    assert await copied(broker) == ALL


async def test_a_fenced_instance_stops_and_its_records_are_not_committed(broker: Broker) -> None:
    async with pair_of(broker) as older:

        async def work() -> None:
            async with older.producer.transaction(older.consumer):
                await older.copy(10)
                async with pair_of(broker) as newer:
                    await newer.copy_rest()

        with pytest.raises(FencedError):
            await work()
    assert await copied(broker) == ALL


# --- cancellation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_cancelled_at_any_step_each_record_counts_once(broker: Broker, way: str) -> None:
    async with pair_of(broker) as pair:

        async def turn() -> int:
            async with pair.producer.transaction(pair.consumer):
                records = await pair.consumer.getmany(2, timeout=1)
                for record in records:
                    await pair.producer.submit("out", record.value, partition=record.partition)
                await pair.producer.flush()
            return len(records)

        for step in itertools.count(1):
            reached, outcome = await cancel_at(turn(), step, way)
            if not reached:
                break
            before = pair.consumer.positions()
            stands = await pair.consumer.committed()
            assert all(stands[place] in (None, now) for place, now in before.items())
        assert outcome in (0, 1, 2)
        assert step > 3
        await pair.copy_rest()
    assert await copied(broker) == ALL
