"""The broker's checks of a batch: validation, the newest record, the first one after a time."""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.records._batch import RecordBatch


class RecordCheck(NamedTuple):
    """The result of walking a batch's records.

    `contiguous`: the offsets rise by one from the base offset to the last one. `max_timestamp` and
    the offset of the first record that has it are -1 when no record has a timestamp. `keyless`
    lists the indices of the first 100 records without a key, which a compacted topic refuses,
    `late` those of the first 100 whose timestamp is too old.
    """

    records: int
    contiguous: bool
    max_timestamp: int
    offset_of_max_timestamp: int
    keyless: list[int]
    late: list[int]


def validate_records(batch: RecordBatch, earliest: int | None = None) -> RecordCheck:
    """Walk all records of `batch` in compiled code, undecoded; those before `earliest` are late.

    Raises: CorruptRecord: a record, or their count, does not fit the batch's bytes.
    """
    return RecordCheck(*(batch.inspect() if earliest is None else batch.inspect(earliest)))


def find_offset_for_timestamp(batch: RecordBatch, timestamp: int) -> tuple[int, int] | None:
    """Return offset and timestamp of the first record at or after `timestamp`, or None.

    Raises: CorruptRecord: when a record before it is corrupt.
    """
    return batch.find_timestamp(timestamp)


def max_timestamp_record(batch: RecordBatch) -> tuple[int, int]:
    """Return the largest timestamp and the offset of its first record; (-1, -1) if none has one.

    Raises: CorruptRecord: when a record is corrupt.
    """
    check = validate_records(batch)
    return check.max_timestamp, check.offset_of_max_timestamp
