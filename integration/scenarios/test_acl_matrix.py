"""The same requests of a limited user get the same codes from Kafka and from the embedded broker.

`acl_matrix.json` has the codes of Kafka 4.3.1, captured by `python -m
integration.scenarios.test_acl_matrix`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import Request, Response, Struct, decode_response, encode_request
from aiokwire.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from aiokwire.records import BatchBuilder
from aiokwire.types import Compression
from integration.kafka.secure import SecureKafka, SecureServer, password

R = TypeVar("R", bound=Response)
EXPECTED = Path(__file__).with_name("acl_matrix.json")
TOPIC, GROUP, CLUSTER, TRANSACTION = 2, 3, 4, 5
ALL, READ, WRITE, DELETE, DESCRIBE, DESCRIBE_CONFIGS = 2, 3, 4, 6, 8, 10
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
TOPICS = ("read", "write", "describe", "delete", "hidden", "pre-open", "pre-denied")
GROUPS = ("group-read", "group-describe", "group-hidden")
TRANSACTIONS = ("txn-write", "txn-hidden")
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
PATIENCE = 30.0  # seconds


class Link:
    """A connection of a user, by PLAIN."""

    def __init__(self, broker: SecureServer, user: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", broker.access.ports["SASL_PLAINTEXT"]), timeout=PATIENCE)
        self._sent = 0
        assert self.ask(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        token = f"\0{user}\0{password(user)}".encode()
        assert self.ask(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), 2).error_code == 0

    def ask(self, request: Request[R], version: int) -> R:
        """Send a request and return the response."""
        self._sent += 1
        self._socket.sendall(b"".join(encode_request(request, version, self._sent, "matrix")))
        size = int.from_bytes(self._read(4), "big")
        return decode_response(self._read(size), cast("type[R]", type(request).RESPONSE), version)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data

    def close(self) -> None:
        self._socket.close()


class Users(NamedTuple):
    """The connections of the super user and of the limited one."""

    alice: Link
    bob: Link


def acl(kind: int, name: str, operation: int, permission: int = ALLOW, pattern: int = LITERAL) -> Any:
    return create_acls.AclCreation(
        resource_type=kind, resource_name=name, resource_pattern_type=pattern, principal="User:bob", host="*",
        operation=operation, permission_type=permission,
    )  # fmt: skip


ACLS = [
    acl(TOPIC, "read", READ),
    acl(TOPIC, "write", WRITE),
    acl(TOPIC, "describe", DESCRIBE),
    acl(TOPIC, "delete", DELETE),
    acl(TOPIC, "pre-", ALL, pattern=PREFIXED),
    acl(TOPIC, "pre-denied", READ, DENY),
    acl(TOPIC, "pre-denied", WRITE, DENY),
    acl(GROUP, "group-read", READ),
    acl(GROUP, "group-describe", DESCRIBE),
    acl(TRANSACTION, "txn-write", WRITE),
]
CLUSTER_ACLS = [acl(CLUSTER, "kafka-cluster", DESCRIBE), acl(CLUSTER, "kafka-cluster", DESCRIBE_CONFIGS)]


@contextlib.contextmanager
def logged_in(broker: SecureServer) -> Iterator[Users]:
    """Create the topics, groups, transactional ids and ACLs; yield the connections of the users."""
    with contextlib.closing(Link(broker, "alice")) as alice, contextlib.closing(Link(broker, "bob")) as bob:
        new = [create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        created = alice.ask(create_topics.CreateTopicsRequest(topics=new, timeout_ms=30_000), 5)
        assert codes(created) == {0}
        settle(alice, coordinator(0, *GROUPS), 4)
        settle(alice, coordinator(1, *TRANSACTIONS), 4)
        for group in GROUPS:
            settle(alice, committing(group, "hidden"), 8)
        for name in TRANSACTIONS:
            settle(alice, initializing(name), 4)
        assert codes(alice.ask(create_acls.CreateAclsRequest(creations=ACLS), 3)) == {0}
        until(lambda: codes(bob.ask(coordinator(1, "txn-write"), 4)) == {0})
        yield Users(alice, bob)


@pytest.fixture(scope="module")
def users(secure_broker: SecureServer) -> Iterator[Users]:
    with logged_in(secure_broker) as connections:
        yield connections


def settle(link: Link, request: Request[Any], version: int) -> None:
    """Repeat a request until its coordinator and its topics are ready."""
    until(lambda: codes(link.ask(request, version)) == {0})


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what Kafka's controller propagates."""
    deadline = time.perf_counter() + PATIENCE
    while not is_so():
        assert time.perf_counter() < deadline
        time.sleep(0.05)


