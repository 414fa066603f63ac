"""A broker in another thread, for tests that block the loop of a client."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import anyio

from aiokwire.broker import Broker

TIMEOUT = 10.0


@contextlib.contextmanager
def broker_aside(**options: Any) -> Iterator[Broker]:
    """Run a broker that responds while the caller's loop is blocked."""
    served = threading.Event()
    brokers: list[Broker] = []
    stop: list[tuple[asyncio.AbstractEventLoop, anyio.Event]] = []

    async def serve() -> None:
        async with Broker(**options) as broker:
            ended = anyio.Event()
            stop.append((asyncio.get_running_loop(), ended))
            brokers.append(broker)
            served.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert served.wait(TIMEOUT)
    loop, ended = stop[0]
    try:
        yield brokers[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(TIMEOUT)
        assert not thread.is_alive()
