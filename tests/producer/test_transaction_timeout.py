"""Transactions that the coordinator aborted after their timeout (KIP-588): the producer continues,
unless a newer instance has taken over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.errors import FencedError, KafkaError, TransactionAborted
from aiokwire.producer import Producer, Transaction
from aiokwire.producer.transactions.requests import ProducerIdentity, identity_after_timeout
from aiokwire.protocol.messages import describe_transactions

Bytes = Producer[bytes, bytes]
LIMIT_MS = 300


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(
        topics={"t": 1}, transaction_abort_timed_out_transaction_cleanup_interval_ms=20, auto_create_topics=False
    ) as broker:
        yield broker


def transactional(broker: Broker) -> Bytes:
    return Bytes(broker.bootstrap_servers, transactional_id="x", transaction_timeout_ms=LIMIT_MS, linger_ms=0)


async def timed_out(broker: Broker) -> None:
    """Wait until the coordinator aborted the open transaction and the producer's timeout ended."""
    with anyio.fail_after(10):
        while (one := broker.state.transactions.get("x")) is None or not one.at_rest:
            await anyio.lowlevel.checkpoint()
    await anyio.sleep(LIMIT_MS / 1000)


async def late(producer: Bytes, broker: Broker, then: str) -> None:
    async with producer.transaction() as tx:
        await producer.send("t", b"lost")
        await timed_out(broker)
        await continue_with(producer, tx, then)


async def continue_with(producer: Bytes, tx: Transaction, then: str) -> None:
    if then == "send":
        await producer.send("t", b"late")
    elif then == "offsets":
        await tx.send_offsets({}, "g")
    elif then == "abort":
        await tx.abort()


@pytest.mark.parametrize("then", ["commit", "send", "offsets", "abort"])
async def test_a_producer_continues_after_its_transaction_timed_out(broker: Broker, then: str) -> None:
    """It raised FencedError, and the producer was lost."""
    async with transactional(broker) as producer:
        if then == "abort":
            await late(producer, broker, then)
        else:
            with pytest.raises(TransactionAborted):
                await late(producer, broker, then)
        async with producer.transaction():
            assert (await producer.send("t", b"next")).offset >= 0


async def test_a_producer_whose_successor_took_over_stays_fenced(broker: Broker) -> None:
    async with transactional(broker) as producer:

        async def work() -> None:
            async with producer.transaction():
                await producer.send("t", b"lost")
                async with transactional(broker) as newer, newer.transaction():
                    await newer.send("t", b"newer")
                await timed_out(broker)
                await producer.send("t", b"late")

        with pytest.raises(KafkaError):
            await work()
        with pytest.raises(FencedError):
            async with producer.transaction():
                pass


@pytest.mark.parametrize(
    ("state", "producer_id", "epoch", "transaction_v2", "expected"),
    [
        ("CompleteAbort", 7, 4, False, 4),
        ("CompleteAbort", 7, 4, True, 4),
        ("CompleteAbort", 7, 5, True, 5),
        ("CompleteAbort", 7, 5, False, None),
        ("CompleteAbort", 7, 3, True, None),
        ("CompleteAbort", 7, 6, True, None),
        ("CompleteAbort", 8, 4, True, None),
        ("CompleteCommit", 7, 4, True, None),
        ("Empty", 7, 4, True, None),
        ("Ongoing", 7, 4, True, None),
    ],
)
def test_state_and_epoch_distinguish_a_timeout_from_a_newer_instance(
    state: str, producer_id: int, epoch: int, transaction_v2: bool, expected: int | None
) -> None:
    described = describe_transactions.TransactionState(
        transactional_id="x", transaction_state=state, producer_id=producer_id, producer_epoch=epoch
    )
    answer = describe_transactions.DescribeTransactionsResponse(transaction_states=[described])
    found = identity_after_timeout(ProducerIdentity("x", 7, 3), answer, transaction_v2=transaction_v2)
    assert (None if found is None else found.producer_epoch) == expected
