"""Which acknowledgements have to be proven, and what proves one."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.producer.proof import is_own, needs_proof
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
def test_what_may_be_a_duplicate_is_doubted(code: ErrorCode, time: int, needed: bool) -> None:
    assert needs_proof(PartitionProduceResponse(error_code=code, log_append_time_ms=time)) is needed


@pytest.mark.parametrize("sent_once", [True, False])
def test_places_and_times_are_not_compared_where_the_broker_sets_them(sent_once: bool) -> None:
    theirs = [record(b"a", 7, 99, BROKERS), record(b"b", 8, 99, BROKERS)]
    assert is_own([record(b"a"), record(b"b")], theirs, sent_once=sent_once)
    assert not is_own([record(b"a"), record(b"c")], theirs, sent_once=sent_once)
    assert not is_own([record(b"a"), record(b"b")], theirs[:1], sent_once=sent_once)


def test_a_duplicate_of_what_was_sent_once_is_not_ones_own() -> None:
    assert not is_own([record(b"a")], [record(b"a")], sent_once=True)
    assert is_own([record(b"a")], [record(b"a")], sent_once=False)
