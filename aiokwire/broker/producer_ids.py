"""Producer ids: unique for ever, also across restarts and crashes.

A block of ids is written down as used before the first of it is given out, as Kafka's controller does it
(Java: ProducerIdsBlock); what a stopped broker did not give out is lost, and 2^63 are enough.
"""

from __future__ import annotations

import anyio

from aiokwire.broker.log import Storage, write_atomically
from aiokwire.errors import StorageError
from aiokwire.threads import run_in_thread

FILE = "aiokwire-producer-ids"
BLOCK = 1000


class ProducerIds:
    """Gives out producer ids."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._next = 0
        self._end = 0  # ids below it may be given out
        self._reserving: anyio.Lock | None = None  # made when first used: it belongs to a running loop

    def load(self, floor: int) -> None:
        """Continue after the ids that were reserved before, and not below `floor`.

        Raises: StorageError: the file is damaged or cannot be read.
        """
        content = self._storage.read(FILE)
        try:
            reserved = int(content) if content is not None else 0
        except ValueError as error:
            raise StorageError(f"{FILE} in the data directory is damaged: {content!r}") from error
        self._next = self._end = max(reserved, floor)

    @property
    def available(self) -> bool:
        """Whether `take` has one."""
        return self._next < self._end

    def take(self) -> int | None:
        """An id from the reserved block, None when `reserve` must come first."""
        if not self.available:
            return None
        taken = self._next
        self._next += 1
        return taken

    async def allocate(self) -> int:
        """An id nobody had.

        Raises: StorageError: the next block cannot be written down.
        """
        while (taken := self.take()) is None:
            await self.reserve()
        return taken

    async def reserve(self) -> None:
        """See to it that there is an id to take, unless somebody else takes it first.

        Raises: StorageError: the next block cannot be written down.
        """
        if self._reserving is None:
            self._reserving = anyio.Lock()
        async with self._reserving:
            if not self.available:
                end = self._end + BLOCK
                await run_in_thread(write_atomically, self._storage, FILE, str(end).encode())
                self._end = end
