"""Valid requests for any API, with the topics and groups that they need."""

from __future__ import annotations

import time
import types
import typing
from typing import Any

from aiokwire.errors import UnsupportedVersion
from aiokwire.protocol import ZERO_UUID, ApiKey, Message, Request, encode_embedded
from aiokwire.protocol._codec import PlainWriter
from aiokwire.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    create_topics,
    find_coordinator,
    init_producer_id,
    join_group,
    metadata,
    sync_group,
)
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedPartition
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from aiokwire.records import BatchBuilder
from integration.golden.asker import Asker

Q = typing.TypeVar("Q", bound=Request)

TOPIC = "golden"
_ATTEMPTS, _PAUSE_SECONDS = 100, 0.1
_MAGIC_1, _MAGIC_2 = 2, 3  # the first Produce versions that carry these message formats

# The values of fields, by name or by "Class.name".
VALUES: dict[str, Any] = {
    "topic": TOPIC,
    "topic_name": TOPIC,
    "acks": -1,
    "timeout_ms": 5000,
    "validate_only": False,
    "partition_max_bytes": 4096,
    "max_bytes": 4096,
    "replica_id": -1,
    "timestamp": -1,
    "max_num_offsets": 2,
    "committed_offset": 1,
    "committed_metadata": "note",
    "retention_time_ms": -1,
    "session_timeout_ms": 30_000,
    "rebalance_timeout_ms": 30_000,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "transaction_timeout_ms": 10_000,
    "key_type": 0,
    "num_partitions": 1,
    "replication_factor": 1,
    "resource_type": 2,
    "resource_name": TOPIC,
    "resource_type_filter": 2,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
    "configuration_keys": ["retention.ms", "cleanup.policy"],
    "broker_ids": [1],
    "replicas": [1],
    "include_synonyms": True,
    "allow_auto_topic_creation": True,
    "client_software_name": "golden",
    "client_software_version": "1",
    "SaslHandshakeRequest.mechanism": "PLAIN",
    "ScramCredentialUpsertion.mechanism": 1,
    "ScramCredentialDeletion.mechanism": 1,
    "iterations": 4096,
    "broker_id": 99,
    "election_type": 0,
    "response_partition_limit": 10,
    "principal_type": "User",
    "host": "localhost",
    # Names that mean a topic here, and other things elsewhere.
    "TopicProduceData.name": TOPIC,
    "ListOffsetsTopic.name": TOPIC,
    "MetadataRequestTopic.name": TOPIC,
    "OffsetCommitRequestTopic.name": TOPIC,
    "OffsetFetchRequestTopic.name": TOPIC,
    "OffsetFetchRequestTopics.name": TOPIC,
    "AddPartitionsToTxnTopic.name": TOPIC,
    "TxnOffsetCommitRequestTopic.name": TOPIC,
    "DeleteRecordsTopic.name": TOPIC,
    "OffsetDeleteRequestTopic.name": TOPIC,
    "TopicRequest.name": TOPIC,
    "AlterReplicaLogDirTopic.name": TOPIC,
    "CreatePartitionsTopic.name": TOPIC,
    "CreatePartitionsTopic.count": 2,
    "ReassignableTopic.name": TOPIC,
    "ListPartitionReassignmentsTopics.name": TOPIC,
    "OffsetForLeaderTopic.topic": TOPIC,
    "JoinGroupRequestProtocol.name": "range",
    "JoinGroupRequestProtocol.metadata": encode_embedded(ConsumerProtocolSubscription(topics=[TOPIC]), 0),
    "SyncGroupRequestAssignment.assignment": encode_embedded(
        ConsumerProtocolAssignment(assigned_partitions=[AssignedPartition(topic=TOPIC, partitions=[0])]), 0
    ),
    "CreatableTopicConfig.name": "retention.ms",
    "CreatableTopicConfig.value": "3600000",
    "AlterableConfig.name": "retention.ms",
    "AlterableConfig.value": "7200000",
    "DescribeUserScramCredentialsRequest.users": None,
    "DescribeClientQuotasRequest.components": [],
    "AlterClientQuotasRequest.entries": [],
    "UpdateFeaturesRequest.feature_updates": [],
    "DescribeTopicPartitionsRequest.cursor": None,
    "CreatePartitionsTopic.assignments": None,
    "CreatableTopic.assignments": [],
    "ShareFetchRequest.forgotten_topics_data": [],
    "FetchRequest.forgotten_topics_data": [],
    "FetchRequest.session_epoch": -1,
    "CreateDelegationTokenRequest.renewers": [],
    "subscribed_topic_names": [TOPIC],
    "DeleteTopicState.topic_id": ZERO_UUID,
    "MetadataRequestTopic.topic_id": ZERO_UUID,
    "ConsumerGroupHeartbeatRequest.topic_partitions": [],
    "FetchPartition.acknowledgement_batches": [],
}
_NEEDS_MEMBER = {
    ApiKey.HEARTBEAT,
    ApiKey.SYNC_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.DESCRIBE_GROUPS,
}
_NEWER_GROUPS = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
}
_NEEDS_PRODUCER = {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT}


