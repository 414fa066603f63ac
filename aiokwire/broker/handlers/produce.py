"""Produce: v0-13

Checks each partition's batch, sets its offsets, appends it. Each partition succeeds or fails alone.

Version notes:
- v0-2: message sets of formats 0 and 1, converted to format 2; v2: log append time in the response
- v3: format 2 only, one batch per partition; transactional ids
- v5: log start offset; v7: zstd; v8: the invalid records
- v11: TRANSACTION_ABORTABLE; v12: a write adds its partition to the transaction (KIP-890)
- v13: topics by id

acks=0 gets no response: an error closes the connection, the only way to report it. The response
waits for a flush if flush.messages requires one. A request that is too large for one turn of the
event loop is handled in slices: changes of topics and nodes in between affect its later partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator
from typing import NamedTuple

import anyio

from aiokwire.broker.dispatch import Call, CloseConnection, MaybeAwaitable
from aiokwire.broker.handlers._hints import produce_hints
from aiokwire.broker.handlers._shared import find_topic, partition_fault
from aiokwire.broker.log import PartitionLog
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.topics import Partition, Topic, TopicRules
from aiokwire.broker.transactions import Identity
from aiokwire.broker.validation import QUICK_RECORDS, Checked, Heavy, RejectedRecords, check_batches, check_usual, weigh
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol import Buffer
from aiokwire.protocol.messages import produce as messages
from aiokwire.records import RecordBatch
from aiokwire.threads import run_in_thread
from aiokwire.types import TopicPartition

logger: logging.Logger = logging.getLogger(__name__)

ALL_IN_SYNC = -1
NO_ANSWER = 0
ABORTABLE_SINCE = 11  # the first version that knows TRANSACTION_ABORTABLE
IMPLICIT_SINCE = 12  # the first whose clients leave AddPartitionsToTxn out
NEWER_CLIENT = 2  # their transaction.version
# A slice takes 10 ms at most: 64 partitions with short batches, fewer with long ones.
SLICE = 4 << 20
PARTITION_COST = 64 << 10  # in addition to the bytes of its records


class Target(NamedTuple):
    """One topic of a request with the partitions found for it, or the error for all of them."""

    wanted: messages.TopicProduceData
    topic: Topic | None
    partitions: list[Partition | None]  # as in the request
    code: ErrorCode  # why `topic` is None
    checked: list[Checked | BrokerError | None]  # the checked records of existing partitions


def handle(
    request: messages.ProduceRequest, call: Call
) -> messages.ProduceResponse | Awaitable[messages.ProduceResponse | None] | None:
    """Respond at once if no flush is needed and the checks are quick."""
    if call.state.authorizer is not None and not _may_write_transaction(request, call):
        return _answer(request, _refusal(request, call, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    result = _handle_in_slices(request, call) if _is_large(request) else _handle_slice(request, call)
    return _answer(request, result) if isinstance(result, messages.ProduceResponse) else _answer_later(request, result)


def _may_write_transaction(request: messages.ProduceRequest, call: Call) -> bool:
    """Return whether no batch is of a transaction, or the client may write to this one."""
    if not any(_is_transactional(one.records) for topic in request.topic_data for one in topic.partition_data):
        return True
    name = request.transactional_id
    return name is not None and call.is_allowed(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)


def _refusal(request: messages.ProduceRequest, call: Call, code: ErrorCode) -> messages.ProduceResponse:
    return messages.ProduceResponse(
        responses=[
            messages.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_fault(call, one.index, code, None) for one in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _is_transactional(records: Buffer | None) -> bool:
    """Return whether the first batch has format 2 and the transactional bit of its attributes."""
    return records is not None and len(records) > 22 and records[16] == 2 and bool(records[22] & 0x10)


# --- slices -----------------------------------------------------------------------------------------------------------


def _is_large(request: messages.ProduceRequest) -> bool:
    """Return whether a request for several partitions would block the event loop."""
    topics = request.topic_data
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return False
    return sum(_cost(one) for topic in topics for one in topic.partition_data) > SLICE


def _cost(one: messages.PartitionProduceData) -> int:
    return PARTITION_COST + (len(one.records) if one.records is not None else 0)


async def _handle_in_slices(request: messages.ProduceRequest, call: Call) -> messages.ProduceResponse:
    response = messages.ProduceResponse()
    for part in _slices(request):
        async with call.state.slices:
            result = _handle_slice(part, call)
        _merge(response, result if isinstance(result, messages.ProduceResponse) else await result)
    return response


def _slices(request: messages.ProduceRequest) -> Iterator[messages.ProduceRequest]:
    """Split a request into requests for some of its partitions each, in order."""
    topics: list[messages.TopicProduceData] = []
    cost = 0
    for topic in request.topic_data:
        topics.append(_empty(topic))
        for one in topic.partition_data:
            if cost + _cost(one) > SLICE and cost:
                yield _with_topics(request, topics)
                topics, cost = [_empty(topic)], 0
            topics[-1].partition_data.append(one)
            cost += _cost(one)
    yield _with_topics(request, topics)


def _empty(topic: messages.TopicProduceData) -> messages.TopicProduceData:
    return messages.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[])


def _with_topics(request: messages.ProduceRequest, topics: list[messages.TopicProduceData]) -> messages.ProduceRequest:
    return messages.ProduceRequest(
        transactional_id=request.transactional_id, acks=request.acks, timeout_ms=request.timeout_ms, topic_data=topics
    )


def _merge(whole: messages.ProduceResponse, part: messages.ProduceResponse) -> None:
    """Add the response to the next slice; a topic may be in both."""
    for topic in part.responses:
        last = whole.responses[-1] if whole.responses else None
        if last is not None and (last.name, last.topic_id) == (topic.name, topic.topic_id):
            last.partition_responses += topic.partition_responses
        else:
            whole.responses.append(topic)
    known = {endpoint.node_id for endpoint in whole.node_endpoints}
    whole.node_endpoints += [one for one in part.node_endpoints if one.node_id not in known]


# --- checking ---------------------------------------------------------------------------------------------------------


def _handle_slice(request: messages.ProduceRequest, call: Call) -> MaybeAwaitable[messages.ProduceResponse]:
    targets = [_find(wanted, call) for wanted in request.topic_data]
    now = wall_ms()
    if not _check_usual(targets, now) and not _check_quickly(targets, call.version, now):
        return _after_checking(request, call, targets)
    return _continue(request, call, targets)


async def _after_checking(
    request: messages.ProduceRequest, call: Call, targets: list[Target]
) -> messages.ProduceResponse:
    await run_in_thread(_check, targets, call.version, wall_ms(), 0)
    result = _continue(request, call, targets)
    return result if isinstance(result, messages.ProduceResponse) else await result


def _check_usual(targets: list[Target], now: int) -> bool:
    """Check usual batches up to the first other one; return whether all were usual."""
    left = QUICK_RECORDS
    for wanted, topic, partitions, _, checked in targets:
        if topic is None:
            continue
        for index, one in enumerate(wanted.partition_data):
            if partitions[index] is not None:
                checked[index] = found = check_usual(one.records, topic.rules, now, left)
                if found is None:
                    return False  # the remaining batches are checked by `check_batches`
                left -= found.headers[0].count
    return True


def _check_quickly(targets: list[Target], version: int, now: int) -> bool:
    """Check the other batches, unless that takes too long for the event loop."""
    quick = weigh(target.wanted.partition_data[index].records for target, index, _ in _unchecked(targets))
    if not quick:
        return False
    try:
        _check(targets, version, now, quick)
    except Heavy:
        return False
    return True


def _check(targets: list[Target], version: int, now: int, quick: int) -> None:
    """Check the remaining batches; without `quick` in a thread.

    Raises: Heavy: `quick` is not enough.
    """
    for target, index, rules in _unchecked(targets):
        target.checked[index] = _checked(target.wanted.partition_data[index].records, version, rules, now, quick)


def _unchecked(targets: list[Target]) -> Iterator[tuple[Target, int, TopicRules]]:
    """Yield the unchecked batches of existing partitions: target, index, rules of the topic."""
    for target in targets:
        if target.topic is not None:
            for index, partition in enumerate(target.partitions):
                if partition is not None and target.checked[index] is None:
                    yield target, index, target.topic.rules


def _checked(records: Buffer | None, version: int, rules: TopicRules, now: int, quick: int) -> Checked | BrokerError:
    try:
        return check_batches(records, version, rules, now, quick)
    except BrokerError as error:
        return error


def _continue(
    request: messages.ProduceRequest, call: Call, targets: list[Target]
) -> MaybeAwaitable[messages.ProduceResponse]:
    logs = [one.log for target in targets for one in target.partitions if one is not None]
    for log in logs:
        if log.metadata_to_sync is not None:
            return _after_naming(request, call, targets, logs)
    response = _append(request, call, targets)
    for log in logs:
        if log.flush_needed:
            return _after_flushing(response, call, logs)
    return response


def _find(wanted: messages.TopicProduceData, call: Call) -> Target:
    topic, code = find_topic(call, wanted.name, wanted.topic_id, AclOperation.WRITE)
    if topic is None:
        return Target(wanted, None, [], code, [])
    partitions = [topic.partition(one.index) for one in wanted.partition_data]
    return Target(wanted, topic, partitions, code, [None] * len(partitions))


async def _after_naming(
    request: messages.ProduceRequest, call: Call, targets: list[Target], logs: list[PartitionLog]
) -> messages.ProduceResponse:
    """Store a new partition's topic id before its first records."""
    try:
        await call.state.topics.save()
    except StorageError as error:
        # The append fails as well, or works and the next one retries this.
        call.state.lasting_errors.log(logger, "the ids of topics", error)
    return await _after_flushing(_append(request, call, targets), call, logs)


