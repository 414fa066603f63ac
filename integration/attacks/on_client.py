"""Attacks of a hostile broker on the clients."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from aiokwire import Admin, Client, Consumer, KafkaError, Producer, TopicPartition
from integration.attacks.figures import Figure, Meter, faults
from integration.attacks.hostile import Hostile, hostile_broker
from integration.attacks.on_broker import UNPRINTABLE

_SCHEDULE = Path("/proc/thread-self/schedstat")  # ns on a processor, ns of waiting for one, time slices
BLOCKED = 20.0  # ms for which the loop may stand still
_QUICK: dict[str, Any] = {"bootstrap_timeout_ms": 4000, "default_api_timeout_ms": 4000, "request_timeout_ms": 3000}


class Turns:
    """The longest turn of the event loop.

    By the clock, without the time in which the thread of the loop waited for a processor; but
    no more than the processor time of all threads, which may hold the interpreter's lock.
    """

    def __init__(self) -> None:
        """On the thread of the loop."""
        self._scope = anyio.CancelScope()
        self._schedule = os.open(_SCHEDULE, os.O_RDONLY)
        self.longest = 0.0

    async def watch(self) -> None:
        """Run until `stop`."""
        try:
            with self._scope:
                last = self._now()
                while True:
                    await anyio.sleep(0.001)
                    now = self._now()
                    self.longest = max(self.longest, min(now[0] - last[0], now[1] - last[1]))
                    last = now
        finally:
            os.close(self._schedule)

    def _now(self) -> tuple[float, float]:
        # One system call: each gives up the interpreter's lock, and may wait 5 ms to get it back.
        waited = int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9
        return time.perf_counter() - waited, time.process_time()

    def stop(self) -> None:
        self._scope.cancel()

    @property
    def figure(self) -> Figure:
        return Figure("loop blocked", self.longest * 1000, BLOCKED, " ms")


@contextmanager
def _log() -> Iterator[io.StringIO]:
    """Collect the log of the package."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logger = logging.getLogger("aiokwire")
    logger.addHandler(handler)
    try:
        yield text
    finally:
        logger.removeHandler(handler)


async def _connect(broker: Hostile) -> str:
    """Start a client and close it; return its error, if any."""
    try:
        with anyio.fail_after(20):
            async with Client(broker.address, **_QUICK):
                return ""
    except (KafkaError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"


async def huge_metadata(kind: str, most_mib: float) -> list[Figure]:
    """V13: Metadata of 1.5 million topics, of 900,000, of 200,000 brokers, and of 10,000."""
    with hostile_broker(kind) as broker:
        await _connect_once_to_warm_up()
        meter, turns = Meter(os.getpid()), Turns()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turns.watch)
            await _connect(broker)
            turns.stop()
    return [turns.figure, meter.cpu(10), meter.peak(most_mib)]


async def all_topics() -> list[Figure]:
    """V13e: 900,000 topics that the client follows, requested twice.

    A dict of that many topics grows and is released as a whole, hence the bar.
    """
    with hostile_broker("many-topics") as broker:
        await _connect_once_to_warm_up()
        meter, turns = Meter(os.getpid()), Turns()
        async with anyio.create_task_group() as tasks, Client(broker.address) as client:
            tasks.start_soon(turns.watch)
            client.metadata.want_all()
            for _ in range(2):
                await client.metadata.update(60)
            known = len(client.cluster.topics)
            turns.stop()
    blocked = turns.figure._replace(bar=5 * BLOCKED)
    return [blocked, meter.cpu(30), meter.peak(800), faults("topics missing", 900_000 - known)]


async def _connect_once_to_warm_up() -> None:
    with hostile_broker("honest") as broker:
        await _connect(broker)


async def many_records() -> list[Figure]:
    """V7: 10.5 million records in a batch of 6 kB."""
    with hostile_broker("records") as broker:
        await _connect_once_to_warm_up()
        meter, turns = Meter(os.getpid()), Turns()
        partition = TopicPartition("t", 0)
        reader = Consumer(partitions=[partition], bootstrap_servers=broker.address, auto_offset_reset="earliest")
        async with reader, anyio.create_task_group() as tasks:
            tasks.start_soon(turns.watch)
            with anyio.fail_after(30):
                for _ in range(5000):
                    await reader.getone()
            turns.stop()
    return [turns.figure, meter.cpu(3), meter.peak(200)]


async def names() -> list[Figure]:
    """V10: an advertised host with escape sequences and a forged line."""
    with hostile_broker("names") as broker, _log() as log:
        error = ""
        try:
            async with Producer(broker.address, **_QUICK, delivery_timeout_ms=4000) as producer:
                await producer.send("t", b"x")
        except KafkaError as failure:
            error = str(failure)
    text = f"{log.getvalue()}\n{error}"
    return [faults("control characters", len(UNPRINTABLE.findall(text)) + text.count("\nFAKE"))]


async def no_producer_id() -> list[Figure]:
    """V11: InitProducerId without an error and with the producer id -1, for 6 s."""
    with hostile_broker("producer-id") as broker:
        meter = Meter(os.getpid())
        with contextlib.suppress(KafkaError):
            async with Producer(
                broker.address, bootstrap_timeout_ms=4000, request_timeout_ms=3000, delivery_timeout_ms=6000
            ) as producer:
                await producer.send("t", b"x")
        return [Figure("requests", broker.asked(), 200), meter.cpu(1)]


async def throttle() -> list[Figure]:
    """V12: a throttle of 24.8 days; the call ends by its timeout and names the throttle."""
    with hostile_broker("throttle") as broker:
        began, error = anyio.current_time(), ""
        try:
            async with Admin(broker.address, **_QUICK) as admin:
                await admin.describe_topics(["t"])
        except KafkaError as failure:
            error = str(failure)
        seconds = anyio.current_time() - began
    return [Figure("ends after", seconds, 10, " s"), faults("unnamed", "throttle" not in error)]


async def many_versions() -> list[Figure]:
    """An ApiVersions response of 33 MiB."""
    with hostile_broker("versions") as broker:
        await _connect_once_to_warm_up()
        meter, turns = Meter(os.getpid()), Turns()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turns.watch)
            error = await _connect(broker)
            turns.stop()
    return [turns.figure, meter.cpu(2), meter.peak(100), faults("no error", not error)]


async def hang_up() -> list[Figure]:
    """V17: a port that responds to ApiVersions and hangs up, as one that requires SASL."""
    with hostile_broker("hang-up") as broker:
        error = await _connect(broker)
    return [faults("no hint", "sasl_mechanism" not in error)]


ATTACKS: dict[str, Callable[[], Coroutine[Any, Any, list[Figure]]]] = {
    "V7": many_records,
    "V10": names,
    "V11": no_producer_id,
    "V12": throttle,
    "V13": lambda: huge_metadata("topics", 100),
    "V13b": lambda: huge_metadata("many-topics", 350),
    "V13c": lambda: huge_metadata("brokers", 150),
    "V13d": many_versions,
    "V13e": all_topics,
    "V13f": lambda: huge_metadata("many-brokers", 150),
    "V17": hang_up,
}
