"""Errors about options name the nearest valid option, or the option with the bad value."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import dataclass
from typing import Any

import pytest

from aiokwire.admin import Admin
from aiokwire.cluster import Client, ClientConfig, ClientOptions
from aiokwire.config import described_options, from_options, require_bool, require_int, require_number
from aiokwire.consumer import Consumer, ConsumerConfig
from aiokwire.consumer.config import ConsumerOptions
from aiokwire.errors import ConfigurationError
from aiokwire.option_advice import ADVICE
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.producer.config import ProducerOptions


@dataclass(frozen=True, kw_only=True)
class Settings:
    linger_ms: int = 5
    batch_size: int = 16384

    def __post_init__(self) -> None:
        require_int("linger_ms", self.linger_ms, minimum=0)
        require_int("batch_size", self.batch_size, minimum=1)


def test_known_options_are_accepted() -> None:
    assert from_options(Settings, {"linger_ms": 7}) == Settings(linger_ms=7)


@pytest.mark.parametrize("spelling", ["linger", "lingerms", "linger.ms", "LINGER_MS", "linger-ms"])
def test_an_unknown_option_names_the_nearest_valid_one(spelling: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no option .*did you mean 'linger_ms'"):
        from_options(Settings, {spelling: 1})


@pytest.mark.parametrize(
    ("owner", "option", "advice"),
    [
        (Consumer, "linger_ms", "linger_ms is an option of Producer"),
        (Producer, "max_poll_records", "max_poll_records is an option of Consumer"),
        (Producer, "retries", "set these instead"),
        (Producer, "queue.buffering.max.ms", "use linger_ms"),
        (Consumer, "loop", "leave it out"),
        (Consumer, "enable.auto.offset.store", 'enable_auto_commit="acked"'),
        (Admin, "api_version", "negotiated"),
        (Client, "sasl_mechanisms", "use sasl_mechanism"),
        (Producer, "zzz", r"help\(aiokwire.ProducerConfig\) lists all \d+$"),
    ],
)
def test_the_error_for_an_unknown_option_names_the_replacement(owner: type[Any], option: str, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{owner.__name__} has no option '{option}'.*{advice}"):
        owner(bootstrap_servers="localhost:9092", **{option: 1})


def test_advice_for_options_of_other_clients_names_existing_options() -> None:
    ours = {field.name for cls in (ProducerConfig, ConsumerConfig) for field in dataclasses.fields(cls)}
    assert not ours & set(ADVICE)
    named = {word for text in ADVICE.values() for word in re.findall(r"(?:use|set) (\w+_\w+)", text)}
    assert named <= ours


@pytest.mark.parametrize(
    ("options", "config", "beside"),
    [
        (ClientOptions, ClientConfig, {"bootstrap_servers"}),
        (ProducerOptions, ProducerConfig, {"bootstrap_servers", "key_serializer", "value_serializer"}),
        (ConsumerOptions, ConsumerConfig, {"bootstrap_servers", "key_deserializer", "value_deserializer"}),
    ],
)
def test_type_checkers_know_every_option_with_its_type(options: Any, config: Any, beside: set[str]) -> None:
    typed = {name: getattr(kind, "__forward_arg__", kind) for name, kind in options.__annotations__.items()}
    fields = {field.name: field.type for field in dataclasses.fields(config) if field.name not in beside}
    assert typed == fields


@pytest.mark.parametrize("owner", [Producer, Consumer, Admin, Client])
def test_help_and_the_signature_show_every_option(owner: type[Any]) -> None:
    config = {Producer: ProducerConfig, Consumer: ConsumerConfig}.get(owner, ClientConfig)
    options = {field.name for field in dataclasses.fields(config)}
    assert options <= set(inspect.signature(owner).parameters)
    documented = inspect.getdoc(owner) or ""
    assert options <= set(re.findall(r"^  (\w+): ", documented, re.MULTILINE))


def test_every_option_has_a_description() -> None:
    bare = [
        f"{config.__name__}.{name}"
        for config in (ClientConfig, ProducerConfig, ConsumerConfig)
        for name, _, _, text in described_options(config)
        if not text
    ]
    assert not bare


def test_the_error_for_an_unrecognizable_option_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigurationError, match="valid options: linger_ms, batch_size"):
        from_options(Settings, {"zzz": 1})


@pytest.mark.parametrize("value", [-1, True, "5", 1.5, None])
def test_a_bad_value_names_its_option(value: object) -> None:
    with pytest.raises(ConfigurationError, match="linger_ms"):
        from_options(Settings, {"linger_ms": value})


def test_the_error_names_the_bounds() -> None:
    assert require_int("x", 3, minimum=3, maximum=3) == 3
    with pytest.raises(ConfigurationError, match="x must be at most 3, not 4"):
        require_int("x", 4, maximum=3)
    assert require_number("y", 0.5, minimum=0.5) == 0.5
    with pytest.raises(ConfigurationError, match="y must be a number"):
        require_number("y", float("nan"))
    with pytest.raises(ConfigurationError, match="z must be True or False, not 1"):
        require_bool("z", 1)
