"""Workers in virtual time: pauses, delays and rates take no time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from aiokwire import Context, Producer, Worker
from aiokwire.broker import Broker
from aiokwire.worker import Origin
from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network
from tests.simulation.world import BOOTSTRAP, BrokerHost, at_host


def simulate(main: Callable[[Broker], Awaitable[None]], *, seed: int = 1, partitions: int = 1) -> None:
    """Run with a broker that has the topic "t"."""
    loop = SimLoop(seed)

    async def body() -> None:
        host = BrokerHost(loop, Network(loop), partitions=partitions, configs={})
        await host.start()
        with at_host("10.0.1.1"):
            await main(host.broker)
        await host.stop()
        assert not loop.faults

    run(loop, body())


def sim_worker(**options: Any) -> Worker:
    """A worker of group "billing"."""
    return Worker(BOOTSTRAP, **{"group_id": "billing", "order": "partition", **options})


def sim_producer() -> Producer[bytes, bytes]:
    return Producer(BOOTSTRAP)


async def send(*sent: str, topic: str = "t") -> None:
    """Write values to a topic."""
    async with sim_producer() as producer:
        await producer.send_many(topic, [value.encode() for value in sent])


class Timed:
    """A handler that notes when it was called, and raises what `fail` returns."""

    def __init__(self, fail: Callable[[str, int], Exception | bool | None] = lambda *_: None) -> None:
        self.calls: list[tuple[float, str, int, Origin]] = []
        self.finished: list[str] = []
        self._fail = fail
        self._called = anyio.Event()

    async def __call__(self, value: str, context: Context) -> None:
        self.calls.append((anyio.current_time(), value, context.attempt, context.origin))
        self._called.set()
        error = self._fail(value, context.attempt)
        if error:
            raise error if isinstance(error, Exception) else ValueError(f"{value} failed")
        self.finished.append(value)

    async def until(self, count: int) -> None:
        """Wait for a number of calls."""
        with anyio.fail_after(20_000):
            while len(self.calls) < count:
                self._called = anyio.Event()
                await self._called.wait()

    def times(self, value: str | None = None) -> list[float]:
        """Return when a value, or any, was handled, relative to its first attempt."""
        found = [at for at, handled, *_ in self.calls if value in (None, handled)]
        return [at - found[0] for at in found]
