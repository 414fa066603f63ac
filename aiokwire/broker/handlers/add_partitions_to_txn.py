"""AddPartitionsToTxn: v0-5

Adds partitions to a producer's transaction, all or none; the first ones start it.

Version notes:
- v0-3: one transaction, from its producer; v2: PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
- v4: several transactions, from brokers; `verify_only` only checks that the partitions were added
- v5: TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import fenced_code
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.transactions import Identity
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import add_partitions_to_txn as messages
from aiokwire.types import TopicPartition

FENCED_SINCE = 2
SEVERAL_SINCE = 4
ABORTABLE_SINCE = 5

Codes = dict[TopicPartition, ErrorCode]


def handle(
    request: messages.AddPartitionsToTxnRequest, call: Call
) -> MaybeAwaitable[messages.AddPartitionsToTxnResponse]:
    """Respond at once if the coordinator's log is ready."""
    if call.version >= SEVERAL_SINCE:
        if not call.is_allowed_in_cluster(AclOperation.CLUSTER_ACTION):
            return messages.AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return _several(request, call)
    one = _only(request)
    if not call.is_allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, one.transactional_id):
        return _single(_all(one, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    return call.state.transactions.run(
        one.transactional_id, lambda: _single(_codes(one, call)), lambda code: _single(_all(one, code))
    )


def refuse(
    request: messages.AddPartitionsToTxnRequest, version: int, code: ErrorCode
) -> messages.AddPartitionsToTxnResponse:
    """Return an error for each partition."""
    if version < SEVERAL_SINCE:
        return _single(_all(_only(request), code))
    return messages.AddPartitionsToTxnResponse(
        results_by_transaction=[_result(one, _all(one, code)) for one in request.transactions]
    )


def _only(request: messages.AddPartitionsToTxnRequest) -> messages.AddPartitionsToTxnTransaction:
    """Return the one transaction of older versions."""
    return messages.AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _single(codes: Codes) -> messages.AddPartitionsToTxnResponse:
    return messages.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(codes))


async def _several(request: messages.AddPartitionsToTxnRequest, call: Call) -> messages.AddPartitionsToTxnResponse:
    response = messages.AddPartitionsToTxnResponse()
    for one in request.transactions:
        codes: Codes | Awaitable[Codes] = call.state.transactions.run(
            one.transactional_id, partial(_codes, one, call), partial(_all, one)
        )
        response.results_by_transaction.append(_result(one, await codes if isinstance(codes, Awaitable) else codes))
    return response


def _result(one: messages.AddPartitionsToTxnTransaction, codes: Codes) -> messages.AddPartitionsToTxnResult:
    return messages.AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=_results(codes))


def _partitions(one: messages.AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in one.topics for index in topic.partitions]


def _all(one: messages.AddPartitionsToTxnTransaction, code: ErrorCode) -> Codes:
    return dict.fromkeys(_partitions(one), code)


def _codes(one: messages.AddPartitionsToTxnTransaction, call: Call) -> Codes:
    wanted = _partitions(one)
    if not one.transactional_id:
        return _all(one, ErrorCode.INVALID_REQUEST)
    faults = {tp: code for tp in wanted if (code := _partition_fault(tp, call)) is not ErrorCode.NONE}
    if faults:
        return {tp: faults.get(tp, ErrorCode.OPERATION_NOT_ATTEMPTED) for tp in wanted}
    who = Identity(one.producer_id, one.producer_epoch)
    if one.verify_only:
        codes = {tp: call.state.transactions.verify(one.transactional_id, who, tp) for tp in wanted}
    else:
        code = call.state.transactions.add_partitions(one.transactional_id, who, frozenset(wanted))
        codes = _all(one, code)
    return {tp: _named(code, call.version) for tp, code in codes.items()}


def _partition_fault(tp: TopicPartition, call: Call) -> ErrorCode:
    if call.version < SEVERAL_SINCE and not call.is_allowed(AclOperation.WRITE, ResourceType.TOPIC, tp.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if call.state.topics.partition(*tp) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _named(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return fenced_code(code, version, FENCED_SINCE)


def _results(codes: Codes) -> list[messages.AddPartitionsToTxnTopicResult]:
    topics: dict[str, messages.AddPartitionsToTxnTopicResult] = {}
    for tp, code in codes.items():
        topic = topics.setdefault(tp.topic, messages.AddPartitionsToTxnTopicResult(name=tp.topic))
        topic.results_by_partition.append(
            messages.AddPartitionsToTxnPartitionResult(partition_index=tp.partition, partition_error_code=code)
        )
    return list(topics.values())
