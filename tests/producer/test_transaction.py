"""Transactions with scripted coordinators: both protocols, errors, aborts, cancellation."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    ClosedError,
    ConfigurationError,
    FencedError,
    InvalidArgument,
    RecordRejected,
    TransactionAborted,
    TransactionFailed,
    TransactionStateError,
    UnsupportedVersion,
)
from aiokwire.producer import Producer
from aiokwire.producer.transactions.states import TransactionState
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import produce
from aiokwire.records import read_batches
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from tests.producer.cancelling import WAYS, cancel_at
from tests.producer.conftest import Answer, Script, ScriptedCluster, scripted_cluster

Quick = dict[str, Any]
INIT, END, ADD = ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN, ApiKey.ADD_PARTITIONS_TO_TXN
GROUP, OFFSETS, FIND = ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.FIND_COORDINATOR
PLACE = TopicPartition("t", 0)
both = pytest.mark.parametrize("transaction_v2", [False, True], ids=["first", "transaction_v2"])


@asynccontextmanager
async def transactional(
    transaction_v2: bool, nodes: int = 1, **options: Any
) -> AsyncIterator[tuple[ScriptedCluster, Producer[bytes, bytes]]]:
    """A cluster of one of two protocols and a started producer; its start is not in the journal."""
    async with scripted_cluster(nodes) as cluster:
        cluster.allow_transactions(transaction_v2=transaction_v2)
        async with Producer(cluster.bootstrap_servers, transactional_id="tx", **options) as producer:
            cluster.coordinator.journal.clear()
            yield cluster, producer


def state_of(producer: Producer[Any, Any]) -> TransactionState:
    transactions = producer._transactions
    assert transactions is not None
    return transactions.state


def is_healthy(producer: Producer[Any, Any]) -> bool:
    return state_of(producer) is TransactionState.READY


# --- commit and abort -------------------------------------------------------------------------------------------------


@both
async def test_a_block_commits_at_its_end(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        async with producer.transaction():
            delivery = await producer.submit("t", b"a")
        assert delivery.done(), "the commit delivers the accepted records"
        assert cluster.coordinator.apis == ([END] if transaction_v2 else [ADD, END])
        (end,) = cluster.coordinator.of(END)
        assert (end.transactional_id, end.producer_id, end.producer_epoch, end.committed) == ("tx", 70, 0, True)
        header, request = cluster.node.requests[0]
        assert request.transactional_id == "tx"
        assert header.api_version == (12 if transaction_v2 else 11) or (transaction_v2 and header.api_version > 12)
        (batch,) = read_batches(bytes(request.topic_data[0].partition_data[0].records or b""), "t", 0)
        assert batch.is_transactional


@both
async def test_an_exception_aborts_and_leaves_the_block(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):

        async def work() -> None:
            async with producer.transaction():
                await producer.send("t", b"a")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]
        async with producer.transaction():
            await producer.send("t", b"b")
        assert [request.committed for request in cluster.coordinator.of(END)] == [False, True]


@both
async def test_a_cancellation_aborts_and_leaves_the_block(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        with anyio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send("t", b"a")
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]
        assert is_healthy(producer)


@both
async def test_an_abort_does_not_wait_for_records_that_are_not_sent(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, linger_ms=50_000, **quick) as (cluster, producer):
        deliveries = []

        async def work() -> None:
            async with producer.transaction():
                deliveries.append(await producer.submit("t", b"a"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        with pytest.raises(TransactionAborted):
            await deliveries[0]
        assert cluster.node.requests == []
        assert cluster.coordinator.apis == [], "the coordinator got no request"


async def test_the_end_of_the_second_protocol_returns_the_next_epoch(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        for value in (b"a", b"b"):
            async with producer.transaction():
                await producer.send("t", value)
        assert [request.producer_epoch for request in cluster.coordinator.of(END)] == [0, 1]
        assert cluster.values() == [b"a", b"b"]
        assert cluster.logs[PLACE].epoch == 1


async def test_in_the_first_protocol_a_sequence_continues_in_the_next_transaction(quick: Quick) -> None:
    async with transactional(False, **quick) as (cluster, producer):
        for value in (b"a", b"b"):
            async with producer.transaction():
                await producer.send("t", value)
        assert cluster.coordinator.apis == [ADD, END, ADD, END]
        assert (cluster.logs[PLACE].epoch, cluster.logs[PLACE].next_sequence) == (0, 2)


@both
async def test_an_empty_transaction_sends_no_request(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        async with producer.transaction():
            pass
        assert cluster.coordinator.apis == []
        assert is_healthy(producer)


@both
async def test_offsets_are_committed_with_it(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        async with producer.transaction() as tx:
            await tx.send_offsets({PLACE: OffsetAndMetadata(7, "note", 3)}, GroupMetadata("g", 5, "member", "instance"))
            await tx.send_offsets({PLACE: 8}, "g")
        assert cluster.coordinator.apis == (
            [OFFSETS, OFFSETS, END] if transaction_v2 else [GROUP, OFFSETS, OFFSETS, END]
        )
        sent = cluster.coordinator.of(OFFSETS)[0]
        assert (sent.generation_id, sent.member_id, sent.group_instance_id) == (5, "member", "instance")
        (partition,) = sent.topics[0].partitions
        assert (partition.committed_offset, partition.committed_metadata) == (7, "note")
        versions = [version for api, version, _ in cluster.coordinator.journal if api is OFFSETS]
        assert versions == ([5, 5] if transaction_v2 else [4, 4])


async def test_the_oldest_versions_of_the_requests_suffice(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=False)
        for api in (INIT, END, ADD, GROUP, OFFSETS):
            cluster.node.ranges[api] = (0, 0)
        cluster.node.ranges[ApiKey.PRODUCE] = (0, 3)
        cluster.node.ranges[FIND] = (0, 1)
        async with (
            Producer(cluster.bootstrap_servers, transactional_id="tx", **quick) as producer,
            producer.transaction() as tx,
        ):
            await producer.send("t", b"a")
            await tx.send_offsets({PLACE: 8}, GroupMetadata("g", 5, "member"))
        assert cluster.coordinator.apis == [INIT, ADD, GROUP, OFFSETS, END]
        assert cluster.values() == [b"a"]


# --- misuse -----------------------------------------------------------------------------------------------------------


async def test_a_record_outside_of_a_transaction_is_refused_in_every_way_of_sending(quick: Quick) -> None:
    async with transactional(True, **quick) as (_, producer):
        for _ in range(2):
            with pytest.raises(TransactionStateError, match="no transaction is open"):
                await producer.send("t", b"a")
            with pytest.raises(TransactionStateError):
                producer.submit_nowait("t", b"a")
            with pytest.raises(TransactionStateError):
                await producer.submit("t", b"a")
            with pytest.raises(TransactionStateError):
                await producer.send_many("t", [b"a"])
            async with producer.transaction():
                await producer.send("t", b"b")


async def test_a_second_transaction_at_a_time_is_refused_and_the_first_continues(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        async with producer.transaction():
            with pytest.raises(TransactionStateError, match="one transaction at a time"):
                async with producer.transaction():
                    pass
            await producer.send("t", b"a")
        assert [request.committed for request in cluster.coordinator.of(END)] == [True]


async def test_a_transaction_that_ended_accepts_nothing_more(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        transaction = producer.transaction()
        with pytest.raises(TransactionStateError, match="not begun"):
            await transaction.send_offsets({PLACE: 1}, "g")
        async with transaction as tx:
            await producer.send("t", b"a")
            await tx.abort()
            with pytest.raises(TransactionStateError):
                await producer.send("t", b"b")
        with pytest.raises(TransactionStateError, match="has ended"):
            await tx.send_offsets({PLACE: 1}, "g")
        with pytest.raises(TransactionStateError, match="already begun"):
            await transaction.__aenter__()
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]


async def test_without_a_transactional_id_there_are_no_transactions() -> None:
    with pytest.raises(ConfigurationError, match="transactional_id"):
        Producer("localhost:1").transaction()


async def test_before_the_start_and_after_the_end_there_are_none(quick: Quick) -> None:
    with pytest.raises(ClosedError, match="not started"):
        await Producer("localhost:1", transactional_id="tx").transaction().__aenter__()
    async with transactional(True, **quick) as (_, producer):
        await producer.close()
        with pytest.raises(ClosedError, match="closed"):
            await producer.transaction().__aenter__()


@pytest.mark.parametrize(
    ("offsets", "group", "named"),
    [
        ([1], "g", "offsets"),
        ({("t", 0): 1}, "g", "TopicPartition"),
        ({PLACE: -1}, "g", "0 or more"),
        ({PLACE: "1"}, "g", "0 or more"),
        ({PLACE: 1}, "", "group"),
        ({PLACE: 1}, None, "group"),
    ],
)
async def test_wrong_offsets_are_refused_without_a_loss(offsets: Any, group: Any, named: str, quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        async with producer.transaction() as tx:
            await producer.send("t", b"a")
            with pytest.raises(InvalidArgument, match=named):
                await tx.send_offsets(offsets, group)
        assert [request.committed for request in cluster.coordinator.of(END)] == [True]


async def test_closing_aborts_an_open_transaction(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        async with anyio.create_task_group() as group:

            async def hold() -> None:

                async def work() -> None:
                    async with producer.transaction():
                        await producer.send("t", b"a")
                        await producer.close()

                with pytest.raises(TransactionStateError, match="ended"):
                    await work()

            group.start_soon(hold)
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]


# --- start ------------------------------------------------------------------------------------------------------------


async def test_the_start_waits_for_the_end_of_a_transaction_that_was_left_open(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        cluster.coordinator.codes[INIT] = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
        async with Producer(cluster.bootstrap_servers, transactional_id="tx", **quick) as producer:
            assert is_healthy(producer)
        assert cluster.coordinator.apis == [INIT] * 4


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, FencedError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, AuthorizationError),
    ],
)
async def test_a_refused_start_fails_at_once_and_leaves_nothing(code: ErrorCode, kind: type, quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        cluster.coordinator.codes[INIT] = [code]
        producer = Producer(cluster.bootstrap_servers, transactional_id="tx", **quick)
        with pytest.raises(kind):
            await producer.start()
        assert cluster.coordinator.apis == [INIT]
        with pytest.raises(ClosedError):
            await producer.send("t", b"a")


async def test_a_broker_without_transactions_is_named_at_the_start(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        del cluster.node.ranges[INIT]
        cluster.node.ranges[FIND] = (0, 1)
        with pytest.raises(UnsupportedVersion, match="InitProducerId"):
            await Producer(cluster.bootstrap_servers, transactional_id="tx", **quick).start()


# --- coordinators -----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "code", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
)
async def test_a_temporary_error_of_a_coordinator_is_retried(
    transaction_v2: bool, code: ErrorCode, quick: Quick
) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        for api in (ADD, GROUP, OFFSETS, END):
            cluster.coordinator.codes[api] = [code, code]
        async with producer.transaction() as tx:
            await producer.send("t", b"a")
            await tx.send_offsets({PLACE: 1}, "g")
        expected = [OFFSETS] * 3 + [END] * 3
        assert cluster.coordinator.apis == (expected if transaction_v2 else [ADD] * 3 + [GROUP] * 3 + expected)
        assert cluster.values() == [b"a"]


@both
async def test_a_coordinator_that_moved_is_found_again_at_each_step(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, nodes=2, **quick) as (cluster, producer):
        async with producer.transaction() as tx:
            cluster.coordinator.node_id = 2
            await producer.send("t", b"a")
            await tx.send_offsets({PLACE: 1}, "g")
            cluster.coordinator.node_id = 1
        assert [request.committed for request in cluster.coordinator.of(END)][-1] is True
        assert is_healthy(producer)


@both
async def test_a_commit_whose_response_was_lost_is_retried(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        async with anyio.create_task_group() as group:

            async def relent() -> None:
                while END not in cluster.coordinator.apis:
                    await anyio.lowlevel.checkpoint()
                cluster.coordinator.silent.clear()

            cluster.coordinator.silent = {END}
            group.start_soon(relent)
            async with producer.transaction():
                await producer.send("t", b"a")
        assert cluster.coordinator.apis.count(END) >= 2
        assert is_healthy(producer)


# --- abortable --------------------------------------------------------------------------------------------------------


@both
async def test_a_batch_that_fails_turns_the_commit_into_an_abort(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        cluster.node.on_partition = Script(ErrorCode.INVALID_RECORD)
        with pytest.raises(TransactionAborted, match="INVALID_RECORD") as caught:
            async with producer.transaction():
                await producer.submit("t", b"a")
        assert isinstance(caught.value.reason, RecordRejected)
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]
        async with producer.transaction():
            await producer.send("t", b"b")
        assert cluster.values() == [b"b"]


async def test_after_a_broken_sequence_the_first_protocol_requests_a_new_epoch_with_the_present_one(
    quick: Quick,
) -> None:
    async with transactional(False, **quick) as (cluster, producer):
        cluster.node.on_partition = Script(ErrorCode.INVALID_RECORD)
        with pytest.raises(TransactionAborted):
            async with producer.transaction():
                await producer.submit("t", b"a")
        assert cluster.coordinator.apis == [ADD, END, INIT]
        (request,) = cluster.coordinator.of(INIT)
        assert (request.producer_id, request.producer_epoch) == (70, 0)


@both
async def test_a_coordinator_that_forgot_the_producer_gets_a_request_for_a_new_epoch_instead_of_an_end(
    transaction_v2: bool, quick: Quick
) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        cluster.coordinator.codes[OFFSETS] = [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        with pytest.raises(TransactionAborted):
            async with producer.transaction() as tx:
                await tx.send_offsets({PLACE: 1}, "g")
        assert cluster.coordinator.apis == ([OFFSETS, INIT] if transaction_v2 else [GROUP, OFFSETS, INIT])
        assert is_healthy(producer)


@both
@pytest.mark.parametrize(
    "code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE]
)
async def test_refused_offsets_abort(transaction_v2: bool, code: ErrorCode, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        cluster.coordinator.codes[OFFSETS] = [code]
        with pytest.raises(TransactionAborted, match=code.name):
            async with producer.transaction() as tx:
                await tx.send_offsets({PLACE: 1}, "g")
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]
        assert is_healthy(producer)


async def test_after_a_loss_nothing_more_is_accepted_and_leaving_the_block_aborts(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.coordinator.codes[OFFSETS] = [ErrorCode.ILLEGAL_GENERATION]

        async def work() -> None:
            async with producer.transaction() as tx:
                with pytest.raises(TransactionAborted, match="has to be aborted"):
                    await tx.send_offsets({PLACE: 1}, "g")
                with pytest.raises(TransactionAborted, match="leave its block"):
                    await producer.send("t", b"a")
                with pytest.raises(TransactionAborted):
                    await tx.send_offsets({PLACE: 1}, "g")

        with pytest.raises(TransactionAborted, match="was aborted"):
            await work()
        assert cluster.node.requests == []


async def test_a_transaction_that_the_coordinator_timed_out_is_aborted_and_the_next_one_works(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.coordinator.codes[END] = [ErrorCode.INVALID_TXN_STATE]
        with pytest.raises(TransactionAborted, match="INVALID_TXN_STATE"):
            async with producer.transaction():
                await producer.send("t", b"a")
        assert [request.committed for request in cluster.coordinator.of(END)] == [True, False]
        async with producer.transaction():
            await producer.send("t", b"b")


async def test_partitions_that_may_not_be_added_abort_and_their_records_are_not_sent(quick: Quick) -> None:
    async with transactional(False, **quick) as (cluster, producer):
        cluster.coordinator.codes[ADD] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        with pytest.raises(TransactionAborted, match=r"t\[0\]: TOPIC_AUTHORIZATION_FAILED"):
            async with producer.transaction():
                await producer.send("t", b"a")
        assert cluster.node.requests == []
        assert cluster.coordinator.apis == [ADD, END]
        assert is_healthy(producer)


async def test_records_that_cannot_be_delivered_end_the_commit_within_the_transaction_timeout(quick: Quick) -> None:
    async with transactional(True, transaction_timeout_ms=300, **quick) as (cluster, producer):

        def never(tp: TopicPartition, data: bytes) -> Answer | int | None:
            return ErrorCode.NOT_ENOUGH_REPLICAS

        cluster.node.on_partition = never
        with pytest.raises(TransactionAborted), anyio.fail_after(5):
            async with producer.transaction():
                await producer.submit("t", b"a")
        assert is_healthy(producer)


async def test_a_batch_that_is_split_keeps_its_place_in_the_sequence(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.node.on_partition = Script(ErrorCode.MESSAGE_TOO_LARGE)
        async with producer.transaction():
            for value in (b"a", b"b", b"c"):
                await producer.submit("t", value)
        assert cluster.values() == [b"a", b"b", b"c"]
        assert cluster.logs[PLACE].epoch == 0


async def test_an_abort_waits_for_batches_in_flight(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        arrived, answer = anyio.Event(), anyio.Event()

        async def hold(request: produce.ProduceRequest) -> bool | None:
            arrived.set()
            await answer.wait()
            return None

        cluster.node.on_request = hold
        deliveries = []

        async def work() -> None:
            async with producer.transaction():
                deliveries.append(await producer.submit("t", b"a"))
                await arrived.wait()
                raise ZeroDivisionError

        async def look() -> None:
            while state_of(producer) is not TransactionState.ABORTING_TRANSACTION:
                await anyio.lowlevel.checkpoint()
            assert cluster.coordinator.apis == []
            answer.set()

        async with anyio.create_task_group() as group:
            group.start_soon(look)
            with pytest.raises(ZeroDivisionError):
                await work()
        assert cluster.coordinator.apis == [END]
        assert deliveries[0].done()


def raise_in_block() -> None:
    raise ZeroDivisionError


# --- fatal ------------------------------------------------------------------------------------------------------------


@both
async def test_a_fenced_producer_stops_and_does_not_recover(transaction_v2: bool, quick: Quick) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):
        cluster.coordinator.codes[END] = [ErrorCode.PRODUCER_FENCED]
        with pytest.raises(FencedError, match="newer producer"):
            async with producer.transaction():
                await producer.send("t", b"a")
        for _ in range(2):
            with pytest.raises(FencedError):
                async with producer.transaction():
                    pass
            with pytest.raises(FencedError):
                await producer.send("t", b"a")
        assert cluster.coordinator.apis.count(END) == 1


async def test_an_epoch_error_of_a_leader_is_checked_with_the_coordinator(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.node.on_partition = Script(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH)
        with pytest.raises(TransactionAborted, match="INVALID_PRODUCER_EPOCH"):
            async with producer.transaction():
                await producer.send("t", b"a")
        assert is_healthy(producer), "the coordinator had timed it out"
        cluster.coordinator.codes[END] = [ErrorCode.PRODUCER_FENCED]
        with pytest.raises(FencedError):
            async with producer.transaction():
                await producer.send("t", b"a")


async def test_a_commit_with_an_unknown_result_is_reported_as_failed(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.coordinator.codes[END] = [ErrorCode.UNKNOWN_SERVER_ERROR]
        with pytest.raises(TransactionFailed, match="not known"):
            async with producer.transaction():
                await producer.send("t", b"a")
        with pytest.raises(TransactionFailed, match="create a new one"):
            producer.submit_nowait("t", b"b")


async def test_a_coordinator_that_never_responds_does_not_hold_the_commit_forever(quick: Quick) -> None:
    async with transactional(True, transaction_timeout_ms=200, **quick) as (cluster, producer):
        cluster.coordinator.silent = {END}
        with anyio.fail_after(5), pytest.raises(TransactionFailed, match="not known"):
            async with producer.transaction():
                await producer.send("t", b"a")


async def test_an_abort_that_fails_keeps_the_error_of_the_program(quick: Quick) -> None:
    async with transactional(True, transaction_timeout_ms=200, **quick) as (cluster, producer):
        cluster.coordinator.silent = {END}

        async def work() -> None:
            async with producer.transaction():
                await producer.send("t", b"a")
                raise_in_block()

        with anyio.fail_after(5), pytest.raises(ZeroDivisionError):
            await work()
        with pytest.raises(TransactionFailed):
            async with producer.transaction():
                pass


async def test_a_commit_that_is_cancelled_before_the_delivery_aborts(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        arrived, answer = anyio.Event(), anyio.Event()

        async def hold(request: produce.ProduceRequest) -> bool | None:
            arrived.set()
            await answer.wait()
            return None

        cluster.node.on_request = hold
        async with anyio.create_task_group() as group:

            async def work() -> None:
                async with producer.transaction():
                    await producer.submit("t", b"a")

            group.start_soon(work)
            await arrived.wait()
            group.cancel_scope.cancel()
            answer.set()
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]
        assert is_healthy(producer)


async def test_cancelled_offsets_abort_the_transaction(quick: Quick) -> None:
    async with transactional(True, **quick) as (cluster, producer):
        cluster.coordinator.silent = {OFFSETS}

        async def work() -> None:
            async with producer.transaction() as tx:
                with anyio.move_on_after(0.05):
                    await tx.send_offsets({PLACE: 1}, "g")

        with pytest.raises(TransactionAborted, match="cancelled"):
            await work()
        assert [request.committed for request in cluster.coordinator.of(END)] == [False]


# --- cancelled by the task itself, which no shield of anyio holds back ------------------------------------------------


@both
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fails", [False, True], ids=["committing", "aborting"])
async def test_a_task_that_is_cancelled_at_any_step_leaves_a_working_producer(
    transaction_v2: bool, way: str, fails: bool, quick: Quick
) -> None:
    async with transactional(transaction_v2, **quick) as (cluster, producer):

        async def work() -> None:
            async with producer.transaction() as tx:
                await producer.submit("t", b"a")
                await tx.send_offsets({PLACE: 1}, "g")
                if fails:
                    raise_in_block()

        for step in itertools.count(1):
            cluster.coordinator.journal.clear()
            reached, outcome = await cancel_at(work(), step, way)
            ends = [request.committed for request in cluster.coordinator.of(END)]
            assert is_healthy(producer), f"cancelled at step {step}"
            assert len(set(ends)) <= 1, "each transaction has one end"
            async with producer.transaction():
                await producer.send("t", b"after")
            if not reached:
                break
        assert step > 2
        assert isinstance(outcome, ZeroDivisionError) if fails else outcome is None
