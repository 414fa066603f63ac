"""The meaning of error codes for a batch."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.producer.responses import ON_CODE, Verdict, verdict_of


def verdict(code: int, *, count: int = 10, idempotent: bool = True, earlier: bool = False) -> Verdict:
    return verdict_of(code, count=count, idempotent=idempotent, earlier_unresolved=earlier)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NONE, Verdict.DELIVERED),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Verdict.DUPLICATE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Verdict.REFRESH),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Verdict.REFRESH),
        (ErrorCode.NOT_ENOUGH_REPLICAS, Verdict.RETRY),
        (ErrorCode.CORRUPT_MESSAGE, Verdict.RETRY),
        (ErrorCode.MESSAGE_TOO_LARGE, Verdict.SPLIT),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Verdict.NEW_EPOCH),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Verdict.FAIL),
        (ErrorCode.INVALID_RECORD, Verdict.FAIL),
        (ErrorCode.PRODUCER_FENCED, Verdict.FAIL),
    ],
)
def test_a_code_has_one_meaning(code: ErrorCode, expected: Verdict) -> None:
    assert verdict(code) is expected


def test_a_single_record_that_is_too_large_cannot_be_split() -> None:
    assert verdict(ErrorCode.MESSAGE_TOO_LARGE, count=1) is Verdict.FAIL


def test_a_gap_in_the_sequence_is_caused_by_an_earlier_unresolved_batch() -> None:
    assert verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, earlier=True) is Verdict.RETRY


def test_sequences_mean_nothing_to_a_producer_without_them() -> None:
    assert verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, idempotent=False) is Verdict.FAIL


def test_an_unknown_code_fails_the_batch() -> None:
    assert verdict(12345) is Verdict.FAIL


def test_every_code_that_is_retriable_in_the_protocol_is_retried() -> None:
    again = {Verdict.RETRY, Verdict.REFRESH}
    wrong = [code.name for code in ErrorCode if code.retriable and verdict(code) not in again]
    assert wrong == []


def test_the_table_names_no_code_twice_with_different_meanings() -> None:
    assert len(ON_CODE) == len({int(code) for code in ON_CODE})
