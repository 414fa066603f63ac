"""The offsets of a run's records: runs of consecutive numbers at consecutive offsets.

A record is named by its partition and its number in it: 0, 1, 2, ... in the order in which records
were accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FAILED = -1  # delivery failed: the record may be stored or not
NOWHERE = -2  # acknowledged without an offset


@dataclass(frozen=True, slots=True)
class Run:
    """`count` records of a partition: `number`, `number + 1`, ... at `offset`, `offset + 1`, ...

    A negative `offset` is one of the marks above, and holds for all records.
    """

    number: int
    offset: int
    count: int

    def continues(self, number: int, offset: int) -> bool:
        """Whether the record extends this run."""
        wanted = self.offset if self.offset < 0 else self.offset + self.count
        return number == self.number + self.count and offset == wanted


class Ledger:
    """The runs of each partition, added in the order of numbers or of offsets."""

    def __init__(self, partitions: int) -> None:
        self.runs: list[list[Run]] = [[] for _ in range(partitions)]

    def add(self, partition: int, number: int, offset: int, count: int = 1) -> None:
        """Add `count` records that start at this number and this offset."""
        runs = self.runs[partition]
        if runs and runs[-1].continues(number, offset):
            last = runs[-1]
            runs[-1] = Run(last.number, last.offset, last.count + count)
        else:
            runs.append(Run(number, offset, count))

    def add_all(self, partition: int, numbers: Sequence[int], offsets: Sequence[int]) -> None:
        """Add records; consecutive numbers at consecutive offsets become one run."""
        if not numbers:
            return
        count = len(numbers)
        in_line = numbers[-1] - numbers[0] == offsets[-1] - offsets[0] == count - 1
        if in_line and _consecutive(numbers) and offsets[0] >= 0 and _consecutive(offsets):
            self.add(partition, numbers[0], offsets[0], count)
            return
        for number, offset in zip(numbers, offsets, strict=True):
            self.add(partition, number, offset)

    def count(self, *, failed: bool = False) -> int:
        """Return the number of acknowledged or stored records, or of those that failed."""
        return sum(run.count for runs in self.runs for run in runs if (run.offset == FAILED) is failed)


def _consecutive(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))
