"""Consume, transform, produce: each record counts exactly once, whatever fails."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire import Consumer, ConsumerRecord, Producer, Transaction, transform
from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    ClosedError,
    DeliveryFailed,
    FencedError,
    KafkaError,
    RecordRejected,
    RequestTimedOut,
    TransactionAborted,
    TransactionFailed,
    error_for,
)
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import end_txn, txn_offset_commit
from aiokwire.testing.plugin import kafka_broker, kafka_broker_options
from aiokwire.transforming import is_worth_repeating
from tests.producer.cancelling import WAYS, cancel_at
from tests.producer.test_input_offsets import ALL, INPUT, broker, copied, reader_of, writer_of

__all__ = ["broker", "kafka_broker", "kafka_broker_options"]

Records = list[ConsumerRecord[bytes, bytes]]
Handler = Callable[[Records, Transaction], Awaitable[object]]


class Service:
    """A copy of `in` to `out`; `before` is called with the number of each turn, from 1."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.turns = 0
        self.before: Callable[[int, Transaction], Awaitable[object]] = _nothing
        self.sizes: list[int] = []

    async def run(self, consumer: Consumer[bytes, bytes], producer: Producer[bytes, bytes]) -> None:
        """Run until everything is copied."""

        async def copy(records: Records, tx: Transaction) -> None:
            self.turns += 1
            self.sizes.append(len(records))
            await self.before(self.turns, tx)
            for record in records:
                await producer.submit("out", record.value, partition=record.partition)

        with anyio.fail_after(15):
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    while [place and place.offset for place in (await consumer.committed()).values()] != [20, 20]:
                        await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await transform(consumer, producer, copy, max_records=6, poll=0.1)

    async def run_alone(self, **options: Any) -> None:
        """Run with its own consumer and producer."""
        async with reader_of(self.broker) as consumer, writer_of(self.broker, **options) as producer:
            await self.run(consumer, producer)


async def _nothing(turn: int, tx: Transaction) -> None:
    return None


async def test_each_turn_is_one_transaction(broker: Broker) -> None:
    service = Service(broker)
    await service.run_alone()
    assert await copied(broker) == ALL
    assert max(service.sizes) == 6
    ends = broker.journal.requests(end_txn.EndTxnRequest)
    assert [request.committed for request in ends] == [True] * service.turns


async def test_without_records_no_transaction_begins(broker: Broker) -> None:
    await Service(broker).run_alone()
    broker.journal.clear()
    async with reader_of(broker) as consumer, writer_of(broker) as producer:
        with anyio.move_on_after(0.2):
            await transform(consumer, producer, _never, poll=0.02)
    assert not broker.journal.requests(txn_offset_commit.TxnOffsetCommitRequest)
    assert not broker.journal.requests(end_txn.EndTxnRequest)


async def _never(records: Records, tx: Transaction) -> None:
    raise AssertionError("there was nothing to work on")


# --- transient failures -----------------------------------------------------------------------------------------------


async def test_records_of_an_aborted_turn_are_processed_again(broker: Broker) -> None:
    service = Service(broker)

    async def give_up(turn: int, tx: Transaction) -> None:
        if turn % 3 == 1:
            raise TransactionAborted("not now")

    service.before = give_up
    await service.run_alone()
    assert await copied(broker) == ALL
    assert service.turns > len(broker.journal.requests(end_txn.EndTxnRequest))


