"""A transaction's requests and their responses' codes: plain functions for `coordinator.py`."""

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

# The feature, and the level at which a broker adds partitions by itself and raises the epoch with each end (KIP-890).
FEATURE = "transaction.version"
TRANSACTION_V2 = 2
# The newest versions of the first protocol.
LAST_END_TXN_VERSION_OF_V1 = 4
LAST_OFFSET_COMMIT_VERSION_OF_V1 = 4
LAST_PRODUCE_VERSION_OF_V1 = 11
# Adding partitions: from 4 on the request is for brokers only.
LAST_ADD_PARTITIONS_VERSION_OF_CLIENTS = 3
# The first versions with the producer's id and epoch (KIP-360), and with its member of the group (KIP-447).
FIRST_INIT_VERSION_WITH_IDENTITY = 3
FIRST_OFFSET_COMMIT_VERSION_WITH_MEMBER = 3
OFFSETS_TOPIC = "__consumer_offsets"
# The states in which the coordinator is ending a transaction.
COMPLETING = frozenset({"PrepareAbort", "PrepareEpochFence"})

Code = tuple[int, str]
Chooser = Callable[[ApiVersions], int]


class ProducerIdentity(NamedTuple):
    """The identity of a transactional producer; the names are those of the requests' fields."""

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
    """Request producer id and epoch; an id of -1 fences the transactional id's current owner."""
    request = init_producer_id.InitProducerIdRequest(**me._asdict(), transaction_timeout_ms=timeout_ms)

    def version(versions: ApiVersions) -> int:
        picked = versions.pick(init_producer_id.InitProducerIdRequest)
        if picked < FIRST_INIT_VERSION_WITH_IDENTITY:
            request.producer_id = request.producer_epoch = -1
        return picked

    return request, version


def add_partitions(
    me: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> tuple[add_partitions_to_txn.AddPartitionsToTxnRequest, Chooser]:
    """Add partitions to the transaction."""
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
    return request, lambda versions: versions.pick(type(request), LAST_ADD_PARTITIONS_VERSION_OF_CLIENTS)


def codes_of_partitions(answer: add_partitions_to_txn.AddPartitionsToTxnResponse) -> Iterator[Code]:
    """The coordinator's code for each partition."""
    for topic in answer.results_by_topic_v3_and_below:
        for result in topic.results_by_partition:
            yield result.partition_error_code, f"{topic.name}[{result.partition_index}]"


def add_offsets(me: ProducerIdentity, group_id: str) -> tuple[add_offsets_to_txn.AddOffsetsToTxnRequest, Chooser]:
    """Add a group's offsets to the transaction."""
    request = add_offsets_to_txn.AddOffsetsToTxnRequest(**me._asdict(), group_id=group_id)
    return request, lambda versions: versions.pick(type(request))


def commit_offsets(
    me: ProducerIdentity,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    transaction_v2: bool,
) -> tuple[txn_offset_commit.TxnOffsetCommitRequest, Chooser]:
    """Offsets that take effect with the commit; names the member if the broker checks it."""
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
        **me._asdict(),
        group_id=group.group_id,
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
    """The group coordinator's code for each partition."""
    for topic in answer.topics:
        for partition in topic.partitions:
            yield partition.error_code, f"{topic.name}[{partition.partition_index}]"


def end(me: ProducerIdentity, *, commit: bool, transaction_v2: bool) -> tuple[end_txn.EndTxnRequest, Chooser]:
    """Return EndTxn, which commits or aborts."""
    request = end_txn.EndTxnRequest(**me._asdict(), committed=commit)
    newest = None if transaction_v2 else LAST_END_TXN_VERSION_OF_V1
    return request, lambda versions: versions.pick(type(request), newest)


def describe(me: ProducerIdentity) -> tuple[describe_transactions.DescribeTransactionsRequest, Chooser]:
    """Request the state and the partitions of the open transaction."""
    kind = describe_transactions.DescribeTransactionsRequest
    return kind(transactional_ids=[me.transactional_id]), lambda versions: versions.pick(kind)


def codes_of_description(answer: describe_transactions.DescribeTransactionsResponse) -> Iterator[Code]:
    """The coordinator's code for each transactional id."""
    for state in answer.transaction_states:
        yield state.error_code, state.transactional_id


def identity_after_timeout(
    me: ProducerIdentity, answer: describe_transactions.DescribeTransactionsResponse, *, transaction_v2: bool
) -> ProducerIdentity | None:
    """A producer's identity after its transaction was aborted on timeout (KIP-588), or None.

    The coordinator raises the epoch by one; with transaction V2, which raises it with each end, by
    two. An instance that takes over while the transaction is open raises the epoch once more.
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
    """The partitions that were written to, without the offsets topic."""
    return {
        TopicPartition(topic.topic, number)
        for state in answer.transaction_states
        for topic in state.topics
        for number in topic.partitions
        if topic.topic != OFFSETS_TOPIC
    }


def code_of(
    answer: init_producer_id.InitProducerIdResponse
    | add_offsets_to_txn.AddOffsetsToTxnResponse
    | end_txn.EndTxnResponse,
) -> Iterator[Code]:
    """The code of a response that has one."""
    yield answer.error_code, ""


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Check the offsets of `send_offsets`.

    Raises: InvalidArgument: names the wrong one.
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
    """Check the group of `send_offsets`: its metadata, or its id.

    Raises: InvalidArgument: it is neither.
    """
    if isinstance(group, str):
        group = GroupMetadata(group)
    if not isinstance(group, GroupMetadata) or not group.group_id:
        raise InvalidArgument(f"group must be a GroupMetadata or a group id, not {group!r}")
    return group