# --- codes ------------------------------------------------------------------------------------------------------------

LABELS = ("name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "user")
OPERATIONS = ("topic_authorized_operations", "cluster_authorized_operations", "authorized_operations")


def rows(value: object, label: str = "") -> list[str]:
    """What a response has about each topic, group or resource: error codes, allowed operations."""
    if isinstance(value, list):
        return [row for one in value for row in rows(one, label)]
    if not isinstance(value, (Struct, Response)):
        return []
    names: tuple[str, ...] = type(value).__slots__
    own = [text for name in LABELS if name in names and isinstance(text := getattr(value, name), str) and text]
    label = own[0] if own else label
    found = [f"{label}: {ErrorCode.of(getattr(value, name)).name}" for name in names if name.endswith("error_code")]
    found += [f"{label}: {getattr(value, name):b}" for name in OPERATIONS if name in names]
    found += [row for name in names for row in rows(getattr(value, name), label)]
    return found or ([label] if own else [])


def codes(value: object) -> set[int]:
    names = {row.rpartition(": ")[2] for row in rows(value)}
    return {code.value for code in ErrorCode if code.name in names}


# --- requests ---------------------------------------------------------------------------------------------------------


def committing(group: str, *topics: str) -> offset_commit.OffsetCommitRequest:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    wanted = [offset_commit.OffsetCommitRequestTopic(name=one, partitions=[partition]) for one in topics]
    return offset_commit.OffsetCommitRequest(group_id=group, topics=wanted)


def initializing(name: str | None) -> init_producer_id.InitProducerIdRequest:
    return init_producer_id.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)


def coordinator(kind: int, *keys: str) -> find_coordinator.FindCoordinatorRequest:
    return find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))


def batch(*, transactional: bool = False) -> bytes:
    builder = BatchBuilder(2, 1 << 16)
    builder.append(1_700_000_000_000, None, b"v", ())
    if not transactional:
        return bytes(builder.seal(compression=Compression.NONE))
    return bytes(builder.seal(compression=Compression.NONE, producer_id=7, producer_epoch=0, base_sequence=0,
                              transactional=True))  # fmt: skip


def producing(*names: str, transactional_id: str | None = None) -> produce.ProduceRequest:
    records = batch(transactional=transactional_id is not None)
    data = [produce.PartitionProduceData(index=0, records=records)]
    topics = [produce.TopicProduceData(name=name, partition_data=data) for name in names]
    return produce.ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics)


def fetching(*names: str, replica_id: int = -1) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [fetch.FetchTopic(topic=name, partitions=[partition]) for name in names]
    return fetch.FetchRequest(replica_id=replica_id, max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics)


def seeing(*names: str, creating: bool = False) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics or None, allow_auto_topic_creation=creating)


def listing(*names: str) -> list_offsets.ListOffsetsRequest:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)
    topics = [list_offsets.ListOffsetsTopic(name=name, partitions=[partition]) for name in names]
    return list_offsets.ListOffsetsRequest(topics=topics)


def fetching_offsets(*groups: str, topics: tuple[str, ...] | None) -> offset_fetch.OffsetFetchRequest:
    wanted = None
    if topics is not None:
        wanted = [offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=wanted) for group in groups]
    return offset_fetch.OffsetFetchRequest(groups=asked)


def joining(group: str) -> join_group.JoinGroupRequest:
    protocols = [join_group.JoinGroupRequestProtocol(name="range", metadata=b"")]
    return join_group.JoinGroupRequest(
        group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
        protocols=protocols,
    )  # fmt: skip


def syncing(group: str) -> sync_group.SyncGroupRequest:
    return sync_group.SyncGroupRequest(
        group_id=group, member_id="m", protocol_type="consumer", protocol_name="range", generation_id=1
    )


