"""TxnOffsetCommit: v0-5

Commits offsets of a group with the producer's transaction.

Version notes:
- v2: leader epochs; v3: the member of the group (KIP-447)
- v4: TRANSACTION_ABORTABLE
- v5: adds the group's offsets to the transaction, without AddOffsetsToTxn (KIP-890)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Committer, too_long
from aiokwire.broker.handlers._shared import narrowed, offset_fault, split_topics, with_topics
from aiokwire.broker.offsets import CommittedOffset
from aiokwire.broker.security import AclOperation
from aiokwire.broker.transactions import Identity
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import txn_offset_commit as messages
from aiokwire.types import TopicPartition

ABORTABLE_SINCE = 4
IMPLICIT_SINCE = 5
NEWER_CLIENT = 2  # the transaction.version of clients that send such versions


def handle(request: messages.TxnOffsetCommitRequest, call: Call) -> MaybeAwaitable[messages.TxnOffsetCommitResponse]:
    """Respond at once if the log of the offsets is ready."""
    code = _request_fault(request)
    if code is not ErrorCode.NONE:
        return refuse(request, call.version, code)
    if call.state.authorizer is not None:
        allowed, denied = split_topics(call, AclOperation.READ, request.topics)
        if denied:
            rows = refuse(narrowed(request, denied), call.version, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return with_topics(_handle(narrowed(request, allowed), call), rows.topics) if allowed else rows
    return _handle(request, call)


def _handle(request: messages.TxnOffsetCommitRequest, call: Call) -> MaybeAwaitable[messages.TxnOffsetCommitResponse]:
    return call.state.groups.run(
        request.group_id, lambda: _stage(request, call), lambda code: refuse(request, call.version, code)
    )


def _request_fault(request: messages.TxnOffsetCommitRequest) -> ErrorCode:
    if not request.group_id or too_long(request.group_id):
        return ErrorCode.INVALID_GROUP_ID
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _stage(request: messages.TxnOffsetCommitRequest, call: Call) -> messages.TxnOffsetCommitResponse:
    now = wall_ms()
    codes: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in request.topics:
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            codes[tp] = offset_fault(call, tp, one.committed_metadata)
            if codes[tp] is ErrorCode.NONE:
                offsets[tp] = CommittedOffset(
                    one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "", now
                )
    by = Committer(
        request.member_id, request.group_instance_id, request.generation_id, call.version, transactional=True
    )
    code = call.state.groups.commit_fault(request.group_id, by, codes) or _admit(request, call)
    if code is ErrorCode.NONE and offsets:
        try:
            call.state.offsets.stage(
                request.group_id, offsets, now, producer_id=request.producer_id, producer_epoch=request.producer_epoch
            )
        except BrokerError as error:
            code = error.code
    if code is not ErrorCode.NONE:
        return refuse(request, call.version, code)
    return _response(request, codes)


def _admit(request: messages.TxnOffsetCommitRequest, call: Call) -> ErrorCode:
    code = call.state.transactions.admit(
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        call.state.offsets.partition_of(request.group_id),
        client_version=NEWER_CLIENT if call.version >= IMPLICIT_SINCE else 0,
    )
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and call.version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and call.version < IMPLICIT_SINCE:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # a code that older producers retry
    return code


def refuse(request: messages.TxnOffsetCommitRequest, version: int, code: ErrorCode) -> messages.TxnOffsetCommitResponse:
    """Return an error for each partition."""
    return _response(
        request,
        {TopicPartition(topic.name, one.partition_index): code for topic in request.topics for one in topic.partitions},
    )


def _response(
    request: messages.TxnOffsetCommitRequest, codes: dict[TopicPartition, ErrorCode]
) -> messages.TxnOffsetCommitResponse:
    return messages.TxnOffsetCommitResponse(
        topics=[
            messages.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    messages.TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=codes[TopicPartition(topic.name, one.partition_index)],
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
