"""Options: defaults, parsing, contradictions."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.config import from_options
from aiokwire.errors import ConfigurationError
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.types import Acks, Compression


def test_the_defaults_are_safe() -> None:
    config = ProducerConfig()
    assert config.acks is Acks.ALL
    assert config.wants_idempotence
    assert (config.linger, config.delivery_timeout) == (0.005, 120.0)


@pytest.mark.parametrize(
    ("given", "acks"), [("all", Acks.ALL), (-1, Acks.ALL), (1, Acks.LEADER), ("0", Acks.NONE), (0, Acks.NONE)]
)
def test_acks_are_accepted_in_all_spellings_of_kafka(given: Any, acks: Acks) -> None:
    assert ProducerConfig(acks=given).acknowledgements is acks


def test_less_than_all_acks_turn_idempotence_off_unless_it_was_requested() -> None:
    assert not ProducerConfig(acks=1).wants_idempotence
    with pytest.raises(ConfigurationError, match="enable_idempotence"):
        ProducerConfig(acks=1, enable_idempotence=True)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"linger": 5}, "linger_ms"),
        ({"compression_type": "brotli"}, "gzip"),
        ({"compression_type": "snappy", "compression_level": 3}, "compression_level"),
        ({"compression_type": "gzip", "compression_level": 11}, "compression_level"),
        ({"buffer_memory": 1000}, "max_request_size"),
        ({"delivery_timeout_ms": 5, "linger_ms": 10}, "linger_ms"),
        ({"linger_ms": -1}, "linger_ms"),
        ({"acks": 7}, "acks must be"),
        ({"max_in_flight_requests_per_connection": 6, "enable_idempotence": True}, "five"),
        ({"key_serializer": "json"}, "key_serializer"),
        ({"partitioner": "best"}, "round_robin"),
        ({"batch_size": "1.5"}, "batch_size"),
        ({"transactional_id": ""}, "transactional_id"),
        ({"transactional_id": 7}, "transactional_id"),
        ({"transactional_id": "tx", "acks": 1}, "acks"),
        ({"transactional_id": "tx", "enable_idempotence": False}, "enable_idempotence"),
        ({"transactional_id": "tx", "max_in_flight_requests_per_connection": 6}, "max_in_flight"),
        ({"transactional_id": "tx", "transaction_timeout_ms": 1}, "linger_ms"),
        ({"transaction_timeout_ms": 0}, "transaction_timeout_ms"),
    ],
)
def test_a_wrong_option_fails_at_construction_and_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Producer("localhost:9092", **options)


def test_codecs_are_parsed_once() -> None:
    config = from_options(ProducerConfig, {"compression_type": "lz4", "compression_level": 3})
    assert config.compression_type is Compression.LZ4


def test_no_delivery_takes_longer_than_its_transaction_may() -> None:
    options = {"delivery_timeout_ms": 90_000, "transaction_timeout_ms": 30_000}
    assert from_options(ProducerConfig, options).delivery_timeout == 90.0
    assert from_options(ProducerConfig, {**options, "transactional_id": "tx"}).delivery_timeout == 30.0