async def _after_flushing(
    response: messages.ProduceResponse, call: Call, logs: list[PartitionLog]
) -> messages.ProduceResponse:
    unflushed = [log for log in logs if log.flush_needed]
    if len(unflushed) == 1:
        await _flush(response, call, unflushed[0])
    elif unflushed:
        async with anyio.create_task_group() as tasks:
            for log in unflushed:
                tasks.start_soon(_flush, response, call, log)
    return response


async def _flush(response: messages.ProduceResponse, call: Call, log: PartitionLog) -> None:
    """Wait until the appended records are flushed; waiting requests share a flush."""
    try:
        await log.flush_upto(log.end_offset, wall_ms)
    except StorageError as error:
        call.state.lasting_errors.log(logger, f"{log.topic}[{log.partition}]", error)
        _mark_unflushed(response, log)


def _mark_unflushed(response: messages.ProduceResponse, log: PartitionLog) -> None:
    for topic in response.responses:
        if topic.name == log.topic or topic.topic_id == log.topic_id:
            for partition in topic.partition_responses:
                if partition.index == log.partition:
                    partition.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                    partition.base_offset = -1


async def _answer_later(
    request: messages.ProduceRequest, response: Awaitable[messages.ProduceResponse]
) -> messages.ProduceResponse | None:
    return _answer(request, await response)


