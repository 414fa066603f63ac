"""An immutable snapshot of the cluster's metadata, replaced as a whole by `Metadata`.

`Merge` makes the next snapshot from the last one and a broker's response, in slices; it decides
what an erroneous response may remove. Topics and partitions are in none of the garbage collector's
lists: there may be a million, and none is in a cycle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation, error_for
from aiokwire.net import Address
from aiokwire.protocol import ZERO_UUID, untrack
from aiokwire.protocol.messages import metadata
from aiokwire.types import TopicPartition

NO_LEADER: Final = -1

# The errors of a topic that no retry changes; any other may come from a broker whose metadata is old.
PERMANENT: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})
# A topic that has been unknown for this time (seconds) counts as deleted: its leaders are forgotten.
DELETED_AFTER: Final = 15.0
# The partitions that a response may leave out below its highest number: bounds the memory that it can claim.
MOST_MISSING: Final = 10_000
# The topics and partitions that are merged, or released, in one turn of the loop: some milliseconds.
SLICE: Final = 500


class Broker(NamedTuple):
    """One node and its address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Partition(NamedTuple):
    """One partition and its replicas; `leader` is -1 without a leader."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error_code: int = 0


class Topic(NamedTuple):
    """One topic. With an `error_code` the partitions are those that were known before it."""

    name: str
    topic_id: bytes = ZERO_UUID
    partitions: tuple[Partition, ...] = ()
    error_code: int = 0
    is_internal: bool = False
    unknown_since: float | None = None  # the loop's clock: since when brokers respond that it does not exist


class LeaderHint(NamedTuple):
    """A partition's new leader from another response (KIP-951); `broker` if it has the address."""

    leader_id: int
    leader_epoch: int
    broker: Broker | None = None


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The brokers and the requested topics. `version` grows with each change."""

    brokers: Mapping[int, Broker] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    controller_id: int = NO_LEADER
    cluster_id: str | None = None
    topics: Mapping[str, Topic] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    version: int = 0

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return the partition, or None if it is unknown."""
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def leader(self, tp: TopicPartition) -> int | None:
        """Return the leader's node id, or None without a known leader."""
        partition = self.partition(tp)
        return None if partition is None or partition.leader == NO_LEADER else partition.leader

    def require_leader(self, tp: TopicPartition, request: str | None = None) -> int:
        """Return the leader's node id. `request` is for the error.

        Raises: StaleMetadataError: the leader is not known, or the topic or partition is not.
        """
        leader = self.leader(tp)
        if leader is not None:
            return leader
        topic = self.topics.get(tp.topic)
        known = "the metadata does not have the topic" if topic is None else f"{len(topic.partitions)} partitions"
        raise error_for(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self.partition(tp) is None else ErrorCode.LEADER_NOT_AVAILABLE,
            f"{tp}: no leader known ({known})",
            topic=tp.topic,
            partition=tp.partition,
            request=request,
        )

    def topic_id(self, name: str) -> bytes | None:
        """Return the topic's id, or None if it has none (an old broker) or is unknown."""
        topic = self.topics.get(name)
        return None if topic is None or topic.topic_id == ZERO_UUID else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the topic with this id, or None."""
        return self._names.get(topic_id)

    @cached_property
    def _names(self) -> dict[bytes, str]:
        return {topic.topic_id: topic.name for topic in self.topics.values() if topic.topic_id != ZERO_UUID}

    def with_leaders(self, hints: Mapping[TopicPartition, LeaderHint]) -> Cluster | None:
        """Return a snapshot with other leaders, None if no hint is newer. Epochs never decrease.

        Topics that no hint changes are the same objects as before.
        """
        brokers = dict(self.brokers)
        moved: dict[str, list[Partition]] = {}
        for tp, hint in hints.items():
            known = self.partition(tp)
            if known is None or hint.leader_epoch <= known.leader_epoch or hint.leader_id < 0:
                continue
            if hint.leader_id not in brokers and hint.broker is None:
                continue  # an address is needed first: a refresh brings both
            if hint.broker is not None:
                brokers[hint.leader_id] = hint.broker
            partitions = moved.get(tp.topic)
            if partitions is None:
                partitions = moved[tp.topic] = list(self.topics[tp.topic].partitions)
            partitions[tp.partition] = known._replace(
                leader=hint.leader_id, leader_epoch=hint.leader_epoch, error_code=0
            )
        if not moved:
            return None
        topics = dict(self.topics)
        for name, partitions in moved.items():
            topics[name] = topics[name]._replace(partitions=tuple(partitions))
        return dataclasses.replace(
            self, brokers=MappingProxyType(brokers), topics=MappingProxyType(topics), version=self.version + 1
        )


class Merge:
    """The snapshot after a response, made by calls of `advance`, then one of `finish`.

    Takes the topics out of the response: each is released when it is merged.
    """

    def __init__(
        self,
        old: Cluster,
        answer: metadata.MetadataResponse,
        *,
        wanted: Collection[str] | None,
        awaited: Collection[str] = (),
        now: float,
    ) -> None:
        """`wanted`: topics to keep; None: all of the response. `awaited`: see `is_unsettled`."""
        self.replaced: list[Topic] = []  # of the last snapshot
        self.is_changed: bool = False  # a topic has changed
        self.has_unsettled: bool = False  # a topic `is_unsettled`
        self._old = old
        self._answer = answer
        self._left, answer.topics = answer.topics, []
        self._left.reverse()  # they are taken from the end
        self._wanted = wanted
        self._awaited = awaited
        self._now = now
        self._topics: dict[str, Topic] = {}

    def advance(self) -> bool:
        """Merge the next slice of topics; return whether it was the last one.

        Raises: ProtocolViolation: a topic is implausible.
        """
        room = SLICE
        while self._left and room > 0:
            found = self._left.pop()
            room -= 1 + len(found.partitions)
            if found.name is not None and (self._wanted is None or found.name in self._wanted):
                self._add(_merge_topic(self._old.topics.get(found.name), found, self._now))
        return not self._left

    def _add(self, topic: Topic) -> None:
        before = self._old.topics.get(topic.name)
        if before is not None:
            self.replaced.append(before)
        self.is_changed = self.is_changed or topic != before
        self.has_unsettled = self.has_unsettled or is_unsettled(topic, awaited=topic.name in self._awaited)
        self._topics[topic.name] = topic

    def finish(self) -> Cluster:
        """Return the snapshot, after the last slice; drops its reference to the last snapshot."""
        old, self._old = self._old, Cluster()
        answer, topics = self._answer, self._topics
        for name in self._wanted or ():
            if name not in topics and name in old.topics:
                topic = topics[name] = old.topics[name]
                self.has_unsettled = self.has_unsettled or is_unsettled(topic, awaited=name in self._awaited)
        brokers = {each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers}
        self.is_changed = (
            self.is_changed
            or len(topics) != len(old.topics)
            or (brokers, answer.controller_id) != (old.brokers, old.controller_id)
        )
        return Cluster(
            brokers=MappingProxyType(brokers),
            controller_id=answer.controller_id,
            cluster_id=answer.cluster_id if answer.cluster_id is not None else old.cluster_id,
            topics=MappingProxyType(untrack(topics)),
            version=old.version + 1,
        )


def is_unsettled(topic: Topic | None, *, awaited: bool) -> bool:
    """Return whether a topic is in a transient state that requires another refresh: a partition
    without a leader, an error; or it is `awaited` and does not exist."""
    if topic is None or topic.error_code in PERMANENT:
        return False
    if topic.error_code:
        # known before, or subscribed to; `wait_for_topics` asks about others
        return awaited or bool(topic.partitions)
    return any(partition.leader == NO_LEADER for partition in topic.partitions)


def _merge_topic(old: Topic | None, found: metadata.MetadataResponseTopic, now: float) -> Topic:
    assert found.name is not None
    code = found.error_code
    if code in PERMANENT:
        return untrack(Topic(found.name, error_code=code))
    if code:
        since = None
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            since = now if old is None or old.unknown_since is None else old.unknown_since
        if old is None or (since is not None and now - since >= DELETED_AFTER):
            return untrack(Topic(found.name, error_code=code, unknown_since=since))
        return untrack(old._replace(error_code=code, unknown_since=since))
    before = {} if old is None or _is_recreated(old, found) else {known.partition: known for known in old.partitions}
    partitions = {
        each.partition_index: _merge_partition(found.name, before.get(each.partition_index), each)
        for each in found.partitions
    }
    count = 1 + max(partitions, default=-1)
    if min(partitions, default=0) < 0 or count > len(partitions) + len(before) + MOST_MISSING:
        raise ProtocolViolation(
            f"a Metadata response names {len(partitions)} partitions of {found.name!r}, "
            f"with numbers from {min(partitions)} to {max(partitions)}"
        )
    # Partitions that a starting broker left out of its response stay unchanged.
    complete = tuple(
        partitions.get(index) or before.get(index) or Partition(found.name, index, NO_LEADER) for index in range(count)
    )
    return untrack(Topic(found.name, found.topic_id, untrack(complete), is_internal=found.is_internal))


def _is_recreated(old: Topic, found: metadata.MetadataResponseTopic) -> bool:
    """Return whether the topic was recreated: its leader epochs restart at 0."""
    if ZERO_UUID in (old.topic_id, found.topic_id):
        return old.unknown_since is not None
    return old.topic_id != found.topic_id


def _merge_partition(topic: str, old: Partition | None, found: metadata.MetadataResponsePartition) -> Partition:
    if old is not None and -1 < found.leader_epoch < old.leader_epoch:
        return old  # from a broker with older metadata
    partition = Partition(
        topic,
        found.partition_index,
        found.leader_id,
        found.leader_epoch,
        tuple(found.replica_nodes),
        tuple(found.isr_nodes),
        tuple(found.offline_replicas),
        found.error_code,
    )
    return old if old is not None and old == partition else untrack(partition)
