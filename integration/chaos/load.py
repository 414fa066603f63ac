"""The producer under test: submits numbered records and keeps a ledger of every delivery."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable

import anyio

from aiokwire import Delivery, Producer
from aiokwire.errors import BufferFullError
from integration.chaos.ledger import FAILED, NOWHERE, Ledger
from integration.chaos.records import PADDING, PARTITION_SHIFT, word

_PER_PARTITION = 200  # records of each partition in a chunk; deliveries are checked after each chunk

_SLOWLY = 0.1  # seconds between chunks while all records fail

# Called with the number of accepted records before each chunk, which is sent after it returns.
Gate = Callable[[int], Awaitable[None]]


class Misplaced(Exception):
    """A delivery names another topic or partition than its record was sent to."""


class Load:
    """Sends records round robin to explicit partitions, and keeps the deliveries of pending ones.

    Like a program that must not stop, it sends at full speed, and slowly while all its records
    fail.
    """

    def __init__(self, producer: Producer[bytes, bytes], topic: str, partitions: int) -> None:
        self._producer = producer
        self._topic = topic
        self._partitions = partitions
        self._chunk = _PER_PARTITION * partitions
        self._pending: deque[tuple[int, list[Delivery]]] = deque()  # chunks with their first numbers
        self.account = Ledger(partitions)
        self.accepted = 0
        self.refused = 0  # `submit` raised: the buffer was full until the delivery timeout
        self.settled = 0
        self.errors: Counter[str] = Counter()
        self._gets_through = True  # whether a record of the last settled chunk was acknowledged

    async def run(self, records: int, gate: Gate) -> None:
        """Send at least `records` records, and wait until each is delivered or failed."""
        while self.accepted < records:
            await gate(self.accepted)
            chunk = await self._submit_chunk(self.accepted // self._partitions)
            self._pending.append((self.accepted // self._partitions, chunk))
            self.accepted += len(chunk)
            self._settle()
            # `submit` suspends only while the buffer is full
            await anyio.sleep(0 if self._gets_through else _SLOWLY)
        await self._producer.flush()
        self._settle()

    async def _submit_chunk(self, first: int) -> list[Delivery]:
        submit, topic = self._producer.submit, self._topic
        deliveries: list[Delivery] = []
        for number in range(first, first + _PER_PARTITION):
            for partition in range(self._partitions):
                name = word(partition << PARTITION_SHIFT | number)
                value = name + PADDING + name
                while True:
                    try:
                        deliveries.append(await submit(topic, value, partition=partition))
                        break
                    except BufferFullError:
                        self.refused += 1
        return deliveries

    @property
    def pending(self) -> int:
        """The number of records that are neither delivered nor failed."""
        return sum(len(chunk) for _, chunk in self._pending)

    def _settle(self) -> None:
        """Add the oldest chunks to the ledger, as far as all their records are done."""
        while self._pending and all(map(Delivery.done, self._pending[0][1])):
            first, chunk = self._pending.popleft()
            self.settled += len(chunk)
            self._gets_through = False
            for partition in range(self._partitions):
                offsets = [self._outcome(delivery, partition) for delivery in chunk[partition :: self._partitions]]
                self.account.add_all(partition, range(first, first + _PER_PARTITION), offsets)

    def _outcome(self, delivery: Delivery, partition: int) -> int:
        error = delivery.exception()
        if error is not None:
            self.errors[f"{type(error).__name__}, {getattr(error, 'stage', None)}"] += 1
            return FAILED
        self._gets_through = True
        where = delivery.result()
        if where.partition != partition or where.topic != self._topic:
            raise Misplaced(f"sent to {self._topic}[{partition}], acknowledged as {where}")
        return where.offset if where.offset >= 0 else NOWHERE
