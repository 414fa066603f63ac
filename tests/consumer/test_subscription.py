"""The partitions that are read, as topics are created, grow and are recreated."""

from __future__ import annotations

from types import MappingProxyType

from aiokwire.cluster import Cluster, Partition, Topic
from aiokwire.consumer.subscription import Subscription
from aiokwire.types import OffsetReset, TopicPartition

ID, OTHER_ID = b"a" * 16, b"b" * 16


def cluster(topic_id: bytes = ID, **counts: int) -> Cluster:
    topics = {
        name: Topic(name, topic_id, tuple(Partition(name, number, 1) for number in range(count)))
        for name, count in counts.items()
    }
    return Cluster(topics=MappingProxyType(topics), version=1)


def tps(topic: str, *numbers: int) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in numbers}


def test_all_partitions_of_a_topic_start_by_the_policy() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.subscribe(["t"])
    changes = subscription.follow(cluster(t=2, other=1))
    assert set(subscription.states) == tps("t", 0, 1)
    assert [state.cursor.reset_to for state in changes.added] == [OffsetReset.LATEST] * 2


def test_new_partitions_start_at_their_beginning() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.subscribe(["t"])
    subscription.follow(cluster(t=1))
    (added,) = subscription.follow(cluster(t=2)).added
    assert (added.tp, added.cursor.reset_to) == (("t", 1), OffsetReset.EARLIEST)


def test_a_topic_that_is_missing_for_a_while_keeps_its_positions() -> None:
    subscription = Subscription(OffsetReset.EARLIEST)
    subscription.subscribe(["t"])
    subscription.follow(cluster(t=1))
    state = subscription.states[TopicPartition("t", 0)]
    state.move_to(77)
    changes = subscription.follow(cluster())
    assert not changes.added
    assert not changes.removed
    subscription.follow(cluster(t=1))
    assert subscription.states[TopicPartition("t", 0)].position == 77


def test_a_recreated_topic_loses_its_old_positions() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.subscribe(["t"])
    subscription.follow(cluster(t=2))
    subscription.states[TopicPartition("t", 0)].move_to(77)
    changes = subscription.follow(cluster(OTHER_ID, t=1))
    assert {state.tp for state in changes.removed} == tps("t", 0, 1)
    assert set(subscription.states) == tps("t", 0)
    assert subscription.states[TopicPartition("t", 0)].position is None
    assert subscription.states[TopicPartition("t", 0)].cursor.reset_to is OffsetReset.EARLIEST


def test_an_assigned_partition_of_a_recreated_topic_stays_assigned() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.assign(tps("t", 0))
    subscription.follow(cluster(t=1))
    changes = subscription.follow(cluster(OTHER_ID, t=1))
    assert len(changes.removed) == len(changes.added) == 1
    assert set(subscription.states) == tps("t", 0)


def test_assigned_partitions_do_not_grow_with_their_topic() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.assign(tps("t", 0))
    assert not subscription.follow(cluster(t=4)).added
    assert subscription.wanted_topics == {"t"}


def test_partitions_that_stay_assigned_keep_their_state() -> None:
    subscription = Subscription(OffsetReset.LATEST)
    subscription.assign(tps("t", 0, 1))
    kept = subscription.states[TopicPartition("t", 1)]
    added, removed = subscription.assign(tps("t", 1, 2))
    assert subscription.states[TopicPartition("t", 1)] is kept
    assert {state.tp for state in added} == tps("t", 2)
    assert {state.tp for state in removed} == tps("t", 0)
