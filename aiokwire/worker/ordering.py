"""Which record is handled next: chains of records that must not overlap, one runnable each.

A chain is a partition, a key of a partition, or a single record. A record that waits for its next
attempt keeps the place of its chain. Each handler has a line, which may bound its running records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from aiokwire.types import Order, TopicPartition

# Keys of one partition with the records that wait behind the one that is runnable; None: none wait.
Chains = dict[bytes, "deque[Ordered] | None"]

_WHOLE_PARTITION: Final = b""


class Ordered:
    """A record in its chain. `chains` and `chain` are assigned by `Ordering`."""

    __slots__ = ("chain", "chains", "key", "line", "tp")

    def __init__(self, tp: TopicPartition, key: bytes | None, line: Line) -> None:
        self.tp = tp
        self.key = key
        self.line = line
        self.chain: bytes = b""
        self.chains: Chains | None = None  # None: no record waits for this one


T = TypeVar("T", bound=Ordered)


class Gate(Protocol):
    """Decides when the records of a line may run."""

    @property
    def admits(self) -> bool:
        """Whether a record may run now; if not, an executor is woken when one may."""

    def enter(self) -> None:
        """Count a record that runs now."""


class Line:
    """The runnable records of one handler, and how many of them run."""

    __slots__ = ("gates", "limit", "ready", "running")

    def __init__(self, limit: int | None = None, gates: Sequence[Gate] = ()) -> None:
        """`limit`: the records that may run at a time; None: without a limit. `gates`: all of them
        must admit a record."""
        self.limit = limit
        self.gates = gates
        self.ready: deque[Ordered] = deque()
        self.running = 0

    @property
    def can_run(self) -> bool:
        """Whether a record is runnable now."""
        if not self.ready or (self.limit is not None and self.running >= self.limit):
            return False
        return not self.gates or self.is_admitted()

    def is_admitted(self) -> bool:
        """Whether every gate admits a record now."""
        return all(gate.admits for gate in self.gates)


class Ordering(Generic[T]):
    """Admits records in the order of their offsets; returns them when they may run."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lines: deque[Line] = deque()  # with runnable records, or at their limit; they take turns
        self._listed: set[Line] = set()
        self._chains: dict[TopicPartition, Chains] = {}

    def add(self, item: T) -> None:
        """Admit a record behind all earlier ones of its chain."""
        if self._order is Order.NONE or (self._order is Order.KEY and item.key is None):
            self._make_ready(item)
            return
        chains = self._chains.get(item.tp)
        if chains is None:
            chains = self._chains[item.tp] = {}
        chain = _WHOLE_PARTITION if self._order is Order.PARTITION or item.key is None else item.key
        item.chain, item.chains = chain, chains
        if chain not in chains:
            chains[chain] = None
            self._make_ready(item)
            return
        waiting = chains[chain]
        if waiting is None:
            chains[chain] = deque((item,))
        else:
            waiting.append(item)

    def offer(self, item: T) -> None:
        """Admit an item that may run now; it has no chain."""
        self._make_ready(item)

    def take(self) -> T | None:
        """Return a record that may run now, or None; `release` or `put_off` must follow."""
        lines = self._lines
        for _ in range(len(lines)):
            line = lines[0]
            if not line.ready:
                self._listed.remove(lines.popleft())
                continue
            if len(lines) > 1:
                lines.rotate(-1)
            if (line.limit is None or line.running < line.limit) and (not line.gates or line.is_admitted()):
                line.running += 1
                for gate in line.gates:
                    gate.enter()
                item: T = line.ready.popleft()  # type: ignore[assignment]  # only `add` fills it
                return item
        return None

    @property
    def can_take(self) -> bool:
        """Whether `take` would return a record."""
        return any(line.can_run for line in self._lines)

    def release(self, item: T) -> None:
        """Note that a record that ran is finished: the next one of its chain may run."""
        item.line.running -= 1
        if item.chains is not None:
            self._advance(item, item.chains)

    def put_off(self, item: T) -> None:
        """Note that a record that ran waits for its next attempt, and its chain with it."""
        item.line.running -= 1

    def put_back(self, item: T) -> None:
        """Make a record that was put off runnable, before others of its handler."""
        line = item.line
        line.ready.appendleft(item)
        if line not in self._listed:
            self._list(line)

    def postpone(self, item: T) -> None:
        """Make a record that ran runnable again, behind others of its handler."""
        item.line.running -= 1
        self._make_ready(item)

    def drop(self, tp: TopicPartition) -> None:
        """Forget the records of a partition that do not run; those that run are still released."""
        self._chains.pop(tp, None)
        for line in self._lines:
            if any(item.tp == tp for item in line.ready):
                line.ready = deque(item for item in line.ready if item.tp != tp)

    def _advance(self, item: T, chains: Chains) -> None:
        waiting = chains[item.chain]
        if waiting is None:
            del chains[item.chain]
            return
        following = waiting.popleft()
        if not waiting:
            chains[item.chain] = None
        if self._chains.get(item.tp) is chains:  # else it was dropped
            self._make_ready(following)

    def _make_ready(self, item: Ordered) -> None:
        line = item.line
        line.ready.append(item)
        if line not in self._listed:
            self._list(line)

    def _list(self, line: Line) -> None:
        self._listed.add(line)
        self._lines.append(line)
