"""Workers of the tests: they retry quickly, and what they did can be awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import anyio

from aiokwire import Consumer, Context, OffsetAndMetadata, Producer, RetryPolicy, TopicPartition, Worker
from aiokwire.broker import Broker
from aiokwire.worker.completed_offsets import OffsetRange
from aiokwire.worker.offset_metadata import decode_ranges

ORDERS: Final = (TopicPartition("orders", 0), TopicPartition("orders", 1))
QUICK: Final[dict[str, Any]] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "fetch_max_wait_ms": 30,
    "heartbeat_interval_ms": 10,
    "session_timeout_ms": 6000,
    "unknown_topic_timeout_ms": 100,
    "linger_ms": 0,
    "commit_interval_ms": 5,
}
READING: Final[dict[str, Any]] = {"fetch_max_wait_ms": 10, "metadata_min_interval_ms": 1}
AT_ONCE: Final = RetryPolicy(attempts=3, backoff=0.001, backoff_max=0.002)


def new_worker(broker: Broker, **options: Any) -> Worker:
    """A worker of group "billing"."""
    return Worker(broker.bootstrap_servers, **{"group_id": "billing", "retry": AT_ONCE, **QUICK, **options})


async def fill(broker: Broker, *values: str, partition: int = 0, topic: str = "orders") -> None:
    """Write records; "a:1" has the key a and the value 1."""
    async with Producer(broker.bootstrap_servers, linger_ms=0) as producer:
        for value in values:
            key, _, content = value.partition(":")
            await producer.send(topic, content.encode(), key=key.encode() or None, partition=partition)


async def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    """Let the loop turn until `condition` is true."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def committed(broker: Broker, partition: int = 0) -> OffsetAndMetadata:
    """Return what the group has committed."""
    async with Consumer(partitions=[], bootstrap_servers=broker.bootstrap_servers, group_id="billing") as reader:
        found = (await reader.committed(ORDERS[partition]))[ORDERS[partition]]
    return found or OffsetAndMetadata(-1)


async def until_committed(broker: Broker, offset: int, *ranges: tuple[int, int], partition: int = 0) -> None:
    """Wait until the group has committed an offset, with exactly these ranges beyond it."""
    wanted = [OffsetRange(*each) for each in ranges]
    with anyio.fail_after(15):
        while True:
            found = await committed(broker, partition)
            if found.offset == offset and decode_ranges(offset, found.metadata) == wanted:
                return
            await anyio.lowlevel.checkpoint()


def values(broker: Broker, topic: str) -> list[str]:
    """Return the values of all records of a topic, those of aborted transactions included."""
    return [(record.value or b"").decode() for record in broker.records(topic)]


async def visible(broker: Broker, topic: str) -> list[str]:
    """Return the values of a topic that readers of committed records see, once its transactions
    have ended."""
    place = TopicPartition(topic, 0)
    found: list[str] = []
    async with Consumer(
        partitions=[place], bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", **READING
    ) as reader:
        end = (await reader.watermarks(place)).high
        with anyio.fail_after(15):
            while await reader.position(place) < end:
                found += [(record.value or b"").decode() for record in await reader.getmany(timeout=0.01)]
    return found


class Handled:
    """A handler that keeps the values it was called with; `hold(value)` makes it wait for one."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.finished: list[str] = []
        self.attempts: list[tuple[str, int]] = []
        self._held: dict[str, anyio.Event] = {}
        self._errors: dict[str, list[BaseException]] = {}

    def hold(self, *held: str) -> None:
        """Wait in the calls with these values until `release`."""
        for value in held:
            self._held[value] = anyio.Event()

    def release(self, *released: str) -> None:
        for value in released:
            self._held.pop(value).set()

    def fail(self, value: str, *errors: BaseException) -> None:
        """Raise these in the first calls with a value."""
        self._errors[value] = list(errors)

    async def __call__(self, value: str, context: Context) -> None:
        self.started.append(value)
        self.attempts.append((value, context.attempt))
        if value in self._held:
            await self._held[value].wait()
        if self._errors.get(value):
            raise self._errors[value].pop(0)
        self.finished.append(value)
