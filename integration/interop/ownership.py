"""The owners of partitions over time: at most one at all times."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

from aiokwire.clock import wall_ms


class Change(NamedTuple):
    """A partition was assigned or revoked; at the same time, revocations sort first."""

    at_ms: int
    assigned: bool
    partition: int
    member: str


class Ownership:
    """Collects assignments and revocations from any thread."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._lock = threading.Lock()

    def record(self, member: str, partitions: Iterable[int], *, assigned: bool, at_ms: int | None = None) -> None:
        """Record that `member` was assigned partitions, or that they are being revoked."""
        now = wall_ms() if at_ms is None else at_ms
        with self._lock:
            self._changes += [Change(now, assigned, partition, member) for partition in partitions]

    def check(self) -> None:
        """Check that no partition was assigned while another member owned it."""
        owners: dict[int, str] = {}
        moves = 0
        for change in sorted(self._changes):
            if not change.assigned:
                if owners.get(change.partition) == change.member:
                    del owners[change.partition]
                continue
            owner = owners.setdefault(change.partition, change.member)
            assert owner == change.member, f"{change}, but {owner} owns it"
            moves += 1
        assert moves, "no partition was assigned"
