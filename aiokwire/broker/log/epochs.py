"""The start offset of each leader epoch in a partition, by which clients detect truncation."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from aiokwire.broker.log.checkpoints import pack_checkpoint, unpack_checkpoint
from aiokwire.broker.log.storage import Storage

EPOCH_FILE = "leader-epoch-checkpoint"
UNDEFINED = -1


class EpochEnd(NamedTuple):
    """The greatest epoch not above the requested one, and the offset where it ends."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The start offset of each epoch, ascending in both; saved as `leader-epoch-checkpoint`."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self.directory = directory
        self._path = f"{directory}/{EPOCH_FILE}"
        self.temporary: str = f"{self._path}.tmp"
        self.entries: list[tuple[int, int]] = []
        self._saved: bytes | None = None  # the file's content
        self._written: bytes | None = None  # the temporary file's content

    def load(self) -> None:
        """Read the file; if it is missing or corrupt, recovery finds the epochs in the batches."""
        content = self._storage.read(self._path)
        try:
            lines = unpack_checkpoint(content, fields=2)
            self.entries = sorted((int(epoch), int(offset)) for epoch, offset in lines)
        except ValueError:
            self.entries = []
        self._saved = content

    def write_temporary(self) -> bool:
        """Write a temporary file if the file is outdated; return whether so. May run in a thread.

        The caller flushes `temporary`, calls `replace` and flushes `directory`. Only flushes do
        this: the file must cover the flushed log; recovery reads the others from batches.

        Raises: StorageError.
        """
        content = pack_checkpoint(f"{epoch} {offset}" for epoch, offset in list(self.entries))
        if content == self._saved:
            return False
        self._storage.write(self.temporary, content)
        self._written = content
        return True

    def replace(self) -> None:
        """Replace the file by the temporary one, which has been flushed.

        Raises: StorageError.
        """
        self._storage.rename(self.temporary, self._path)
        self._saved = self._written

    @property
    def latest(self) -> int:
        return self.entries[-1][0] if self.entries else UNDEFINED

    def assign(self, epoch: int, offset: int) -> None:
        """Record that batches of `epoch` start at `offset`, unless there are later epochs."""
        if epoch > self.latest:
            self.entries.append((epoch, offset))

    def end_offset_for(self, epoch: int, log_end: int) -> EpochEnd:
        """Return the end of `epoch` in this log: the start of the next one, or the log's end."""
        if epoch < 0 or epoch > self.latest:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end)
        following = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        known = self.entries[following - 1][0] if following else epoch
        return EpochEnd(known, self.entries[following][1])

    def truncate_from_end(self, offset: int) -> None:
        """Remove the epochs that start at or after `offset`."""
        self.entries = [entry for entry in self.entries if entry[1] < offset]

    def truncate_from_start(self, offset: int) -> None:
        """Remove the epochs that end at or before `offset`; the one that spans it starts there."""
        later = [entry for entry in self.entries if entry[1] > offset]
        earlier = [entry for entry in self.entries if entry[1] <= offset]
        self.entries = [(earlier[-1][0], offset), *later] if earlier else later