def _answer(request: messages.ProduceRequest, response: messages.ProduceResponse) -> messages.ProduceResponse | None:
    if request.acks != NO_ANSWER:
        return response
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"records for {topic.name}[{partition.index}] with acks=0 were rejected: "
                    f"{ErrorCode.of(partition.error_code).name} {partition.error_message or ''}"
                )
    return None


def _append(request: messages.ProduceRequest, call: Call, targets: list[Target]) -> messages.ProduceResponse:
    now = wall_ms()
    response = messages.ProduceResponse(responses=[_append_topic(target, call, request, now) for target in targets])
    if call.state.plays_several:
        produce_hints(response, call)
    return response


def _append_topic(
    target: Target, call: Call, request: messages.ProduceRequest, now: int
) -> messages.TopicProduceResponse:
    wanted, topic = target.wanted, target.topic
    if topic is None:
        answers = [_fault(call, one.index, target.code, None) for one in wanted.partition_data]
    else:
        answers = [
            _append_partition(call, topic, partition, checked, request, now)
            if partition is not None and checked is not None
            else _fault(call, one.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
            for one, partition, checked in zip(wanted.partition_data, target.partitions, target.checked, strict=True)
        ]
    return messages.TopicProduceResponse(name=wanted.name, topic_id=wanted.topic_id, partition_responses=answers)


def _append_partition(
    call: Call,
    topic: Topic,
    partition: Partition,
    checked: Checked | BrokerError,
    request: messages.ProduceRequest,
    now: int,
) -> messages.PartitionProduceResponse:
    rules = topic.rules
    code = partition_fault(call, partition)
    if code is not ErrorCode.NONE:
        return _fault(call, partition.index, code, None)
    try:
        _check_request(call, topic, request.acks)
        if isinstance(checked, BrokerError):
            raise checked
        for batch in checked.headers:
            if batch.is_transactional:
                _admit(call, request.transactional_id, partition, batch)
        info = partition.log.append(
            checked.data,
            now_ms=now,
            leader_epoch=partition.leader_epoch,
            headers=checked.headers,
            log_append_time=now if rules.log_append_time else None,
        )
    except RejectedRecords as error:
        return _fault(call, partition.index, error.code, str(error), error.indices)
    except BrokerError as error:
        return _fault(call, partition.index, error.code, str(error))
    except StorageError as error:
        call.state.lasting_errors.log(logger, f"{topic.name}[{partition.index}]", error)
        return _fault(call, partition.index, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    if not info.is_duplicate:
        partition.appended(len(checked.data))
    return messages.PartitionProduceResponse(
        index=partition.index,
        base_offset=info.base_offset,
        log_append_time_ms=info.log_append_time if rules.log_append_time or info.is_duplicate else -1,
        log_start_offset=info.log_start_offset,
    )


def _admit(call: Call, transactional_id: str | None, partition: Partition, batch: RecordBatch) -> None:
    """Check that a transactional batch is of an open transaction: otherwise it would never end."""
    known = partition.log.producers.states.get(batch.producer_id)
    if known is not None and known.transaction_start >= 0 and known.epoch == batch.producer_epoch:
        return
    code = call.state.transactions.admit(
        transactional_id,
        Identity(batch.producer_id, batch.producer_epoch),
        TopicPartition(partition.topic.name, partition.index),
        client_version=NEWER_CLIENT if call.version >= IMPLICIT_SINCE else 0,
    )
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.TRANSACTION_ABORTABLE and call.version < ABORTABLE_SINCE:
        code = ErrorCode.INVALID_TXN_STATE
    elif code is ErrorCode.CONCURRENT_TRANSACTIONS and call.version < IMPLICIT_SINCE:
        code = ErrorCode.NOT_ENOUGH_REPLICAS  # a code that older producers retry
    if code is not ErrorCode.NONE:
        raise BrokerError(
            f"producer {batch.producer_id} of {transactional_id!r} may not write to "
            f"{partition.topic.name}[{partition.index}] in epoch {batch.producer_epoch}: {code.description}",
            code=code,
        )


def _check_request(call: Call, topic: Topic, acks: int) -> None:
    if acks not in {-1, 0, 1}:
        raise BrokerError(f"acks must be -1, 0 or 1, not {acks}", code=ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.is_internal:
        raise BrokerError(f"{topic.name} is an internal topic of the broker", code=ErrorCode.INVALID_TOPIC_EXCEPTION)
    needed = topic.rules.min_insync_replicas
    if acks == ALL_IN_SYNC and needed > 1 and needed > len(call.state.nodes.running()):
        raise BrokerError(
            f"min.insync.replicas is {needed}, but only {len(call.state.nodes.running())} node(s) are running",
            code=ErrorCode.NOT_ENOUGH_REPLICAS,
        )


def _fault(
    call: Call, index: int, code: ErrorCode, message: str | None, records: list[int] | None = None
) -> messages.PartitionProduceResponse:
    named = [
        messages.BatchIndexAndErrorMessage(batch_index=record, batch_index_error_message=message)
        for record in records or ()
    ]
    return messages.PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        record_errors=named if call.version >= 8 else [],
        error_message=message if call.version >= 8 else None,
    )
