"""Transactions on the embedded broker: how each step fails on demand, what may be read after it.

Numbers in names are those of scenarios that broke other clients.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import FencedError, TransactionAborted, TransactionFailed
from aiokwire.producer import Producer
from aiokwire.protocol.messages import end_txn, init_producer_id
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.types import TopicPartition

Quick = dict[str, Any]
PLACE = TopicPartition("in", 0)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Three nodes, so that coordinators can move."""
    return {"nodes": 3, "topics": {"in": 1, "out": 2}, "auto_create_topics": False}


def writer(broker: Broker, options: Quick, **more: Any) -> Producer[bytes, bytes]:
    return Producer(
        broker.bootstrap_servers,
        **{"linger_ms": 0, "transactional_id": "tx", "transaction_timeout_ms": 5000, **options, **more},
    )


async def committed(broker: Broker) -> list[bytes | None]:
    """What a reader of committed records sees."""
    places = [TopicPartition("out", index) for index in range(2)]
    found: list[bytes | None] = []
    async with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        await consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < ends[place] for place in places]):
            found += [record.value for record in await consumer.getmany(timeout=0.2)]
    return sorted(found, key=str)


def offsets(broker: Broker) -> list[int]:
    return [one.offset for one in broker.state.offsets.of_group("g").values()]


async def one_transaction(producer: Producer[bytes, bytes], value: bytes, offset: int) -> None:
    async with producer.transaction() as tx:
        await producer.submit("out", value, partition=0)
        await producer.submit("out", value, partition=1)
        await tx.send_offsets({PLACE: offset}, "g")


# --- commits with an unknown outcome (30) -----------------------------------------------------------------------------


@pytest.mark.parametrize("happened", [True, False], ids=["it took place", "it did not"])
async def test_30_an_unknown_error_of_a_commit_is_not_a_success(
    kafka_broker: Broker, quick: Quick, happened: bool
) -> None:
    """Scenario 30: one client took UNKNOWN_SERVER_ERROR for a success and lost the records.

    The outcome is unknown: the producer stops, and the next instance ends the open transaction, so
    that the committed offsets show where to continue.
    """
    refused = end_txn.EndTxnResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    async with writer(kafka_broker, quick) as producer:
        await one_transaction(producer, b"1", 1)
        if happened:
            kafka_broker.faults.on(ApiKey.END_TXN).close_after()
        kafka_broker.faults.on(ApiKey.END_TXN).respond(refused)
        with pytest.raises(TransactionFailed, match="not known"):
            await one_transaction(producer, b"2", 2)
        with pytest.raises(TransactionFailed, match="create a new one"):
            await one_transaction(producer, b"3", 3)
    async with writer(kafka_broker, quick) as successor:
        (offset,) = offsets(kafka_broker)
        assert offset in (1, 2)
        await one_transaction(successor, b"4", 4)
    expected = [b"1", b"1", b"4", b"4"] if offset == 1 else [b"1", b"1", b"2", b"2", b"4", b"4"]
    assert await committed(kafka_broker) == expected, "records and offsets are one"
    assert offsets(kafka_broker) == [4]


async def test_30_a_producer_fenced_at_its_start_stops_at_once(kafka_broker: Broker, quick: Quick) -> None:
    """Scenario 30: PRODUCER_FENCED from InitProducerId was retried without end."""
    kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, times=None).error(ErrorCode.PRODUCER_FENCED)
    producer = writer(kafka_broker, quick)
    with anyio.fail_after(10), pytest.raises(FencedError):
        await producer.start()
    assert len(kafka_broker.journal.requests(init_producer_id.InitProducerIdRequest)) == 1
    assert await producer.close() == []


async def test_30_a_producer_fenced_within_a_transaction_stops_at_once(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick) as old, writer(kafka_broker, quick) as new:
        with anyio.fail_after(5), pytest.raises(FencedError):
            await one_transaction(old, b"old", 1)
        asked = len(kafka_broker.journal)
        with pytest.raises(FencedError):
            await one_transaction(old, b"old", 1)
        assert len(kafka_broker.journal) == asked, "it sends no more requests"
        await one_transaction(new, b"new", 2)
    assert await committed(kafka_broker) == [b"new", b"new"]
    assert offsets(kafka_broker) == [2]


