"""What several handlers say in the same way."""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import Client
from aiokwire.broker.topics import Partition, Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.types import TopicPartition

# Bits by ACL operation, as a broker without an authorizer answers: everything is allowed.
TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
# On groups: read, delete, describe, describe and alter configs.
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
NOT_ASKED = -(2**31)

# Resource types of the config APIs.
TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
GROUP = 32


def find_topic(call: Call, name: str | None, topic_id: bytes) -> tuple[Topic | None, ErrorCode]:
    """A topic by its id where one is given, else by name; the code says what is wrong when there is none."""
    if topic_id != ZERO_UUID:
        topic = call.state.topics.by_id(topic_id)
        return topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_ID
    topic = call.state.topics.get(name or "")
    return topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def partition_fault(call: Call, partition: Partition) -> ErrorCode:
    """What keeps this node from serving a partition: a test's rule, or that another node leads it."""
    if call.faults is not None:
        code = call.faults.code(partition.topic.name, partition.index)
        if code is not ErrorCode.NONE:
            return code
    return ErrorCode.NONE if partition.leader == call.node.id else ErrorCode.NOT_LEADER_OR_FOLLOWER


def epoch_fault(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    """What is wrong with the leader epoch that a client believes in (KIP-320); -1 is none."""
    if current_leader_epoch < 0 or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def fenced_code(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """The code as clients of that version know it: PRODUCER_FENCED is younger than the transactions."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def offset_fault(call: Call, tp: TopicPartition, metadata: str | None) -> ErrorCode:
    """Why an offset cannot be committed, whoever commits it."""
    if call.state.topics.partition(*tp) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len((metadata or "").encode()) > call.state.configs.integer("offset.metadata.max.bytes"):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def client_of(call: Call) -> Client:
    """Who sends a request, as groups remember it; the host is written as Java does."""
    return Client(call.client_id or "", f"/{call.peer.rpartition(':')[0]}")


def group_fault(call: Call, group_id: str) -> ErrorCode:
    """Why this node cannot say anything about a group, where a request names several."""
    state = call.state
    if state.plays_several and state.nodes.coordinator(group_id).id != call.node.id:
        return ErrorCode.NOT_COORDINATOR
    return state.groups.load_fault(group_id)
