"""The changes that a broker's response may make to the snapshot of the cluster."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Collection

import pytest

from aiokwire.cluster import Broker, Cluster
from aiokwire.cluster.snapshot import DELETED_AFTER, SLICE, LeaderHint, Merge
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import metadata
from aiokwire.types import TopicPartition

ID_1, ID_2 = bytes(15) + b"\x01", bytes(15) + b"\x02"
TP = TopicPartition("t", 0)


def topic(
    leaders: list[int], epochs: list[int] | None = None, *, name: str = "t", topic_id: bytes = ID_1, error: int = 0
) -> metadata.MetadataResponseTopic:
    return metadata.MetadataResponseTopic(
        name=name,
        topic_id=topic_id,
        error_code=error,
        partitions=[
            metadata.MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=-1 if epochs is None else epochs[index],
                replica_nodes=[1, 2],
                isr_nodes=[leader],
            )
            for index, leader in enumerate(leaders)
        ],
    )


def answer(*topics: metadata.MetadataResponseTopic, nodes: int = 3) -> metadata.MetadataResponse:
    brokers = [metadata.MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in range(1, nodes + 1)]
    return metadata.MetadataResponse(brokers=brokers, controller_id=2, cluster_id="c", topics=list(topics))


def merge(old: Cluster, found: metadata.MetadataResponse, *, wanted: Collection[str] | None, now: float) -> Cluster:
    topics = list(found.topics)
    merging = Merge(old, found, wanted=wanted, now=now)
    while not merging.advance():
        pass
    found.topics = topics  # for the next merge
    return merging.finish()


def after(*answers: metadata.MetadataResponse, now: float = 0.0, wanted: tuple[str, ...] = ("t",)) -> Cluster:
    cluster = Cluster()
    for each in answers:
        cluster = merge(cluster, each, wanted=wanted, now=now)
    return cluster


def test_an_empty_cluster_knows_nothing() -> None:
    cluster = Cluster()
    assert cluster.partition(TP) is None
    assert cluster.leader(TP) is None
    assert cluster.topic_id("t") is None
    assert cluster.topic_name(ID_1) is None


def test_a_response_becomes_a_snapshot() -> None:
    cluster = after(answer(topic([1, 2, -1], [5, 6, 7])))
    assert cluster.brokers[2] == Broker(2, "h2", 9002)
    assert str(cluster.brokers[2].address) == "h2:9002"
    assert (cluster.controller_id, cluster.cluster_id, cluster.version) == (2, "c", 1)
    assert cluster.leader(TP) == 1
    assert cluster.leader(TopicPartition("t", 2)) is None
    assert cluster.partition(TopicPartition("t", 3)) is None
    assert cluster.partition(TopicPartition("t", -1)) is None
    assert cluster.topic_id("t") == ID_1
    assert cluster.topic_name(ID_1) == "t"


def test_a_snapshot_cannot_be_changed() -> None:
    cluster = after(answer(topic([1])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        cluster.version = 7  # type: ignore[misc]  # what must not work
    with pytest.raises(TypeError):
        cluster.topics["x"] = cluster.topics["t"]  # type: ignore[index]  # what must not work


def test_leader_epochs_never_go_back() -> None:
    cluster = after(answer(topic([1, 1], [5, 5])), answer(topic([2, 2], [4, 6])))
    assert cluster.leader(TP) == 1, "a broker that lags behind changes nothing"
    assert cluster.leader(TopicPartition("t", 1)) == 2


def test_responses_without_epochs_are_accepted() -> None:
    assert after(answer(topic([1], [5])), answer(topic([2]))).leader(TP) == 2


def test_a_recreated_topic_starts_with_new_epochs_and_fewer_partitions() -> None:
    cluster = after(answer(topic([1, 1, 1], [5, 5, 5])), answer(topic([2], [0], topic_id=ID_2)))
    assert cluster.leader(TP) == 2
    assert len(cluster.topics["t"].partitions) == 1
    assert cluster.topic_name(ID_1) is None
    assert cluster.topic_name(ID_2) == "t"


def test_without_topic_ids_a_topic_that_was_unknown_meanwhile_is_taken_for_new() -> None:
    gone = topic([], topic_id=ZERO_UUID, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    cluster = after(
        answer(topic([1], [5], topic_id=ZERO_UUID)), answer(gone), answer(topic([2], [0], topic_id=ZERO_UUID))
    )
    assert cluster.leader(TP) == 2


@pytest.mark.parametrize("code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 999])
def test_a_transient_error_of_a_topic_keeps_its_leaders(code: int) -> None:
    cluster = after(answer(topic([1], [5])), answer(topic([], error=code)))
    assert cluster.leader(TP) == 1
    assert cluster.topics["t"].error_code == code
    healed = merge(cluster, answer(topic([2], [6])), wanted=("t",), now=1.0)
    assert (healed.leader(TP), healed.topics["t"].error_code) == (2, 0)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION])
def test_a_permanent_error_removes_the_leaders(code: int) -> None:
    cluster = after(answer(topic([1], [5])), answer(topic([], error=code)))
    assert cluster.leader(TP) is None
    assert cluster.topics["t"].error_code == code


def test_a_topic_that_stays_unknown_is_taken_for_deleted() -> None:
    unknown = answer(topic([], error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    cluster = after(answer(topic([1])), now=0.0)
    for now in (1.0, 1.0 + DELETED_AFTER / 2):
        cluster = merge(cluster, unknown, wanted=("t",), now=now)
        assert cluster.leader(TP) == 1
    cluster = merge(cluster, unknown, wanted=("t",), now=1.0 + DELETED_AFTER)
    assert cluster.topics["t"].partitions == ()


def test_unwanted_topics_are_left_out() -> None:
    cluster = after(answer(topic([1]), topic([1], name="u")), wanted=("t", "u"))
    assert set(cluster.topics) == {"t", "u"}
    assert set(merge(cluster, answer(topic([1])), wanted=("t",), now=0).topics) == {"t"}
    assert set(merge(cluster, answer(topic([1])), wanted=("t", "u"), now=0).topics) == {"t", "u"}, "not asked yet"
    assert set(merge(cluster, answer(topic([1])), wanted=None, now=0).topics) == {"t"}, "all were asked for"


def test_partitions_that_a_response_leaves_out_stay_unchanged() -> None:
    partial = topic([1, 2, 3], [6, 6, 6])
    del partial.partitions[1]
    cluster = after(answer(topic([1, 1, 1], [5, 5, 5])), answer(partial))
    assert [partition.leader for partition in cluster.topics["t"].partitions] == [1, 1, 3]


@pytest.mark.parametrize("number", [-1, 2**31 - 1])
def test_an_implausible_partition_number_is_a_violation(number: int) -> None:
    hostile = topic([1])
    hostile.partitions[0].partition_index = number
    with pytest.raises(ProtocolViolation, match="names 1 partitions of 't'"):
        after(answer(hostile))


def test_a_leader_hint_counts_when_its_epoch_is_newer() -> None:
    cluster = after(answer(topic([1], [5])))
    assert cluster.with_leaders({TP: LeaderHint(2, 5)}) is None
    assert cluster.with_leaders({TP: LeaderHint(9, 6)}) is None, "node 9 has no address"
    assert cluster.with_leaders({TopicPartition("t", 9): LeaderHint(2, 6)}) is None
    moved = cluster.with_leaders({TP: LeaderHint(2, 6)})
    assert moved is not None
    assert (moved.leader(TP), moved.version) == (2, cluster.version + 1)
    named = cluster.with_leaders({TP: LeaderHint(9, 6, Broker(9, "h9", 9009))})
    assert named is not None
    assert named.brokers[9].host == "h9"
    assert 9 not in cluster.brokers


def test_leader_hints_leave_the_topics_that_they_do_not_name_as_they_are() -> None:
    cluster = after(answer(topic([1, 1, 1], [5, 5, 5]), topic([1], [5], name="u", topic_id=ID_2)), wanted=("t", "u"))
    hints = {TopicPartition("t", 0): LeaderHint(2, 6), TopicPartition("t", 2): LeaderHint(2, 7)}
    moved = cluster.with_leaders(hints)
    assert moved is not None
    assert [partition.leader for partition in moved.topics["t"].partitions] == [2, 1, 2]
    assert moved.topics["u"] is cluster.topics["u"]
    assert moved.version == cluster.version + 1


# --- large responses --------------------------------------------------------------------------------------------------


def many(count: int, leader: int = 1) -> metadata.MetadataResponse:
    return answer(*(topic([leader, leader], name=f"t{number}") for number in range(count)))


def test_a_large_response_is_merged_in_slices() -> None:
    old = merge(Cluster(), many(SLICE), wanted=None, now=0)
    merging = Merge(old, many(SLICE, leader=2), wanted=None, now=1)
    slices = 1
    while not merging.advance():
        slices += 1
    assert slices == 3, "a topic counts as one, and each of its two partitions"
    new = merging.finish()
    assert len(new.topics) == len(merging.replaced) == SLICE
    assert {new.leader(TopicPartition(name, 1)) for name in new.topics} == {2}
    assert merging.is_changed


def test_unrequested_topics_count_too() -> None:
    merging = Merge(Cluster(), many(SLICE), wanted=("t7",), now=1)
    assert not merging.advance()
    assert merging.finish().topics.keys() <= {"t7"}


def test_the_same_response_again_changes_nothing() -> None:
    old = merge(Cluster(), many(3), wanted=None, now=0)
    merging = Merge(old, many(3), wanted=None, now=1)
    assert merging.advance()
    new = merging.finish()
    assert not merging.is_changed
    assert new.topics == old.topics
    assert new.topics["t1"].partitions[0] is old.topics["t1"].partitions[0]


@pytest.mark.parametrize(
    "changed",
    [many(4), many(2), many(3, leader=2), answer(*many(3).topics, nodes=2)],
    ids=["another topic", "a topic less", "leaders", "a broker less"],
)
def test_a_response_that_differs_is_a_change(changed: metadata.MetadataResponse) -> None:
    old = merge(Cluster(), many(3), wanted=None, now=0)
    merging = Merge(old, changed, wanted=None, now=1)
    assert merging.advance()
    merging.finish()
    assert merging.is_changed


def test_the_garbage_collector_does_not_go_through_topics_and_partitions() -> None:
    cluster = merge(merge(Cluster(), many(3), wanted=None, now=0), many(3, leader=2), wanted=None, now=1)
    for found in cluster.topics.values():
        assert not any(map(gc.is_tracked, [found, found.partitions, *found.partitions]))
