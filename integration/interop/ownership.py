"""Who had which partition when, told by members of whatever make: one owner at all times."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from aiokwire.clock import wall_ms


class Change(NamedTuple):
    """A partition came or went; those that went at a time sort before those that came."""

    at_ms: int
    came: bool
    partition: int
    member: str


class Ownership:
    """What members told, from whichever thread or process."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._lock = threading.Lock()

    def tell(self, member: str, partitions: Iterable[int], *, came: bool, at_ms: int | None = None) -> None:
        """`member` took partitions up, or is about to give them up."""
        now = wall_ms() if at_ms is None else at_ms
        with self._lock:
            self._changes += [Change(now, came, partition, member) for partition in partitions]

    def check(self) -> None:
        """Nobody took up what another had not given up."""
        owners: dict[int, str] = {}
        moves = 0
        for change in sorted(self._changes):
            if not change.came:
                if owners.get(change.partition) == change.member:
                    del owners[change.partition]
                continue
            owner = owners.setdefault(change.partition, change.member)
            assert owner == change.member, f"{change}, and {owner} has it"
            moves += 1
        assert moves, "nobody told anything"
