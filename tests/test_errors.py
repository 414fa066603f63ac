"""A broker's error code selects an exception class by the action it calls for."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConnectionFailed,
    CorruptRecord,
    FencedError,
    InvalidRequestError,
    KafkaError,
    RecordRejected,
    RequestTimedOut,
    RetriableError,
    StaleMetadataError,
    UnsupportedVersion,
    error_for,
    is_transient,
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, StaleMetadataError),
        (ErrorCode.REQUEST_TIMED_OUT, RetriableError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.PRODUCER_FENCED, FencedError),
        (ErrorCode.MESSAGE_TOO_LARGE, RecordRejected),
        (ErrorCode.UNSUPPORTED_VERSION, UnsupportedVersion),
        (ErrorCode.TOPIC_ALREADY_EXISTS, InvalidRequestError),
    ],
)
def test_a_code_selects_the_class_by_the_action_it_calls_for(code: ErrorCode, kind: type[BrokerError]) -> None:
    error = error_for(code, "Produce to node 1", topic="orders", partition=2)
    assert type(error) is kind
    assert error.code is code
    assert error.retriable == code.retriable
    assert (error.topic, error.partition) == ("orders", 2)
    assert str(error).startswith(f"Produce to node 1: {code.name} (")


def test_an_unknown_code_keeps_its_number() -> None:
    assert "unknown error code 9999" in str(error_for(9999, "Fetch"))


def test_the_error_for_corrupt_records_names_partition_and_offset() -> None:
    error = CorruptRecord("bad CRC", topic="orders", partition=1, offset=42)
    assert str(error) == "orders[1] at offset 42: bad CRC"
    assert isinstance(error, KafkaError)


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_an_error_of_a_broker_is_transient_if_its_code_is_retriable(code: ErrorCode) -> None:
    assert is_transient(error_for(code, "m")) is code.retriable


def test_a_request_without_a_response_is_transient_and_a_closed_client_is_not() -> None:
    assert is_transient(ConnectionFailed("refused"))
    assert is_transient(RequestTimedOut("late"))
    assert not is_transient(ClosedError("closed"))
    assert not is_transient(ValueError("no error of a broker"))
