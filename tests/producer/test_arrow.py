"""Rows of Arrow arrays through the producer: delivery, memory, and the errors of rejected rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ClosedError, InvalidArgument, RecordRejected
from aiokwire.producer import Producer
from aiokwire.producer.partitioner import partition_for_key
from aiokwire.protocol.messages import produce
from aiokwire.records import Record, read_batches
from aiokwire.types import TopicPartition
from tests.producer.conftest import Answer, Script, ScriptedCluster, scripted_cluster

Quick = dict[str, Any]
PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])


def values(*given: bytes | None) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(given, pa.binary())})


def sent(cluster: ScriptedCluster) -> list[Record]:
    """The records of all requests, in order."""
    return [
        record
        for _, request in cluster.node.requests
        for topic in request.topic_data
        for part in topic.partition_data
        for batch in read_batches(part.records or b"", "t", part.index)
        for record in batch.records()
    ]


async def test_rows_arrive_with_all_their_fields() -> None:
    rows = pa.record_batch(
        {
            "key": pa.array(["k", None], pa.string()),
            "value": pa.array([None, b"v"], pa.binary()),
            "headers": pa.array([[("h", b"1"), ("i", None)], None], pa.list_(PAIR)),
            "timestamp": pa.array([5_000, 6_999], pa.timestamp("us", "UTC")),
        }
    )
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        result = await producer.send_arrow("t", rows)
        first, second = sent(cluster)
    assert (result.delivered, result.failed, result.ranges) == (2, 0, {0: [(0, 1)]})
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", None, (("h", b"1"), ("i", None)), 5)
    assert (second.key, second.value, second.headers, second.timestamp) == (None, b"v", (), 6)


async def test_keys_and_partitions_decide_as_for_single_records() -> None:
    keys = [b"%d" % number for number in range(20)]
    rows = pa.record_batch({"key": keys, "value": keys, "partition": pa.array([None] * 19 + [2], pa.int32())})
    async with scripted_cluster() as cluster:
        cluster.leaders["t"] = [1] * 4
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.send_arrow("t", pa.Table.from_batches([rows]))
        for partition in range(4):
            wanted = [key for key in keys[:19] if partition_for_key(key, 4) == partition]
            assert cluster.values(partition) == wanted + ([keys[19]] if partition == 2 else [])


async def test_a_custom_partitioner_chooses_the_partitions_of_rows() -> None:
    def by_value(topic: str, key: object, value: Any, partitions: object) -> int:
        return int(value) % 2

    async with scripted_cluster() as cluster:
        cluster.leaders["t"] = [1, 1]
        async with Producer(cluster.bootstrap_servers, partitioner=by_value) as producer:
            await producer.send_arrow("t", values(b"1", b"2", b"3"))
        assert cluster.values(1) == [b"1", b"3"]


async def test_many_rows_stay_within_the_buffer_and_in_order() -> None:
    """More than thirty times the size of the buffer, between single records of another task."""
    rows = [b"%06d" % number + b"x" * 994 for number in range(4000)]
    options: dict[str, Any] = {"buffer_memory": 128_000, "batch_size": 16_000, "max_request_size": 4000}
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **options) as producer:
        peak = 0

        async def watch(request: produce.ProduceRequest) -> None:
            nonlocal peak
            peak = max(peak, producer.buffered)

        cluster.node.on_request = watch
        single = await producer.submit("t", b"single")
        result = await producer.send_arrow("t", pa.Table.from_batches([values(*rows[:2500]), values(*rows[2500:])]))
        await single
        assert producer.buffered == 0
        stored = cluster.values()
    assert result.delivered == 4000
    assert [value for value in stored if value != b"single"] == rows
    assert 16_000 < peak <= 128_000


async def test_a_submitted_batch_is_awaited_later() -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, linger_ms=60_000) as producer:
        pending = await producer.submit_arrow("t", values(b"a", b"b"))
        assert not pending.done()
        assert pending.rows == 2
        await producer.flush()
        assert pending.done()
        assert (await pending).ranges == {0: [(0, 1)]}
        assert (await pending).delivered == 2


@pytest.mark.parametrize("lost", [1, 3])
async def test_lost_responses_duplicate_no_row(quick: Quick, lost: int) -> None:
    rows = [b"%d" % number for number in range(500)]
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, batch_size=500, **quick) as producer:
        cut = 0

        async def hang_up(request: produce.ProduceRequest) -> bool | None:
            nonlocal cut
            cut += 1
            if cut > lost:
                return None
            for part in request.topic_data[0].partition_data:
                cluster.append(TopicPartition("t", part.index), bytes(part.records or b""))
            return False

        cluster.node.on_request = hang_up
        result = await producer.send_arrow("t", values(*rows))
        assert result.delivered == 500
        assert cluster.values() == rows


async def test_failures_name_their_rows() -> None:
    """Rows of partitions 0 and 1 in turn; partition 1's are rejected, in both record batches."""
    rows = pa.record_batch({"value": [b"v"] * 6, "partition": pa.array([0, 1, 0, 1, 1, 0], pa.int32())})

    def refuse_second(tp: TopicPartition, data: bytes) -> Answer | int | None:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if tp.partition == 1 else None

    async with scripted_cluster() as cluster:
        cluster.leaders["t"] = [1, 1]
        cluster.node.on_partition = refuse_second
        async with Producer(cluster.bootstrap_servers) as producer:
            result = await producer.send_arrow("t", [rows, rows])
    assert (result.delivered, result.failed, result.ranges) == (6, 6, {0: [(0, 5)]})
    assert [(first, last) for first, last, _ in result.failures] == [(1, 1), (3, 4), (7, 7), (9, 10)]
    assert set(result.errors) == {1}


