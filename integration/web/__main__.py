"""`python -m integration.web --minutes 30`: both applications for long, and their memory."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import anyio
import uvloop

from integration.embedded import at_full_speed
from integration.kafka import KafkaServer
from integration.postgres import PostgresServer
from integration.web.applications import Application, Clicks, Orders

SAMPLES = 20


async def run(server: KafkaServer, database: PostgresServer, minutes: float, rate: float) -> list[str]:
    """Run both applications; print their memory; return what is wrong."""
    with tempfile.TemporaryDirectory(prefix="aiokwire-web-") as folder:
        orders = Orders(server, Path(folder), database, rate=rate)
        clicks = Clicks(server, Path(folder), services=1, rate=rate)
        applications: list[Application] = [orders, clicks]
        async with AsyncExitStack() as stack:
            for each in applications:
                await stack.enter_async_context(each.running())
            await disturb(applications)
            print("seconds  orders: web, web, worker, worker; clicks: web, worker, worker (MiB)", flush=True)
            began = time.perf_counter()
            for number in range(SAMPLES + 1):
                await anyio.sleep(max(0.0, began + number * minutes * 60 / SAMPLES - time.perf_counter()))
                print_memory(time.perf_counter() - began, applications)
            wrong = [f"{each.name}: {text}" for each in applications for text in await each.finish()]
        for each in applications:
            load = each.load
            print(f"{each.name}: {len(load.accepted):,} accepted, {load.refused:,} refused, {load.unknown} no response")
        return wrong


async def disturb(applications: list[Application]) -> None:
    """Restart and kill everything once, so that the memory is measured after it."""
    for each in applications:
        for process in each.processes:
            await each.restart(process)
    await applications[0].kill(applications[0].web[0])
    print("readiness without the broker:", await applications[0].interrupt_broker())
    for each in applications:
        await each.web[0].until_ready()


def print_memory(seconds: float, applications: list[Application]) -> None:
    """Print one line of the table."""
    memory = [f"{process.memory_mib:7.1f}" for each in applications for process in each.processes]
    print(f"{seconds:7.0f} {' '.join(memory)}", flush=True)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m integration.web", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=50.0, help="requests per second of each application")
    given = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(at_full_speed(given.broker))
        database = stack.enter_context(PostgresServer())
        wrong = uvloop.run(run(server, database, given.minutes, given.rate))
    for each in wrong:
        print(f"WRONG: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
