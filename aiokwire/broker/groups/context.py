"""The context of both group protocols: deadlines of groups and members, log, configs, ids, topics.

The deadlines share one heap and one timer of the loop. Postponing a deadline, as each heartbeat
does, only changes a number; its place in the heap is corrected when it is reached.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import random
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.topic_registry import TopicRegistry

Records = Sequence[tuple[bytes, bytes | None]]


class Due(enum.IntEnum):
    """The kinds of deadlines."""

    SESSION = 0  # a member sent no heartbeat
    PENDING = 1  # a member id was sent and not used
    JOIN = 2  # a group's members had time to join
    SYNC = 3  # a group's members had time to sync
    REVOCATION = 4  # a member had time to revoke partitions
    LOAD = 5  # the new coordinator loads a group


class Key(NamedTuple):
    """One deadline; the member id is empty if it is the group's."""

    due: Due
    group_id: str
    member_id: str = ""


class Timers:
    """Calls `fire` with a key once, at its deadline."""

    def __init__(self, fire: Callable[[Key], None]) -> None:
        self._fire = fire
        self._deadlines: dict[Key, float] = {}  # of the loop's clock
        self._queued: dict[Key, float] = {}  # the key's time in the heap; never after its deadline
        self._heap: list[tuple[float, Key]] = []
        self._handle: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Key) -> bool:
        return key in self._deadlines

    def set(self, key: Key, delay_ms: float) -> None:
        """Set the key's deadline to `delay_ms` from now, or move it there."""
        deadline = asyncio.get_running_loop().time() + delay_ms / 1000
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or deadline < queued:
            self._push(key, deadline)

    def cancel(self, key: Key) -> None:
        """Remove the key's deadline."""
        if self._deadlines.pop(key, None) is not None:
            self._queued.pop(key, None)
            # Cancelled keys stay in the heap until their time, or until they outnumber the others.
            if len(self._heap) > 2 * len(self._deadlines) + 64:
                self._rebuild()

    def close(self) -> None:
        """Remove every deadline."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._deadlines.clear()
        self._queued.clear()
        self._heap.clear()

    def _push(self, key: Key, deadline: float) -> None:
        self._queued[key] = deadline
        heapq.heappush(self._heap, (deadline, key))
        if self._heap[0][0] == deadline:
            self._arm()

    def _rebuild(self) -> None:
        self._heap = [(queued, key) for key, queued in self._queued.items()]
        heapq.heapify(self._heap)
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_at(self._heap[0][0], self._on_timer) if self._heap else None

    def _on_timer(self) -> None:
        self._handle = None
        now = asyncio.get_running_loop().time()
        fired: list[Key] = []
        while self._heap and self._heap[0][0] <= now:
            queued, key = heapq.heappop(self._heap)
            if self._queued.get(key) != queued:
                continue  # cancelled, or moved forward meanwhile
            deadline = self._deadlines[key]
            if deadline > now:
                self._push(key, deadline)
                continue
            del self._deadlines[key], self._queued[key]
            fired.append(key)
        self._arm()
        for key in fired:
            self._fire(key)


class GroupContext(NamedTuple):
    """The state that the coordinator shares with both protocols."""

    timers: Timers
    # Appends records of a group to `__consumer_offsets`; raises StorageError if nothing was appended.
    append: Callable[[str, Records], None]
    configs: BrokerConfigs
    rng: random.Random
    topics: TopicRegistry

    def new_id(self) -> str:
        """Return a random part of a member id."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
