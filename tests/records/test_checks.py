"""The broker's questions about a batch, against answers from the decoded records."""

from __future__ import annotations

from hypothesis import given

from aiokwire.records import (
    compress,
    find_offset_for_timestamp,
    max_timestamp_record,
    scan_batches,
    validate_records,
)
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, TIMESTAMPS, rows


@given(rows(gaps=True), CODECS, TIMESTAMPS)
def test_answers_are_those_of_the_records(records: list[Row], codec: int, asked: int) -> None:
    payload = compress(codec, b"".join(reference.record(row, records[0].timestamp) for row in records))
    (batch,) = scan_batches(reference.batch(payload, records, attributes=int(codec), base_offset=70))
    check = validate_records(batch)
    assert check.records == len(records)
    assert check.contiguous == (records[-1].delta == len(records) - 1)
    assert check.keyless == [index for index, row in enumerate(records) if row.key is None]
    stamped = [row for row in records if row.timestamp > -1]
    newest = max(stamped, key=lambda row: row.timestamp, default=None)
    wanted = (-1, -1) if newest is None else (newest.timestamp, 70 + newest.delta)
    assert check[2:4] == wanted == max_timestamp_record(batch)
    found = next(((70 + row.delta, row.timestamp) for row in records if row.timestamp >= asked), None)
    assert find_offset_for_timestamp(batch, asked) == found


def test_a_batch_whose_last_offset_lies_behind_its_records_is_not_contiguous() -> None:
    content = [Row(0, 5, b"k", b"v"), Row(1, 5, b"k", b"v")]
    payload = b"".join(reference.record(row, 5) for row in content)
    (batch,) = scan_batches(reference.batch(payload, [*content[:1], Row(9, 5, b"k", b"v")]))
    assert not validate_records(batch).contiguous


def test_message_sets_are_checked_too() -> None:
    content = [Row(0, 5, b"k", b"v"), Row(1, 9, None, b"v"), Row(2, 7, b"k", b"v")]
    (batch,) = scan_batches(reference.message_set(1, content, 30))
    assert validate_records(batch) == (3, True, 9, 31, [1], [])
    assert find_offset_for_timestamp(batch, 6) == (31, 9)
    assert find_offset_for_timestamp(batch, 10) is None
