"""Options that every client takes."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.cluster import ClientConfig
from aiokwire.config import from_options
from aiokwire.errors import ConfigurationError
from aiokwire.net import Address


def test_options_become_seconds_and_addresses() -> None:
    config = ClientConfig(bootstrap_servers="a,b:1", request_timeout_ms=1500, receive_message_max_bytes=4096)
    assert config.addresses == [Address("a", 9092), Address("b", 1)]
    assert config.request_timeout == 1.5
    assert config.default_api_timeout == 60
    assert (config.connection.request_timeout, config.connection.max_frame_size) == (1.5, 4096)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bootstrap_servers": ""}, "names no broker"),
        ({"bootstrap_servers": "a:x"}, "no valid port"),
        ({"client_id": 7}, "client_id must be a string"),
        ({"request_timeout_ms": 0}, "request_timeout_ms must be at least 1"),
        ({"request_timeout_ms": "5 s"}, "request_timeout_ms must be a number, not '5 s'"),
        ({"allow_auto_create_topics": "yes"}, "allow_auto_create_topics must be True or False, not 'yes'"),
        ({"security_protocol": "SASL_SSL"}, "'SASL_SSL' needs sasl_mechanism: one of PLAIN, "),
        ({"bootstrap_servers": {"bootstrap.servers": "a"}}, "not a dict: options are keyword arguments"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms must be at least 0"),
        ({"receive_message_max_bytes": 5}, "receive_message_max_bytes must be at least 1024"),
        ({"allow_auto_create_topics": 1}, "allow_auto_create_topics must be True or False"),
        ({"metadata_recovery_strategy": "pray"}, "'rebootstrap' or 'none'"),
        ({"request_timeout": 5}, "use request_timeout_ms"),
    ],
)
def test_the_error_names_the_wrong_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        from_options(ClientConfig, options)


def test_values_of_environment_variables_are_numbers_and_truth_values() -> None:
    text = {"request_timeout_ms": "1500", "retry_backoff_ms": "0.5", "receive_message_max_bytes": "4096"}
    config = from_options(ClientConfig, {**text, "allow_auto_create_topics": "True", "client_id": "7"})
    assert (config.request_timeout_ms, config.retry_backoff_ms, config.receive_message_max_bytes) == (1500, 0.5, 4096)
    assert config.allow_auto_create_topics is True
    assert config.client_id == "7"
