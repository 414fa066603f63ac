"""A producer's hooks: their arguments, their exceptions, and no cost without them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import DeliveryFailed, KafkaError, RecordRejected
from aiokwire.hooks import Hooks
from aiokwire.producer import Producer
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.types import Headers
from tests.producer.conftest import Script, scripted_cluster

Quick = dict[str, Any]


class Diary(Hooks):
    """Records all calls."""

    def __init__(self) -> None:
        self.entries: list[tuple[Any, ...]] = []

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        self.entries.append(("send", topic, partition, key, value, headers))
        return None if headers else [("trace", b"1")]

    def on_batch_sealed(self, topic: str, partition: int, count: int, size: int) -> None:
        assert size > 0
        self.entries.append(("sealed", topic, partition, count))

    def on_produce_request(self, node_id: int, batches: int, count: int) -> None:
        self.entries.append(("request", node_id, batches, count))

    def on_delivered(self, topic: str, partition: int, base_offset: int, count: int) -> None:
        self.entries.append(("delivered", topic, partition, base_offset, count))

    def on_delivery_failed(self, topic: str, partition: int, count: int, error: Exception) -> None:
        self.entries.append(("failed", topic, partition, count, type(error)))


class Faulty(Hooks):
    """Raises in every hook."""

    def on_send(self, *record: Any) -> Headers | None:
        raise ValueError("on_send")

    def on_batch_sealed(self, *what: Any) -> None:
        raise ValueError("on_batch_sealed")

    def on_produce_request(self, *what: Any) -> None:
        raise ValueError("on_produce_request")

    def on_delivered(self, *what: Any) -> None:
        raise ValueError("on_delivered")

    def on_delivery_failed(self, *what: Any) -> None:
        raise ValueError("on_delivery_failed")


class OnlyConnections(Hooks):
    """Overrides no hook of a producer."""

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        return None


async def test_a_record_is_followed_from_the_call_to_the_acknowledgement(quick: Quick) -> None:
    diary = Diary()
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, hooks=diary, **quick) as producer,
    ):
        await producer.partitions_for("t")
        await producer.send("t", b"v", b"k", headers=[("own", b"h")])
        assert diary.entries == [
            ("send", "t", None, b"k", b"v", [("own", b"h")]),
            ("sealed", "t", 0, 1),
            ("request", 1, 1, 1),
            ("delivered", "t", 0, 0, 1),
        ]


async def test_a_hook_may_change_the_headers_in_every_way_of_sending(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        script = cluster.node.on_partition = Script()
        async with Producer(cluster.bootstrap_servers, hooks=Diary(), **quick) as producer:
            await producer.send("t", b"1")
            await (await producer.submit("t", b"2"))
            await producer.submit_nowait("t", b"3")
            await producer.send_many("t", [b"4"])
        assert cluster.values() == [b"1", b"2", b"3", b"4"]
        assert sum(data.count(b"trace") for data in script.data) == 4


async def test_every_kind_of_failure_is_reported_once(quick: Quick) -> None:
    diary = Diary()
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(ErrorCode.INVALID_RECORD)
        async with Producer(cluster.bootstrap_servers, hooks=diary, **quick) as producer:
            unplaced = producer.submit_nowait("t", b"x", partition=7)
            with pytest.raises(KafkaError, match="does not exist"):
                await unplaced
            with pytest.raises(RecordRejected):
                await producer.send("t", b"x")
            purged = producer.submit_nowait("t", b"x")
            assert producer.purge() == 1
            with pytest.raises(DeliveryFailed):
                await purged
    failed = [entry for entry in diary.entries if entry[0] == "failed"]
    assert [entry[2:4] for entry in failed] == [(-1, 1), (0, 1), (0, 1)]
    assert failed[1][4] is RecordRejected
    assert failed[2][4] is DeliveryFailed


async def test_a_deadline_that_ends_in_flight_is_reported_once(quick: Quick) -> None:
    diary = Diary()
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.NOT_ENOUGH_REPLICAS)
        async with Producer(cluster.bootstrap_servers, hooks=diary, **quick, delivery_timeout_ms=100) as producer:
            with pytest.raises(DeliveryFailed):
                await producer.send("t", b"x")
    assert [entry[0] for entry in diary.entries].count("failed") == 1
    assert [entry[0] for entry in diary.entries].count("request") > 1


async def test_an_exception_of_a_hook_is_logged_and_affects_no_record(
    quick: Quick, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, hooks=Faulty(), **quick) as producer:
            assert (await producer.send("t", b"x", headers=[("h", b"")])).offset == 0
            producer.submit_nowait("t", b"x")
            producer.purge()
            assert (await producer.send("t", b"y")).offset == 1
        assert cluster.values() == [b"x", b"y"]
    for name in ("on_send", "on_batch_sealed", "on_produce_request", "on_delivered", "on_delivery_failed"):
        assert f"hook {name} of" in caplog.text
    assert all(record.levelno == logging.ERROR for record in caplog.records if "hook" in record.getMessage())


@pytest.mark.parametrize("hooks", [None, Hooks(), OnlyConnections()], ids=["none", "plain", "of connections"])
def test_without_a_producers_hook_the_compiled_methods_stay(hooks: Hooks | None) -> None:
    producer = Producer("localhost:9092", hooks=hooks)
    assert "submit" in vars(producer)
    assert ProducerHooks.per_batch(hooks) is None
    assert ProducerHooks.per_record(hooks) is None
    assert "submit" not in vars(Producer("localhost:9092", hooks=Diary()))
