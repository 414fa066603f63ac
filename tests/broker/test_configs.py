"""Configs: types, bounds, and where a value in force comes from."""

from __future__ import annotations

import pytest

from aiokwire.broker.config_table import SYNONYMS
from aiokwire.broker.configs import (
    BrokerConfigs,
    ConfigSource,
    ConfigType,
    broker_keys,
    check_topic_configs,
    static_configs,
    topic_keys,
)
from aiokwire.broker.log import LogConfig
from aiokwire.broker.options import BrokerOptions
from aiokwire.errors import ConfigurationError


def test_every_default_is_a_value_that_its_config_takes() -> None:
    for key in [*topic_keys().values(), *broker_keys().values()]:
        if key.default is not None:
            assert key.parse(key.default) is not None, key.name


def test_every_synonym_exists() -> None:
    for name, synonyms in SYNONYMS.items():
        assert name in topic_keys()
        assert all(synonym in broker_keys() for synonym, _ in synonyms)


def test_type_checkers_know_every_broker_config() -> None:
    kinds = {
        ConfigType.BOOLEAN: "bool",
        ConfigType.INT: "int",
        ConfigType.SHORT: "int",
        ConfigType.LONG: "int",
        ConfigType.DOUBLE: "float",
        ConfigType.LIST: "str | Sequence[str]",
    }
    own = {"node_id", "num_partitions"}  # parameters of `Broker` itself
    keys = {key.name.replace(".", "_"): kinds.get(key.type, "str") for key in broker_keys().values()}
    typed = {name: kind.__forward_arg__ for name, kind in BrokerOptions.__annotations__.items()}
    keys["listeners"] = "str | Sequence[str | Listener]"
    assert typed == {name: kind for name, kind in keys.items() if name not in own}


def test_topic_and_broker_defaults_agree() -> None:
    values = BrokerConfigs({}, node_id=1).topic_values({})
    assert values == {key.name: key.default for key in topic_keys().values()}


def test_the_logs_own_defaults_are_kafkas() -> None:
    assert LogConfig().override(BrokerConfigs({}, node_id=1).topic_values({})) == LogConfig()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "1.5", "whole number"),
        ("retention.ms", str(2**63), "64 bits"),
        ("retention.ms", "-2", "at least -1"),
        ("compression.lz4.level", "18", "at most 17"),
        ("min.cleanable.dirty.ratio", "2", "at most 1"),
        ("min.cleanable.dirty.ratio", "x", "a number"),
        ("preallocate", "yes", "true or false"),
        ("compression.type", "rar", "one of uncompressed"),
        ("cleanup.policy", "delete,forget", "one of compact, delete"),
    ],
)
def test_a_wrong_value_names_config_value_and_valid_values(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        topic_keys()[name].parse(text)
    assert name in str(caught.value)
    assert text.rsplit(",", maxsplit=1)[-1] in str(caught.value)


def test_texts_are_converted_to_python_values() -> None:
    keys = topic_keys()
    assert keys["preallocate"].parse(" True ") is True
    assert keys["cleanup.policy"].parse("compact, delete") == ["compact", "delete"]
    assert keys["min.cleanable.dirty.ratio"].parse("0.25") == 0.25
    assert keys["message.timestamp.type"].parse("LogAppendTime") == "LogAppendTime"


def test_the_error_for_a_misspelled_config_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean 'retention\.bytes'"):
        check_topic_configs({"retention.byte": "1"})
    with pytest.raises(ConfigurationError, match=r"did you mean 'log\.retention\.ms'"):
        static_configs({"log_retention_m": 1})
    with pytest.raises(ConfigurationError, match="Null value"):
        check_topic_configs({"retention.bytes": None})


def test_python_values_become_texts_and_none_is_left_out() -> None:
    given = static_configs(
        {"log_preallocate": True, "log_cleanup_policy": ["compact", "delete"], "num_partitions": 3, "broker_rack": None}
    )
    assert given == {"log.preallocate": "true", "log.cleanup.policy": "compact,delete", "num.partitions": "3"}


def test_the_strongest_level_wins_and_units_are_turned() -> None:
    configs = BrokerConfigs({"log.retention.hours": "1", "log.roll.ms": "7"}, node_id=3)
    assert configs.topic_value("retention.ms", {}).value == "3600000"
    configs.set_dynamic("", {"log.retention.minutes": "2"})
    assert configs.topic_value("retention.ms", {}) == ("retention.ms", "120000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    configs.set_dynamic("3", {"log.retention.ms": "5"})
    assert configs.topic_value("retention.ms", {}).value == "5"
    assert configs.topic_values({"retention.ms": "1"})["retention.ms"] == "1"
    assert configs.topic_values({})["segment.ms"] == "7"


def test_no_limit_stays_no_limit_in_another_unit() -> None:
    configs = BrokerConfigs({"log.retention.hours": "-1"}, node_id=1)
    assert configs.topic_value("retention.ms", {}).value == "-1"


def test_numbers_and_booleans_are_asked_for_by_name() -> None:
    configs = BrokerConfigs({"num.partitions": "9"}, node_id=1)
    assert configs.integer("num.partitions") == 9
    assert configs.boolean("auto.create.topics.enable") is True
    with pytest.raises(ConfigurationError, match="no value"):
        configs.integer("log.retention.ms")
