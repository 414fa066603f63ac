"""What may be appended: the checks on a producer's batches, without any I/O.

The usual batch is looked at only from outside: header, checksum, size. Its records are walked (in compiled code) for
compacted topics, bounds on old timestamps, and when its header says something else than their count. Used by the
Produce handler.
"""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.broker.topics import TopicRules
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord
from aiokwire.protocol import Buffer
from aiokwire.records import BatchBuilder, Record, RecordBatch, convert, scan_batches, validate_records
from aiokwire.types import Compression, TimestampType

ZSTD_SINCE = 7  # the Produce version from which zstd is allowed
FORMAT_2_SINCE = 3  # the Produce version from which only format 2 is
MOST_FAULTS = 100  # records named one by one in an answer


class RejectedRecords(BrokerError):
    """Some records make their batch unacceptable; `indices` says which."""

    def __init__(self, message: str, *, code: ErrorCode, indices: list[int]) -> None:
        super().__init__(message, code=code)
        self.indices = indices


class Checked(NamedTuple):
    """Batches that may be appended as they are."""

    data: bytearray | memoryview
    headers: list[RecordBatch]


def check_batches(data: Buffer | None, version: int, rules: TopicRules, now_ms: int) -> Checked:
    """Check what a Produce request of `version` has for one partition; bring old formats to the present one.

    Raises: BrokerError: the code says what is wrong.
    """
    if data is None or not len(data):
        raise _invalid("a produce request must have records for each of its partitions")
    try:
        batches = scan_batches(data, check_crcs=True)
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error
    if not batches or batches[-1].position + batches[-1].size != len(data):
        raise BrokerError("the last batch is cut off or damaged", code=ErrorCode.CORRUPT_MESSAGE)
    for batch in batches:
        if batch.size > rules.max_message_bytes:
            raise BrokerError(
                f"a batch of {batch.size} bytes: max.message.bytes is {rules.max_message_bytes}",
                code=ErrorCode.MESSAGE_TOO_LARGE,
            )
    if version >= FORMAT_2_SINCE:
        if len(batches) > 1 or batches[0].magic != 2:
            raise _invalid(f"produce version {version} takes one batch of format 2 for each partition")
        if batches[0].compression is Compression.ZSTD and version < ZSTD_SINCE:
            raise BrokerError(
                f"produce version {version} does not know zstd", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            )
    elif any(batch.magic < 2 for batch in batches):
        return _check_all(*_from_old_format(data), rules, now_ms)
    return _check_all(_writable(data), batches, rules, now_ms)


def _writable(data: Buffer) -> bytearray | memoryview:
    if isinstance(data, bytes) or (isinstance(data, memoryview) and data.readonly):
        return bytearray(data)
    return data


def _from_old_format(data: Buffer) -> tuple[bytearray, list[RecordBatch]]:
    try:
        converted = bytearray(convert(data, 2, base_offset=0))
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error
    return converted, scan_batches(converted)


def _check_all(data: bytearray | memoryview, batches: list[RecordBatch], rules: TopicRules, now_ms: int) -> Checked:
    for batch in batches:
        _check_header(batch)
        _check_timestamps(batch, rules, now_ms)
        if rules.compacted:
            _check_keys(batch)
    codec = rules.compression
    if codec is not None and any(batch.compression is not codec for batch in batches):
        recoded = bytearray(b"".join(_recode(batch, codec, rules.compression_level) for batch in batches))
        return Checked(recoded, scan_batches(recoded))
    return Checked(data, batches)


def _check_header(batch: RecordBatch) -> None:
    if batch.is_control:
        raise _invalid("a client may not write control batches")
    if batch.count != batch.last_offset - batch.base_offset + 1 or batch.count <= 0:
        raise _invalid(f"{batch.count} records cannot fill offsets {batch.base_offset} to {batch.last_offset}")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"a batch of producer {batch.producer_id} without a sequence number")
    if batch.is_transactional and batch.producer_id < 0:
        raise _invalid("a transactional batch without a producer id")


def _check_timestamps(batch: RecordBatch, rules: TopicRules, now_ms: int) -> None:
    if rules.log_append_time:
        return
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise BrokerError("a producer may not claim log append time", code=ErrorCode.INVALID_TIMESTAMP)
    if batch.max_timestamp - now_ms > rules.timestamp_after_max_ms:
        raise BrokerError(
            f"timestamp {batch.max_timestamp} is more than message.timestamp.after.max.ms "
            f"({rules.timestamp_after_max_ms}) ahead of {now_ms}",
            code=ErrorCode.INVALID_TIMESTAMP,
        )
    earliest = now_ms - rules.timestamp_before_max_ms
    if earliest > 0:
        late = [index for index, record in enumerate(_records(batch)) if 0 <= record.timestamp < earliest]
        if late:
            raise RejectedRecords(
                f"timestamps more than message.timestamp.before.max.ms ({rules.timestamp_before_max_ms}) "
                f"behind {now_ms}",
                code=ErrorCode.INVALID_TIMESTAMP,
                indices=late[:MOST_FAULTS],
            )


def _check_keys(batch: RecordBatch) -> None:
    try:
        count, contiguous, _, _, keyless = validate_records(batch)
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error
    if not contiguous or count != batch.count:
        raise _invalid("the records' offsets are not contiguous")
    if keyless:
        raise RejectedRecords(
            "a compacted topic takes no record without a key",
            code=ErrorCode.INVALID_RECORD,
            indices=keyless[:MOST_FAULTS],
        )


def _records(batch: RecordBatch) -> list[Record]:
    try:
        return batch.records()
    except CorruptRecord as error:
        raise BrokerError(str(error), code=ErrorCode.CORRUPT_MESSAGE) from error


def _recode(batch: RecordBatch, codec: Compression, level: int | None) -> memoryview | bytes:
    """The same records with the codec that the topic asks for."""
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
