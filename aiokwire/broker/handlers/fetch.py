"""Fetch: v0-18

Records from an offset on; waits until there are `min_bytes`, at most `max_wait_ms`.

Version notes:
- v0-1: responses in message format 0; v2-3: in format 1
- v3: a limit for the whole response; partitions are served in the order of the request
- v4: isolation level, aborted transactions; v5: log start offset; v7: sessions (KIP-227)
- v9: leader epochs (KIP-320); v10: zstd, which Kafka 4.3.1 serves to older versions too
- v12: detection of truncation (KIP-595)
- v13: topics by id; v18: high watermark of followers, which do not exist here

The first batch is returned whole even if it exceeds the limits, so that a consumer always makes
progress; otherwise the limits are hard. A batch may be truncated at a limit.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import anyio

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.fetch_sessions import FetchPlan, FetchRow
from aiokwire.broker.handlers._hints import fetch_hints
from aiokwire.broker.handlers._shared import epoch_fault, find_topic, partition_fault
from aiokwire.broker.security import AclOperation
from aiokwire.broker.topics import Partition
from aiokwire.clock import loop_time
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import CorruptRecord, OffsetOutOfRange, StorageError
from aiokwire.protocol.messages import fetch as messages
from aiokwire.records import convert, scan_batches

logger: logging.Logger = logging.getLogger(__name__)

READ_COMMITTED = 1
READ = AclOperation.READ  # found faster than a member of an enum, once for each partition
FORMAT_2_SINCE = 4  # the first version whose responses have message format 2


class Served(NamedTuple):
    """One partition's part of a response."""

    row: FetchRow
    data: messages.PartitionData
    partition: Partition | None  # None: it does not exist
    size: int
    urgent: bool  # respond without waiting: an error, or a truncated log


class _Limits:
    """The bytes left for one response; the first batch of an empty one may exceed them."""

    __slots__ = ("nothing_yet", "room")

    def __init__(self, room: int) -> None:
        self.room = room
        self.nothing_yet = True


def handle(request: messages.FetchRequest, call: Call) -> MaybeAwaitable[messages.FetchResponse]:
    """Respond at once if there are enough bytes, or nothing to wait for."""
    plan = call.node.sessions.plan(request, call.version, loop_time())
    if plan.error is not ErrorCode.NONE:
        return messages.FetchResponse(error_code=plan.error)
    served = _serve(plan, request, call)
    if _is_enough(served, request):
        return _response(plan, served, call)
    return _wait(plan, served, request, call)


def _is_enough(served: list[Served], request: messages.FetchRequest) -> bool:
    if request.max_wait_ms <= 0 or not served or any(one.urgent for one in served):
        return True
    return sum(one.size for one in served) >= request.min_bytes


async def _wait(
    plan: FetchPlan, served: list[Served], request: messages.FetchRequest, call: Call
) -> messages.FetchResponse:
    # This starts a turn of the loop after the first read: no callback was waiting for changes in between.
    if any(_changed(one, call) for one in served):
        served = _serve(plan, request, call)
    with anyio.move_on_after(request.max_wait_ms / 1000):
        while not _is_enough(served, request):
            await _more_came(
                [one.partition for one in served if one.partition is not None],
                request.min_bytes - sum(one.size for one in served),
            )
            served = _serve(plan, request, call)
    return _response(plan, served, call)


def _changed(one: Served, call: Call) -> bool:
    partition, data = one.partition, one.data
    if partition is None:
        return False
    log = partition.log
    return (
        log.high_watermark != data.high_watermark
        or log.last_stable_offset != data.last_stable_offset
        or log.log_start_offset != data.log_start_offset
        or partition.topic.deleted
        or partition.leader != call.node.id
    )


async def _more_came(partitions: list[Partition], missing: int) -> None:
    """Wait until `missing` bytes are appended to the partitions, or one changes otherwise."""
    changed = anyio.Event()

    def appended(size: int) -> None:
        nonlocal missing
        missing -= size
        if size < 0 or missing <= 0:
            changed.set()

    for partition in partitions:
        partition.wait(appended)
    try:
        await changed.wait()
    finally:
        for partition in partitions:
            partition.forget(appended)


# --- reading ----------------------------------------------------------------------------------------------------------


