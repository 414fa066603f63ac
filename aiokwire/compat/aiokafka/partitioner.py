"""aiokafka's default partitioner."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from aiokwire import records

__all__ = ["DefaultPartitioner", "murmur2"]

# Called with the key's bytes, all partitions of the topic, and those that have a leader.
Partitioner = Callable[[bytes | None, Sequence[int], Sequence[int]], int]


class DefaultPartitioner:
    """Chooses the partition of a key as Java's client does.

    Called directly it places a record without a key at random; a producer that has it uses the
    compiled one, which fills one batch after the other and prefers brokers with a short queue.
    """

    rng: random.Random = random.Random()

    @classmethod
    def __call__(cls, key: bytes | None, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        """Return one of `all_partitions`; without a key one of the `available` ones, if there are
        any."""
        if key is None:
            return cls.rng.choice(available or all_partitions)
        return all_partitions[(murmur2(key) & 0x7FFFFFFF) % len(all_partitions)]


def murmur2(data: bytes) -> int:
    """Return Java's murmur2 of `data`, without a sign."""
    return records.murmur2(data) & 0xFFFFFFFF


def is_default(partitioner: Any) -> bool:
    """Whether a producer's partitioner is the default one, which is compiled."""
    return type(partitioner) is DefaultPartitioner or partitioner is DefaultPartitioner