@pytest.mark.parametrize(
    "api", [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN], ids=lambda api: api.name
)
async def test_30_concurrent_transactions_passes(kafka_broker: Broker, quick: Quick, api: ApiKey) -> None:
    """Scenario 30: the transaction before is still being completed; that takes milliseconds."""
    busy = kafka_broker.faults.on(api, times=3).error(ErrorCode.CONCURRENT_TRANSACTIONS)
    async with writer(kafka_broker, quick) as producer:
        with anyio.fail_after(5):
            await one_transaction(producer, b"a", 1)
    assert busy.hits == 3
    assert await committed(kafka_broker) == [b"a", b"a"]


# --- coordinators and answers that are lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["close", "close_after", "drop", "drop handled"])
@pytest.mark.parametrize(
    "api", [ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN], ids=lambda api: api.name
)
async def test_20_a_lost_request_or_response_of_a_transaction_leaves_it_whole(
    kafka_broker: Broker, quick: Quick, api: ApiKey, fault: str
) -> None:
    """Scenario 20, in a transaction: repeated, each step has its effect once."""
    found = kafka_broker.faults.on(api)
    if fault.startswith("drop"):
        found.drop(handled=fault.endswith("handled"))
    else:
        getattr(found, fault)()
    async with writer(kafka_broker, quick, request_timeout_ms=200) as producer:
        for number in range(3):
            await one_transaction(producer, b"%d" % number, number)
    assert await committed(kafka_broker) == [b"%d" % number for number in (0, 0, 1, 1, 2, 2)]
    assert offsets(kafka_broker) == [2]


async def test_a_coordinator_that_moves_all_the_time_costs_nothing_but_time(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick) as producer:
        for number in range(12):
            async with producer.transaction() as tx:
                await producer.send("out", b"%02d" % number, partition=0)
                kafka_broker.faults.move_coordinator("tx", 1 + number % 3)
                kafka_broker.faults.move_coordinator("g", 1 + number % 2)
                await tx.send_offsets({PLACE: number}, "g")
                kafka_broker.faults.move_coordinator("tx", 1 + (number + 1) % 3)
    assert await committed(kafka_broker) == [b"%02d" % number for number in range(12)]
    assert offsets(kafka_broker) == [11]


async def test_nodes_that_stop_within_a_transaction_leave_it_whole(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick, transaction_timeout_ms=10_000) as producer:
        for number in range(4):
            stopped = kafka_broker.faults.coordinator("tx") if number % 2 else kafka_broker.faults.leader("out", 0)
            async with producer.transaction() as tx:
                await producer.send("out", b"%d" % number, partition=0)
                await kafka_broker.faults.stop_node(stopped)
                await producer.send("out", b"%d" % number, partition=1)
                await tx.send_offsets({PLACE: number}, "g")
            await kafka_broker.faults.start_node(stopped)
    assert await committed(kafka_broker) == [b"%d" % number for number in (0, 0, 1, 1, 2, 2, 3, 3)]
    assert offsets(kafka_broker) == [3]


async def test_a_transaction_past_its_timeout_is_aborted_as_a_whole(kafka_broker: Broker, quick: Quick) -> None:
    """The broker's timeout: its records are never read, and the producer continues."""
    async with writer(kafka_broker, quick) as producer:
        kafka_broker.faults.on(ApiKey.END_TXN).error(
            ErrorCode.INVALID_TXN_STATE
        )  # the coordinator's code after it aborted one
        with pytest.raises(TransactionAborted):
            await one_transaction(producer, b"late", 1)
        await one_transaction(producer, b"next", 2)
    assert await committed(kafka_broker) == [b"next", b"next"]
    assert offsets(kafka_broker) == [2]
