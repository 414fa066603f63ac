"""The requests of a transaction, and what their answers say: plain functions, used by `coordinator.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from aiokwire.errors import InvalidArgument
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

# The feature, and its level from which a broker adds partitions by itself and bumps the epoch with each end (KIP-890).
FEATURE = "transaction.version"
TRANSACTION_V2 = 2
# The newest versions that belong to the first protocol.
LAST_END_TXN_VERSION_OF_V1 = 4
LAST_OFFSET_COMMIT_VERSION_OF_V1 = 4
LAST_PRODUCE_VERSION_OF_V1 = 11
# Adding partitions: from 4 on the request is the brokers' own.
LAST_ADD_PARTITIONS_VERSION_OF_CLIENTS = 3
# Since when a producer may show the id and epoch that it has (KIP-360), and its place in its group (KIP-447).
FIRST_INIT_VERSION_WITH_IDENTITY = 3
FIRST_OFFSET_COMMIT_VERSION_WITH_MEMBER = 3
OFFSETS_TOPIC = "__consumer_offsets"
# States in which the coordinator ends a transaction.
COMPLETING = frozenset({"PrepareAbort", "PrepareEpochFence"})

Code = tuple[int, str]
Chooser = Callable[[ApiVersions], int]


class ProducerIdentity(NamedTuple):
    """Who writes."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def uses_transaction_v2(versions: ApiVersions) -> bool:
    """Whether the cluster of this broker runs transaction V2."""
    return versions.finalized_features.get(FEATURE, 0) >= TRANSACTION_V2


def max_produce_version(transaction_v2: bool) -> int | None:
    """The newest version of Produce that the protocol allows; None: any."""
    return None if transaction_v2 else LAST_PRODUCE_VERSION_OF_V1


def initialize(me: ProducerIdentity, timeout_ms: int) -> tuple[init_producer_id.InitProducerIdRequest, Chooser]:
    """Ask for producer id and epoch; an id of -1 fences whoever has the transactional id now."""
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=me.transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=me.producer_id,
        producer_epoch=me.producer_epoch,
    )

    def version(versions: ApiVersions) -> int:
        picked = versions.pick(init_producer_id.InitProducerIdRequest)
        if picked < FIRST_INIT_VERSION_WITH_IDENTITY:
            request.producer_id = request.producer_epoch = -1
        return picked

    return request, version


def add_partitions(
    me: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> tuple[add_partitions_to_txn.AddPartitionsToTxnRequest, Chooser]:
    """Make partitions part of the transaction."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=me.transactional_id,
        v3_and_below_producer_id=me.producer_id,
        v3_and_below_producer_epoch=me.producer_epoch,
        v3_and_below_topics=[
            add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in topics.items()
        ],
    )
    return request, _capped(add_partitions_to_txn.AddPartitionsToTxnRequest, LAST_ADD_PARTITIONS_VERSION_OF_CLIENTS)


def codes_of_partitions(answer: add_partitions_to_txn.AddPartitionsToTxnResponse) -> Iterator[Code]:
    """What the coordinator says about each partition."""
    for topic in answer.results_by_topic_v3_and_below:
        for result in topic.results_by_partition:
            yield result.partition_error_code, f"{topic.name}[{result.partition_index}]"


def add_offsets(me: ProducerIdentity, group_id: str) -> tuple[add_offsets_to_txn.AddOffsetsToTxnRequest, Chooser]:
    """Make a group's offsets part of the transaction."""
    request = add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=me.transactional_id,
        producer_id=me.producer_id,
        producer_epoch=me.producer_epoch,
        group_id=group_id,
    )
    return request, _capped(add_offsets_to_txn.AddOffsetsToTxnRequest, None)


def commit_offsets(
    me: ProducerIdentity,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    transaction_v2: bool,
) -> tuple[txn_offset_commit.TxnOffsetCommitRequest, Chooser]:
    """Offsets that count when the transaction is committed. To brokers that do not check the member it is not named."""
    topics: dict[str, list[txn_offset_commit.TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        entry = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault(topic, []).append(entry)
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=me.transactional_id,
        group_id=group.group_id,
        producer_id=me.producer_id,
        producer_epoch=me.producer_epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(name=name, partitions=entries)
            for name, entries in topics.items()
        ],
    )
    limit = None if transaction_v2 else LAST_OFFSET_COMMIT_VERSION_OF_V1

    def version(versions: ApiVersions) -> int:
        picked = versions.pick(txn_offset_commit.TxnOffsetCommitRequest, limit)
        if picked < FIRST_OFFSET_COMMIT_VERSION_WITH_MEMBER:
            request.generation_id, request.member_id, request.group_instance_id = -1, "", None
        if picked < 2:
            for topic in request.topics:
                for partition in topic.partitions:
                    partition.committed_leader_epoch = -1
        return picked

    return request, version


