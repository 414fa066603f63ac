"""Topic and broker configs: Kafka's names, types and bounds, and the source of each value in force.

Used by the broker, by topics, and by the handlers that describe and alter configs. Values are text,
as on the wire; `ConfigKey.parse` converts them to Python values.
"""

from __future__ import annotations

import difflib
import enum
import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokwire.broker.config_table import BROKER_CONFIGS, SYNONYMS, TOPIC_CONFIGS
from aiokwire.errors import ConfigurationError


class ConfigType(enum.IntEnum):
    """A config's type, numbered as in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    """The source of a value, numbered as in DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7


class ConfigValue(NamedTuple):
    """A value in force, or one that another source overrides."""

    name: str
    value: str | None
    source: ConfigSource


_WIDTHS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class ConfigKey(NamedTuple):
    """One config and the values that it takes."""

    name: str
    type: ConfigType
    default: str | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    dynamic: bool

    def parse(self, text: str) -> bool | int | float | str | list[str]:
        """Return `text` as a Python value.

        Raises: ConfigurationError: naming the config, the value and the valid values.
        """
        text = text.strip()
        if self.type is ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise self._error(text, "true or false")
            return text.lower() == "true"
        if self.type in _WIDTHS:
            return self._number(text)
        if self.type is ConfigType.DOUBLE:
            try:
                number = float(text)
            except ValueError:
                raise self._error(text, "a number") from None
            self._check_bounds(text, number)
            return number
        if self.type is ConfigType.LIST:
            items = [item.strip() for item in text.split(",") if item.strip()]
            for item in items:
                self._check_choice(item)
            return items
        self._check_choice(text)
        return text

    def _number(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise self._error(text, f"a whole number ({self.type.name})") from None
        limit = 1 << (_WIDTHS[self.type] - 1)
        if not -limit <= number < limit:
            raise self._error(text, f"a whole number of {_WIDTHS[self.type]} bits")
        self._check_bounds(text, number)
        return number

    def _check_bounds(self, text: str, number: float) -> None:
        if self.minimum is not None and number < self.minimum:
            raise self._error(text, f"at least {self.minimum:g}")
        if self.maximum is not None and number > self.maximum:
            raise self._error(text, f"at most {self.maximum:g}")

    def _check_choice(self, text: str) -> None:
        if self.choices and text.lower() not in (choice.lower() for choice in self.choices):
            raise self._error(text, f"one of {', '.join(self.choices)}")

    def _error(self, text: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"Invalid value {text!r} for configuration {self.name}: must be {expected}")


def _keys(table: str) -> dict[str, ConfigKey]:
    keys = {}
    for line in table.strip().splitlines():
        name, kind, default, bounds, *flags = line.split()
        least, dots, most = bounds.partition("..")
        keys[name] = ConfigKey(
            name,
            ConfigType[kind],
            None if default == "-" else "" if default == '""' else default,
            float(least) if dots and least else None,
            float(most) if dots and most else None,
            () if dots or bounds == "-" else tuple(bounds.split("|")),
            "dynamic" in flags,
        )
    return keys


@functools.cache
def topic_keys() -> Mapping[str, ConfigKey]:
    """Every topic config."""
    return _keys(TOPIC_CONFIGS)


@functools.cache
def broker_keys() -> Mapping[str, ConfigKey]:
    """Every broker config."""
    return _keys(BROKER_CONFIGS)


@functools.cache
def client_metrics_keys() -> Mapping[str, ConfigKey]:
    """Every config of a subscription to metrics of clients (KIP-714)."""
    return _keys('match LIST "" -\nmetrics LIST "" -\ninterval.ms INT 300000 100..3600000')


def as_text(value: object) -> str:
    """Return a Python value as a config's text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


def static_configs(options: Mapping[str, object]) -> dict[str, str]:
    """Convert Python options to broker configs: `log_segment_bytes` becomes `log.segment.bytes`.

    Raises: ConfigurationError: an unknown name, with the nearest valid one, or a bad value.
    """
    given = {}
    for option, value in options.items():
        name = option.replace("_", ".")
        key = broker_keys().get(name)
        if key is None:
            raise ConfigurationError(f"the broker has no config {option!r}{_advice(name)}")
        if value is not None:
            given[name] = as_text(value)
            key.parse(given[name])
    return given


def _advice(name: str) -> str:
    if name.startswith("listener.name."):
        return (
            ": configs of a single listener have no prefix here; set the config without listener.name.NAME., for all "
            "listeners, or give Broker(listeners=[Listener(...)]) the options of each"
        )
    return _hint(name, broker_keys())


def check_topic_configs(configs: Mapping[str, str | None]) -> None:
    """Check the configs of a new topic.

    Raises: ConfigurationError: for the first that is unknown or has a bad value.
    """
    for name, text in configs.items():
        key = topic_keys().get(name)
        if key is None:
            raise ConfigurationError(f"Unknown topic config name: {name}{_hint(name, topic_keys())}")
        if text is None:
            raise ConfigurationError(f"Null value not supported for topic config: {name}")
        key.parse(text)
    least, most = (topic_number(configs, name) for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"))
    if least > most:
        raise ConfigurationError(f"min.compaction.lag.ms ({least}) must not exceed max.compaction.lag.ms ({most})")


def topic_number(configs: Mapping[str, str | None], name: str) -> int:
    """Return a numeric topic config from `configs`, or its default."""
    key = topic_keys()[name]
    text = configs.get(name) or key.default or "0"
    return int(key.parse(text))  # type: ignore[arg-type]  # called for numbers only


def _hint(name: str, keys: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(keys), n=1, cutoff=0.6)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


class BrokerConfigs:
    """The broker's configs in force: those of its start, and those changed since."""

    def __init__(self, static: Mapping[str, str], *, node_id: int) -> None:
        self.static: dict[str, str] = dict(static)
        self.node_id = node_id
        # Broker name ("" for all brokers) -> config -> value; kept by the topic registry's file.
        self.dynamic: dict[str, dict[str, str]] = {}
        # Subscription to metrics of clients (KIP-714) -> config -> value; kept in the same file.
        self.client_metrics: dict[str, dict[str, str]] = {}
        self._topic_defaults: dict[str, str] | None = None  # of topics without overrides; None: not computed
        self._known: dict[str, object] = {}  # parsed values: some are read for each request

    def text(self, name: str) -> str | None:
        """Return the value in force of a broker config."""
        return self.chain(name)[0].value

    def integer(self, name: str) -> int:
        """Return the value in force of a whole-numbered broker config."""
        number = self._parsed(name)
        assert isinstance(number, int), name
        return number

    def seconds(self, name: str) -> float:
        """Return the value in force of a broker config in milliseconds, in seconds."""
        return self.integer(name) / 1000

    def boolean(self, name: str) -> bool:
        """Return the value in force of a boolean broker config."""
        return bool(self._parsed(name))

    def _parsed(self, name: str) -> object:
        known = self._known.get(name)
        if known is None:
            text = self.text(name)
            if text is None:
                raise ConfigurationError(f"broker config {name} has no value")
            known = self._known[name] = broker_keys()[name].parse(text)
        return known

    def _levels(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER, self.dynamic.get(str(self.node_id), {})),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.dynamic.get("", {})),
            (ConfigSource.STATIC_BROKER, self.static),
        )

    def chain(self, name: str) -> list[ConfigValue]:
        """Return all values of a broker config, the one in force first; never empty."""
        found = [ConfigValue(name, level[name], source) for source, level in self._levels() if name in level]
        default = broker_keys()[name].default
        if default is not None or not found:
            found.append(ConfigValue(name, default, ConfigSource.DEFAULT))
        return found

    def topic_chain(self, name: str, topic: Mapping[str, str]) -> list[ConfigValue]:
        """Return a topic config's values and broker synonyms, that in force first; never empty."""
        found = [ConfigValue(name, topic[name], ConfigSource.TOPIC)] if name in topic else []
        synonyms = SYNONYMS.get(name, ())
        for source, level in self._levels():
            found += [ConfigValue(synonym, level[synonym], source) for synonym, _ in synonyms if synonym in level]
        for synonym, _ in synonyms:
            default = broker_keys()[synonym].default
            if default is not None:
                found.append(ConfigValue(synonym, default, ConfigSource.DEFAULT))
        if not found:
            found.append(ConfigValue(name, topic_keys()[name].default, ConfigSource.DEFAULT))
        return found

    def topic_value(self, name: str, topic: Mapping[str, str]) -> ConfigValue:
        """Return the value in force of a topic config, in the topic config's unit."""
        first = self.topic_chain(name, topic)[0]
        unit = dict(SYNONYMS.get(name, ())).get(first.name, 1) if first.source is not ConfigSource.TOPIC else 1
        if unit == 1 or first.value is None:
            return ConfigValue(name, first.value, first.source)
        count = int(first.value)
        return ConfigValue(name, str(count * unit if count >= 0 else count), first.source)

    def set_dynamic(self, broker: str, values: Mapping[str, str]) -> None:
        """Replace the dynamic configs of one broker, or of all brokers for an empty name."""
        self.dynamic[broker] = dict(values)
        self._topic_defaults = None
        self._known.clear()

    def topic_values(self, topic: Mapping[str, str]) -> dict[str, str]:
        """Return every topic config in force for a topic with these overrides."""
        if self._topic_defaults is None:
            values = {name: self.topic_value(name, {}).value for name in topic_keys()}
            self._topic_defaults = {name: value for name, value in values.items() if value is not None}
        return {**self._topic_defaults, **topic}
