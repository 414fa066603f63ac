"""The table of error codes."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest

from aiokwire.error_codes import ErrorCode

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the import of kafka-python, which has no types
    peer_errors: Any = import_module("kafka.errors")

# Codes that kafka-python names or classifies differently from Kafka 4.3.
OTHER_NAMES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN",
    ErrorCode.NONE: "NO_ERROR",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_FOR_PARTITION",
    ErrorCode.MESSAGE_TOO_LARGE: "MESSAGE_SIZE_TOO_LARGE",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "INVALID_REPLICATION_ASSIGNMENT",
}
OTHER_FLAGS = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_LEADER_EPOCH}
KNOWN_TO_PEER = [code for code in ErrorCode if code in peer_errors.kafka_errors]


def test_the_numbers_have_no_gap_and_the_names_no_alias() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))
    assert len(ErrorCode.__members__) == len(ErrorCode)


def test_most_codes_can_be_compared_with_kafka_python() -> None:
    assert len(KNOWN_TO_PEER) >= 125


@pytest.mark.parametrize("code", KNOWN_TO_PEER, ids=lambda code: code.name)
def test_kafka_python_has_the_same_code(code: ErrorCode) -> None:
    peer = peer_errors.kafka_errors[code]
    assert peer.message == OTHER_NAMES.get(code, code.name)
    if code not in OTHER_FLAGS:
        assert (peer.retriable, peer.invalid_metadata) == (code.retriable, code.refresh_metadata)


def test_codes_that_kafka_retries_and_kafka_python_does_not() -> None:
    assert ErrorCode.CORRUPT_MESSAGE.retriable
    assert ErrorCode.UNKNOWN_LEADER_EPOCH.retriable
    assert not ErrorCode.UNKNOWN_LEADER_EPOCH.refresh_metadata


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_each_description_is_unique_and_adds_to_the_name(code: ErrorCode) -> None:
    assert code.description.lower() != code.name.lower().replace("_", " ")
    assert not code.description.endswith(".")
    assert sum(other.description == code.description for other in ErrorCode) == 1


def test_the_code_of_a_newer_broker_is_an_unknown_error() -> None:
    assert ErrorCode.of(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.of(31_000) is ErrorCode.UNKNOWN_SERVER_ERROR
