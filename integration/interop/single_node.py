"""Requests about a cluster of one node, to compare the embedded broker's responses with Kafka's."""

from __future__ import annotations

from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import (
    alter_partition_reassignments as alter_reassignments,
)
from aiokwire.protocol.messages import (
    alter_replica_log_dirs,
    describe_log_dirs,
    describe_quorum,
    elect_leaders,
    list_config_resources,
    list_partition_reassignments,
)

TOPIC = "single"
MISSING = "missing"
ANY = 4711  # replaces values that differ between two brokers


def _log_dirs(*topics: describe_log_dirs.DescribableLogDirTopic) -> describe_log_dirs.DescribeLogDirsRequest:
    return describe_log_dirs.DescribeLogDirsRequest(topics=list(topics))


def _quorum(topic: str, *partitions: int) -> describe_quorum.DescribeQuorumRequest:
    wanted = [describe_quorum.DescribeQuorumRequestPartitionData(partition_index=one) for one in partitions]
    return describe_quorum.DescribeQuorumRequest(
        topics=[describe_quorum.DescribeQuorumRequestTopicData(topic_name=topic, partitions=wanted)]
    )


def _reassign(*partitions: tuple[int, list[int] | None], topic: str = TOPIC) -> Request:
    wanted = [alter_reassignments.ReassignablePartition(partition_index=one, replicas=to) for one, to in partitions]
    return alter_reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=5000, topics=[alter_reassignments.ReassignableTopic(name=topic, partitions=wanted)]
    )


def _elect(kind: int, *topics: tuple[str, list[int]]) -> Request:
    wanted = [elect_leaders.TopicPartitions(topic=name, partitions=partitions) for name, partitions in topics]
    return elect_leaders.ElectLeadersRequest(election_type=kind, timeout_ms=5000, topic_partitions=wanted)


def _move(path: str, *topics: tuple[str, list[int]]) -> Request:
    wanted = [alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=one) for name, one in topics]
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        dirs=[alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=wanted)]
    )


def requests(data_dir: str) -> dict[str, Request]:
    """Return the requests by name; each is sent in all versions that both brokers support."""
    topic = describe_log_dirs.DescribableLogDirTopic
    listed = list_partition_reassignments.ListPartitionReassignmentsTopics
    return {
        "log dirs of one topic": _log_dirs(topic(topic=TOPIC, partitions=[0, 1])),
        "log dirs of some partitions": _log_dirs(topic(topic=TOPIC, partitions=[1, 9]), topic(topic=MISSING)),
        "log dirs of no topic": _log_dirs(),
        "log dirs of all topics": describe_log_dirs.DescribeLogDirsRequest(topics=None),
        "quorum": _quorum("__cluster_metadata", 0),
        "quorum of another topic": _quorum(TOPIC, 0),
        "quorum of another partition": _quorum("__cluster_metadata", 1),
        "quorum of nothing": describe_quorum.DescribeQuorumRequest(topics=[]),
        "config resources": list_config_resources.ListConfigResourcesRequest(resource_types=[]),
        "config resources: topics": list_config_resources.ListConfigResourcesRequest(resource_types=[2]),
        "config resources: brokers": list_config_resources.ListConfigResourcesRequest(resource_types=[4, 8]),
        "config resources: groups": list_config_resources.ListConfigResourcesRequest(resource_types=[16, 32]),
        "config resources: unknown": list_config_resources.ListConfigResourcesRequest(resource_types=[77]),
        "reassignments": list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
        "reassignments of some": list_partition_reassignments.ListPartitionReassignmentsRequest(
            topics=[listed(name=TOPIC, partition_indexes=[0, 9]), listed(name=MISSING, partition_indexes=[0])]
        ),
        "reassign to itself": _reassign((0, [1])),
        "reassign to a node that does not exist": _reassign((0, [7])),
        "reassign to a node twice": _reassign((0, [1, 1])),
        "reassign to more nodes": _reassign((0, [1, 2])),
        "reassign to nowhere": _reassign((0, [])),
        "reassign to a negative node": _reassign((0, [-1])),
        "cancel a reassignment": _reassign((0, None)),
        "reassign a missing partition": _reassign((9, [1]), (0, [1])),
        "reassign a missing topic": _reassign((0, [1]), topic=MISSING),
        "elect the preferred": _elect(0, (TOPIC, [0, 1])),
        "elect unclean": _elect(1, (TOPIC, [0])),
        "elect an unknown type": _elect(5, (TOPIC, [0])),
        "elect for what is missing": _elect(0, (TOPIC, [9]), (MISSING, [0])),
        "elect for all": elect_leaders.ElectLeadersRequest(election_type=0, timeout_ms=5000, topic_partitions=None),
        "move to its own directory": _move(data_dir, (TOPIC, [0]), (MISSING, [0])),
        "move to another directory": _move("/nowhere", (TOPIC, [0, 9]), (MISSING, [0])),
    }


def comparable(answer: Response) -> object:
    """Return a response as plain values, without those that differ between two brokers."""
    return _plain(answer)


_DIFFERENT = {
    "log_dir", "total_bytes", "usable_bytes", "partition_size", "error_message", "leader_epoch", "high_watermark",
    "log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp", "replica_directory_id", "host", "port",
    "throttle_time_ms", "name_of_listener",
}  # fmt: skip


def _plain(value: object) -> object:
    if isinstance(value, list):
        return sorted((_plain(one) for one in value), key=repr)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if not names:
        return value
    return {name: _kind(getattr(value, name)) if name in _DIFFERENT else _plain(getattr(value, name)) for name in names}


def _kind(value: object) -> object:
    """Return whether a value is set: a number above 0, a text, bytes that are not all zeros."""
    if isinstance(value, bytes):
        return any(value)
    return value > 0 if isinstance(value, int) else bool(value)
