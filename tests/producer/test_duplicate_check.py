"""The acknowledgements that are compared with the log, and the comparison."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.producer.batch_results import is_own, may_be_duplicate
from aiokwire.protocol.messages.produce import PartitionProduceResponse
from aiokwire.records import Record
from aiokwire.types import TimestampType

BROKERS = TimestampType.LOG_APPEND_TIME


def record(
    value: bytes, offset: int = 0, timestamp: int = 0, kind: TimestampType = TimestampType.CREATE_TIME
) -> Record:
    return Record("t", 0, offset, timestamp, b"k", value, (("h", b"1"),), timestamp_type=kind)


@pytest.mark.parametrize(
    ("code", "time", "needed"),
    [
        (ErrorCode.NONE, -1, False),
        (ErrorCode.NONE, 17, True),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1, True),
    ],
)
def test_an_acknowledgement_that_may_be_a_duplicate_is_checked(code: ErrorCode, time: int, needed: bool) -> None:
    assert may_be_duplicate(PartitionProduceResponse(error_code=code, log_append_time_ms=time)) is needed


def test_the_log_must_have_the_same_records_at_any_offsets() -> None:
    ours = [record(b"a", timestamp=5), record(b"b", timestamp=6)]
    assert is_own(ours, [record(b"a", 7, 5), record(b"b", 8, 6)])
    assert not is_own(ours, [record(b"a", 7, 5), record(b"c", 8, 6)])
    assert not is_own(ours, [record(b"a", 7, 5)])


def test_times_are_not_compared_where_the_broker_sets_them() -> None:
    assert is_own([record(b"a", timestamp=5)], [record(b"a", 7, 99, BROKERS)])
    assert not is_own([record(b"a", timestamp=5)], [record(b"a", 7, 99)])