async def test_a_rejected_row_has_its_own_error_and_the_others_allow_a_retry(quick: Quick) -> None:
    culprit = produce.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no")
    refusal = Answer(
        index=0,
        error_code=ErrorCode.INVALID_RECORD,
        base_offset=-1,
        record_errors=[culprit],
        error_message="one is bad",
    )
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.on_partition = Script(refusal)
        result = await producer.send_arrow("t", values(b"a", b"b", b"c"))
    assert [(first, last, type(error) is RecordRejected) for first, last, error in result.failures] == [
        (0, 0, False),
        (1, 1, True),
        (2, 2, False),
    ]


async def test_a_batch_that_is_too_large_for_the_broker_is_split(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.on_partition = Script(ErrorCode.MESSAGE_TOO_LARGE)
        result = await producer.send_arrow("t", values(*(b"%d" % number for number in range(9))))
        assert result.ranges == {0: [(0, 8)]}
        assert len(cluster.values()) == 9


BAD: list[tuple[dict[str, Any], str]] = [
    ({"partition": pa.array([0, 1], pa.int32())}, "row 1: partition 1 does not exist: there are 1"),
    ({"timestamp": pa.array([5, -5], pa.int64())}, "row 1: timestamp"),
    ({"offset": pa.array([5, 5], pa.int64())}, "column 'offset' is not a field of a record"),
]


@pytest.mark.parametrize(("columns", "message"), BAD)
async def test_a_bad_row_fails_its_batch_before_any_row_is_accepted(columns: dict[str, Any], message: str) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        with pytest.raises(InvalidArgument, match=message):
            await producer.send_arrow("t", [values(b"before"), pa.record_batch({"value": [b"a", b"b"], **columns})])
        await producer.flush()
        assert cluster.values() == [b"before"]


async def test_a_row_above_the_limit_is_refused() -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, max_request_size=10) as producer:
        with pytest.raises(RecordRejected, match=r"row 1 is too large: 11 bytes .* allows 10"):
            await producer.submit_arrow("t", values(b"x" * 10, b"x" * 11))
        assert producer.buffered == 0


@pytest.mark.parametrize("data", [b"x", 5, {"value": [b"x"]}, [b"x"]])
async def test_data_that_is_not_arrow_is_refused(data: Any) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        with pytest.raises(InvalidArgument, match="must"):
            await producer.send_arrow("t", data)


async def test_data_without_rows_is_accepted() -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        result = await producer.send_arrow("t", [values(), values()])
    assert (result.delivered, result.failed, result.failures) == (0, 0, [])


async def test_a_closed_producer_accepts_no_rows() -> None:
    async with scripted_cluster() as cluster:
        producer: Producer[bytes, bytes] = Producer(cluster.bootstrap_servers)
        with pytest.raises(ClosedError, match="not started"):
            await producer.send_arrow("t", values(b"a"))
        async with producer:
            pass
        with pytest.raises(ClosedError, match="was closed"):
            await producer.submit_arrow("t", values(b"a"))


@pytest.mark.parametrize("transaction_v2", [False, True])
async def test_rows_are_part_of_a_transaction(transaction_v2: bool) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=transaction_v2)
        async with Producer(cluster.bootstrap_servers, transactional_id="tx") as producer, producer.transaction():
            await producer.submit_arrow("t", values(b"a"))
        assert cluster.values() == [b"a"]
        assert cluster.node.requests[-1][1].transactional_id == "tx"
