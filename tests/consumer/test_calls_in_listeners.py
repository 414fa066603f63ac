"""The calls that a rebalance listener may and may not make on its consumer, in both protocols."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import assigned, fill, member, t

__all__ = ["kafka_broker"]

Reader = Consumer[bytes, bytes]
ONE = TopicPartition("t", 0)

pytestmark = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {
        "topics": {"t": 2, "u": 1},
        "auto_create_topics": False,
        "group_consumer_heartbeat_interval_ms": 20,
        "group_consumer_min_heartbeat_interval_ms": 20,
    }


class Calls(RebalanceListener):
    """A listener that makes one call, when partitions are assigned or revoked."""

    def __init__(self, call: Callable[[], Awaitable[object]], when: str) -> None:
        self.raised: list[Exception] = []
        self.done = anyio.Event()
        self._call = call
        self._when = when

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        await self._now("assigned")

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        await self._now("revoked")

    async def _now(self, when: str) -> None:
        if when != self._when or self.done.is_set():
            return
        try:
            await self._call()
        except Exception as error:
            self.raised.append(error)
            raise
        finally:
            self.done.set()


async def test_pause_seek_position_commit_and_resume_work(kafka_broker: Broker, protocol: str) -> None:
    await fill(kafka_broker, 2)

    async def call() -> None:
        assert await reader.position(ONE) == 0
        reader.pause(ONE)
        reader.seek(ONE, 4)
        await reader.commit({ONE: 4})
        reader.resume(ONE)

    listener = Calls(call, "assigned")
    async with member(kafka_broker, listener=listener, group_protocol=protocol) as reader:
        offsets = {record.offset for record in [await reader.getone(timeout=5) for _ in range(16)]}
        assert offsets == set(range(10))
        assert (await reader.committed(ONE))[ONE] is not None
    assert not listener.raised


async def test_subscribe_in_a_listener_joins_with_the_new_topics(kafka_broker: Broker, protocol: str) -> None:
    await fill(kafka_broker, 1, topic="u")

    async def call() -> None:
        await reader.subscribe("u", listener=listener)

    listener = Calls(call, "assigned")
    async with member(kafka_broker, listener=listener, group_protocol=protocol) as reader:
        assert [(await reader.getone(timeout=5)).topic for _ in range(10)] == ["u"] * 10
        assert reader.assignment == {TopicPartition("u", 0)}
    assert not listener.raised


CALLS: dict[str, Callable[[Reader], Awaitable[object]]] = {
    "assign": lambda reader: reader.assign([ONE]),
    "close": lambda reader: reader.close(),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_would_end_the_membership_raises_at_once_and_the_consumer_continues(
    kafka_broker: Broker, protocol: str, name: str
) -> None:
    """Regression: call and listener waited for each other, and no record was ever returned."""
    await fill(kafka_broker, 2)
    listener = Calls(lambda: CALLS[name](reader), "assigned")
    async with member(kafka_broker, listener=listener, group_protocol=protocol) as reader:
        with pytest.raises(KafkaError, match=rf"Calls.assigned failed.*{name}\(\).*another task"):
            await reader.getone(timeout=5)
        assert [type(error) for error in listener.raised] == [InvalidArgument]
        for _ in range(20):
            await reader.getone(timeout=5)
        assert reader.assignment == t(0, 1)


@pytest.mark.parametrize("name", CALLS)
async def test_the_same_call_during_close_does_not_disturb_the_close(
    kafka_broker: Broker, protocol: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: the client of a member of the consumer protocol failed."""
    listener = Calls(lambda: CALLS[name](reader), "revoked")
    async with member(kafka_broker, listener=listener, group_protocol=protocol) as reader:
        await assigned(reader, 0, 1)
    assert [type(error) for error in listener.raised] == [InvalidArgument]
    assert "client failed" not in caplog.text
    if protocol == "classic":
        assert kafka_broker.faults.group("g").state == "Empty"


async def test_a_task_started_by_the_listener_can_close_the_consumer(kafka_broker: Broker, protocol: str) -> None:
    async def call() -> None:
        tasks.start_soon(reader.close)

    listener = Calls(call, "assigned")
    async with anyio.create_task_group() as tasks:
        reader = member(kafka_broker, listener=listener, group_protocol=protocol)
        await reader.start()
        assert [record async for record in reader] == []
    assert not listener.raised
