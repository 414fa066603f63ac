"""What a limited user sees and changes: topics are hidden, left out, or denied individually."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire.broker.dispatch import CloseConnection
from aiokwire.broker.security import CLUSTER_NAME, Acl, AclOperation, ResourceType
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_groups,
    describe_topic_partitions,
    describe_transactions,
    fetch,
    init_producer_id,
    list_groups,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
)
from tests.broker.raw import batch
from tests.broker.security.acting import ADMIN, ALICE, allow, ask, deny, opened

Op, Type = AclOperation, ResourceType
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_ASKED = -(2**31)


@pytest.fixture
def state() -> Iterator[BrokerState]:
    running = opened(num_partitions=1)
    for name in ("open", "secret"):
        running.topics.create(name, 1, {})
    yield running
    running.groups.close()
    running.close()


async def grant(state: BrokerState, *acls: Acl) -> None:
    assert state.authorizer is not None
    await state.authorizer.create(acls)


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def named(*names: str, **fields: Any) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False, **fields)


def committing(group: str, *topics: str) -> offset_commit.OffsetCommitRequest:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    rows = [offset_commit.OffsetCommitRequestTopic(name=one, partitions=[partition]) for one in topics]
    return offset_commit.OffsetCommitRequest(group_id=group, topics=rows)


# --- metadata ---------------------------------------------------------------------------------------------------------


async def test_all_topics_are_those_that_the_user_may_describe(state: BrokerState) -> None:
    await grant(state, allow(Op.READ, Type.TOPIC, "open"))
    seen = await ask(state, metadata.MetadataRequest(topics=None), 12)
    assert [one.name for one in seen.topics] == ["open"]
    everything = await ask(state, metadata.MetadataRequest(topics=None), 12, ADMIN)
    assert [one.name for one in everything.topics] == ["open", "secret"]
    first = await ask(state, metadata.MetadataRequest(topics=[]), 0)
    assert [one.name for one in first.topics] == ["open"]


async def test_a_hidden_topic_looks_like_a_missing_one(state: BrokerState) -> None:
    seen = await ask(state, named("secret", "missing"), 12)
    rows = [(one.error_code, one.topic_id, one.partitions) for one in seen.topics]
    assert rows == [(TOPIC_DENIED, bytes(16), [])] * 2


async def test_a_hidden_topic_asked_for_by_id_keeps_its_name(state: BrokerState) -> None:
    topic_id = state.topics.require("secret").id
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=None, topic_id=topic_id)])
    (one,) = (await ask(state, asked, 12)).topics
    assert (one.error_code, one.name, one.topic_id) == (TOPIC_DENIED, None, topic_id)


async def test_only_what_the_user_may_create_is_created(state: BrokerState) -> None:
    await grant(
        state,
        allow(Op.CREATE, Type.TOPIC, "mine"),
        allow(Op.DESCRIBE, Type.TOPIC, "mine"),
        allow(Op.DESCRIBE, Type.TOPIC, "yours"),
    )
    request = named("mine", "yours", "hidden")
    request.allow_auto_topic_creation = True
    seen = await ask(state, request, 9)
    assert [one.error_code for one in seen.topics] == [0, TOPIC_DENIED, TOPIC_DENIED]
    assert [state.topics.get(name) is not None for name in ("mine", "yours", "hidden")] == [True, False, False]


async def test_allowed_operations_are_a_bit_each(state: BrokerState) -> None:
    await grant(
        state,
        allow(Op.WRITE, Type.TOPIC, "open"),
        allow(Op.ALTER_CONFIGS, Type.TOPIC, "open"),
        allow(Op.DESCRIBE, Type.CLUSTER, CLUSTER_NAME),
    )
    request = named("open", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
    seen = await ask(state, request, 9)
    on_topic = bits(Op.WRITE, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
    assert seen.topics[0].topic_authorized_operations == on_topic
    assert seen.cluster_authorized_operations == bits(Op.DESCRIBE)
    described = await ask(state, describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert described.cluster_authorized_operations == bits(Op.DESCRIBE)
    partitions = await ask(
        state,
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in ("open", "secret")]
        ),
        0,
    )
    assert [(one.error_code, one.topic_authorized_operations) for one in partitions.topics] == [
        (0, on_topic),
        (TOPIC_DENIED, NOT_ASKED),
    ]


async def test_without_describe_on_the_cluster_its_operations_are_none(state: BrokerState) -> None:
    await grant(state, allow(Op.CREATE, Type.CLUSTER, CLUSTER_NAME))
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert (await ask(state, request, 1)).cluster_authorized_operations == 0


async def test_all_partitions_are_those_of_visible_topics(state: BrokerState) -> None:
    await grant(state, allow(Op.DESCRIBE, Type.TOPIC, "open"))
    seen = await ask(state, describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[]), 0)
    assert [one.name for one in seen.topics] == ["open"]


# --- topics -----------------------------------------------------------------------------------------------------------


async def test_a_created_topic_hides_its_configs(state: BrokerState) -> None:
    await grant(state, allow(Op.CREATE, Type.CLUSTER, CLUSTER_NAME))
    new = create_topics.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    (one,) = (await ask(state, create_topics.CreateTopicsRequest(topics=[new]), 7)).topics
    assert (one.error_code, one.topic_config_error_code, one.num_partitions) == (0, TOPIC_DENIED, -1)
    assert not one.configs
    assert state.topics.get("new") is not None


async def test_deletion_by_id_reveals_no_hidden_name(state: BrokerState) -> None:
    topic_id = state.topics.require("secret").id
    asked = delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name=None, topic_id=topic_id)])
    (one,) = (await ask(state, asked, 6)).responses
    assert (one.error_code, one.name, one.topic_id) == (TOPIC_DENIED, None, topic_id)
    await grant(state, allow(Op.DESCRIBE, Type.TOPIC, "secret"))
    (one,) = (await ask(state, asked, 6)).responses
    assert (one.error_code, one.name, one.topic_id) == (TOPIC_DENIED, "secret", topic_id)
    assert state.topics.get("secret") is not None


# --- records ----------------------------------------------------------------------------------------------------------


def producing(*names: str, acks: int = 1, transactional: bool = False) -> produce.ProduceRequest:
    numbers = (1, 0, 0) if transactional else (-1, -1, -1)
    records = batch(
        [b"v"],
        transactional=transactional,
        producer_id=numbers[0],
        producer_epoch=numbers[1],
        base_sequence=numbers[2],
    )
    return produce.ProduceRequest(
        acks=acks,
        transactional_id="x" if transactional else None,
        topic_data=[
            produce.TopicProduceData(name=name, partition_data=[produce.PartitionProduceData(index=0, records=records)])
            for name in names
        ],
    )


async def test_each_topic_of_a_produce_request_is_allowed_alone(state: BrokerState) -> None:
    await grant(state, allow(Op.WRITE, Type.TOPIC, "open"), allow(Op.WRITE, Type.TOPIC, "missing"))
    written = await ask(state, producing("secret", "open", "missing", "hidden"), 9)
    codes = [one.partition_responses[0].error_code for one in written.responses]
    assert codes == [TOPIC_DENIED, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC_DENIED]
    assert state.topics.require("secret").partitions[0].log.end_offset == 0


@pytest.mark.parametrize("transactional", [False, True])
async def test_a_denied_write_without_acks_closes_the_connection(state: BrokerState, transactional: bool) -> None:
    with pytest.raises(CloseConnection, match="AUTHORIZATION_FAILED"):
        await ask(state, producing("secret", acks=0, transactional=transactional), 9)


async def test_a_denied_topic_is_not_read_by_id_either(state: BrokerState) -> None:
    await grant(state, allow(Op.READ, Type.TOPIC, "open"))
    ids = [state.topics.require(name).id for name in ("open", "secret")] + [b"?" * 16]
    asked = fetch.FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[
            fetch.FetchTopic(topic_id=one, partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)])
            for one in ids
        ],
    )
    seen = await ask(state, asked, 13)
    codes = {one.topic_id: one.partitions[0].error_code for one in seen.responses}
    assert [codes[one] for one in ids] == [0, TOPIC_DENIED, ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_revoked_right_ends_a_fetch_session(state: BrokerState) -> None:
    await grant(state, allow(Op.READ, Type.TOPIC, "open"))
    part = fetch.FetchPartition(partition=0, partition_max_bytes=100)
    first = fetch.FetchRequest(
        max_wait_ms=0, max_bytes=1 << 20, session_epoch=0, topics=[fetch.FetchTopic(topic="open", partitions=[part])]
    )
    session = (await ask(state, first, 12)).session_id
    assert session
    await grant(state, deny(Op.READ, Type.TOPIC, "open"))
    again = fetch.FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_id=session, session_epoch=1)
    seen = await ask(state, again, 12)
    assert seen.responses[0].partitions[0].error_code == TOPIC_DENIED


# --- groups -----------------------------------------------------------------------------------------------------------


async def test_offsets_of_denied_topics_are_neither_committed_nor_seen(state: BrokerState) -> None:
    await ask(state, committing("g", "open", "secret"), 9, ADMIN)
    await grant(state, allow(Op.READ, Type.GROUP, "g"), allow(Op.READ, Type.TOPIC, "open"))
    committed = await ask(state, committing("g", "secret", "open", "hidden"), 9)
    codes = {one.name: one.partitions[0].error_code for one in committed.topics}
    assert codes == {"open": 0, "secret": TOPIC_DENIED, "hidden": TOPIC_DENIED}

    everything = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    seen = await ask(state, offset_fetch.OffsetFetchRequest(groups=[everything]), 9)
    assert [one.name for one in seen.groups[0].topics] == ["open"]
    wanted = [offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("open", "secret")]
    asked = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=wanted)
    seen = await ask(state, offset_fetch.OffsetFetchRequest(groups=[asked]), 9)
    rows = [(one.partitions[0].committed_offset, one.partitions[0].error_code) for one in seen.groups[0].topics]
    assert rows == [(0, 0), (-1, TOPIC_DENIED)]


async def test_a_commit_to_denied_topics_only_does_not_ask_the_group(state: BrokerState) -> None:
    await grant(state, allow(Op.READ, Type.GROUP, "g"))
    request = committing("g", "secret")
    request.member_id, request.generation_id_or_member_epoch = "unknown", 5
    committed = await ask(state, request, 9)
    assert committed.topics[0].partitions[0].error_code == TOPIC_DENIED


async def test_offsets_of_denied_topics_are_not_deleted(state: BrokerState) -> None:
    await ask(state, committing("g", "open", "secret"), 9, ADMIN)
    await grant(state, allow(Op.DELETE, Type.GROUP, "g"), allow(Op.READ, Type.TOPIC, "open"))
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topics = [offset_delete.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in ("open", "secret")]
    deleted = await ask(state, offset_delete.OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert deleted.error_code == 0
    assert {one.name: one.partitions[0].error_code for one in deleted.topics} == {"open": 0, "secret": TOPIC_DENIED}
    assert [tp.topic for tp in state.offsets.of_group("g")] == ["secret"]


async def test_groups_are_listed_by_the_right_to_describe_them(state: BrokerState) -> None:
    for group in ("mine", "yours"):
        await ask(state, committing(group, "open"), 9, ADMIN)
    await grant(state, allow(Op.DESCRIBE, Type.GROUP, "mine"))
    assert [one.group_id for one in (await ask(state, list_groups.ListGroupsRequest(), 5)).groups] == ["mine"]
    await grant(state, allow(Op.DESCRIBE, Type.CLUSTER, CLUSTER_NAME))
    both = (await ask(state, list_groups.ListGroupsRequest(), 5)).groups
    assert {one.group_id for one in both} == {"mine", "yours"}


async def test_a_described_group_names_the_operations_allowed_on_it(state: BrokerState) -> None:
    await ask(state, committing("g", "open"), 9, ADMIN)
    await grant(state, allow(Op.DELETE, Type.GROUP, "g"))
    request = describe_groups.DescribeGroupsRequest(groups=["g", "other"], include_authorized_operations=True)
    seen = await ask(state, request, 5)
    assert [(one.error_code, one.authorized_operations) for one in seen.groups] == [
        (0, bits(Op.DELETE, Op.DESCRIBE)),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, NOT_ASKED),
    ]


async def test_a_pattern_selects_no_hidden_topic(state: BrokerState) -> None:
    await grant(state, allow(Op.READ, Type.GROUP, "g"), allow(Op.DESCRIBE, Type.TOPIC, "open"))
    beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", rebalance_timeout_ms=1000, subscribed_topic_regex=".*",
        topic_partitions=[],
    )  # fmt: skip
    response = await ask(state, beat, 1)
    assert response.error_code == 0
    assigned = [one.topic_id for one in response.assignment.topic_partitions]
    assert assigned == [state.topics.require("open").id]


async def test_a_consumer_group_with_a_hidden_topic_is_not_described(state: BrokerState) -> None:
    beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", rebalance_timeout_ms=1000,
        subscribed_topic_names=["open", "secret"], topic_partitions=[],
    )  # fmt: skip
    assert (await ask(state, beat, 1, ADMIN)).error_code == 0
    await grant(state, allow(Op.DESCRIBE, Type.GROUP, "g"), allow(Op.DESCRIBE, Type.TOPIC, "open"))
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"])
    (one,) = (await ask(state, request, 1)).groups
    assert (one.error_code, one.members) == (TOPIC_DENIED, [])
    await grant(state, allow(Op.DESCRIBE, Type.TOPIC, "secret"))
    (one,) = (await ask(state, request, 1)).groups
    assert (one.error_code, len(one.members)) == (0, 1)


# --- transactions -----------------------------------------------------------------------------------------------------


async def test_transactions_are_listed_and_described_by_their_rights(state: BrokerState) -> None:
    for name in ("mine", "yours"):
        request = init_producer_id.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
        assert (await ask(state, request, 4, ADMIN)).error_code == 0
    await grant(state, allow(Op.DESCRIBE, Type.TRANSACTIONAL_ID, "mine"))
    listed = await ask(state, list_transactions.ListTransactionsRequest(), 2)
    assert [one.transactional_id for one in listed.transaction_states] == ["mine"]
    described = await ask(
        state, describe_transactions.DescribeTransactionsRequest(transactional_ids=["mine", "yours"]), 0
    )
    codes = [one.error_code for one in described.transaction_states]
    assert codes == [0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


# --- without an authorizer --------------------------------------------------------------------------------------------


async def test_without_an_authorizer_every_client_may_do_everything() -> None:
    state = opened(authorizer_class_name="")
    state.topics.create("open", 1, {})
    request = named("open", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)
    seen = await ask(state, request, 9, ALICE)
    assert seen.topics[0].topic_authorized_operations == 0b110111111000
    assert seen.cluster_authorized_operations == 0b1111110100000
    state.close()
