"""A service with all kinds of clients: `python -m integration.monitoring.service BOOTSTRAP`.

Its producer sends orders and too large records, a second one is throttled, and a handler of its
worker fails now and then. The first line of its output is the address of its metrics.
"""

from __future__ import annotations

import contextlib
import sys

import anyio
from prometheus_client import CollectorRegistry, start_http_server

import aiokwire
from aiokwire.errors import KafkaError
from aiokwire.telemetry import KafkaCollector
from aiokwire.worker import Context, RetryPolicy, Worker

PAUSE = 0.02  # seconds
TOO_LARGE = bytes(3_000)


async def main(servers: str) -> None:
    worker = Worker(servers, client_id="billing", group_id="billing", auto_offset_reset="earliest")

    @worker.handler("orders", retry=RetryPolicy(attempts=3, backoff=0.01))
    async def bill(value: bytes, context: Context) -> None:
        if value.endswith(b"7") and context.attempt == 1:
            raise ValueError("the tax service is down")

    producer = aiokwire.Producer(servers, client_id="orders-out")
    throttled = aiokwire.Producer(servers, client_id="throttled")
    registry = CollectorRegistry()
    registry.register(KafkaCollector(producer, throttled, worker))
    server, _ = start_http_server(0, "127.0.0.1", registry)
    async with producer, throttled, worker:
        print(f"127.0.0.1:{server.server_port}", flush=True)
        number = 0
        while True:
            number += 1
            await producer.send("orders", str(number).encode())
            if number % 50 == 0:
                await throttled.send("bulk", bytes(5_000))
                with contextlib.suppress(KafkaError):
                    await producer.send("small", TOO_LARGE)
            await anyio.sleep(PAUSE)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