async def test_a_handler_that_aborts_and_returns_is_called_again(broker: Broker) -> None:
    calls = []

    async with reader_of(broker) as consumer, writer_of(broker) as producer:

        async def once(records: Records, tx: Transaction) -> None:
            calls.append([record.offset for record in records if record.partition == 0])
            if len(calls) < 3:
                await tx.abort()
            else:
                raise ZeroDivisionError

        await consumer.assign(INPUT[:1])
        with pytest.raises(ZeroDivisionError):
            await transform(consumer, producer, once, max_records=4)
    assert calls == [[0, 1, 2, 3]] * 3


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.ILLEGAL_GENERATION),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.NOT_COORDINATOR),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey.END_TXN, ErrorCode.NOT_COORDINATOR),
        (ApiKey.END_TXN, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE),
        (ApiKey.PRODUCE, ErrorCode.INVALID_TXN_STATE),
        (ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ApiKey.FETCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
async def test_each_record_counts_once_when_responses_have_errors(broker: Broker, api: ApiKey, code: ErrorCode) -> None:
    for number in (1, 3, 4):
        broker.faults.on(api, nth=number).error(code)
    await Service(broker).run_alone()
    assert await copied(broker) == ALL


@pytest.mark.parametrize("api", [ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID])
@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
async def test_each_record_counts_once_when_connections_break(broker: Broker, api: ApiKey, done: bool) -> None:
    for number in (1, 3, 4):
        rule = broker.faults.on(api, nth=number)
        rule.close_after() if done else rule.close()
    await Service(broker).run_alone()
    assert await copied(broker) == ALL


class TestSeveralNodes:
    @pytest.fixture
    def kafka_broker_options(self) -> dict[str, Any]:
        return {"nodes": 3, "transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}

    async def test_the_loop_follows_moving_coordinators_and_leaders(self, broker: Broker) -> None:
        service = Service(broker)

        async def move(turn: int, tx: Transaction) -> None:
            broker.faults.move_coordinator("tx", 1 + turn % 3)
            broker.faults.move_coordinator("g", 1 + (turn + 1) % 3)
            broker.faults.move_leader("out", turn % 2, 1 + (turn + 2) % 3)
            broker.faults.move_leader("in", turn % 2, 1 + turn % 3)

        service.before = move
        await service.run_alone()
        assert await copied(broker) == ALL


class TestTimeouts:
    @pytest.fixture
    def kafka_broker_options(self) -> dict[str, Any]:
        return {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 50}

    async def test_the_same_producer_repeats_a_turn_that_the_broker_aborted_for_its_timeout(
        self, broker: Broker
    ) -> None:
        service = Service(broker)

        async def linger(turn: int, tx: Transaction) -> None:
            if turn == 2:
                await tx.send_offsets({INPUT[0]: 1}, "another")  # so that the coordinator has the transaction
                await broker.journal.wait_for(lambda entry: entry.api == ApiKey.TXN_OFFSET_COMMIT)
                await _until_timed_out(broker)

        service.before = linger
        async with reader_of(broker) as consumer, writer_of(broker, transaction_timeout_ms=300) as producer:
            await service.run(consumer, producer)
        assert await copied(broker) == ALL


async def _until_timed_out(broker: Broker) -> None:
    """Wait until the broker has aborted the open transaction."""
    with anyio.fail_after(10):
        while any(transaction.state.name == "ONGOING" for transaction in broker.state.transactions):
            await anyio.lowlevel.checkpoint()


# --- permanent failures -----------------------------------------------------------------------------------------------


async def test_a_handlers_exception_is_raised_and_the_next_call_repeats_the_turn(broker: Broker) -> None:
    service = Service(broker)

    async def fail(turn: int, tx: Transaction) -> None:
        if turn in (1, 3):
            raise ZeroDivisionError

    service.before = fail
    async with reader_of(broker) as consumer, writer_of(broker) as producer:
        for _ in range(2):
            with pytest.raises(BaseExceptionGroup) as group:
                await service.run(consumer, producer)
            assert group.value.subgroup(ZeroDivisionError)
        await service.run(consumer, producer)
    assert await copied(broker) == ALL


async def test_a_rejected_record_is_not_retried_forever(broker: Broker) -> None:
    broker.faults.on(ApiKey.PRODUCE, topic="out", times=None).error(ErrorCode.INVALID_RECORD)
    async with reader_of(broker) as consumer, writer_of(broker) as producer:

        async def copy(records: Records, tx: Transaction) -> None:
            await producer.send("out", b"bad")

        async def copy_later(records: Records, tx: Transaction) -> None:
            await producer.submit("out", b"bad")

        for handler in (copy, copy_later):
            with anyio.fail_after(5), pytest.raises((TransactionAborted, RecordRejected), match="INVALID_RECORD"):
                await transform(consumer, producer, handler)
    assert await copied(broker) == [[], []]


async def test_a_newer_instance_stops_the_older_one(broker: Broker) -> None:
    service = Service(broker)
    async with reader_of(broker) as consumer, writer_of(broker) as producer:

        async def copy(records: Records, tx: Transaction) -> None:
            for record in records:
                await producer.submit("out", record.value, partition=record.partition)
            await service.run_alone()

        with anyio.fail_after(10), pytest.raises(FencedError):
            await transform(consumer, producer, copy)
    assert await copied(broker) == ALL


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
async def test_after_a_transaction_with_unknown_outcome_a_new_producer_continues_with_the_same_consumer(
    broker: Broker, done: bool
) -> None:
    service = Service(broker)
    rule = broker.faults.on(ApiKey.END_TXN, nth=2, times=None)
    rule.drop(handled=True) if done else rule.drop()
    async with reader_of(broker) as consumer:
        async with writer_of(broker, transaction_timeout_ms=400) as producer:
            with pytest.raises(BaseExceptionGroup) as group:
                await service.run(consumer, producer)
            assert group.value.subgroup(TransactionFailed)
        broker.faults.clear_rules()
        async with writer_of(broker) as producer:
            await service.run(consumer, producer)
    assert await copied(broker) == ALL


async def test_a_closed_consumer_ends_the_loop(broker: Broker) -> None:
    async with reader_of(broker) as consumer, writer_of(broker) as producer:
        await consumer.close()
        with pytest.raises(ClosedError):
            await transform(consumer, producer, _never)


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (TransactionAborted("by the program"), True),
        (TransactionAborted("", reason=RequestTimedOut("late")), True),
        (TransactionAborted("", reason=error_for(ErrorCode.ILLEGAL_GENERATION, "offsets")), True),
        (TransactionAborted("", reason=error_for(ErrorCode.INVALID_TXN_STATE, "end")), True),
        (TransactionAborted("", reason=error_for(ErrorCode.OFFSET_METADATA_TOO_LARGE, "offsets")), False),
        (TransactionAborted("", reason=error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "batch")), False),
        (DeliveryFailed("", last_error=error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, "batch")), True),
        (TransactionAborted("", reason=DeliveryFailed("", last_error=error_for(ErrorCode.INVALID_RECORD, ""))), False),
    ],
)
def test_which_errors_are_worth_repeating(error: KafkaError, passing: bool) -> None:
    assert is_worth_repeating(error) is passing


# --- cancelled anywhere -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_each_record_counts_once_when_a_call_is_cancelled_at_any_step_and_repeated(
    broker: Broker, way: str
) -> None:
    async with reader_of(broker) as consumer, writer_of(broker) as producer:

        async def two_turns() -> None:
            turns = itertools.count(1)

            async def copy(records: Records, tx: Transaction) -> None:
                if next(turns) > 2:
                    raise ZeroDivisionError
                for record in records:
                    await producer.submit("out", record.value, partition=record.partition)
                await producer.flush()

            await transform(consumer, producer, copy, max_records=1, poll=5)

        for step in itertools.count(1):
            reached, outcome = await cancel_at(two_turns(), step, way)
            if not reached:
                break
        assert isinstance(outcome, ZeroDivisionError)
        assert step > 5
        await Service(broker).run(consumer, producer)
    assert await copied(broker) == ALL