def new_topics(*names: str) -> create_topics.CreateTopicsRequest:
    topics = [create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=True)


def deleting(*names: str) -> delete_topics.DeleteTopicsRequest:
    return delete_topics.DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)


def deleting_records(*names: str) -> delete_records.DeleteRecordsRequest:
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [delete_records.DeleteRecordsTopic(name=name, partitions=[partition]) for name in names]
    return delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)


def epochs(*names: str) -> offset_for_leader_epoch.OffsetForLeaderEpochRequest:
    partition = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [offset_for_leader_epoch.OffsetForLeaderTopic(topic=name, partitions=[partition]) for name in names]
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics)


def adding_partitions(transactional_id: str, *names: str) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=999_999,
        v3_and_below_topics=[
            add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names
        ],
    )


def verifying(transactional_id: str) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    one = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id, producer_id=1, verify_only=True,
        topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name="write", partitions=[0])],
    )  # fmt: skip
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[one])


def committing_in(transactional_id: str, group: str, *names: str) -> txn_offset_commit.TxnOffsetCommitRequest:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [txn_offset_commit.TxnOffsetCommitRequestTopic(name=name, partitions=[partition]) for name in names]
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactional_id, group_id=group, producer_id=999_999, topics=topics
    )


def marking() -> write_txn_markers.WriteTxnMarkersRequest:
    topics = [write_txn_markers.WritableTxnMarkerTopic(name="write", partition_indexes=[0])]
    marker = write_txn_markers.WritableTxnMarker(producer_id=1, producer_epoch=0, topics=topics)
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


CONFIGURED = ((2, "read"), (2, "hidden"), (2, "pre-open"), (4, "1"), (32, "group-read"))


def described_configs() -> describe_configs.DescribeConfigsRequest:
    resources = [
        describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=["none"])
        for kind, name in CONFIGURED
    ]
    return describe_configs.DescribeConfigsRequest(resources=resources)


def altered_configs() -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    change = incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value="100000000")
    resources = [
        incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
        for name in ("read", "hidden", "pre-open", "missing")
    ]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=True)


def replaced_configs() -> alter_configs.AlterConfigsRequest:
    resources = [
        alter_configs.AlterConfigsResource(resource_type=2, resource_name=name)
        for name in ("read", "hidden", "pre-open")
    ]
    return alter_configs.AlterConfigsRequest(resources=resources, validate_only=True)


def more_partitions(*names: str) -> create_partitions.CreatePartitionsRequest:
    topics = [create_partitions.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names]
    return create_partitions.CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=True)


def deleting_offsets(group: str, *names: str) -> offset_delete.OffsetDeleteRequest:
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topics = [offset_delete.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in names]
    return offset_delete.OffsetDeleteRequest(group_id=group, topics=topics)


def acls_of(name: str) -> describe_acls.DescribeAclsRequest:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, resource_name_filter=name, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip


def removed_acls(name: str, kind: int = TOPIC) -> delete_acls.DeleteAclsRequest:
    one = delete_acls.DeleteAclsFilter(
        resource_type_filter=kind, pattern_type_filter=3, resource_name_filter=name, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    return delete_acls.DeleteAclsRequest(filters=[one])


def producers_of(*names: str) -> describe_producers.DescribeProducersRequest:
    topics = [describe_producers.TopicRequest(name=name, partition_indexes=[0]) for name in names]
    return describe_producers.DescribeProducersRequest(topics=topics)


def beating(group: str, *names: str) -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=MEMBER, rebalance_timeout_ms=10_000, subscribed_topic_names=list(names),
        topic_partitions=[],
    )  # fmt: skip


def partitions_of(*names: str) -> describe_topic_partitions.DescribeTopicPartitionsRequest:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=name) for name in names]
    )


def quorum() -> describe_quorum.DescribeQuorumRequest:
    partition = describe_quorum.DescribeQuorumRequestPartitionData(partition_index=0)
    topic = describe_quorum.DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return describe_quorum.DescribeQuorumRequest(topics=[topic])


