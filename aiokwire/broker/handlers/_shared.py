"""Helpers of several handlers."""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import Client
from aiokwire.broker.topics import Partition, Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.types import TopicPartition

# Bits by ACL operation, as of a broker without an authorizer: everything is allowed.
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
    """Return a topic by id if there is one, else by name; and the error if it does not exist."""
    if topic_id != ZERO_UUID:
        topic = call.state.topics.by_id(topic_id)
        return topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_ID
    topic = call.state.topics.get(name or "")
    return topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def partition_fault(call: Call, partition: Partition) -> ErrorCode:
    """Return why this node may not serve a partition (a test's rule; not its leader), or NONE."""
    if call.faults is not None:
        code = call.faults.code(partition.topic.name, partition.index)
        if code is not ErrorCode.NONE:
            return code
    return ErrorCode.NONE if partition.leader == call.node.id else ErrorCode.NOT_LEADER_OR_FOLLOWER


def epoch_fault(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    """Return the error of a client's current leader epoch (KIP-320), or NONE; -1 means unknown."""
    if current_leader_epoch < 0 or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def fenced_code(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """Return the code for clients of that version: older ones do not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def offset_fault(call: Call, tp: TopicPartition, metadata: str | None) -> ErrorCode:
    """Return why an offset may not be committed by any client, or NONE."""
    if call.state.topics.partition(*tp) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len((metadata or "").encode()) > call.state.configs.integer("offset.metadata.max.bytes"):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def client_of(call: Call) -> Client:
    """Return the sender of a request; the host has Java's format."""
    return Client(call.client_id or "", f"/{call.peer.rpartition(':')[0]}")


def group_fault(call: Call, group_id: str) -> ErrorCode:
    """Return why this node may not answer for a group, for requests that name several, or NONE."""
    state = call.state
    if state.plays_several and state.nodes.coordinator(group_id).id != call.node.id:
        return ErrorCode.NOT_COORDINATOR
    return state.groups.load_fault(group_id)
