"""The assigned partitions, by topic or one by one, updated when the metadata changes. No I/O."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

from aiokwire.cluster import Cluster
from aiokwire.consumer.metrics import TopicCounts
from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.consumer.reset_policy import ResetTarget
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol import ZERO_UUID
from aiokwire.types import OffsetReset, TopicPartition

logger: FieldLogger = get_logger(__name__)

NO_ID: Final = (b"", ZERO_UUID)


@dataclasses.dataclass(slots=True)
class Changes:
    """The changes of the assignment by a new metadata snapshot."""

    added: list[PartitionState] = dataclasses.field(default_factory=list)
    removed: list[PartitionState] = dataclasses.field(default_factory=list)


class Subscription:
    """The assigned partitions and their origin: given one by one, all of the subscribed topics, or,
    if those are `shared`, the ones that the group assigned."""

    def __init__(self, reset: ResetTarget | None, on_first: Callable[[], None] | None = None) -> None:
        """`reset`: where partitions start; None: at the committed offsets. `on_first` is called
        when partitions are assigned after there were none."""
        self._reset = reset
        self.topics: frozenset[str] = frozenset()  # subscribed to; empty when partitions were given one by one
        self.shared: bool = False  # the group distributes the partitions of the topics
        self.states: dict[TopicPartition, PartitionState] = {}
        self.counts: dict[str, TopicCounts] = {}  # of each topic that was assigned at some time
        self._on_first = on_first
        self._listeners: list[Callable[[], None]] = []
        self._is_empty = True  # at the last call of `_changed`
        self._seen: dict[str, int] = {}  # partitions of each topic when it was first seen: later ones are new

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the assignment changes; has no effect if it was added before."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    @property
    def wanted_topics(self) -> frozenset[str]:
        """Every topic whose metadata is needed."""
        return self.topics.union(tp.topic for tp in self.states)

    def subscribe(self, topics: Iterable[str]) -> list[PartitionState]:
        """Read all partitions of `topics`, found by `follow`. Returns the removed partitions."""
        self.shared = False
        self._choose(topics)
        removed = self._keep(tp for tp in self.states if tp.topic in self.topics)
        self._changed()
        return removed

    def share(self, topics: Iterable[str], *, later: Iterable[str] = ()) -> list[PartitionState]:
        """Read the partitions of `topics` that a group assigns. Returns the removed ones, none if
        shared before: the group revokes them. `later`: topics that did not exist then."""
        removed = [] if self.shared else self._keep(())
        self.shared = True
        self._choose(topics)
        self.expect(later)
        self._changed()
        return removed

    def expect(self, topics: Iterable[str]) -> None:
        """Read the partitions of topics that do not exist yet from their start once they appear."""
        self._seen.update((name, 0) for name in topics if name not in self._seen)

    def _choose(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._seen = {name: count for name, count in self._seen.items() if name in self.topics}

    def assign(self, partitions: Iterable[TopicPartition]) -> tuple[list[PartitionState], list[PartitionState]]:
        """Read these partitions and no others; returns the added and the removed ones."""
        self.shared = False
        self.topics = frozenset()
        self._seen.clear()
        wanted = list(dict.fromkeys(partitions))
        removed = self._keep(wanted)
        added = [self._add(tp, b"", self._reset, "assigned") for tp in wanted if tp not in self.states]
        self._changed()
        return added, removed

    def take(self, partitions: Iterable[TopicPartition], cluster: Cluster) -> list[PartitionState]:
        """Add partitions that the group assigned; returns the new ones."""
        new = [tp for tp in partitions if tp not in self.states]
        taken = [self._add(tp, cluster.topic_id(tp.topic) or b"", None, "") for tp in new]
        self._changed()
        return taken

    def give_up(self, partitions: Iterable[TopicPartition]) -> list[PartitionState]:
        """Remove partitions that the group revoked; returns those that were assigned."""
        given_up = [self.states.pop(tp) for tp in partitions if tp in self.states]
        self._changed()
        return given_up

    def first_reset(self, tp: TopicPartition, policy: ResetTarget) -> ResetTarget:
        """Return the start of a partition without a committed offset. One added after the
        subscription starts at its first record: "latest" skips records written until noticed."""
        seen = self._seen.get(tp.topic)
        return OffsetReset.EARLIEST if seen is not None and tp.partition >= seen else policy

    def follow(self, cluster: Cluster) -> Changes:
        """Apply a snapshot: new partitions, recreated topics.

        A topic that is missing from the snapshot keeps its partitions and positions: it may
        reappear, and a broker that has just started may not know it yet.
        """
        changes = Changes()
        before: dict[TopicPartition, int] = {}  # positions in recreated topics
        for state in list(self.states.values()):
            topic_id = cluster.topic_id(state.tp.topic) or b""
            if topic_id in NO_ID or topic_id == state.topic_id:
                continue
            if state.topic_id in NO_ID:
                state.follow_topic(topic_id)
                continue
            logger.warning("%s: the topic was deleted and recreated; restarting at its beginning", state.tp)
            changes.removed.append(self.states.pop(state.tp))
            if state.cursor.fetch_offset != UNKNOWN:
                before[state.tp] = state.cursor.fetch_offset
            if self.shared or not self.topics:
                changes.added.append(self._add(state.tp, topic_id, OffsetReset.EARLIEST, "the topic was recreated"))
        for name in sorted(self.topics):
            self._follow_topic(name, cluster, changes)
        for state in changes.added:
            if state.tp in before:
                state.cursor.replaces(before[state.tp])
        if changes.added or changes.removed:
            self._changed()
        return changes

    def _follow_topic(self, name: str, cluster: Cluster, changes: Changes) -> None:
        topic = cluster.topics.get(name)
        if topic is None or not topic.partitions:
            return
        # "latest" for a partition that appears later would skip the records written before the client noticed it.
        target, reason = (OffsetReset.EARLIEST, "new partition") if name in self._seen else (self._reset, "subscribed")
        topic_id = cluster.topic_id(name) or b""
        for partition in () if self.shared else topic.partitions:
            tp = TopicPartition(name, partition.partition)
            if tp not in self.states:
                changes.added.append(self._add(tp, topic_id, target, reason))
        self._seen.setdefault(name, len(topic.partitions))

    def _add(self, tp: TopicPartition, topic_id: bytes, target: ResetTarget | None, reason: str) -> PartitionState:
        state = PartitionState(tp, topic_id, self.counts.setdefault(tp.topic, TopicCounts()))
        if target is not None:
            state.request_reset(target, reason)
        self.states[tp] = state
        return state

    def _changed(self) -> None:
        was_empty, self._is_empty = self._is_empty, not self.states
        for listener in self._listeners:
            listener()
        if was_empty and self.states and self._on_first is not None:
            self._on_first()

    def _keep(self, kept: Iterable[TopicPartition]) -> list[PartitionState]:
        kept_set = set(kept)
        return [self.states.pop(tp) for tp in list(self.states) if tp not in kept_set]