class Requests:
    """Creates the requests for one broker, and the topics, groups and producers that they need."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._count = 0
        self._values = dict(VALUES)
        self._values["topic_id"] = self._make_topic()
        self._values["group_id"] = self._values["group"] = self._find_group_coordinator()

    def make(self, kind: type[Request], version: int) -> Request:
        """Return a request with the fields of this version."""
        self._count += 1
        api = kind.API
        values = self._values | {
            "CreatableTopic.name": f"made-{version}",
            "DeleteTopicState.name": f"made-{version}",
            "topic_names": [f"made-{version}"],
            "PartitionProduceData.records": _records(version),
            "member_id": "",
            "transactional_id": None if api is ApiKey.PRODUCE else f"golden-{self._count}",
            "key": self._values["group_id"],
            "coordinator_keys": [self._values["group_id"]],
            "groups_names": [self._values["group_id"]],
            "transactional_ids": ["golden-1"],
        }
        if api in _NEEDS_MEMBER:
            values |= self._member(synced=api is not ApiKey.SYNC_GROUP)
        elif api is ApiKey.JOIN_GROUP:
            values["group_id"] = f"golden-{self._count}"
        elif api is ApiKey.INIT_PRODUCER_ID:
            self._initialized(values["transactional_id"])
        elif api in _NEEDS_PRODUCER:
            values |= self._producer(api)
        elif api in _NEWER_GROUPS:
            group = f"golden-{api.name.partition('_')[0]}"
            values |= {"group_id": group, "group_ids": [group], "member_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
        return _request(kind, version, values)

    def _make_topic(self) -> bytes:
        """Create the topic, wait for its leader, and return its id."""
        if ApiKey.CREATE_TOPICS in self._asker.served:
            create = create_topics.CreateTopicsRequest(
                topics=[create_topics.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)],
                timeout_ms=5000,
            )
            self._asker.ask(create, self._asker.newest(create_topics.CreateTopicsRequest))
        version = self._asker.newest(metadata.MetadataRequest)
        for _ in range(_ATTEMPTS):
            asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
            (topic,) = self._asker.ask(asked, version).topics
            if topic.error_code == 0 and all(item.leader_id >= 0 for item in topic.partitions):
                return topic.topic_id
            time.sleep(_PAUSE_SECONDS)
        raise TimeoutError(f"the topic has no leader: {topic!r}")

    def _find_group_coordinator(self) -> str:
        """Wait until the coordinators are available; return the group that other requests name."""
        kinds = (0, 1) if ApiKey.INIT_PRODUCER_ID in self._asker.served else (0,)
        version = self._asker.newest(find_coordinator.FindCoordinatorRequest)
        for kind in kinds:
            asked = _request(
                find_coordinator.FindCoordinatorRequest,
                version,
                {"key": TOPIC, "coordinator_keys": [TOPIC], "key_type": kind},
            )
            for _ in range(_ATTEMPTS):
                answer = self._asker.ask(asked, version)
                if answer.error_code == 0 and all(item.error_code == 0 for item in answer.coordinators):
                    break
                time.sleep(_PAUSE_SECONDS)
        return TOPIC

    def _member(self, *, synced: bool) -> dict[str, Any]:
        """Create a group with one member."""
        if ApiKey.JOIN_GROUP not in self._asker.served:  # 0.8: a commit without a membership
            return {"generation_id_or_member_epoch": -1, "generation_id": -1}
        group = f"golden-{self._count}"
        version = min(2, self._asker.newest(join_group.JoinGroupRequest))
        values = self._values | {"group_id": group, "member_id": ""}
        for _ in range(_ATTEMPTS):
            joined = self._asker.ask(_request(join_group.JoinGroupRequest, version, values), version)
            if joined.error_code == 0:
                found = {
                    "group_id": group,
                    "groups": [group],
                    "member_id": joined.member_id,
                    "generation_id": joined.generation_id,
                    "generation_id_or_member_epoch": joined.generation_id,
                }
                if synced:
                    self._asker.exchange(_request(sync_group.SyncGroupRequest, 0, self._values | found), 0)
                return found
            time.sleep(_PAUSE_SECONDS)
        raise TimeoutError(f"the member could not join: {joined!r}")

    def _producer(self, api: ApiKey) -> dict[str, Any]:
        """Allocate a producer id, in a transaction if the request needs one."""
        name = f"golden-{self._count}"
        made = self._initialized(name)
        values = {
            "transactional_id": name,
            "v3_and_below_transactional_id": name,
            "producer_id": made.producer_id,
            "v3_and_below_producer_id": made.producer_id,
            "producer_epoch": made.producer_epoch,
            "v3_and_below_producer_epoch": made.producer_epoch,
        }
        if api is not ApiKey.ADD_PARTITIONS_TO_TXN:
            topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])]
            add = add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=topics,
            )
            self._asker.ask(add, 3)
        if api is ApiKey.TXN_OFFSET_COMMIT:
            also = self._values | values
            self._asker.exchange(_request(add_offsets_to_txn.AddOffsetsToTxnRequest, 3, also), 3)
        return values

    def _initialized(self, name: str) -> init_producer_id.InitProducerIdResponse:
        """Return the producer id of a transactional id, once its coordinator is available."""
        request = init_producer_id.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000)
        for _ in range(_ATTEMPTS):
            made = self._asker.ask(request, 4)
            if made.error_code == 0:
                return made
            time.sleep(_PAUSE_SECONDS)
        raise TimeoutError(f"no producer id: {made!r}")


def _records(version: int) -> bytes:
    """Return one record in the message format of a Produce version."""
    builder = BatchBuilder(magic=2 if version >= _MAGIC_2 else 1 if version >= _MAGIC_1 else 0, size_limit=1 << 16)
    builder.append(int(time.time() * 1000), b"key", b"value", ())  # noqa: TID251 - the broker's clock is this one
    return bytes(builder.seal())


def _request(kind: type[Q], version: int, values: dict[str, Any]) -> Q:
    return typing.cast("Q", _filled(kind, version, values))


def _filled(kind: type[Message], version: int, values: dict[str, Any]) -> Message:
    """Return a message with the fields of its version, and one item in each list of structs."""
    made = kind()
    for name, hint in typing.get_type_hints(kind.__init__).items():
        if name in ("return", "unknown_tags"):
            continue
        value = _value(kind, name, hint, version, values)
        if _carries(kind, name, value, version):
            setattr(made, name, value)
    return made


def _value(kind: type[Message], name: str, hint: Any, version: int, values: dict[str, Any]) -> Any:
    for key in (f"{kind.__name__}.{name}", name):
        if key in values:
            return values[key]
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is not list:
        return getattr(kind(), name)
    item = typing.get_args(hint)[0]
    if issubclass(item, Message):
        return [_filled(item, version, values)]
    # Lists of plain values, mostly partitions.
    return [0] if item is int and "partition" in name else getattr(kind(), name)


def _carries(kind: type[Message], name: str, value: Any, version: int) -> bool:
    made = kind()
    setattr(made, name, value)
    try:
        made.encode(PlainWriter(), version)
    except UnsupportedVersion:
        return False
    return bool(value != ZERO_UUID)
