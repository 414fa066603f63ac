"""Offsets in spark-sql-kafka's JSON, `{"topic":{"0":23,"1":-2}}`, in options and checkpoints.

No I/O. Used by the options, by planning, and by the stream's reader.
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from aiokwire.errors import ConfigurationError
from aiokwire.types import TopicPartition

# Used in place of an offset.
LATEST: Final = -1
EARLIEST: Final = -2

# A key next to the topics of a checkpointed offset, with the option `trackTopicIds`; topic names have no @.
EXTRAS: Final = "@aiokwire"

V = TypeVar("V")

Offsets = dict[TopicPartition, int]


class Kind(enum.Enum):
    """The kind of a place in the log."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMESTAMP = "a timestamp"
    TIMESTAMPS = "timestamps by partition"


@dataclasses.dataclass(frozen=True)
class Place:
    """The start or end of reading, as the options specify it."""

    kind: Kind
    by_partition: Mapping[TopicPartition, int] = dataclasses.field(default_factory=dict)
    """Offsets, including `LATEST` and `EARLIEST`, or milliseconds since the epoch."""
    timestamp: int = -1
    option: str = ""
    """The option that specifies it, for messages."""

    def timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the time to look up in each partition; empty unless the place is given by time."""
        if self.kind is Kind.TIMESTAMP:
            return dict.fromkeys(partitions, self.timestamp)
        return dict(self.by_partition) if self.kind is Kind.TIMESTAMPS else {}


def parse_by_partition(text: str, option: str, what: str = "offset") -> Offsets:
    """Parse `{"topic":{"partition":number}}`.

    Raises: ConfigurationError: the text has another form; the message names the option.
    """
    example = f'{option} must look like {{"topicA":{{"0":23,"1":-2}}}}'
    try:
        topics = json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, option))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{example}, not {text!r}: {error}") from None
    if not isinstance(topics, dict):
        raise ConfigurationError(f"{example}, not {text!r}")
    return _numbers(topics, example, what)


def _numbers(topics: Mapping[str, Any], example: str, what: str) -> Offsets:
    found: Offsets = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise ConfigurationError(f"{example}: {topic!r} has {partitions!r} in place of its partitions")
        for partition, number in partitions.items():
            if not (partition.isascii() and partition.isdigit()):
                raise ConfigurationError(f"{example}: {partition!r} of {topic!r} is not a partition number")
            if isinstance(number, bool) or not isinstance(number, int):
                raise ConfigurationError(f"{example}: {topic}[{partition}] has {number!r} in place of its {what}")
            found[TopicPartition(topic, int(partition))] = number
    return found


def _unique(pairs: list[tuple[str, Any]], option: str) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigurationError(f"{option} names {twice!r} twice")
    return seen


def parse_assign(text: str) -> frozenset[TopicPartition]:
    """Parse `{"topicA":[0,1],"topicB":[2,4]}`.

    Raises: ConfigurationError: the text has another form.
    """
    example = 'assign must look like {"topicA":[0,1],"topicB":[2,4]}'
    try:
        topics = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{example}, not {text!r}: {error}") from None
    if not isinstance(topics, dict) or not topics:
        raise ConfigurationError(f"{example}, not {text!r}")
    found = set()
    for topic, partitions in topics.items():
        if not isinstance(partitions, list) or not partitions:
            raise ConfigurationError(f"{example}: {topic!r} has {partitions!r} in place of its partitions")
        for partition in partitions:
            if isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
                raise ConfigurationError(f"{example}: {partition!r} of {topic!r} is not a partition number")
            found.add(TopicPartition(topic, partition))
    return frozenset(found)


# --- a checkpoint's offset ------------------------------------------------------------------------------------------


def to_json(offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return offsets as Spark checkpoints them: sorted, because Spark compares them as text."""
    found: dict[str, Any] = {}
    for tp in sorted(offsets):
        found.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    if topic_ids:
        found = {EXTRAS: {"ids": dict(sorted(topic_ids.items())), "v": 1}, **found}
    return found


def from_json(kept: Mapping[str, Any]) -> tuple[Offsets, dict[str, str]]:
    """Return the offsets of a checkpoint of this source or of spark-sql-kafka, and its topic ids.

    Raises: ConfigurationError: the checkpoint has another form.
    """
    topics = dict(kept)
    extras = topics.pop(EXTRAS, {})
    offsets = _numbers(topics, "an offset of this source's checkpoint must look like spark-sql-kafka's", "offset")
    if not isinstance(extras, dict) or extras.get("v", 1) != 1:
        raise ConfigurationError(f"a newer aiokwire wrote this checkpoint: {extras!r} is unknown to this version")
    return offsets, dict(extras.get("ids", {}))
