"""The table of what each API requires is complete; each rule is necessary and sufficient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from aiokwire.broker.dispatch import APIS, Api, error_response
from aiokwire.broker.security import (
    CLUSTER_NAME,
    DENIED,
    RULES,
    WHOLE_RULES,
    Acl,
    AclOperation,
    ResourceType,
)
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, Request, Response, Struct, decode_response, encode_response, request_type
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
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from tests import acl_page
from tests.broker.raw import batch
from tests.broker.security.acting import allow, ask, opened

Op, Type = AclOperation, ResourceType
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
REFUSALS = {int(code) for code in DENIED.values()}


def on_topic(operation: AclOperation) -> Acl:
    return allow(operation, Type.TOPIC, "t")


def on_group(operation: AclOperation) -> Acl:
    return allow(operation, Type.GROUP, "g")


def on_transaction(operation: AclOperation = Op.WRITE) -> Acl:
    return allow(operation, Type.TRANSACTIONAL_ID, "x")


def on_cluster(operation: AclOperation) -> Acl:
    return allow(operation, Type.CLUSTER, CLUSTER_NAME)


class Case(NamedTuple):
    """A request, and the ACLs that it needs in order: without each, its code is returned."""

    version: int
    request: Request[Any]
    needed: list[tuple[Acl, ErrorCode]]


def producing(*, transactional: bool = False) -> produce.ProduceRequest:
    records = batch([b"v"], transactional=transactional, producer_id=1 if transactional else -1,
                    producer_epoch=0 if transactional else -1, base_sequence=0 if transactional else -1)  # fmt: skip
    data = produce.PartitionProduceData(index=0, records=records)
    topics = [produce.TopicProduceData(name="t", partition_data=[data])]
    return produce.ProduceRequest(transactional_id="x" if transactional else None, acks=-1, topic_data=topics)


def fetching(replica_id: int = -1) -> fetch.FetchRequest:
    topics = [fetch.FetchTopic(topic="t", partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
    return fetch.FetchRequest(replica_id=replica_id, max_wait_ms=0, max_bytes=1 << 20, topics=topics)


def coordinator(key_type: int, key: str) -> find_coordinator.FindCoordinatorRequest:
    return find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])


def described_configs(kind: int, name: str) -> describe_configs.DescribeConfigsRequest:
    one = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[])
    return describe_configs.DescribeConfigsRequest(resources=[one])


def altered_configs(kind: int, name: str) -> alter_configs.AlterConfigsRequest:
    one = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
    return alter_configs.AlterConfigsRequest(resources=[one])


def incremented_configs(kind: int, name: str) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    one = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[one])


def creating() -> create_topics.CreateTopicsRequest:
    new = create_topics.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[new], validate_only=True)


def deleting(version: int) -> delete_topics.DeleteTopicsRequest:
    if version < 6:
        return delete_topics.DeleteTopicsRequest(topic_names=["t"])
    return delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name="t")])


def asking_metadata(name: str = "t") -> metadata.MetadataRequest:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name)], allow_auto_topic_creation=name != "t"
    )


def committing(request_type: Any, group: str = "g", **fields: Any) -> Any:
    module = {"OffsetCommitRequest": offset_commit, "TxnOffsetCommitRequest": txn_offset_commit}[request_type.__name__]
    prefix = request_type.__name__
    partition = getattr(module, f"{prefix}Partition")(partition_index=0, committed_offset=1)
    return request_type(group_id=group, topics=[getattr(module, f"{prefix}Topic")(name="t", partitions=[partition])],
                        **fields)  # fmt: skip


def fetching_offsets() -> offset_fetch.OffsetFetchRequest:
    topics = [offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    return offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)])


def fetching_offsets_before_groups() -> offset_fetch.OffsetFetchRequest:
    return offset_fetch.OffsetFetchRequest(
        group_id="g", topics=[offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    )


def adding_partitions(version: int) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
    topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(name="t", partitions=[0])]
    if version < 4:
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
    one = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id="x", producer_id=1, producer_epoch=0, topics=topics
    )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[one])


def marking() -> write_txn_markers.WriteTxnMarkersRequest:
    topics = [write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    marker = write_txn_markers.WritableTxnMarker(producer_id=1, producer_epoch=0, topics=topics)
    return write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def describing_acls() -> describe_acls.DescribeAclsRequest:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, resource_name_filter=None, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip


def deleting_acls() -> delete_acls.DeleteAclsRequest:
    one = delete_acls.DeleteAclsFilter(
        resource_type_filter=2, pattern_type_filter=3, resource_name_filter="nothing", principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    return delete_acls.DeleteAclsRequest(filters=[one])


def creating_acls() -> create_acls.CreateAclsRequest:
    one = create_acls.AclCreation(resource_type=2, resource_name="u", resource_pattern_type=3, principal="User:u",
                                  host="*", operation=3, permission_type=3)  # fmt: skip
    return create_acls.CreateAclsRequest(creations=[one])


def beating() -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", rebalance_timeout_ms=1000, subscribed_topic_names=["t"],
        topic_partitions=[],
    )  # fmt: skip


def describing_quorum() -> describe_quorum.DescribeQuorumRequest:
    partition = describe_quorum.DescribeQuorumRequestPartitionData(partition_index=0)
    topic = describe_quorum.DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    return describe_quorum.DescribeQuorumRequest(topics=[topic])


CLUSTER_CASES: list[tuple[int, Request[Any], AclOperation]] = [
    (2, marking(), Op.CLUSTER_ACTION),
    (2, marking(), Op.ALTER),
    (3, describing_acls(), Op.DESCRIBE),
    (3, creating_acls(), Op.ALTER),
    (3, deleting_acls(), Op.ALTER),
    (
        2,
        alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_replica_log_dirs.AlterReplicaLogDir(
                    path="memory",
                    topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name="t", partitions=[0])],
                )
            ]
        ),
        Op.ALTER,
    ),
    (3, describe_log_dirs.DescribeLogDirsRequest(topics=None), Op.DESCRIBE),
    (
        2,
        elect_leaders.ElectLeadersRequest(topic_partitions=[elect_leaders.TopicPartitions(topic="t", partitions=[0])]),
        Op.ALTER,
    ),
    (
        1,
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name="t",
                    partitions=[alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=[1])],
                )
            ]
        ),
        Op.ALTER,
    ),
    (0, list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None), Op.DESCRIBE),
    (1, describe_client_quotas.DescribeClientQuotasRequest(), Op.DESCRIBE_CONFIGS),
    (
        1,
        alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.AlterClientQuotasRequestEntryData(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="u")],
                    ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e6)],
                )
            ]
        ),
        Op.ALTER_CONFIGS,
    ),
    (0, describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None), Op.DESCRIBE),
    (
        0,
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[alter_user_scram_credentials.ScramCredentialDeletion(name="u", mechanism=1)]
        ),
        Op.ALTER,
    ),
    (
        2,
        describing_quorum(),
        Op.DESCRIBE,
    ),
    (1, list_config_resources.ListConfigResourcesRequest(), Op.DESCRIBE_CONFIGS),
]

CASES = [
    Case(9, producing(), [(on_topic(Op.WRITE), TOPIC_DENIED)]),
    Case(9, producing(transactional=True),
         [(on_transaction(), TRANSACTION_DENIED), (on_topic(Op.WRITE), TOPIC_DENIED)]),
    Case(12, fetching(), [(on_topic(Op.READ), TOPIC_DENIED)]),
    Case(12, fetching(replica_id=2),
         [(on_cluster(Op.CLUSTER_ACTION), TOPIC_DENIED), (on_topic(Op.READ), TOPIC_DENIED)]),
    Case(
        7,
        list_offsets.ListOffsetsRequest(
            topics=[
                list_offsets.ListOffsetsTopic(
                    name="t", partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
                )
            ]
        ),
        [(on_topic(Op.DESCRIBE), TOPIC_DENIED)],
    ),
    Case(12, asking_metadata(), [(on_topic(Op.DESCRIBE), TOPIC_DENIED)]),
    Case(
        9,
        asking_metadata("new"),
        [(allow(Op.DESCRIBE, Type.TOPIC, "new"), TOPIC_DENIED), (allow(Op.CREATE, Type.TOPIC, "new"), TOPIC_DENIED)],
    ),
    Case(
        9,
        asking_metadata("new"),
        [(on_cluster(Op.CREATE), TOPIC_DENIED), (allow(Op.DESCRIBE, Type.TOPIC, "new"), TOPIC_DENIED)],
    ),
    Case(
        9,
        committing(offset_commit.OffsetCommitRequest),
        [(on_group(Op.READ), GROUP_DENIED), (on_topic(Op.READ), TOPIC_DENIED)],
    ),
    Case(9, fetching_offsets(), [(on_group(Op.DESCRIBE), GROUP_DENIED), (on_topic(Op.DESCRIBE), TOPIC_DENIED)]),
    Case(
        7,
        fetching_offsets_before_groups(),
        [(on_group(Op.DESCRIBE), GROUP_DENIED), (on_topic(Op.DESCRIBE), TOPIC_DENIED)],
    ),
    Case(1, fetching_offsets_before_groups(), [(on_group(Op.READ), GROUP_DENIED), (on_topic(Op.WRITE), TOPIC_DENIED)]),
    Case(6, coordinator(0, "g"), [(on_group(Op.DESCRIBE), GROUP_DENIED)]),
    Case(6, coordinator(1, "x"), [(on_transaction(Op.DESCRIBE), TRANSACTION_DENIED)]),
    Case(3, find_coordinator.FindCoordinatorRequest(key="g"), [(on_group(Op.DESCRIBE), GROUP_DENIED)]),
    Case(0, find_coordinator.FindCoordinatorRequest(key="g"), [(on_group(Op.DESCRIBE), GROUP_DENIED)]),
    Case(
        7,
        join_group.JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        [(on_group(Op.READ), GROUP_DENIED)],
    ),
    Case(4, heartbeat.HeartbeatRequest(group_id="g", member_id="m"), [(on_group(Op.READ), GROUP_DENIED)]),
    Case(
        5,
        leave_group.LeaveGroupRequest(group_id="g", members=[leave_group.MemberIdentity(member_id="m")]),
        [(on_group(Op.READ), GROUP_DENIED)],
    ),
    Case(5, sync_group.SyncGroupRequest(group_id="g", member_id="m"), [(on_group(Op.READ), GROUP_DENIED)]),
    Case(5, describe_groups.DescribeGroupsRequest(groups=["g"]), [(on_group(Op.DESCRIBE), GROUP_DENIED)]),
    Case(7, creating(), [(allow(Op.CREATE, Type.TOPIC, "new"), TOPIC_DENIED),
                         (allow(Op.DESCRIBE_CONFIGS, Type.TOPIC, "new"), TOPIC_DENIED)]),
    Case(4, creating(), [(on_cluster(Op.CREATE), TOPIC_DENIED)]),
    Case(6, deleting(6), [(on_topic(Op.DESCRIBE), TOPIC_DENIED), (on_topic(Op.DELETE), TOPIC_DENIED)]),
    Case(5, deleting(5), [(on_cluster(Op.DELETE), TOPIC_DENIED)]),
    Case(
        2,
        delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name="t", partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
                )
            ]
        ),
        [(on_topic(Op.DELETE), TOPIC_DENIED)],
    ),
    Case(5, init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
         [(on_transaction(), TRANSACTION_DENIED)]),
    Case(5, init_producer_id.InitProducerIdRequest(transactional_id=None),
         [(on_cluster(Op.IDEMPOTENT_WRITE), CLUSTER_DENIED)]),
    Case(5, init_producer_id.InitProducerIdRequest(transactional_id=None),
         [(allow(Op.WRITE, Type.TOPIC, "any"), CLUSTER_DENIED)]),
    *[
        Case(
            4,
            offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                topics=[
                    offset_for_leader_epoch.OffsetForLeaderTopic(
                        topic="t",
                        partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)],
                    )
                ]
            ),
            [(acl, TOPIC_DENIED)],
        )
        for acl in (on_cluster(Op.CLUSTER_ACTION), on_topic(Op.DESCRIBE))
    ],
    Case(3, adding_partitions(3), [(on_transaction(), TRANSACTION_DENIED), (on_topic(Op.WRITE), TOPIC_DENIED)]),
    Case(5, adding_partitions(5), [(on_cluster(Op.CLUSTER_ACTION), CLUSTER_DENIED)]),
    Case(
        4,
        add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id="x", producer_id=1, group_id="g"),
        [(on_transaction(), TRANSACTION_DENIED), (on_group(Op.READ), GROUP_DENIED)],
    ),
    Case(5, end_txn.EndTxnRequest(transactional_id="x", producer_id=1), [(on_transaction(), TRANSACTION_DENIED)]),
    Case(
        5,
        committing(txn_offset_commit.TxnOffsetCommitRequest, transactional_id="x", producer_id=1, producer_epoch=0),
        [(on_transaction(), TRANSACTION_DENIED), (on_group(Op.READ), GROUP_DENIED), (on_topic(Op.READ), TOPIC_DENIED)],
    ),
    *[
        Case(version, making(kind, name), [(acl, code)])
        for version, making, operation in (
            (4, described_configs, Op.DESCRIBE_CONFIGS),
            (2, altered_configs, Op.ALTER_CONFIGS),
            (1, incremented_configs, Op.ALTER_CONFIGS),
        )
        for kind, name, acl, code in (
            (2, "t", on_topic(operation), TOPIC_DENIED),
            (4, "1", on_cluster(operation), CLUSTER_DENIED),
            (8, "1", on_cluster(operation), CLUSTER_DENIED),
            (32, "g", on_group(operation), GROUP_DENIED),
        )
    ],
    Case(
        3,
        create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name="t", count=5, assignments=None)], validate_only=True
        ),
        [(on_topic(Op.ALTER), TOPIC_DENIED)],
    ),
    Case(2, delete_groups.DeleteGroupsRequest(groups_names=["g"]), [(on_group(Op.DELETE), GROUP_DENIED)]),
    Case(
        0,
        offset_delete.OffsetDeleteRequest(
            group_id="g",
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name="t", partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        [(on_group(Op.DELETE), GROUP_DENIED)],
    ),
    Case(
        0,
        describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name="t", partition_indexes=[0])]
        ),
        [(on_topic(Op.READ), TOPIC_DENIED)],
    ),
    Case(
        0,
        describe_transactions.DescribeTransactionsRequest(transactional_ids=["x"]),
        [(on_transaction(Op.DESCRIBE), TRANSACTION_DENIED)],
    ),
    Case(1, beating(), [(on_group(Op.READ), GROUP_DENIED), (on_topic(Op.DESCRIBE), TOPIC_DENIED)]),
    Case(
        1,
        consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"]),
        [(on_group(Op.DESCRIBE), GROUP_DENIED)],
    ),
    Case(
        0,
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name="t")]
        ),
        [(on_topic(Op.DESCRIBE), TOPIC_DENIED)],
    ),
    *[Case(version, request, [(on_cluster(needed), CLUSTER_DENIED)]) for version, request, needed in CLUSTER_CASES],
]  # fmt: skip


@pytest.fixture
def state() -> Iterator[BrokerState]:
    running = opened(num_partitions=1)
    running.topics.create("t", 1, {})
    yield running
    running.groups.close()
    running.close()


def codes(value: object) -> set[int]:
    """Every error code in a response, at any depth."""
    found: set[int] = set()
    if isinstance(value, list):
        return found.union(*map(codes, value))
    if isinstance(value, (Struct, Response)):
        names: tuple[str, ...] = type(value).__slots__
        for name in names:
            part = getattr(value, name)
            found |= {part} if name.endswith("error_code") else codes(part)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{type(case.request).API.name.lower()}-v{case.version}")
async def test_each_rule_denies_and_suffices(state: BrokerState, case: Case) -> None:
    assert state.authorizer is not None
    for acl, code in case.needed:
        assert codes(await ask(state, case.request, case.version)) & REFUSALS == {code}
        await state.authorizer.create([acl])
    assert not codes(await ask(state, case.request, case.version)) & REFUSALS


def test_every_api_has_a_row() -> None:
    assert {ApiKey(key) for key in APIS} <= RULES.keys()


def test_the_page_of_rules_is_up_to_date() -> None:
    assert acl_page.PAGE.read_text() == acl_page.page(), "run `python -m tests.acl_page`"


def test_every_api_with_a_rule_that_refuses_has_a_case() -> None:
    # These leave out denied resources instead of returning an error: they have their own tests.
    quiet = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_CLUSTER}
    tokens = {key for key in RULES if key.name.endswith("_DELEGATION_TOKEN")}
    tried = {type(case.request).API for case in CASES}
    assert {key for key, rules in RULES.items() if rules and key in APIS} - quiet - tokens <= tried


@pytest.mark.parametrize("api", [api for key, api in APIS.items() if key in WHOLE_RULES], ids=lambda api: api.module)
def test_every_rule_of_a_whole_request_has_a_response(api: Api) -> None:
    for version in range(api.served_from, api.last + 1):
        kind = request_type(api.key)
        for rule in WHOLE_RULES[api.key]:
            assert not rule.field or rule.field in kind.__slots__
            response = error_response(kind(), version, DENIED[rule.resource])
            sent = b"".join(bytes(part) for part in encode_response(response, version, 1))[4:]
            decode_response(sent, kind.RESPONSE, version)