def quotas() -> alter_client_quotas.AlterClientQuotasRequest:
    entry = alter_client_quotas.AlterClientQuotasRequestEntryData(
        entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="x")],
        ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e6)],
    )
    return alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def credentials(user: str) -> describe_user_scram_credentials.DescribeUserScramCredentialsRequest:
    # Kafka 4.3.1 does not respond to a limited user who asks for all users.
    one = describe_user_scram_credentials.UserName(name=user)
    return describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=[one])


def removed_credentials() -> alter_user_scram_credentials.AlterUserScramCredentialsRequest:
    one = alter_user_scram_credentials.ScramCredentialDeletion(name="x", mechanism=1)
    return alter_user_scram_credentials.AlterUserScramCredentialsRequest(deletions=[one])


def reassigning() -> alter_partition_reassignments.AlterPartitionReassignmentsRequest:
    partition = alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=[1])
    topic = alter_partition_reassignments.ReassignableTopic(name="pre-open", partitions=[partition])
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=10_000)


def moving() -> alter_replica_log_dirs.AlterReplicaLogDirsRequest:
    topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(name="pre-open", partitions=[0])
    one = alter_replica_log_dirs.AlterReplicaLogDir(path="/nowhere", topics=[topic])
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[one])


def electing() -> elect_leaders.ElectLeadersRequest:
    partitions = [elect_leaders.TopicPartitions(topic="pre-open", partitions=[0])]
    return elect_leaders.ElectLeadersRequest(topic_partitions=partitions, timeout_ms=10_000)


EVERY = (*TOPICS, "missing", "pre-missing")
MATRIX: dict[str, tuple[int, Request[Any]]] = {
    "produce": (9, producing(*EVERY)),
    "produce, transactional, denied": (9, producing("write", transactional_id="txn-hidden")),
    "fetch": (12, fetching(*EVERY)),
    "fetch, follower": (12, fetching("read", replica_id=2)),
    "list offsets": (7, listing(*EVERY)),
    "metadata": (12, seeing(*EVERY)),
    "metadata, all": (12, seeing()),
    "metadata, all, v4": (4, seeing()),
    "metadata, creating": (9, seeing("missing", "read-missing", creating=True)),
    "offset commit": (8, committing("group-read", *EVERY)),
    "offset commit, no topic": (8, committing("group-read", "hidden")),
    "offset commit, group denied": (8, committing("group-describe", "read")),
    "offset fetch": (9, fetching_offsets(*GROUPS, topics=EVERY)),
    "offset fetch, all": (9, fetching_offsets(*GROUPS, topics=None)),
    "offset fetch, v7": (7, offset_fetch.OffsetFetchRequest(group_id="group-hidden", topics=None)),
    "offset fetch, v1": (
        1,
        offset_fetch.OffsetFetchRequest(
            group_id="group-hidden", topics=[offset_fetch.OffsetFetchRequestTopic(name="read", partition_indexes=[0])]
        ),
    ),
    "find group": (4, coordinator(0, *GROUPS, "group-missing")),
    "find transaction": (4, coordinator(1, *TRANSACTIONS)),
    "find group, v3": (3, find_coordinator.FindCoordinatorRequest(key="group-hidden")),
    "join": (7, joining("group-describe")),
    "heartbeat": (4, heartbeat.HeartbeatRequest(group_id="group-describe", member_id="m")),
    "heartbeat, allowed": (4, heartbeat.HeartbeatRequest(group_id="group-read", member_id="m")),
    "sync": (5, syncing("group-describe")),
    "leave": (
        5,
        leave_group.LeaveGroupRequest(group_id="group-describe", members=[leave_group.MemberIdentity(member_id="m")]),
    ),
    "describe groups": (5, describe_groups.DescribeGroupsRequest(groups=list(GROUPS))),
    "list groups": (4, list_groups.ListGroupsRequest()),
    "create topics": (5, new_topics("missing", "pre-missing", "read")),
    "delete topics": (5, deleting("read", "describe", "hidden", "missing", "pre-missing")),
    "delete topics, by id": (
        6,
        delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(topic_id=b"?" * 16)], timeout_ms=9999),
    ),
    "delete records": (2, deleting_records(*EVERY)),
    "init producer": (4, initializing(None)),
    "init producer, allowed": (4, initializing("txn-write")),
    "init producer, denied": (4, initializing("txn-hidden")),
    "epochs": (4, epochs(*EVERY)),
    "add partitions": (3, adding_partitions("txn-write", *EVERY)),
    "add partitions, denied": (3, adding_partitions("txn-hidden", "write")),
    "add partitions, of brokers": (4, verifying("txn-write")),
    "add offsets, transaction denied": (
        3,
        add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id="txn-hidden", group_id="group-read"),
    ),
    "add offsets, group denied": (
        3,
        add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id="txn-write", group_id="group-describe"),
    ),
    "end": (3, end_txn.EndTxnRequest(transactional_id="txn-hidden", producer_id=1)),
    "commit in a transaction": (3, committing_in("txn-write", "group-read", "hidden", "missing")),
    "commit in a transaction, group denied": (3, committing_in("txn-write", "group-describe", "read")),
    "commit in a transaction, denied": (3, committing_in("txn-hidden", "group-read", "read")),
    "markers": (1, marking()),
    "describe ACLs": (3, acls_of("read")),
    "create ACLs": (3, create_acls.CreateAclsRequest(creations=[acl(TOPIC, "hidden", READ)])),
    "delete ACLs": (3, removed_acls("read")),
    "describe configs": (4, described_configs()),
    "alter configs": (1, altered_configs()),
    "replace configs": (2, replaced_configs()),
    "log directories": (3, describe_log_dirs.DescribeLogDirsRequest(topics=None)),
    "move to a log directory": (2, moving()),
    "create partitions": (3, more_partitions("read", "hidden", "missing", "pre-open")),
    "delete groups": (2, delete_groups.DeleteGroupsRequest(groups_names=[*GROUPS, "group-missing"])),
    "elect": (2, electing()),
    "reassign": (0, reassigning()),
    "reassignments": (0, list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)),
    "delete offsets": (0, deleting_offsets("group-read", "read")),
    "quotas": (1, describe_client_quotas.DescribeClientQuotasRequest()),
    "alter quotas": (1, quotas()),
    "credentials": (0, credentials("x")),
    "alter credentials": (0, removed_credentials()),
    "quorum": (2, quorum()),
    "cluster": (1, describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)),
    "producers": (0, producers_of(*EVERY)),
    "transactions": (0, describe_transactions.DescribeTransactionsRequest(transactional_ids=[*TRANSACTIONS, "none"])),
    "list transactions": (1, list_transactions.ListTransactionsRequest()),
    "consumer group": (0, beating("group-describe", "read")),
    "consumer group, topic denied": (0, beating("group-read", "read", "hidden")),
    "describe consumer groups": (0, consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=list(GROUPS))),
    "config resources": (1, list_config_resources.ListConfigResourcesRequest()),
    "partitions": (0, partitions_of(*EVERY)),
    "partitions, all": (0, partitions_of()),
}


