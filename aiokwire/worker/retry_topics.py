"""Retry topics: their names, and what the headers of their records contain.

A record that failed waits in the retry topic of a delay, beside its own topic. The worker
subscribes to its retry topics, and the same handler handles their records when they are due.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from aiokwire.clock import wall_ms
from aiokwire.consumer import ConsumerRecord
from aiokwire.errors import ConfigurationError
from aiokwire.worker.dead_letters import LetterHeader, Origin, parsed_origin

RawRecord = ConsumerRecord[bytes, bytes]

DEFAULT_RETRY_TOPIC: Final = "{topic}.{group}.retry.{delay}"
# The longest name of a topic.
LONGEST_NAME: Final = 249

_TEMPLATE: Final = re.compile(r"(?:[a-zA-Z0-9._-]|\{topic\}|\{group\}|\{delay\})+")
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"


class RetryTopic(NamedTuple):
    """The parts of a retry topic's name: the topic of its records, and how long they wait
    (seconds)."""

    topic: str
    delay: float


class RetryTopics:
    """The retry topics of a worker."""

    def __init__(self, template: str, group_id: str, delays_of: Callable[[str], Sequence[float]]) -> None:
        """`delays_of` returns the delays of the policy that applies to a topic.

        Raises: ConfigurationError: `template` is not a template for names of retry topics.
        """
        self._template = checked_retry_template(template).replace("{group}", group_id)
        self._delays_of = delays_of
        self._name = re.compile(_pattern(self._template, "(?P<topic>.+)", f"(?P<delay>{_NUMBER})"))
        self._any = _pattern(template.replace("{group}", "\0"), ".+", _NUMBER).replace("\0", ".+")
        self._found: dict[str, RetryTopic | None] = {}

    def name(self, topic: str, delay: float) -> str:
        """Return the retry topic of a topic.

        Raises: ConfigurationError: the name is too long for a topic.
        """
        name = self._template.replace("{topic}", topic).replace("{delay}", shown_delay(delay))
        if len(name) > LONGEST_NAME:
            raise ConfigurationError(
                f"the retry topic {name!r} has {len(name)} characters, a topic has at most {LONGEST_NAME}: pass a "
                "shorter retry_topic"
            )
        return name

    def names(self, topic: str) -> list[str]:
        """Return the retry topics of a topic."""
        return [self.name(topic, delay) for delay in dict.fromkeys(self._delays_of(topic))]

    def find(self, topic: str) -> RetryTopic | None:
        """Return the parts of a name; None if it is not a retry topic of this worker."""
        if topic not in self._found:
            self._found[topic] = self._parse(topic)
        return self._found[topic]

    def _parse(self, topic: str) -> RetryTopic | None:
        match = self._name.fullmatch(topic)
        if match is None:
            return None
        found = RetryTopic(match["topic"], float(match["delay"]))
        return found if found.delay in self._delays_of(found.topic) else None

    def pattern(self, topics: str, delays: Iterable[float]) -> str:
        """Return a pattern of the retry topics of all topics that match a pattern."""
        shown = "|".join(re.escape(shown_delay(delay)) for delay in delays)
        return _pattern(self._template, f"(?:{topics})", f"(?:{shown})")

    def foreign_pattern(self, own: Sequence[str]) -> str:
        """Return a pattern of all groups' retry topics, without those that match
        a pattern of this worker's own."""
        return rf"(?!(?:{'|'.join(own)})\Z){self._any}" if own else self._any

    # --- records ------------------------------------------------------------------------------------------------------

    def origin_of(self, record: RawRecord) -> Origin:
        """Return where a record was first read."""
        found = self.find(record.topic)
        if found is not None:
            origin = parsed_origin(dict(record.headers))
            if origin is not None and origin.topic == found.topic:
                return origin
        return Origin(record.topic, record.partition, record.offset, record.timestamp)


def attempts_of(record: RawRecord) -> int:
    """Return the number of earlier attempts at a record of a retry topic."""
    return _number(record, LetterHeader.ATTEMPTS)


def rounds_of(record: RawRecord) -> int:
    """Return the number of times a record of a retry topic was sent to one."""
    return _number(record, LetterHeader.ROUND)


def wait_of(record: RawRecord) -> float:
    """Return the seconds until a record of a retry topic is due, by the wall clock."""
    return (_number(record, LetterHeader.NOT_BEFORE) - wall_ms()) / 1000


def _number(record: RawRecord, name: str) -> int:
    """Return the number in a header; 0 if another program produced the record."""
    for header, value in record.headers:
        if header == name and value is not None and value.isdigit() and len(value) < 20:
            return int(value)
    return 0


def shown_delay(delay: float) -> str:
    """Return seconds as names show them: "60", "0.5"."""
    return f"{delay:.3f}".rstrip("0").rstrip(".")


def checked_retry_template(template: object) -> str:
    """Return the template of the names of retry topics.

    Raises: ConfigurationError: it is not one.
    """
    is_template = isinstance(template, str) and _TEMPLATE.fullmatch(template)
    if not is_template or any(str(template).count(part) != 1 for part in ("{topic}", "{delay}")):
        raise ConfigurationError(
            f"{template!r} is not a template for retry topics: use {{topic}} and {{delay}} once, {{group}}, letters, "
            f"digits, '.', '_' and '-', such as {DEFAULT_RETRY_TOPIC!r}"
        )
    return str(template)


def _pattern(template: str, topic: str, delay: str) -> str:
    escaped = re.escape(template)
    return escaped.replace(re.escape("{topic}"), topic).replace(re.escape("{delay}"), delay)
