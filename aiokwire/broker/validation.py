"""The checks of produced batches, without I/O.

Every record is checked, as in Kafka: a batch of invalid records must fail at its producer, not at
its consumers. Compiled code walks the records without decoding them. Compressed batches are
decompressed for that, up to a limit: a few bytes may hold gigabytes.

The usual batch takes one call of compiled code (`check_usual`), which accepts it or leaves it to
`check_batches`; that finds the error, or converts the batch. `weigh` decides whether this may run
on the event loop. Used by the Produce handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aiokwire.broker.topics import TopicRules
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord
from aiokwire.protocol import Buffer
from aiokwire.records import (
    BatchBuilder,
    Record,
    RecordBatch,
    RecordCheck,
    TooLarge,
    convert,
    scan_batches,
    set_max_timestamp,
    take_sound,
    validate_records,
)
from aiokwire.types import Compression, TimestampType

ZSTD_SINCE = 7  # the Produce version from which zstd is allowed
FORMAT_2_SINCE = 3  # the Produce version from which only format 2 is

# Bytes that one batch may decompress to: the maximum, and the amount that is always allowed. In between it is
# `MOST_RATIO` times the batch's size, more than text needs.
MOST_DECOMPRESSED = 64 << 20
ALWAYS_DECOMPRESSED = 16 << 20
MOST_RATIO = 1000
# The limits of checks on the event loop, about 5 ms; a thread does larger ones.
QUICK_COMPRESSED = 256 << 10  # bytes of compressed batches in one request
QUICK_DECOMPRESSED = 2 << 20  # bytes that they decompress to
QUICK_BATCHES = 32  # compressed ones
QUICK_RECORDS = 200_000  # of batches that are not compressed
QUICK_RECODED = 5000  # records that get another codec, which decodes them
QUICK_OLD = 32 << 10  # bytes of messages of formats 0 and 1, which are converted individually
HEADER = 61  # bytes of a batch of format 2
CODEC = 7  # the bits of its attributes that name the codec
NEWEST = 2**63 - 1  # the greatest timestamp


class RejectedRecords(BrokerError):
    """Some records are invalid; `indices` names them."""

    def __init__(self, message: str, *, code: ErrorCode, indices: list[int]) -> None:
        super().__init__(message, code=code)
        self.indices = indices


class Heavy(Exception):
    """Batches to check in a thread: they decompress to too many bytes, or are corrupt."""


class Checked(NamedTuple):
    """Batches that may be appended."""

    data: bytearray | memoryview
    headers: list[RecordBatch]


def check_usual(data: Buffer | None, rules: TopicRules, now_ms: int, max_records: int) -> Checked | None:
    """Accept one usual batch of at most `max_records`; None: `check_batches` must check it."""
    if type(data) is not memoryview or data.readonly or rules.compression:  # Compression.NONE is 0
        return None
    own_time = rules.log_append_time
    batch = take_sound(
        data,
        rules.max_message_bytes,
        max_records,
        now_ms - rules.timestamp_before_max_ms,
        min(now_ms + rules.timestamp_after_max_ms, NEWEST),
        needs_keys=rules.compacted,
        has_own_time=own_time,
    )
    return Checked(data, [batch]) if batch is not None else None


def weigh(all_records: Iterable[Buffer | None]) -> int:
    """Return how many bytes each batch may decompress to on the loop; 0: check in a thread."""
    compressed = batches = records = old = 0
    for data in all_records:
        size = len(data) if data is not None else 0
        if data is None or size < HEADER:
            continue
        if data[16] != 2:
            old += size
        elif data[22] & CODEC:
            compressed += size
            batches += 1
        else:
            records += int.from_bytes(data[57:61], "big")
    if compressed > QUICK_COMPRESSED or batches > QUICK_BATCHES or records > QUICK_RECORDS or old > QUICK_OLD:
        return 0
    return QUICK_DECOMPRESSED // max(batches, 1)


def check_batches(data: Buffer | None, version: int, rules: TopicRules, now_ms: int, quick: int = 0) -> Checked:
    """Check the batches of a Produce request of `version` for one partition; convert old formats.

    `quick`: the bytes that a batch may decompress to on the event loop; 0: the limit for producers.

    Raises: BrokerError: with the code of the response. Heavy: `quick` is not enough.
    """
    if data is None or not len(data):
        raise _invalid("a produce request must have records for each of its partitions")
    limit = quick or min(max(MOST_RATIO * len(data), ALWAYS_DECOMPRESSED), MOST_DECOMPRESSED)
    try:
        batches = scan_batches(data, check_crcs=True, max_decompressed=limit)
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error
    if not batches or batches[-1].position + batches[-1].size != len(data):
        raise BrokerError("the last batch is truncated or corrupt", code=ErrorCode.CORRUPT_MESSAGE)
    for batch in batches:
        if batch.size > rules.max_message_bytes:
            raise BrokerError(
                f"a batch of {batch.size} bytes exceeds max.message.bytes ({rules.max_message_bytes})",
                code=ErrorCode.MESSAGE_TOO_LARGE,
            )
    if version >= FORMAT_2_SINCE:
        if len(batches) > 1 or batches[0].magic != 2:
            raise _invalid(f"produce version {version} requires one batch of format 2 for each partition")
        if batches[0].compression is Compression.ZSTD and version < ZSTD_SINCE:
            raise BrokerError(
                f"produce version {version} does not support zstd", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            )
    elif any(batch.magic < 2 for batch in batches):
        return _check_all(*_from_old_format(data, limit), rules, now_ms, is_quick=quick > 0)
    return _check_all(_writable(data), batches, rules, now_ms, is_quick=quick > 0)


def _writable(data: Buffer) -> bytearray | memoryview:
    if isinstance(data, bytes) or (isinstance(data, memoryview) and data.readonly):
        return bytearray(data)
    return data


def _from_old_format(data: Buffer, limit: int) -> tuple[bytearray, list[RecordBatch]]:
    try:
        converted = bytearray(convert(data, 2, base_offset=0, max_decompressed=limit))
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error
    return converted, scan_batches(converted)


def _check_all(
    data: bytearray | memoryview, batches: list[RecordBatch], rules: TopicRules, now_ms: int, *, is_quick: bool
) -> Checked:
    newest = -1
    for batch in batches:
        _check_header(batch)
        newest = _check_records(batch, rules, now_ms, is_quick=is_quick)
    if len(batches) == 1 and newest != batches[0].max_timestamp and not rules.log_append_time:
        set_max_timestamp(data, newest)  # lookups by time and retention use it
        batches = scan_batches(data)
    codec = rules.compression
    if codec is not None and any(batch.compression is not codec for batch in batches):
        if is_quick and sum(batch.count for batch in batches) > QUICK_RECODED:
            raise Heavy
        recoded = bytearray(b"".join(_recode(batch, codec, rules.compression_level) for batch in batches))
        return Checked(recoded, scan_batches(recoded))
    return Checked(data, batches)


def _check_header(batch: RecordBatch) -> None:
    if batch.is_control:
        raise _invalid("a client may not write control batches")
    if batch.count != batch.last_offset - batch.base_offset + 1 or batch.count <= 0:
        raise _invalid(f"{batch.count} records cannot fill offsets {batch.base_offset} to {batch.last_offset}")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"a batch of producer {batch.producer_id} has no sequence number")
    if batch.is_transactional and batch.producer_id < 0:
        raise _invalid("a transactional batch has no producer id")


def _check_records(batch: RecordBatch, rules: TopicRules, now_ms: int, *, is_quick: bool) -> int:
    """Check every record; return the greatest timestamp."""
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME and not rules.log_append_time:
        raise BrokerError("a producer may not set the timestamp type LogAppendTime", code=ErrorCode.INVALID_TIMESTAMP)
    earliest = max(now_ms - rules.timestamp_before_max_ms, 0) if not rules.log_append_time else 0
    check = _walked(batch, earliest, is_quick=is_quick)
    if not check.contiguous or check.records != batch.count:
        raise _invalid("the records' offsets are not contiguous")
    if rules.compacted and check.keyless:
        raise RejectedRecords(
            "a compacted topic requires a key in each record", code=ErrorCode.INVALID_RECORD, indices=check.keyless
        )
    if not rules.log_append_time:
        _check_timestamps(check, rules, now_ms)
    return check.max_timestamp


def _walked(batch: RecordBatch, earliest: int, *, is_quick: bool) -> RecordCheck:
    try:
        return validate_records(batch, earliest)
    except CorruptRecord as error:
        if is_quick and batch.compression is not Compression.NONE:
            raise Heavy from error
        if isinstance(error.__cause__, TooLarge):
            raise BrokerError(str(error), code=ErrorCode.MESSAGE_TOO_LARGE) from error
        raise _invalid(str(error)) from error


def _check_timestamps(check: RecordCheck, rules: TopicRules, now_ms: int) -> None:
    if check.max_timestamp - now_ms > rules.timestamp_after_max_ms:
        raise BrokerError(
            f"timestamp {check.max_timestamp} is more than message.timestamp.after.max.ms "
            f"({rules.timestamp_after_max_ms}) ahead of {now_ms}",
            code=ErrorCode.INVALID_TIMESTAMP,
        )
    if check.late:
        raise RejectedRecords(
            "timestamps are more than message.timestamp.before.max.ms "
            f"({rules.timestamp_before_max_ms}) behind {now_ms}",
            code=ErrorCode.INVALID_TIMESTAMP,
            indices=check.late,
        )


def _records(batch: RecordBatch) -> list[Record]:
    try:
        return batch.records()
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error


def _recode(batch: RecordBatch, codec: Compression, level: int | None) -> memoryview | bytes:
    """Return the same records with the topic's codec."""
    if batch.compression is codec:
        return batch.data
    builder = BatchBuilder(2, 2**31 - 1, initial=batch.size)
    for record in _records(batch):
        builder.append_at(record.offset - batch.base_offset, record.timestamp, record.key, record.value, record.headers)
    return builder.seal(
        compression=codec,
        level=level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        base_offset=batch.base_offset,
    )


def _invalid(message: str) -> BrokerError:
    return BrokerError(message, code=ErrorCode.INVALID_RECORD)
