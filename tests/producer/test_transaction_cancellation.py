"""Cancel a transaction at every await point in turn, as `asyncio.timeout` and task groups do.

After each cancellation: the transaction is committed with its offsets, or not at all; the producer
can begin the next one; the buffer is empty, and no task is left (the suite's own check).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import ClosedError, FencedError, TransactionAborted, TransactionStateError
from aiokwire.producer import Producer, Transaction
from aiokwire.testing import ApiKey
from aiokwire.types import TopicPartition
from tests.producer.cancelling import QUICK, WAYS, assert_nothing_held, cancel_at, settle

Bytes = Producer[bytes, bytes]
# The work that a test cancels; `number` is different in each attempt.
Work = Callable[[Bytes, int], Coroutine[Any, Any, object]]

PARTITIONS = 2
PLACE = TopicPartition("t", 0)
OPTIONS: dict[str, Any] = {**QUICK, "transactional_id": "tx", "transaction_timeout_ms": 10_000}


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": PARTITIONS}, auto_create_topics=False) as broker:
        yield broker


async def committed(broker: Broker) -> list[bytes]:
    """The records that a read_committed reader sees."""
    found: list[bytes] = []
    places = [TopicPartition("t", index) for index in range(PARTITIONS)]
    async with Consumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        await consumer.assign(places)
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < ends[place] for place in places]):
            found += [record.value or b"" for record in await consumer.getmany(timeout=0.2)]
    return found


def offset_of(broker: Broker, number: int) -> int | None:
    """The offset that the group of this attempt has committed."""
    found = broker.state.offsets.of_group(f"group-{number}").get(PLACE)
    return None if found is None else found.offset


def values_of(number: int) -> list[bytes]:
    return [b"%d-%d" % (number, index) for index in range(4)]


async def fill(producer: Bytes, tx: Transaction, number: int) -> None:
    first, *others, last = values_of(number)
    await producer.submit("t", first, partition=0)
    await producer.send_many("t", others)
    await tx.send_offsets({PLACE: number}, f"group-{number}")
    await producer.send("t", last, partition=1)


async def commits(producer: Bytes, number: int) -> object:
    async with producer.transaction() as tx:
        await fill(producer, tx, number)
    return "committed"


async def commits_waiting_records(producer: Bytes, number: int) -> object:
    """No record is delivered before the commit begins."""
    async with producer.transaction():
        for value in values_of(number):
            producer.submit_nowait("t", value)
    return "committed"


async def commits_after_a_flush(producer: Bytes, number: int) -> object:
    async with producer.transaction():
        for value in values_of(number):
            await producer.submit("t", value)
        await producer.flush()
    return "committed"


async def aborts(producer: Bytes, number: int) -> object:
    async with producer.transaction() as tx:
        await fill(producer, tx, number)
        await tx.abort()
    return "aborted"


async def raises(producer: Bytes, number: int) -> object:
    with contextlib.suppress(ZeroDivisionError):
        async with producer.transaction() as tx:
            await fill(producer, tx, number)
            raise ZeroDivisionError
    return "aborted"


async def raises_with_records_in_flight(producer: Bytes, number: int) -> object:
    with contextlib.suppress(ZeroDivisionError):
        async with producer.transaction():
            for value in values_of(number):
                producer.submit_nowait("t", value)
            await asyncio.get_running_loop().create_task(one_turn())
            raise ZeroDivisionError
    return "aborted"


async def one_turn() -> None:
    await anyio.lowlevel.checkpoint()


WORKS: list[Work] = [
    commits,
    commits_waiting_records,
    commits_after_a_flush,
    aborts,
    raises,
    raises_with_records_in_flight,
]


def named(work: Work) -> str:
    return work.__name__.replace("_", " ")


def whole(number: int, work: Work, outcome: object, there: list[bytes]) -> bool:
    """Return whether a transaction was committed.

    Check that it was as a whole or not at all, as its result states.
    """
    mine = [value for value in there if value.startswith(b"%d-" % number)]
    assert sorted(mine) in ([], values_of(number))
    if outcome == "committed":
        assert mine
    if outcome == "aborted" or work in (aborts, raises, raises_with_records_in_flight):
        assert not mine
    return bool(mine)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("work", WORKS, ids=named)
async def test_a_transaction_cancelled_at_every_step_is_whole_or_not_at_all(
    broker: Broker, work: Work, way: str
) -> None:
    outcomes: list[object] = []
    async with Producer(broker.bootstrap_servers, **OPTIONS) as producer:
        for step in itertools.count(1):
            reached, outcome = await cancel_at(work(producer, step), step, way)
            outcomes.append(outcome)
            with anyio.fail_after(5):
                async with producer.transaction():  # the producer still works
                    assert (await producer.send("t", b"after-%d" % step)).offset >= 0
            assert_nothing_held(producer)
            if not reached:
                break
    assert step > 1
    there = await committed(broker)
    assert len(set(there)) == len(there)
    for number, outcome in enumerate(outcomes, 1):
        assert isinstance(outcome, (str, asyncio.CancelledError)), outcome
        took_place = whole(number, work, outcome, there)
        assert b"after-%d" % number in there
        assert offset_of(broker, number) == (number if took_place and work is commits else None)
    assert not broker.state.offsets.pending("group-1")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broker_is", ["quick", "slow"])
async def test_a_start_cancelled_at_every_step_leaves_nothing(broker: Broker, way: str, broker_is: str) -> None:
    """The previous instance left a transaction open, which a start has to abort first."""
    for step in itertools.count(1):
        producer: Bytes = Producer(broker.bootstrap_servers, **OPTIONS)
        if broker_is == "slow":
            broker.faults.on(ApiKey.INIT_PRODUCER_ID).delay(0.01)
        before = asyncio.all_tasks()
        reached, outcome = await cancel_at(producer.start(), step, way)
        broker.faults.clear_rules()
        if outcome is None:  # it is started
            await commits(producer, step)
        assert await producer.close() == []
        assert_nothing_held(producer)
        await settle()
        assert not {task for task in asyncio.all_tasks() - before if "aiokwire client" in task.get_name()}
        if not reached:
            break
    assert outcome is None
    assert step > 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broker_is", ["quick", "slow"])
async def test_a_close_within_a_transaction_cancelled_at_every_step_leaves_nothing(
    broker: Broker, way: str, broker_is: str
) -> None:
    for step in itertools.count(1):
        before = asyncio.all_tasks()
        producer: Bytes = Producer(broker.bootstrap_servers, **OPTIONS)
        await producer.start()
        if broker_is == "slow":
            broker.faults.on(ApiKey.END_TXN).delay(0.01)
        reached = False
        with contextlib.suppress(TransactionAborted, TransactionStateError, ClosedError, FencedError):
            async with producer.transaction() as tx:
                await fill(producer, tx, step)
                delivery = producer.submit_nowait("t", b"%d-waits" % step)
                reached, outcome = await cancel_at(producer.close(), step, way)
                assert delivery.done()
        broker.faults.clear_rules()
        assert outcome == [] or isinstance(outcome, asyncio.CancelledError)
        assert_nothing_held(producer)
        assert await producer.close() == []
        await settle()
        assert not {task for task in asyncio.all_tasks() - before if "aiokwire client" in task.get_name()}
        if not reached:
            break
    assert step > 1
    async with Producer(broker.bootstrap_servers, **OPTIONS):  # aborts what was left open
        assert await committed(broker) == []
