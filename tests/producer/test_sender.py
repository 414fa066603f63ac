"""Produce requests to scripted nodes: retries, leaders that move, order, sizes, formats."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, RecordRejected, RetriableError, UnsupportedVersion
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import produce
from aiokwire.types import TopicPartition
from tests.producer.conftest import Answer, Script, scripted_cluster

Quick = dict[str, Any]


async def test_a_temporary_error_is_retried_with_the_same_bytes(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        script = cluster.node.on_partition = Script(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CORRUPT_MESSAGE)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            metadata = await producer.send("t", b"a")
        assert metadata.offset == 0
        assert len(script.data) == 3
        assert script.data[0] == script.data[1] == script.data[2]
        assert cluster.values() == [b"a"]


async def test_a_partition_whose_leader_moved_is_found_again(quick: Quick) -> None:
    async with scripted_cluster(2) as cluster:
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            await producer.send("t", b"a")
            cluster.leaders["t"] = [2]
            assert (await producer.send("t", b"b")).offset == 1
        assert cluster.values() == [b"a", b"b"]
        assert len(cluster.nodes[2].requests) == 1


async def test_a_leader_named_in_the_response_is_used_at_once() -> None:
    async with scripted_cluster(2) as cluster:
        async with Producer(
            cluster.bootstrap_servers, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000
        ) as producer:
            await producer.send("t", b"a")
            cluster.leaders["t"] = [2]
            hint = produce.LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
            cluster.node.on_partition = Script(
                Answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1, current_leader=hint)
            )
            await producer.send("t", b"b")
        assert cluster.values() == [b"a", b"b"]


async def test_a_lost_response_makes_no_duplicate(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        lost: list[produce.ProduceRequest] = []

        async def write_then_hang_up(request: produce.ProduceRequest) -> bool | None:
            if lost:
                return None
            lost.append(request)
            cluster.append(TopicPartition("t", 0), bytes(request.topic_data[0].partition_data[0].records or b""))
            return False

        cluster.node.on_request = write_then_hang_up
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            metadata = await producer.send("t", b"a")
            assert metadata.offset == -1  # the broker does not return the offset of a duplicate
            assert (await producer.send("t", b"b")).offset == 1
        assert cluster.values() == [b"a", b"b"]


async def test_order_is_kept_when_the_first_of_several_batches_fails(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(None, ErrorCode.NOT_ENOUGH_REPLICAS, None, None, ErrorCode.REQUEST_TIMED_OUT)
        values = [b"%04d" % number + b"x" * 200 for number in range(400)]
        async with Producer(cluster.bootstrap_servers, **quick, batch_size=2000, linger_ms=1) as producer:
            for value in values:
                await producer.submit("t", value)
        assert cluster.values() == values


async def test_order_is_kept_when_the_leader_of_a_new_topic_does_not_serve_yet(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        values = [b"%04d" % number + b"x" * 200 for number in range(400)]
        async with Producer(cluster.bootstrap_servers, **quick, batch_size=2000, linger_ms=1) as producer:
            for value in values:
                await producer.submit("t", value, partition=0)
        assert cluster.values() == values


async def test_order_is_kept_without_idempotence_by_one_batch_at_a_time(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(None, ErrorCode.NOT_ENOUGH_REPLICAS, None, ErrorCode.REQUEST_TIMED_OUT)
        values = [b"%04d" % number + b"x" * 200 for number in range(200)]
        async with Producer(cluster.bootstrap_servers, **quick, batch_size=2000, acks=1) as producer:
            for value in values:
                await producer.submit("t", value)
        assert cluster.values() == values
        assert cluster.ids_given == 0


async def test_a_forgotten_producer_continues_under_a_new_epoch(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            await producer.send("t", b"a")
            cluster.node.on_partition = Script(ErrorCode.UNKNOWN_PRODUCER_ID)
            await producer.send("t", b"b")
            await producer.send("t", b"c")
        assert cluster.values() == [b"a", b"b", b"c"]
        assert cluster.logs[TopicPartition("t", 0)].epoch == 1


async def test_a_batch_that_is_too_large_is_split_until_it_fits(quick: Quick) -> None:
    def refuse_large(tp: TopicPartition, data: bytes) -> Answer | int | None:
        return ErrorCode.MESSAGE_TOO_LARGE if len(data) > 1000 else None

    async with scripted_cluster() as cluster:
        cluster.node.on_partition = refuse_large
        values = [b"%03d" % number + b"x" * 100 for number in range(40)]
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            deliveries = [await producer.submit("t", value) for value in values]
            offsets = [(await delivery).offset for delivery in deliveries]
        assert cluster.values() == values
        assert offsets == list(range(40))


async def test_a_record_that_is_too_large_for_the_topic_fails_with_sizes_and_the_setting(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(ErrorCode.MESSAGE_TOO_LARGE)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            with pytest.raises(RecordRejected, match=r"max\.message\.bytes") as caught:
                await producer.send("t", b"x" * 5000)
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            assert "5" in str(caught.value)
            assert (await producer.send("t", b"small")).offset == 0


async def test_the_rejected_record_of_a_batch_is_named_and_the_others_allow_a_retry(quick: Quick) -> None:
    culprit = produce.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
    answer = Answer(error_code=ErrorCode.INVALID_RECORD, base_offset=-1, record_errors=[culprit])
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(answer)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            deliveries = [await producer.submit("t", b"%d" % number) for number in range(3)]
            with pytest.raises(RecordRejected, match="no key"):
                await deliveries[1]
            for delivery in (deliveries[0], deliveries[2]):
                with pytest.raises(RetriableError, match="send this record again"):
                    await delivery
            await producer.send("t", b"after")
        assert cluster.values() == [b"after"]


async def test_a_refusal_fails_at_once(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        script = cluster.node.on_partition = Script(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            with pytest.raises(AuthorizationError, match=r"t\[0\] on node 1"):
                await producer.send("t", b"a")
        assert len(script.data) == 1


async def test_acks_0_is_delivered_without_an_offset(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, **quick, acks=0) as producer:
            assert (await producer.send("t", b"a")).offset == -1
            with anyio.fail_after(5):
                while not cluster.values():
                    await anyio.lowlevel.checkpoint()
        assert cluster.values() == [b"a"]


@pytest.mark.parametrize(("newest", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (12, 2), (13, 2)])
async def test_the_message_format_follows_the_brokers_version(newest: int, magic: int, quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.ranges[ApiKey.PRODUCE] = (0, newest)
        if magic < 2:
            del cluster.node.ranges[ApiKey.INIT_PRODUCER_ID]
        script = cluster.node.on_partition = Script()
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            assert (await producer.send("t", b"a", b"k")).offset == 0
        header, _ = cluster.node.requests[0]
        assert header.api_version == newest
        assert script.data[0][16] == magic
        assert cluster.values() == [b"a"]


async def test_headers_are_refused_where_the_format_has_none(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.ranges[ApiKey.PRODUCE] = (0, 2)
        del cluster.node.ranges[ApiKey.INIT_PRODUCER_ID]
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            with pytest.raises(ValueError, match="format 1"):
                await producer.send("t", b"a", headers=[("trace", b"1")])
            assert (await producer.send("t", b"b")).offset == 0


async def test_a_leader_with_an_older_format_gets_the_batch_in_its_own(quick: Quick) -> None:
    async with scripted_cluster(2) as cluster:
        async with Producer(cluster.bootstrap_servers, **quick, acks=1) as producer:
            await producer.send("t", b"a")
            cluster.nodes[2].ranges[ApiKey.PRODUCE] = (0, 2)
            script = cluster.nodes[2].on_partition = Script()
            cluster.leaders["t"] = [2]
            await producer.send("t", b"b", timestamp=1234)
            with pytest.raises((UnsupportedVersion, ValueError), match="headers"):
                await producer.send("t", b"c", headers=[("h", None)])
        assert script.data[0][16] == 1
        assert cluster.values() == [b"a", b"b"]


async def test_zstd_needs_a_broker_that_knows_it(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.ranges[ApiKey.PRODUCE] = (0, 6)
        async with Producer(cluster.bootstrap_servers, **quick, compression_type="zstd") as producer:
            with pytest.raises(UnsupportedVersion, match="compression_type"):
                await producer.send("t", b"a")


async def test_idempotence_is_off_where_the_broker_has_none_unless_it_is_required(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        del cluster.node.ranges[ApiKey.INIT_PRODUCER_ID]
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            assert (await producer.send("t", b"a")).offset == 0
        async with Producer(cluster.bootstrap_servers, **quick, enable_idempotence=True) as producer:
            with pytest.raises(UnsupportedVersion, match="enable_idempotence=True"):
                await producer.send("t", b"b")
        assert cluster.values() == [b"a"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_large_batches_are_compressed_off_the_loop_and_keep_their_order(codec: str, quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        values = [b"%05d" % number * 30 for number in range(3000)]
        async with Producer(cluster.bootstrap_servers, **quick, compression_type=codec, batch_size=100_000) as producer:
            for value in values:
                await producer.submit("t", value)
        assert cluster.values() == values
