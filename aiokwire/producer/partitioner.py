"""Chooses the partition of a record that names none.

The default is compiled into the accumulator: murmur2 of the key, as in Java's client; records
without a key stay with a partition for 256 KiB, then `plan_sticky` chooses the next. librdkafka's
partitioners are compiled (`_partitioning`); a custom partitioner is called per record.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from aiokwire.errors import ConfigurationError
from aiokwire.producer._partitioning import BY_NAME, CUSTOM
from aiokwire.records import murmur2


class Partitioner(Protocol):
    """A value of the option `partitioner`: any callable of this form."""

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: Sequence[int], /) -> int:
        """Return the partition of a record: one of `partitions`, which are all of the topic's."""


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition of a key, with the default partitioner and Java's client."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class RoundRobin:
    """Uses each topic's partitions in turn, without regard to the key (KIP-369)."""

    def __init__(self) -> None:
        self._turns: dict[str, itertools.count[int]] = {}

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: Sequence[int]) -> int:
        """The next partition of the topic."""
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = itertools.count()
        return partitions[next(turn) % len(partitions)]


# Compiled, like librdkafka's.
_DEFAULTS = ("default", "adaptive")
_IN_PYTHON: dict[str, Callable[[], Partitioner]] = {"round_robin": RoundRobin}
_NAMES = (*_DEFAULTS, *_IN_PYTHON, *BY_NAME)


def parse_partitioner(given: object) -> Partitioner | str:
    """The option's value, checked: a known name or a callable.

    Raises: ConfigurationError: it is neither.
    """
    if isinstance(given, str):
        name = given.lower().replace("-", "_")
        if name not in _NAMES:
            raise ConfigurationError(
                f"partitioner {given!r} is unknown: choose one of {', '.join(_NAMES)}, or pass a callable"
            )
        return name
    if not callable(given):
        raise ConfigurationError(f"partitioner must be a name or a callable, not {given!r}")
    return given


def custom_partitioner(option: Partitioner | str) -> Partitioner | None:
    """The partitioner to call per record; None when a compiled one chooses."""
    if isinstance(option, str):
        return _IN_PYTHON[option]() if option in _IN_PYTHON else None
    return option


def compiled_partitioner(option: Partitioner | str) -> int:
    """The accumulator's number for the option."""
    if isinstance(option, str) and option not in _IN_PYTHON:
        return BY_NAME.get(option, BY_NAME["murmur2_random"])
    return CUSTOM


def plan_sticky(backlogs: Sequence[int | None], current: int, rng: random.Random) -> int:
    """The next sticky partition (KIP-794): the fewer batches wait for it, the likelier its choice.

    `backlogs` has the number of waiting batches per partition, None where it has no leader.
    Partitions without a leader are left out unless all lack one. While no batch waits, the
    partitions are used in turn, so that quiet topics are spread evenly.
    """
    candidates = [index for index, backlog in enumerate(backlogs) if backlog is not None] or list(range(len(backlogs)))
    if len(candidates) == 1:
        return candidates[0]
    waiting = [backlogs[index] or 0 for index in candidates]
    longest = max(waiting)
    if longest == min(waiting):  # in turn from a random start
        if current in candidates:
            return candidates[(candidates.index(current) + 1) % len(candidates)]
        return rng.choice(candidates)
    # `rng.choices` would build lists of sums for this draw, which happens every 256 KiB.
    left = rng.randrange((longest + 1) * len(waiting) - sum(waiting))
    place = 0
    while left >= longest + 1 - waiting[place]:
        left -= longest + 1 - waiting[place]
        place += 1
    return candidates[place]
