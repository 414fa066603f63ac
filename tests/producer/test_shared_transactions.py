"""One transaction, many writers: visible records (embedded broker), requests (scripted nodes)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import Client
from aiokwire.consumer import Consumer
from aiokwire.errors import FencedError, KafkaError, TransactionAborted, TransactionFailed
from aiokwire.group import GroupOffsets
from aiokwire.producer import Producer, ProducerConfig, SharedTransactions, TransactionTicket
from aiokwire.protocol import ApiKey
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.producer.conftest import scripted_cluster

LEDGER = TopicPartition("t", 0)
GROUP = GroupMetadata("ledger")


@asynccontextmanager
async def shared(bootstrap_servers: str) -> AsyncIterator[tuple[Client, SharedTransactions]]:
    config = ProducerConfig(bootstrap_servers=bootstrap_servers, transactional_id="sink")
    client = Client(config)
    await client.start()
    try:
        yield client, SharedTransactions(client, config)
    finally:
        await client.close()


@asynccontextmanager
async def broker_with_topic() -> AsyncIterator[str]:
    async with Broker(topics={"t": 3}) as broker:
        yield broker.bootstrap_servers


async def write(servers: str, ticket: TransactionTicket, partition: int, *values: bytes) -> None:
    rows = pa.record_batch({"value": values, "partition": pa.array([partition] * len(values), pa.int32())})
    async with Producer(servers, joins=ticket) as producer, producer.transaction():
        delivery = await producer.submit_arrow("t", rows)
    (await delivery).raise_for_errors()


async def committed(servers: str) -> list[bytes | None]:
    """The records that a read_committed reader sees."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer("t", bootstrap_servers=servers, **options) as consumer:
        ends = await consumer.end_offsets([TopicPartition("t", number) for number in range(3)])
        found: list[bytes | None] = []
        while [place for place, end in ends.items() if await consumer.position(place) < end]:
            found += [record.value for record in await consumer.getmany(timeout=0.05)]
        return sorted(found, key=str)


async def ledger(client: Client) -> int | None:
    found = await GroupOffsets(client, GROUP.group_id).fetch([LEDGER], stable=True, timeout=5)
    entry = found[LEDGER]
    return None if entry is None else entry.offset


async def test_the_records_of_all_writers_are_visible_at_once_with_the_offsets() -> None:
    async with broker_with_topic() as servers, shared(servers) as (client, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a", b"b")
        await write(servers, ticket, 1, b"c")
        assert await committed(servers) == []
        await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(7)}, GROUP)
        assert await committed(servers) == [b"a", b"b", b"c"]
        assert await ledger(client) == 7


async def test_another_process_can_commit_and_the_next_transaction_follows() -> None:
    async with broker_with_topic() as servers, shared(servers) as (client, transactions):
        for number in range(3):
            ticket = await transactions.open()
            await write(servers, ticket, 0, b"%d" % number)
            async with shared(servers) as (_, other):
                await other.commit(ticket, {LEDGER: OffsetAndMetadata(number)}, GROUP)
        assert await committed(servers) == [b"0", b"1", b"2"]
        assert await ledger(client) == 2


async def test_an_abort_leaves_no_visible_records() -> None:
    async with broker_with_topic() as servers, shared(servers) as (client, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a")
        await transactions.abort(ticket)
        await transactions.abort(await transactions.open())  # nothing was written to this one
        assert await committed(servers) == []
        assert await ledger(client) is None


async def test_an_abort_fences_a_writer_that_continues() -> None:
    async with broker_with_topic() as servers, shared(servers) as (_, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a")
        await transactions.abort(ticket)
        with pytest.raises(KafkaError):
            await write(servers, ticket, 1, b"late")
        await transactions.abort(ticket)  # another one may have been opened since
        assert await committed(servers) == []


async def test_the_next_open_aborts_the_transaction_that_was_left_and_fences_its_writers() -> None:
    async with broker_with_topic() as servers, shared(servers) as (_, transactions):
        stale = await transactions.open()
        await write(servers, stale, 0, b"lost")
        ticket = await transactions.open()
        with pytest.raises(KafkaError):
            await write(servers, stale, 0, b"late")
        with pytest.raises((FencedError, TransactionFailed)):
            await transactions.commit(stale, {LEDGER: OffsetAndMetadata(1)}, GROUP)
        await write(servers, ticket, 0, b"kept")
        await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(2)}, GROUP)
        assert await committed(servers) == [b"kept"]