def answers(bob: Link) -> dict[str, list[str]]:
    """The rows of each response in the matrix."""
    return {name: sorted(rows(bob.ask(request, version))) for name, (version, request) in MATRIX.items()}


@contextlib.contextmanager
def describing(users: Users) -> Iterator[None]:
    """Let the limited user describe the cluster."""
    assert codes(users.alice.ask(create_acls.CreateAclsRequest(creations=CLUSTER_ACLS), 3)) == {0}
    until(lambda: codes(users.bob.ask(acls_of("read"), 3)) == {0})
    yield
    users.alice.ask(removed_acls("kafka-cluster", kind=CLUSTER), 3)
    until(lambda: codes(users.bob.ask(acls_of("read"), 3)) != {0})


def test_a_limited_user_gets_kafkas_codes(users: Users) -> None:
    assert answers(users.bob) == json.loads(EXPECTED.read_text())["limited"]


def test_a_user_who_may_describe_the_cluster_gets_kafkas_codes(users: Users) -> None:
    with describing(users):
        assert answers(users.bob) == json.loads(EXPECTED.read_text())["describing"]


def capture() -> None:
    """Write what Kafka 4.3.1 responds."""
    with SecureKafka() as kafka, logged_in(kafka) as users:
        found = {"limited": answers(users.bob)}
        with describing(users):
            found["describing"] = answers(users.bob)
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    capture()
