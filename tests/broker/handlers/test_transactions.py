"""The APIs of transactions, by raw requests of older and newer clients."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import (
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    fetch,
    list_offsets,
    list_transactions,
    write_txn_markers,
)
from tests.broker.raw import RawClient, batch, fetch_request, produce_one
from tests.broker.transactional import RawProducer, committed_offset, open_transactions, read

BOTH = pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])


# --- the way of a transaction -----------------------------------------------------------------------------------------


@BOTH
async def test_committed_records_are_read_and_aborted_ones_are_not(
    broker: Broker, client: RawClient, newer: bool
) -> None:
    producer = RawProducer(client, newer=newer)
    assert await producer.init() == 0
    for value, commit in ((b"1", True), (b"2", False), (b"3", False), (b"4", True)):
        await producer.send("t", value, value + b"'")
        await producer.send("t", value, partition=1)
        assert await producer.end(commit=commit) == 0
    assert await read(client, "t") == [b"1", b"1'", b"4", b"4'"]
    assert await read(client, "t", partition=1) == [b"1", b"4"]
    assert await read(client, "t", committed=False) == [b"1", b"1'", b"2", b"2'", b"3", b"3'", b"4", b"4'"]
    assert open_transactions(broker) == {}
    assert producer.epoch == (4 if newer else 0)


@BOTH
async def test_an_open_transaction_holds_readers_of_committed_records_back(client: RawClient, newer: bool) -> None:
    producer = RawProducer(client, newer=newer)
    await producer.init()
    assert (await produce_one(client, "t", batch([b"before"]))).error_code == 0
    await producer.send("t", b"open")
    assert (await produce_one(client, "t", batch([b"after"]))).error_code == 0
    request = list_offsets.ListOffsetsRequest(
        isolation_level=1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name="t", partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
            )
        ],
    )
    assert (await client.ask(request, 5)).topics[0].partitions[0].offset == 1
    assert await read(client, "t") == [b"before"]
    data = (await client.ask(fetch_request("t", 0), 12)).responses[0].partitions[0]
    assert (data.high_watermark, data.last_stable_offset) == (3, 1)
    await producer.end(commit=False)
    assert (await client.ask(request, 5)).topics[0].partitions[0].offset == 4
    assert await read(client, "t") == [b"before", b"after"]


@pytest.mark.parametrize("commit", [True, False])
async def test_the_end_of_a_transaction_wakes_its_waiters(broker: Broker, client: RawClient, commit: bool) -> None:
    producer = RawProducer(client)
    await producer.init()
    await producer.send("t", b"a")
    reader = await RawClient.connect(broker)
    reader.send(fetch_request("t", 0, isolation_level=1, max_wait_ms=600_000), 12)
    await producer.end(commit=commit)
    data = (await reader.receive(fetch.FetchResponse, 12)).responses[0].partitions[0]
    assert data.last_stable_offset == 2
    assert [one.first_offset for one in data.aborted_transactions or ()] == ([] if commit else [0])
    await reader.close()


@BOTH
async def test_a_newer_instance_fences_the_older_one(client: RawClient, newer: bool) -> None:
    old, new = RawProducer(client, newer=newer), RawProducer(client, newer=newer)
    await old.init()
    await old.send("t", b"lost")
    assert await new.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert await new.init() == 0
    assert await old.write("t", b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await old.write("t", b"elsewhere", partition=1) in {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
    }
    assert await old.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert await old.init(keep=True) == ErrorCode.PRODUCER_FENCED
    await new.send("t", b"new")
    assert await new.end(commit=True) == 0
    assert await read(client, "t") == [b"new"]


async def test_one_version_of_each_request_after_the_other(client: RawClient) -> None:
    """The whole range of the older APIs, as aiokafka (0) and librdkafka (0 and 1) use it."""
    for version in range(4):
        producer = RawProducer(client, f"tx{version}")
        assert await producer.init(version=version) == 0
        assert await producer.add("t", 0, 1, version=version) == [0, 0]
        assert await producer.write("t", b"%d" % version, version=max(version + 3, 3)) == 0
        assert await producer.end(commit=True, version=version) == 0
    assert await read(client, "t") == [b"0", b"1", b"2", b"3"]


# --- names of errors --------------------------------------------------------------------------------------------------


async def test_fencing_has_the_name_that_a_version_knows(client: RawClient) -> None:
    producer, newest = RawProducer(client), RawProducer(client)
    await producer.init()
    await newest.init()
    old, new = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    for version in range(4):
        assert await producer.add("t", 0, version=version) == [old if version < 2 else new]
        assert await producer.end(commit=True, version=version) == (old if version < 2 else new)
    for version in (3, 4, 5):
        assert await producer.init(keep=True, version=version) == (old if version < 4 else new)
    assert await producer.write("t", b"a") == old
    assert await producer.commit_offset("g", "t", 1) == old


async def test_a_partition_that_was_not_added_is_refused_by_the_name_that_a_version_knows(client: RawClient) -> None:
    producer = RawProducer(client)
    await producer.init()
    assert await producer.write("t", b"a", version=10) == ErrorCode.INVALID_TXN_STATE
    assert await producer.write("t", b"a", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert await producer.commit_offset("g", "t", 1, version=3) == ErrorCode.INVALID_TXN_STATE
    assert await producer.commit_offset("g", "t", 1, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert await producer.write("t", b"a", version=12) == 0  # KIP-890: the write adds the partition


async def test_what_makes_no_sense_is_refused(client: RawClient) -> None:
    producer = RawProducer(client)
    for timeout in (0, -1, 900_001):
        assert await producer.init(timeout_ms=timeout) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    nameless = RawProducer(client, "")
    assert await nameless.init() == ErrorCode.INVALID_REQUEST
    assert await nameless.add("t", 0) == [ErrorCode.INVALID_REQUEST]
    assert await nameless.end(commit=True) == ErrorCode.INVALID_REQUEST
    assert await nameless.send_offset("g", "t", 1) == ErrorCode.INVALID_REQUEST
    assert await nameless.commit_offset("g", "t", 1) == ErrorCode.INVALID_REQUEST
    unknown = RawProducer(client, "unknown")
    assert await unknown.add("t", 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert await unknown.end(commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.init() == 0
    assert await producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE
    assert await producer.send_offset("", "t", 1) == ErrorCode.INVALID_GROUP_ID
    assert await producer.add("t", 0, 7) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (await client.ask(fetch_request("t"), 12)).responses[0].partitions[0].high_watermark == 0


async def test_a_transactional_batch_needs_its_transactional_id(client: RawClient) -> None:
    records = batch([b"a"], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert (await produce_one(client, "t", records)).error_code == ErrorCode.INVALID_TXN_STATE


async def test_brokers_add_and_verify_several_transactions_at_once(client: RawClient) -> None:
    producers = [RawProducer(client, name) for name in ("a", "b")]
    for producer in producers:
        await producer.init()
    assert await producers[0].add("t", 0) == [0]

    async def ask(version: int, verify_only: bool) -> list[list[int]]:
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id=one.transactional_id,
                    producer_id=one.producer_id,
                    producer_epoch=one.epoch,
                    verify_only=verify_only,
                    topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name="t", partitions=[0, 1])],
                )
                for one in producers
            ]
        )
        answer = await client.ask(request, version)
        return [
            [one.partition_error_code for topic in result.topic_results for one in topic.results_by_partition]
            for result in answer.results_by_transaction
        ]

    missing = ErrorCode.TRANSACTION_ABORTABLE
    assert await ask(5, True) == [[0, missing], [missing, missing]]
    assert (await ask(4, True))[0] == [0, ErrorCode.INVALID_TXN_STATE]
    assert await ask(4, False) == [[0, 0], [0, 0]]
    assert await ask(5, True) == [[0, 0], [0, 0]]


# --- repeated requests ------------------------------------------------------------------------------------------------


@BOTH
async def test_an_end_whose_response_was_lost_is_requested_again(client: RawClient, newer: bool) -> None:
    producer = RawProducer(client, newer=newer)
    await producer.init()
    await producer.send("t", b"a")
    before = producer.epoch
    assert await producer.end(commit=True) == 0
    after, producer.epoch = producer.epoch, before
    assert await producer.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    assert await producer.end(commit=True) == 0
    assert producer.epoch == after == before + newer
    assert await read(client, "t") == [b"a"]


async def test_a_newer_client_gets_its_epoch_raised_by_an_abort_without_a_transaction(client: RawClient) -> None:
    producer = RawProducer(client, newer=True)
    await producer.init()
    assert await producer.end(commit=False) == 0
    assert await producer.end(commit=False) == 0
    assert producer.epoch == 2
    assert await producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE


async def test_a_repeated_batch_is_stored_once(client: RawClient) -> None:
    producer = RawProducer(client, newer=True)
    await producer.init()
    await producer.send("t", b"a")
    producer.sequences.clear()
    assert await producer.write("t", b"a") == 0
    await producer.end(commit=True)
    assert await read(client, "t") == [b"a"]


async def test_a_producer_in_a_transaction_may_not_write_outside_of_it(client: RawClient) -> None:
    producer = RawProducer(client)
    await producer.init()
    await producer.send("t", b"a")
    plain = batch([b"b"], producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=1)
    assert (await produce_one(client, "t", plain)).error_code == ErrorCode.INVALID_TXN_STATE


# --- offsets ----------------------------------------------------------------------------------------------------------


@BOTH
async def test_offsets_are_committed_with_their_transaction(client: RawClient, newer: bool) -> None:
    producer = RawProducer(client, newer=newer)
    await producer.init()
    assert await committed_offset(client, "g", "t") == (0, -1)
    for offset, commit, seen in ((5, True, 5), (9, False, 5), (7, True, 7)):
        before = await committed_offset(client, "g", "t")
        assert await producer.send_offset("g", "t", offset) == 0
        assert await committed_offset(client, "g", "t") == before
        assert (await committed_offset(client, "g", "t", stable=True))[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert (await committed_offset(client, "other", "t", stable=True))[0] == 0
        assert await producer.end(commit=commit) == 0
        assert await committed_offset(client, "g", "t", stable=True) == (0, seen)


async def test_offsets_of_unknown_members_and_partitions_are_refused(client: RawClient) -> None:
    producer = RawProducer(client, newer=True)
    await producer.init()
    assert await producer.commit_offset("g", "t", 1, generation=4) == ErrorCode.ILLEGAL_GENERATION
    assert await producer.commit_offset("", "t", 1) == ErrorCode.INVALID_GROUP_ID
    assert await producer.commit_offset("g", "none", 1, version=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- for administrators -----------------------------------------------------------------------------------------------


async def test_transactions_are_described_and_listed(broker: Broker, client: RawClient) -> None:
    producer, idle = RawProducer(client, "busy"), RawProducer(client, "idle")
    await producer.init()
    await idle.init()
    await producer.send("t", b"a", partition=1)
    request = describe_transactions.DescribeTransactionsRequest(transactional_ids=["busy", "idle", "none", ""])
    busy, rest, none, empty = (await client.ask(request, 0)).transaction_states
    assert (busy.transaction_state, busy.producer_id, busy.transaction_timeout_ms) == ("Ongoing", 0, 60_000)
    assert [(one.topic, one.partitions) for one in busy.topics] == [("t", [1])]
    assert (rest.transaction_state, rest.transaction_start_time_ms) == ("Empty", -1)
    assert none.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST

    async def listed(**filters: object) -> set[str]:
        request = list_transactions.ListTransactionsRequest(**filters)  # type: ignore[arg-type]  # by name, below
        return {one.transactional_id for one in (await client.ask(request, 2)).transaction_states}

    assert await listed() == {"busy", "idle"}
    assert await listed(state_filters=["Ongoing", "Dead"]) == {"busy"}
    assert await listed(producer_id_filters=[idle.producer_id]) == {"idle"}
    assert await listed(duration_filter=3_600_000) == set()
    assert await listed(transactional_id_pattern="b.*") == {"busy"}
    assert await listed(transactional_id_pattern="us") == set()
    unknown = await client.ask(list_transactions.ListTransactionsRequest(state_filters=["Ongoing", "Odd"]), 0)
    assert unknown.unknown_state_filters == ["Odd"]
    for pattern in ("(", "(?=b)b.*", "(" * 10_000, "(a{1000}){1000}"):
        bad = await client.ask(list_transactions.ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_a_pattern_for_transactional_ids_cannot_hang_the_broker(client: RawClient) -> None:
    for name in ("a" * 40, "a" * 40 + "-"):
        await RawProducer(client, name).init()
    request = list_transactions.ListTransactionsRequest(transactional_id_pattern="(a+)+$")
    answer = await client.ask(request, 2)
    assert [one.transactional_id for one in answer.transaction_states] == ["a" * 40]


async def test_a_transaction_that_hangs_in_a_partition_is_found_and_ended(broker: Broker, client: RawClient) -> None:
    producer = RawProducer(client)
    await producer.init()
    await producer.send("t", b"a", b"b")
    request = describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name="t", partition_indexes=[0, 9])]
    )
    found, missing = (await client.ask(request, 0)).topics[0].partitions
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (one,) = found.active_producers
    assert (one.producer_id, one.producer_epoch, one.last_sequence, one.current_txn_start_offset) == (0, 0, 1, 0)

    async def mark(epoch: int, coordinator_epoch: int, topic: str = "t") -> int:
        request = write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=one.producer_id,
                    producer_epoch=epoch,
                    coordinator_epoch=coordinator_epoch,
                    topics=[write_txn_markers.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                )
            ]
        )
        return (await client.ask(request, 1)).markers[0].topics[0].partitions[0].error_code

    assert await mark(0, 0, "none") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await mark(-1, 0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert open_transactions(broker) == {"t-0": 2}
    assert await mark(0, 3) == 0
    assert open_transactions(broker) == {}
    assert await mark(0, 2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


# --- failures of the disk ---------------------------------------------------------------------------------------------


async def test_without_room_on_the_disk_the_coordinator_is_not_available_and_nothing_changes() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage, topics={"t": 1}, transaction_state_log_num_partitions=1) as broker:
        client = await RawClient.connect(broker)
        producer = RawProducer(client)
        assert await producer.init() == 0
        await producer.send("t", b"a")
        full = ErrorCode.COORDINATOR_NOT_AVAILABLE
        storage.capacity = 0
        assert await producer.init() == full
        assert await producer.end(commit=True) == full
        assert await producer.commit_offset("g", "t", 1) == full
        storage.capacity = None
        assert await producer.end(commit=True) == 0
        assert await read(client, "t") == [b"a"]
        await client.close()


async def test_a_flush_that_the_configs_require_precedes_the_response() -> None:
    storage = MemoryStorage()
    async with Broker(
        storage=storage, topics={"t": 1}, log_flush_interval_messages=1, transaction_state_log_num_partitions=1
    ) as broker:
        client = await RawClient.connect(broker)
        producer = RawProducer(client)
        assert await producer.init() == 0
        await producer.send("t", b"a")
        assert await producer.send_offset("g", "t", 3) == 0
        with anyio.fail_after(5):
            assert await producer.end(commit=True) == 0
        log = broker.state.topics.require("__transaction_state").partitions[0].log
        assert log.unflushed <= 1  # the record of its completion, which a restart would write again
        assert await read(client, "t") == [b"a"]
        await client.close()