async def test_a_second_writer_of_a_partition_is_refused() -> None:
    async with broker_with_topic() as servers, shared(servers) as (_, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a", b"b")
        with pytest.raises(TransactionAborted):
            await write(servers, ticket, 0, b"c", b"d", b"e")


async def test_a_commit_can_be_repeated() -> None:
    """A commit whose response was lost is sent again."""
    async with broker_with_topic() as servers, shared(servers) as (client, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a")
        await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(1)}, GROUP)
        assert await ledger(client) == 1
        await transactions.open()
        assert await committed(servers) == [b"a"]


@pytest.mark.parametrize("transaction_v2", [False, True])
async def test_only_the_opener_sends_requests_to_the_coordinator(transaction_v2: bool) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=transaction_v2)
        cluster.leaders["t"] = [1, 1]
        async with shared(cluster.bootstrap_servers) as (_, transactions):
            ticket = await transactions.open()
            await write(cluster.bootstrap_servers, ticket, 0, b"a")
            await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(1)}, GROUP)
        of_the_first = [] if transaction_v2 else [ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN]
        assert cluster.coordinator.apis == [
            ApiKey.INIT_PRODUCER_ID,
            *of_the_first,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
        ]
        (end,) = cluster.coordinator.of(ApiKey.END_TXN)
        assert (end.producer_id, end.producer_epoch, end.committed) == (ticket.producer_id, ticket.producer_epoch, True)
        assert cluster.values(0) == [b"a"]


async def test_a_writer_that_fails_does_not_end_the_transaction_of_the_others() -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        async with shared(cluster.bootstrap_servers) as (_, transactions):
            ticket = await transactions.open()

            async def fail() -> None:
                async with Producer(cluster.bootstrap_servers, joins=ticket) as producer, producer.transaction():
                    await producer.send("t", b"a")
                    raise ValueError("mine")

            with pytest.raises(ValueError, match="mine"):
                await fail()
            assert ApiKey.END_TXN not in cluster.coordinator.apis
            await transactions.abort(ticket)
        first, last = cluster.coordinator.of(ApiKey.INIT_PRODUCER_ID)
        assert (first.producer_id, last.producer_id, last.producer_epoch) == (
            -1,
            ticket.producer_id,
            ticket.producer_epoch,
        )


async def test_a_second_writer_with_a_batch_of_the_same_size_is_refused() -> None:
    async with broker_with_topic() as servers, shared(servers) as (_, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a", b"b")
        with pytest.raises(TransactionAborted, match=r"another producer of this transaction"):
            await write(servers, ticket, 0, b"x", b"y")


async def test_a_partition_that_no_producer_reports_prevents_the_commit() -> None:
    async with broker_with_topic() as servers, shared(servers) as (_, transactions):
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a")
        await write(servers, ticket, 2, b"unreported")
        with pytest.raises(TransactionFailed, match=r"t\[2\] was written by a producer that did not report"):
            await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(7)}, GROUP, [TopicPartition("t", 0)])
        await transactions.abort(ticket)
        assert await committed(servers) == []
        ticket = await transactions.open()
        await write(servers, ticket, 0, b"a")
        await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(8)}, GROUP, [TopicPartition("t", 0)])
        assert await committed(servers) == [b"a"]


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
async def test_a_single_writer_is_acknowledged_after_a_lost_response_and_where_the_broker_sets_the_time(
    kind: str,
) -> None:
    async with Broker(topics={"t": 3}, log_message_timestamp_type=kind) as broker:
        servers = broker.bootstrap_servers
        async with shared(servers) as (_, transactions):
            ticket = await transactions.open()
            await write(servers, ticket, 0, b"a")
            broker.faults.on(ApiKey.PRODUCE, nth=1).close_after()
            await write(servers, ticket, 1, b"b", b"c")
            await transactions.commit(ticket, {LEDGER: OffsetAndMetadata(7)}, GROUP)
            assert await committed(servers) == [b"a", b"b", b"c"]
