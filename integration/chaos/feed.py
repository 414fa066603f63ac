"""A producer at a steady rate, whose values contain their send time.

Used by `rolling` and `consume`.
"""

from __future__ import annotations

import struct
from collections import deque

import anyio

from aiokwire import Delivery, Producer
from integration.chaos.moment import Moment, now

_VALUE = struct.Struct("=qdd")
_PADDING = bytes(76)  # to a hundred bytes


def read_value(value: bytes | None) -> tuple[int, Moment]:
    """Return the number of a record in its partition, and when it was sent.

    Raises: struct.error: the value was not written by a feed.
    """
    number, *moment = _VALUE.unpack_from(value or b"")
    return number, Moment(*moment)


class Feed:
    """Sends `rate` records per second to every partition, until it is stopped."""

    def __init__(self, producer: Producer[bytes, bytes], topic: str, partitions: int, *, rate: float) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._interval = 1 / rate
        self._pending: deque[Delivery] = deque()
        self._stopping = anyio.Event()
        self._stopped = anyio.Event()
        self.sent = 0  # to each partition
        self.failed: list[str] = []

    async def run(self) -> None:
        """Send at the rate; missed ticks are caught up."""
        due = anyio.current_time()
        while not self._stopping.is_set():
            while due <= anyio.current_time():
                await self._send()
                due += self._interval
            self._settle()
            with anyio.move_on_at(due):
                await self._stopping.wait()
        await self._producer.flush()
        self._settle()
        self._stopped.set()

    async def stop(self) -> None:
        """Stop sending; return when every record is acknowledged or has failed."""
        self._stopping.set()
        await self._stopped.wait()

    async def _send(self) -> None:
        value = _VALUE.pack(self.sent, *now()) + _PADDING
        for partition in range(self._partitions):
            self._pending.append(await self._producer.submit(self._topic, value, partition=partition))
        self.sent += 1

    def _settle(self) -> None:
        while self._pending and self._pending[0].done():
            error = self._pending.popleft().exception()
            if error is not None:
                self.failed.append(repr(error))
