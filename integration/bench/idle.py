"""The cost of an idle consumer: wake-ups of its loop and CPU time, as a table.

    python -m integration.bench.idle [seconds [word in the names of cases]]

Each case runs in its own process, and its embedded broker in another. A wake-up is the end of a
sleep: the kernel's count of voluntary context switches of all threads. Turns are counted in every
event loop, including turns that did not sleep and those of the heartbeat thread. The limits: 1% of
a core, and 20 wake-ups per second.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import multiprocessing.connection
import os
import selectors
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer

PARTITIONS: Final = 4
SETTLE: Final = 4.0  # seconds until a case is stable
MOST_CPU: Final = 1.0  # percent
MOST_WAKE_UPS: Final = 20.0  # per second


class Turns:
    """Counts the turns of all event loops created after it."""

    def __init__(self) -> None:
        self.count = 0
        select = selectors.DefaultSelector.select
        turns = self

        def counted(selector: Any, timeout: float | None = None) -> Any:
            turns.count += 1
            return select(selector, timeout)

        selectors.DefaultSelector.select = counted  # type: ignore[assignment, method-assign]  # only this process is measured


class Cost(NamedTuple):
    """The cost of one case."""

    wake_ups: float  # per second
    turns: float  # per second
    cpu: float  # percent of a core


NEVER: Final = Cost(float("inf"), float("inf"), float("inf"))  # the case did not reach its state


async def measure(turns: Turns, seconds: float) -> Cost:
    """Measure the cost of the next seconds."""
    await anyio.sleep(SETTLE)
    began, cpu, count, slept = anyio.current_time(), time.process_time(), turns.count, sleeps()
    await anyio.sleep(seconds)
    took = anyio.current_time() - began
    used = 100 * (time.process_time() - cpu) / took
    return Cost((sleeps() - slept) / took, (turns.count - count) / took, used)


def sleeps() -> int:
    """Return the number of times that threads of this process have slept."""
    return sum(
        int(line.split()[1])
        for status in Path("/proc/self/task").glob("*/status")
        for line in status.read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )


Stop = Callable[[], Awaitable[None]]


async def waiting(reader: Consumer[Any, Any], turns: Turns, seconds: float) -> Cost:
    """Measure while the application waits for a record."""

    async def read() -> None:
        async for _ in reader:
            raise AssertionError("a record was read from an empty topic")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        cost = await measure(turns, seconds)
        tasks.cancel_scope.cancel()
    return cost


async def member(servers: str, turns: Turns, seconds: float, stop: Stop, **options: Any) -> Cost:
    async with Consumer("idle", bootstrap_servers=servers, group_id="idle", **options) as reader:
        return await waiting(reader, turns, seconds)


async def consumer_protocol_member(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    return await member(servers, turns, seconds, stop, group_protocol="consumer")


async def without_group(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    async with Consumer("idle", bootstrap_servers=servers) as reader:
        return await waiting(reader, turns, seconds)


async def unassigned(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    """A consumer without partitions."""
    async with Consumer(bootstrap_servers=servers) as reader:
        return await measure(turns, seconds) if not reader.assignment else NEVER


async def spare_member(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    """A member without partitions: a member in the broker's process owns the only one."""
    async with Consumer("one", bootstrap_servers=servers, group_id="spare") as spare:
        cost = await waiting(spare, turns, seconds)
        return NEVER if spare.assignment else cost


async def all_down(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    """A member whose brokers are all down."""
    async with Consumer("idle", bootstrap_servers=servers, group_id="down") as reader:
        await anyio.sleep(SETTLE)
        assert reader.assignment
        await stop()
        return await waiting(reader, turns, seconds)


async def all_down_without_group(servers: str, turns: Turns, seconds: float, stop: Stop) -> Cost:
    async with Consumer("idle", bootstrap_servers=servers) as reader:
        await stop()
        return await waiting(reader, turns, seconds)


CASES: Final = {
    "idle member (classic)": member,
    "idle member (KIP-848)": consumer_protocol_member,
    "idle, no group": without_group,
    "nothing assigned": unassigned,
    "member without a partition": spare_member,
    "every broker down, member": all_down,
    "every broker down, no group": all_down_without_group,
}


def serve(pipe: multiprocessing.connection.Connection) -> None:
    """Run the broker's process."""

    async def main() -> None:
        async with (
            Broker(topics={"idle": PARTITIONS, "one": 1}) as broker,
            Consumer("one", bootstrap_servers=broker.bootstrap_servers, group_id="spare") as member,
        ):
            while not member.assignment:  # noqa: ASYNC110 - a listener would be longer
                await anyio.sleep(0.05)
            pipe.send(broker.bootstrap_servers)
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(main())


def run_case(name: str, seconds: float, results: multiprocessing.connection.Connection) -> None:
    """Run a case with its own broker."""
    logging.disable(logging.CRITICAL)
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    broker = context.Process(target=serve, args=(theirs,), daemon=True)
    broker.start()
    servers = ours.recv()

    async def stop() -> None:
        broker.kill()
        await asyncio.get_running_loop().run_in_executor(None, broker.join)

    turns = Turns()
    try:
        results.send(asyncio.run(CASES[name](servers, turns, seconds, stop)))
    finally:
        broker.kill()
        broker.join()


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    print(f"{seconds:.0f} s each, load {os.getloadavg()[0]:.1f}")
    print(f"{'':30} {'wake-ups/s':>10} {'turns/s':>7} {'CPU %':>7}")
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    bad = 0
    for name in (each for each in CASES if wanted in each):
        ours, theirs = multiprocessing.Pipe()
        case = multiprocessing.get_context("spawn").Process(target=run_case, args=(name, seconds, theirs))
        case.start()
        theirs.close()
        cost: Cost = ours.recv()
        case.join()
        over = cost.cpu >= MOST_CPU or cost.wake_ups >= MOST_WAKE_UPS
        bad += over
        figures = f"{cost.wake_ups:10.1f} {cost.turns:7.1f} {cost.cpu:7.2f}"
        print(f"{name:30} {figures}{'   over the limit' if over else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
