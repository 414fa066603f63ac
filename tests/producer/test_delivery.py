"""Delivery in rare cases: deadlines during a lost response, broken sequences, throttles, logs."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, ConnectionFailed, DeliveryFailed, RecordRejected, RetriableError
from aiokwire.producer import Producer
from aiokwire.protocol import ZERO_UUID, ApiKey
from aiokwire.protocol.messages import produce
from tests.producer.conftest import TOPIC_ID, Answer, Script, ScriptedCluster, scripted_cluster

Quick = dict[str, Any]


async def until_asked(cluster: ScriptedCluster, count: int) -> None:
    with anyio.fail_after(5):
        while len(cluster.node.requests) < count:
            await anyio.lowlevel.checkpoint()


async def hang(request: produce.ProduceRequest) -> bool | None:
    await anyio.sleep_forever()
    return None


# --- a deadline that ends while the response is lost ------------------------------------------------------------------


@pytest.mark.parametrize("written", [2, 1, 0], ids=["both written", "the first written", "none written"])
@pytest.mark.parametrize("expires", ["in flight", "retrying"])
async def test_a_batch_behind_an_expired_one_is_not_duplicated_by_the_new_epoch(
    expires: str, written: int, quick: Quick
) -> None:
    """Both responses are lost, and the first batch expires before a retry. The second may have been
    written: it is sent again under its old number before it may be sent under the next epoch
    (KIP-360)."""
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, linger_ms=0, delivery_timeout_ms=1200) as producer,
    ):
        await producer.send("t", b"zeroth")  # the first batch of a sequence is sent alone
        node = cluster.node
        node.mute = True
        node.on_partition = lambda tp, data: (
            None if len(node.requests) <= 1 + written else int(ErrorCode.NETWORK_EXCEPTION)
        )
        first = producer.submit_nowait("t", b"first")
        await until_asked(cluster, 2)
        with anyio.move_on_after(1.0):  # for the second, this much is left when the first expires
            await first
        second = producer.submit_nowait("t", b"second")
        await until_asked(cluster, 3)
        if expires == "retrying":
            node.stop()
        with pytest.raises(DeliveryFailed, match=expires):
            await first
        node.stop()
        node.mute = False
        node.on_partition = Script()
        await node.start()
        await second
        await producer.send("t", b"third")
        assert cluster.values() == [b"zeroth", *([b"first"] if written else []), b"second", b"third"]


async def test_a_batch_that_expired_in_flight_and_was_then_too_large_leaves_no_gap(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, linger_ms=1, delivery_timeout_ms=50) as producer,
    ):
        await producer.partitions_for("t")
        held, gate = anyio.Event(), anyio.Event()

        async def hold(request: produce.ProduceRequest) -> bool | None:
            held.set()
            await gate.wait()
            return None

        cluster.node.on_request = hold
        script = cluster.node.on_partition = Script(ErrorCode.MESSAGE_TOO_LARGE)
        large = [producer.submit_nowait("t", b"large") for _ in range(2)]
        await held.wait()
        for delivery in large:
            with pytest.raises(DeliveryFailed):
                await delivery
        assert producer.buffered, "its bytes may still be in flight"
        gate.set()
        with anyio.fail_after(5):
            while producer.buffered:
                await anyio.lowlevel.checkpoint()
        await producer.send("t", b"after")
        assert cluster.values() == [b"after"]
        assert len(script.data) == 2, "the next batch has no gap before it"


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_an_error_names_the_throttle_that_delayed_a_batch_beyond_its_deadline(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, linger_ms=0, delivery_timeout_ms=100) as producer,
    ):
        cluster.node.throttle_time_ms = 60_000
        await producer.send("t", b"throttles what follows")
        with pytest.raises(DeliveryFailed, match=r"waiting to be sent, throttled by broker 1 for another 59\d\d\d ms"):
            await producer.send("t", b"x")
        assert len(cluster.node.requests) == 1


async def test_an_error_names_the_stage_in_which_the_deadline_ended(quick: Quick) -> None:
    async with scripted_cluster(2) as cluster:
        cluster.leaders |= {"leaderless": [-1], "mute": [2]}
        cluster.nodes[2].on_request = hang
        async with Producer(cluster.bootstrap_servers, **quick, linger_ms=0, delivery_timeout_ms=150) as producer:
            cluster.node.on_partition = lambda tp, data: int(ErrorCode.NOT_ENOUGH_REPLICAS)
            stuck = producer.submit_nowait("t", b"0")
            mute = producer.submit_nowait("mute", b"1")
            leaderless = producer.submit_nowait("leaderless", b"2")
            unknown = producer.submit_nowait("unknown", b"3")
            for delivery, topic, stage in [
                (mute, "mute", "in flight"),
                (stuck, "t", "retrying or in flight"),
                (leaderless, "leaderless", "metadata"),
                (unknown, "unknown", "metadata"),
            ]:
                with pytest.raises(DeliveryFailed) as caught:
                    await delivery
                error = caught.value
                assert error.topic == topic
                assert error.stage in stage
                assert 0.14 <= error.elapsed < 10
                assert topic in str(error)
                assert f"{error.elapsed:.3f} s" in str(error)
                last = {"t": "NOT_ENOUGH_REPLICAS", "unknown": "UNKNOWN_TOPIC"}.get(topic)
                assert (error.last_error is None) if last is None else last in f"{error} {error.last_error}"
            await producer.close(timeout=0)


async def test_the_error_of_a_batch_whose_node_is_gone_has_the_connections_last_error(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, delivery_timeout_ms=200) as producer,
    ):
        await producer.send("t", b"a")
        cluster.node.stop()
        delivery = producer.submit_nowait("t", b"b")
        with pytest.raises(DeliveryFailed, match=r"(waiting to be sent|retrying): .*127\.0\.0\.1") as caught:
            await delivery
        assert isinstance(caught.value.last_error, ConnectionFailed)


# --- throttling -------------------------------------------------------------------------------------------------------


async def test_a_throttled_producer_sends_nothing_during_the_throttle(quick: Quick) -> None:
    """A broker mutes the connection for that time: an earlier request would only wait there."""
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, linger_ms=0) as producer,
    ):
        await producer.partitions_for("t")
        cluster.node.throttle_time_ms = 300
        await producer.send("t", b"a")
        throttled = anyio.current_time()
        cluster.node.throttle_time_ms = 0
        deliveries = [producer.submit_nowait("t", b"b")]
        await anyio.lowlevel.checkpoint()
        deliveries.append(producer.submit_nowait("t", b"c"))
        for delivery in deliveries:
            await delivery
        assert 0.28 <= anyio.current_time() - throttled < 10
        assert len(cluster.node.requests) <= 3
        assert cluster.values() == [b"a", b"b", b"c"]


# --- topic ids --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("newest", "named"), [(12, True), (13, False)])
async def test_from_version_13_on_topics_are_identified_by_id(newest: int, named: bool, quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.ranges[ApiKey.PRODUCE] = (0, newest)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            assert (await producer.send("t", b"a")).topic == "t"
        ((header, request),) = cluster.node.requests
        assert header.api_version == newest
        (data,) = request.topic_data
        assert (data.name, data.topic_id) == (("t", ZERO_UUID) if named else ("", TOPIC_ID))


# --- failures that are not awaited ------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    gc.collect()
    return [record.getMessage() for record in caplog.records if record.name == "aiokwire.producer"]


async def test_the_records_of_a_batch_that_are_not_awaited_are_logged_though_others_are_awaited(
    quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async with Producer(cluster.bootstrap_servers, **quick, linger_ms=5) as producer:
            await producer.partitions_for("t")
            first, *others = [producer.submit_nowait("t", b"x", b"k%d" % number) for number in range(4)]
            for _ in range(2):  # two awaits count one record
                with pytest.raises(AuthorizationError):
                    await first
            assert logged(caplog) == []
            del others
            del first
            (message,) = logged(caplog)
            assert message.startswith("3 of 4 record(s) for t[0], the first with key b'k0' were not delivered")
            assert "TOPIC_AUTHORIZATION_FAILED" in message
            caplog.clear()
            all_of_them = [producer.submit_nowait("t", b"x") for _ in range(3)]
            for delivery in all_of_them:
                with pytest.raises(AuthorizationError):
                    await delivery
            del all_of_them, delivery
            assert (await producer.send_many("t", [b"x"] * 3)).failed == 3
            assert logged(caplog) == []


async def test_a_send_that_was_cancelled_before_its_record_failed_is_logged(
    quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        await producer.partitions_for("t")
        gate = anyio.Event()

        async def refuse_later(request: produce.ProduceRequest) -> bool | None:
            await gate.wait()
            return None

        cluster.node.on_request = refuse_later
        cluster.node.on_partition = Script(ErrorCode.INVALID_RECORD)
        with anyio.move_on_after(0.01):
            await producer.send("t", b"x", b"key")
        gate.set()
        await producer.flush(timeout=5)
        (message,) = logged(caplog)
        assert message.startswith("1 record(s) for t[0], the first with key b'key' were not delivered")


async def test_28_a_bulk_call_reports_which_records_were_rejected_and_which_allow_a_retry(quick: Quick) -> None:
    """Scenario 28, for `send_many`: by their indexes in the call."""
    culprit = produce.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
    answer = Answer(error_code=ErrorCode.INVALID_RECORD, base_offset=-1, record_errors=[culprit])
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        cluster.node.on_partition = Script(answer)
        result = await producer.send_many("t", [b"0", b"1", b"2", b"3"])
        assert [(first, last, type(error)) for first, last, error in result.failures] == [
            (0, 0, RetriableError),
            (1, 1, RecordRejected),
            (2, 3, RetriableError),
        ]
        with pytest.raises(RetriableError, match="number 1: no key"):
            result.raise_for_errors()
        again = await producer.send_many("t", [b"0", b"2", b"3"])
        assert (again.failures, cluster.values()) == ([], [b"0", b"2", b"3"])