def _serve(plan: FetchPlan, request: messages.FetchRequest, call: Call) -> list[Served]:
    most = call.state.configs.integer("fetch.max.bytes")
    if call.state.quotas.enabled:
        quota = call.state.quotas.fetch_limit(call.principal.name, call.client_id or "")
        most = most if quota is None else min(most, quota)
    limits = _Limits(min(request.max_bytes, most, call.state.unread.room()))
    committed = request.isolation_level == READ_COMMITTED
    if _is_denied_follower(request, call):
        return [_fault(row, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for row in plan.rows]
    return [_serve_row(row, call, limits, committed=committed) for row in plan.rows]


def _is_denied_follower(request: messages.FetchRequest, call: Call) -> bool:
    if call.state.authorizer is None:
        return False
    state = request.replica_state
    if max(request.replica_id, state.replica_id if state is not None else -1) < 0:
        return False
    return not call.is_allowed_in_cluster(AclOperation.CLUSTER_ACTION)


def _serve_row(row: FetchRow, call: Call, limits: _Limits, *, committed: bool) -> Served:
    topic, code = find_topic(call, row.topic, row.topic_id, READ)
    partition = topic.partition(row.index) if topic is not None else None
    if partition is None:
        return _fault(row, code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    code = partition_fault(call, partition) or epoch_fault(partition, row.leader_epoch)
    if code is not ErrorCode.NONE:
        return _fault(row, code, partition)
    diverging = _diverging(row, partition)
    if diverging is not None:
        data = _partition_data(partition, row, committed=committed)
        data.diverging_epoch = diverging
        return Served(row, data, partition, 0, urgent=True)
    try:
        return _read(row, partition, call, limits, committed=committed)
    except OffsetOutOfRange:
        return _fault(row, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    except (StorageError, CorruptRecord) as error:
        logger.error("%r: %s", partition, error)
        return _fault(row, ErrorCode.KAFKA_STORAGE_ERROR, partition)


def _diverging(row: FetchRow, partition: Partition) -> messages.EpochEndOffset | None:
    """Return where the log diverges from the records that the consumer has read, or None."""
    if row.last_fetched_epoch < 0:
        return None
    epoch, end = partition.log.leader_epochs.end_offset_for(row.last_fetched_epoch, partition.log.end_offset)
    if epoch < row.last_fetched_epoch or end < row.offset:
        return messages.EpochEndOffset(epoch=epoch, end_offset=end)
    return None


def _read(row: FetchRow, partition: Partition, call: Call, limits: _Limits, *, committed: bool) -> Served:
    log = partition.log
    data = _partition_data(partition, row, committed=committed)
    upto = log.last_stable_offset if committed else None
    found = log.read(row.offset, max(0, min(row.max_bytes, limits.room)), min_one=limits.nothing_yet, upto=upto)
    records = found.data
    if records:
        limits.nothing_yet = False
        limits.room -= len(records)
        if call.version < FORMAT_2_SINCE:
            records = _in_old_format(records, call.version)
    data.records = records
    if committed:
        data.aborted_transactions = [
            messages.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.aborted_transactions(row.offset, found.upper_bound)
        ]
    return Served(row, data, partition, len(records), urgent=False)


def _in_old_format(records: bytes, version: int) -> bytes:
    batches = scan_batches(records)
    # A truncated batch cannot be converted; the client fetches it again.
    whole = memoryview(records)[: batches[-1].position + batches[-1].size] if batches else b""
    return convert(whole, 0 if version < 2 else 1)


def _partition_data(partition: Partition, row: FetchRow, *, committed: bool) -> messages.PartitionData:
    log = partition.log
    return messages.PartitionData(
        partition_index=row.index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=[] if committed else None,
        records=b"",
    )


def _fault(row: FetchRow, code: ErrorCode, partition: Partition | None = None) -> Served:
    data = messages.PartitionData(
        partition_index=row.index, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
    )
    return Served(row, data, partition, 0, urgent=True)


# --- the response -----------------------------------------------------------------------------------------------------


def _response(plan: FetchPlan, served: list[Served], call: Call) -> messages.FetchResponse:
    response = messages.FetchResponse(session_id=plan.session.session_id if plan.session is not None else 0)
    last: messages.FetchableTopicResponse | None = None
    for one in served:
        if plan.session is not None and not _is_news(plan, one):
            continue
        row = one.row
        if last is None or last.topic != row.topic or last.topic_id != row.topic_id:
            last = messages.FetchableTopicResponse(topic=row.topic, topic_id=row.topic_id)
            response.responses.append(last)
        last.partitions.append(one.data)
    if call.state.plays_several:
        fetch_hints(response, call)
    return response


def _is_news(plan: FetchPlan, one: Served) -> bool:
    """Return whether an incremental response must name this partition; record the sent offsets."""
    marks = None if one.urgent else (one.data.high_watermark, one.data.log_start_offset)
    news = one.row.replace_sent(marks) or one.size > 0 or one.urgent
    if one.size and plan.session is not None:
        plan.session.served(one.row)
    return news or not plan.incremental
