"""Which acknowledgements have to be proven, and what proves one."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.producer.proof import needs_proof, same
from aiokwire.protocol.messages.produce import PartitionProduceResponse
from aiokwire.records import Record


def record(value: bytes, offset: int = 0, timestamp: int = 0) -> Record:
    return Record("t", 0, offset, timestamp, b"k", value, (("h", b"1"),))


@pytest.mark.parametrize(
    ("sequence", "code", "time", "needed"),
    [
        (0, ErrorCode.NONE, -1, False),
        (0, ErrorCode.NONE, 17, True),
        (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1, True),
        (5, ErrorCode.NONE, 17, False),
        (5, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1, False),
    ],
)
def test_the_first_batch_of_a_sequence_is_doubted_where_it_may_be_a_duplicate(
    sequence: int, code: ErrorCode, time: int, needed: bool
) -> None:
    assert needs_proof(sequence, PartitionProduceResponse(error_code=code, log_append_time_ms=time)) is needed


def test_places_and_times_are_not_compared() -> None:
    assert same([record(b"a"), record(b"b")], [record(b"a", 7, 99), record(b"b", 8, 99)])
    assert not same([record(b"a"), record(b"b")], [record(b"a")])
    assert not same([record(b"a")], [record(b"b")])
