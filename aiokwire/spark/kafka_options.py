"""The options that begin with `kafka.`: the Java client's names and values, as options of aiokwire.

Used by `options`. A job written for spark-sql-kafka can keep them.
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from aiokwire.cluster import ClientConfig
from aiokwire.config import from_options
from aiokwire.errors import ConfigurationError

ConfigT = TypeVar("ConfigT", bound=ClientConfig)

logger = logging.getLogger(__name__)

PREFIX: Final = "kafka."
_SECURITY: Final = (f"{PREFIX}sasl.", f"{PREFIX}ssl.")

# Options of Java's clients without a counterpart here: accepted with a line in the log, so that jobs can be moved.
_WITHOUT_EFFECT: Final = frozenset({
    "client.dns.lookup", "config.providers", "enable.metrics.push", "exclude.internal.topics", "group.id",
    "group.protocol", "heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records", "metadata.max.idle.ms",
    "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "partition.assignment.strategy", "receive.buffer.bytes", "send.buffer.bytes", "session.timeout.ms",
    "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms", "retries", "max.block.ms",
})  # fmt: skip

# Options that spark-sql-kafka refuses too, with the reason.
_REFUSED: Final = {
    "key.deserializer": "keys are bytes: decode them with the option key.format or in the query",
    "value.deserializer": "values are bytes: decode them with the option value.format or in the query",
    "key.serializer": "the column key holds bytes or a string",
    "value.serializer": "the column value holds bytes or a string",
    "auto.offset.reset": "set startingOffsets to choose where to start, and onDataLoss for data that is lost",
    "enable.auto.commit": "Spark's checkpoint has the offsets; commitGroup commits them after each batch",
    "interceptor.classes": "Java classes cannot run here",
    "transactional.id": "exactly-once delivery generates its own: see delivery and sink.id",
}


def client_options(options: Mapping[str, str], config: type[ConfigT], defaults: Mapping[str, Any]) -> ConfigT:
    """Return the config of a client from the `kafka.` options among `options` (lower-case names).

    Raises: ConfigurationError: an option is unknown or refused, or its value is invalid.
    """
    fields = {field.name: field for field in dataclasses.fields(config) if field.init}
    found = dict(defaults)
    for name, text in sorted(options.items()):
        if not name.startswith(PREFIX):
            continue
        java = name.removeprefix(PREFIX)
        if java in _REFUSED:
            raise ConfigurationError(f"{name} cannot be set: {_REFUSED[java]}")
        ours = java.replace(".", "_")
        if ours in fields and not _is_function(fields[ours]):
            found[ours] = _value(name, text, fields[ours])
        elif java in _WITHOUT_EFFECT:
            logger.info("the option %s has no effect in aiokwire", name)
        else:
            raise ConfigurationError(_unknown(name, [*fields, *_WITHOUT_EFFECT]))
    if "bootstrap_servers" not in found:
        raise ConfigurationError("kafka.bootstrap.servers must be set: host:port of one broker or more")
    return from_options(config, found)


def _unknown(name: str, known: list[str]) -> str:
    if name.startswith(_SECURITY):
        return f"aiokwire has no option {name!r}: TLS and SASL are not supported yet, only PLAINTEXT listeners"
    candidates = [PREFIX + each.replace("_", ".") for each in known]
    nearest = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"aiokwire has no option {name!r}{hint}"


def _is_function(field: dataclasses.Field[Any]) -> bool:
    return any(kind in str(field.type) for kind in ("Serializer", "Deserializer", "ErrorPolicy"))


def _value(name: str, text: str, field: dataclasses.Field[Any]) -> Any:
    """Convert an option's text to the type in the field's annotation."""
    kinds = str(field.type).replace(" ", "").split("|")
    text = text.strip()
    try:
        if "bool" in kinds:
            return parse_bool(name, text)
        if "str" in kinds:
            return text  # the config parses choices
        return int(text) if "int" in kinds else float(text)
    except ValueError:
        raise ConfigurationError(f"{name} must be a number, not {text!r}") from None


def parse_bool(name: str, text: str) -> bool:
    """Parse `true` or `false`, in any case.

    Raises: ConfigurationError: the text is neither.
    """
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ConfigurationError(f"{name} must be true or false, not {text!r}")
    return lowered == "true"
