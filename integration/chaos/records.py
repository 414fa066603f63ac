"""The values of a run: all of the same size, each with its partition and its number in it.

    word    partition and number           padding    the same word again, at the end

Readers extract the words from whole columns of bytes at once, so that ten million records are
checked in seconds.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

WORDS = 13
SIZE = 8 * WORDS  # bytes of a value
PADDING = bytes(range(32, 32 + SIZE - 16))
PARTITION_SHIFT = 40  # a word is partition << 40 | number
_NUMBER = (1 << PARTITION_SHIFT) - 1

word = struct.Struct("=q").pack


class Malformed(Exception):
    """A value that was not written by a run."""


class Names(NamedTuple):
    """The contents of a column of values: their common partition, and their numbers."""

    partition: int
    numbers: list[int]


def value_of(partition: int, number: int) -> bytes:
    """Return the value of one record."""
    name = word(partition << PARTITION_SHIFT | number)
    return name + PADDING + name


def read_names(values: bytes | memoryview) -> Names:
    """Read concatenated values.

    Raises:
        Malformed: they are corrupt, or not all for one partition.
    """
    view = memoryview(values)
    if not view or len(view) % SIZE:
        raise Malformed(f"{len(view)} bytes are not a multiple of {SIZE}")
    words = view.cast("q")
    names = words[::WORDS].tolist()
    if names != words[WORDS - 1 :: WORDS].tolist():
        raise Malformed("a value's last word differs from its first")
    partitions = {min(names) >> PARTITION_SHIFT, max(names) >> PARTITION_SHIFT}
    if len(partitions) > 1:
        raise Malformed(f"values of the partitions {sorted(partitions)} in one batch")
    return Names(partitions.pop(), [name & _NUMBER for name in names])
