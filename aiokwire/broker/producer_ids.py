"""Producer ids: unique, also across restarts and crashes.

A block of ids is stored as used before its first id is allocated, as in Kafka's controller (Java:
ProducerIdsBlock). The rest of a stopped broker's block is lost.
"""

from __future__ import annotations

import anyio

from aiokwire.broker.log import Storage, write_atomically
from aiokwire.errors import StorageError
from aiokwire.threads import run_in_thread

FILE = "aiokwire-producer-ids"
BLOCK = 1000


class ProducerIds:
    """Allocates producer ids."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._next = 0
        self._end = 0  # of the reserved ids
        self._reserving: anyio.Lock | None = None  # created at first use: it belongs to a running loop

    def load(self, floor: int) -> None:
        """Continue after the ids that were reserved before, but not below `floor`.

        Raises: StorageError: the file is corrupt or cannot be read.
        """
        content = self._storage.read(FILE)
        try:
            reserved = int(content) if content is not None else 0
        except ValueError as error:
            raise StorageError(f"{FILE} in the data directory is corrupt: {content!r}") from error
        self._next = self._end = max(reserved, floor)

    @property
    def available(self) -> bool:
        """Whether `take` returns an id."""
        return self._next < self._end

    def take(self) -> int | None:
        """Return an id from the reserved block, or None if it is used up."""
        if not self.available:
            return None
        taken = self._next
        self._next += 1
        return taken

    async def allocate(self) -> int:
        """Return an unused id.

        Raises: StorageError: the next block cannot be stored.
        """
        while (taken := self.take()) is None:
            await self.reserve()
        return taken

    async def reserve(self) -> None:
        """Reserve the next block if the current one is used up.

        Raises: StorageError: the block cannot be stored.
        """
        if self._reserving is None:
            self._reserving = anyio.Lock()
        async with self._reserving:
            if not self.available:
                end = self._end + BLOCK
                await run_in_thread(write_atomically, self._storage, FILE, str(end).encode())
                self._end = end
