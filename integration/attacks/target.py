"""The attacked broker process, and another client of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from integration.attacks.figures import Figure, Meter, faults
from integration.attacks.victim import Victim
from integration.embedded import EmbeddedProcess
from tests.broker.raw import RawClient


class Target:
    """The attacked broker and its other client."""

    def __init__(self, broker: EmbeddedProcess) -> None:
        self.broker = broker
        self.victim = Victim(broker.client_options)
        self.meter = Meter(broker.pid)

    @asynccontextmanager
    async def connected(self, count: int = 1, *, secure: bool = False) -> AsyncIterator[list[RawClient]]:
        """Yield connections; they are dropped at the end."""
        context = ssl.create_default_context(cafile=self.broker.client_options["ssl_cafile"]) if secure else None
        clients = [
            RawClient(*await asyncio.open_connection("127.0.0.1", self.broker.port, ssl=context)) for _ in range(count)
        ]
        try:
            yield clients
        finally:
            for client in clients:
                client.writer.transport.abort()

    def restart(self) -> list[Figure]:
        """Kill and start the broker, with another victim; return how long the first one waited."""
        waits = self.victim.waits()
        self.broker.kill()
        self.broker.restart()
        self.victim = Victim(self.broker.client_options)
        self.meter = Meter(self.broker.pid)
        return waits

    @property
    def log(self) -> str:
        """What the broker has logged."""
        return (self.broker.data_dir.parent / f"{self.broker.data_dir.name}.stderr").read_text()


Attack = Callable[[Target], Awaitable[list[Figure]]]


async def run(attack: Attack, settings: dict[str, object], *, secure: bool) -> list[Figure]:
    """Run one attack against its own broker."""
    defaults = {"num.partitions": "1"} | ({"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"} if secure else {})
    broker = EmbeddedProcess(settings=defaults | settings, secure=secure)
    broker.start()
    target: Target | None = None
    try:
        target = Target(broker)
        figures = await attack(target)
        return [*figures, faults("stack traces", target.log.count("Traceback"))]
    finally:
        if target is not None:
            target.victim.stop()
        broker.close()
