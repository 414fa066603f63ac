"""A broker without replication: directories, quorum, elections, reassignments."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import (
    alter_partition_reassignments as alter_reassignments,
)
from aiokwire.protocol.messages import (
    alter_replica_log_dirs,
    describe_log_dirs,
    describe_quorum,
    elect_leaders,
    list_config_resources,
)
from tests.broker.raw import RawClient


def _sizes(answer: describe_log_dirs.DescribeLogDirsResponse) -> dict[str, list[int]]:
    (one,) = answer.results
    return {topic.name: [partition.partition_index for partition in topic.partitions] for topic in one.topics}


@pytest.mark.parametrize("version", range(6))
async def test_the_one_log_directory_is_described(client: RawClient, version: int) -> None:
    everything = await client.ask(describe_log_dirs.DescribeLogDirsRequest(topics=None), version)
    assert _sizes(everything) == {"t": [0, 1]}
    assert everything.results[0].log_dir == "memory"
    wanted = [
        describe_log_dirs.DescribableLogDirTopic(topic="t", partitions=[1, 9]),
        describe_log_dirs.DescribableLogDirTopic(topic="none", partitions=[0]),
    ]
    some = await client.ask(describe_log_dirs.DescribeLogDirsRequest(topics=wanted), version)
    assert _sizes(some) == {"t": [1]}


async def test_a_directory_on_disk_has_its_path_and_its_space(tmp_path: Path) -> None:
    async with Broker(tmp_path / "data") as broker:
        client = await RawClient.connect(broker)
        (one,) = (await client.ask(describe_log_dirs.DescribeLogDirsRequest(topics=None), 5)).results
        assert one.log_dir == str(tmp_path / "data")
        assert one.total_bytes >= one.usable_bytes > 0
        await client.close()


@pytest.mark.parametrize("version", range(3))
async def test_the_quorum_is_this_broker(broker: Broker, client: RawClient, version: int) -> None:
    asked = [
        describe_quorum.DescribeQuorumRequestTopicData(
            topic_name=name, partitions=[describe_quorum.DescribeQuorumRequestPartitionData(partition_index=0)]
        )
        for name in ("__cluster_metadata", "t")
    ]
    answer = await client.ask(describe_quorum.DescribeQuorumRequest(topics=asked), version)
    known, unknown = (topic.partitions[0] for topic in answer.topics)
    assert (known.error_code, known.leader_id) == (0, 1)
    assert [one.replica_id for one in known.current_voters] == [1]
    assert known.current_voters[0].log_end_offset == known.high_watermark > 0
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(one.node_id, one.listeners[0].port) for one in answer.nodes] == (
        [(1, broker.port)] if version == 2 else []
    )


async def test_resources_that_have_configs_are_listed(client: RawClient) -> None:
    answer = await client.ask(list_config_resources.ListConfigResourcesRequest(), 1)
    assert [(one.resource_type, one.resource_name) for one in answer.config_resources] == [(2, "t"), (4, "1"), (8, "1")]
    unknown = await client.ask(list_config_resources.ListConfigResourcesRequest(resource_types=[99]), 1)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (await client.ask(list_config_resources.ListConfigResourcesRequest(), 0)).config_resources == []


@pytest.mark.parametrize(
    ("topic", "partition", "replicas", "code"),
    [
        ("t", 0, [1], ErrorCode.NONE),
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 7, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_a_partition_can_only_stay_where_it_is(
    client: RawClient, topic: str, partition: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    wanted = alter_reassignments.ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [alter_reassignments.ReassignableTopic(name=topic, partitions=[wanted])]
    answer = await client.ask(alter_reassignments.AlterPartitionReassignmentsRequest(topics=topics), 1)
    assert [one.error_code for one in answer.responses[0].partitions] == [code]


@pytest.mark.parametrize(
    ("kind", "topic", "code"),
    [
        (0, "t", ErrorCode.ELECTION_NOT_NEEDED),
        (1, "t", ErrorCode.ELECTION_NOT_NEEDED),
        (0, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (9, "t", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_no_election_is_needed(client: RawClient, kind: int, topic: str, code: ErrorCode) -> None:
    wanted = [elect_leaders.TopicPartitions(topic=topic, partitions=[0])]
    answer = await client.ask(elect_leaders.ElectLeadersRequest(election_type=kind, topic_partitions=wanted), 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == code
    assert answer.error_code == (code if kind == 9 else ErrorCode.NONE)


@pytest.mark.parametrize(
    ("path", "topic", "code"),
    [
        ("memory", "t", ErrorCode.NONE),
        ("memory", "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/elsewhere", "t", ErrorCode.LOG_DIR_NOT_FOUND),
    ],
)
async def test_a_replica_stays_in_its_directory(client: RawClient, path: str, topic: str, code: ErrorCode) -> None:
    wanted = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=topic, partitions=[0])
    dirs = [alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=[wanted])]
    answer = await client.ask(alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=dirs), 2)
    assert answer.results[0].partitions[0].error_code == code