def codes_of_offsets(answer: txn_offset_commit.TxnOffsetCommitResponse) -> Iterator[Code]:
    """What the group's coordinator says about each partition."""
    for topic in answer.topics:
        for partition in topic.partitions:
            yield partition.error_code, f"{topic.name}[{partition.partition_index}]"


def end(me: ProducerIdentity, *, commit: bool, transaction_v2: bool) -> tuple[end_txn.EndTxnRequest, Chooser]:
    """Commit or abort."""
    request = end_txn.EndTxnRequest(
        transactional_id=me.transactional_id,
        producer_id=me.producer_id,
        producer_epoch=me.producer_epoch,
        committed=commit,
    )
    return request, _capped(end_txn.EndTxnRequest, None if transaction_v2 else LAST_END_TXN_VERSION_OF_V1)


def describe(me: ProducerIdentity) -> tuple[describe_transactions.DescribeTransactionsRequest, Chooser]:
    """Ask which partitions are part of the open transaction."""
    kind = describe_transactions.DescribeTransactionsRequest
    return kind(transactional_ids=[me.transactional_id]), lambda versions: versions.pick(kind)


def codes_of_description(answer: describe_transactions.DescribeTransactionsResponse) -> Iterator[Code]:
    """Whether the coordinator knows the transactional id."""
    for state in answer.transaction_states:
        yield state.error_code, state.transactional_id


def identity_after_timeout(
    me: ProducerIdentity, answer: describe_transactions.DescribeTransactionsResponse, *, transaction_v2: bool
) -> ProducerIdentity | None:
    """What a coordinator made of our identity when it aborted our transaction because its time was over (KIP-588).

    It raises the epoch by one; with transaction V2, which raises it with each end, by two. None: the state is
    another one. An instance that takes over while our transaction is open raises the epoch once more.
    """
    for state in answer.transaction_states:
        is_ours = state.transaction_state == "CompleteAbort" and state.producer_id == me.producer_id
        if is_ours and 1 <= state.producer_epoch - me.producer_epoch <= (2 if transaction_v2 else 1):
            return ProducerIdentity(me.transactional_id, state.producer_id, state.producer_epoch)
    return None


def is_completing(answer: describe_transactions.DescribeTransactionsResponse) -> bool:
    """Whether the coordinator is about to end the transaction."""
    return any(state.transaction_state in COMPLETING for state in answer.transaction_states)


def partitions_of(answer: describe_transactions.DescribeTransactionsResponse) -> set[TopicPartition]:
    """What was written to; the offsets topic is left out."""
    return {
        TopicPartition(topic.topic, number)
        for state in answer.transaction_states
        for topic in state.topics
        for number in topic.partitions
        if topic.topic != OFFSETS_TOPIC
    }


def _capped(
    kind: type[
        add_partitions_to_txn.AddPartitionsToTxnRequest
        | add_offsets_to_txn.AddOffsetsToTxnRequest
        | end_txn.EndTxnRequest
    ],
    newest: int | None,
) -> Chooser:
    return lambda versions: versions.pick(kind, newest)


def code_of(
    answer: init_producer_id.InitProducerIdResponse
    | add_offsets_to_txn.AddOffsetsToTxnResponse
    | end_txn.EndTxnResponse,
) -> Iterator[Code]:
    """The one code of an answer that has one."""
    yield answer.error_code, ""


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets as `send_offsets` takes them.

    Raises: InvalidArgument: naming what is wrong.
    """
    if not isinstance(offsets, Mapping):
        raise InvalidArgument(f"offsets must map TopicPartition to an offset, not {type(offsets).__name__}")
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for place, given in offsets.items():
        if not isinstance(place, TopicPartition):
            raise InvalidArgument(f"offsets: the keys must be TopicPartitions, not {place!r}")
        offset = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        if isinstance(offset.offset, bool) or not isinstance(offset.offset, int) or offset.offset < 0:
            raise InvalidArgument(f"offsets: {place} must have an offset of 0 or more, not {given!r}")
        checked[place] = offset
    return checked


def checked_group(group: object) -> GroupMetadata:
    """A group as `send_offsets` takes it: its metadata, or its name alone.

    Raises: InvalidArgument: it is neither.
    """
    if isinstance(group, str):
        group = GroupMetadata(group)
    if not isinstance(group, GroupMetadata) or not group.group_id:
        raise InvalidArgument(f"group must be a GroupMetadata or a group id, not {group!r}")
    return group
