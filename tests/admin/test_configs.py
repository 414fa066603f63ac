"""Requests and responses for settings, without a broker."""

from __future__ import annotations

import pytest

from aiokwire.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
    alter_request,
    read_configs,
    replace_request,
)
from aiokwire.admin.topics import config_text
from aiokwire.errors import InvalidArgument
from aiokwire.protocol.messages import describe_configs

TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (0.5, "0.5"), (True, "true"), (False, "false"), ("x", "x"), (None, None), (["a", "b"], "a,b")],
)
def test_values_are_converted_to_the_brokers_spelling(value: object, text: str | None) -> None:
    assert config_text(value) == text


def test_a_value_sets_and_none_deletes() -> None:
    request = alter_request({TOPIC: {"a": 1, "b": None}}, validate_only=True)
    assert [(c.name, c.config_operation, c.value) for c in request.resources[0].configs] == [
        ("a", ConfigOperation.SET, "1"),
        ("b", ConfigOperation.DELETE, None),
    ]
    assert request.validate_only


def entry(name: str, value: str | None, source: ConfigSource = ConfigSource.DYNAMIC_TOPIC) -> ConfigEntry:
    return ConfigEntry(name, value, source, is_read_only=False, is_sensitive=False)


def test_an_old_broker_receives_the_present_settings_with_the_changes() -> None:
    present = {
        TOPIC: {
            "kept": entry("kept", "1"),
            "gone": entry("gone", "2"),
            "changed": entry("changed", "3"),
            "default": entry("default", "4", ConfigSource.DEFAULT),
        }
    }
    request = replace_request({TOPIC: {"changed": 9, "gone": None, "new": "x"}}, present, validate_only=False)
    assert {c.name: c.value for c in request.resources[0].configs} == {"kept": "1", "changed": "9", "new": "x"}


def test_appending_on_an_old_broker_raises() -> None:
    with pytest.raises(InvalidArgument, match="append"):
        replace_request({TOPIC: {"a": ConfigChange(ConfigOperation.APPEND, "x")}}, {TOPIC: {}}, validate_only=False)


@pytest.mark.parametrize(("is_default", "expected"), [(True, ConfigSource.DEFAULT), (False, ConfigSource.UNKNOWN)])
def test_version_0_reports_only_whether_a_value_is_the_default(is_default: bool, expected: ConfigSource) -> None:
    response = describe_configs.DescribeConfigsResponse(
        results=[
            describe_configs.DescribeConfigsResult(
                resource_type=2,
                resource_name="t",
                configs=[describe_configs.DescribeConfigsResourceResult(name="a", value="1", is_default=is_default)],
            )
        ]
    )
    assert read_configs(response)[TOPIC]["a"].source is expected


def test_a_source_of_a_newer_broker_is_unknown() -> None:
    assert ConfigSource.of(99) is ConfigSource.UNKNOWN
