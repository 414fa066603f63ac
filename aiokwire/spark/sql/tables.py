"""Topics as tables: those that a query names, and the source's options for each. Pure functions."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.options import Format
from aiokwire.spark.options import COLUMNS
from aiokwire.spark.sql.plans import Names

# Read for a query that needs no column, such as a count: rows need one, and this is the cheapest.
CHEAPEST: Final = "partition"
HEADERS: Final = "headers"


@dataclass(frozen=True)
class Decode:
    """The format of a topic's keys or values."""

    format: str = Format.BINARY.value
    schema: str = ""

    def options(self, side: str) -> dict[str, str]:
        """Return the source's options; `side`: key or value."""
        found = {f"{side}.format": self.format}
        return found | ({f"{side}.schema": self.schema} if self.schema else {})

    def __str__(self) -> str:
        return f"{self.format} {self.schema}".strip()


@dataclass(frozen=True)
class Table:
    """A topic as a table of a query."""

    name: str
    """The name in the query."""
    topic: str
    key: Decode
    value: Decode
    headers: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS if self.headers else COLUMNS[:-1]

    def read_options(self, needed: Collection[str], *, pushdown: bool) -> dict[str, str]:
        """Return the source's options to read these columns, with filter pushdown if possible."""
        columns = [name for name in COLUMNS if name in needed] or [CHEAPEST]
        found = {"subscribe": self.topic, "columns": ",".join(columns), "pushdown": str(pushdown).lower()}
        for side, decode in (("key", self.key), ("value", self.value)):
            if side in columns:
                found |= decode.options(side)
        return found

    def whole_options(self) -> dict[str, str]:
        """Return the source's options to read all columns, for Spark's analysis of the query."""
        found = {"subscribe": self.topic, "columns": ",".join(self.columns)}
        return found | self.key.options("key") | self.value.options("value")


def parse_decode(given: Mapping[str, str]) -> dict[str, Decode]:
    """Parse, by topic, `string`, `json:SCHEMA`, `avro:SCHEMA` or `binary`.

    Raises: ConfigurationError: it is none of them.
    """
    known = [each.value for each in Format]
    found = {}
    for topic, text in given.items():
        name, _, schema = text.partition(":")
        if name not in known:
            raise ConfigurationError(f"{topic} cannot be decoded as {name!r}: choose from {', '.join(known)}")
        if bool(schema.strip()) != (name in (Format.JSON.value, Format.AVRO.value)):
            wants = "no schema" if schema else "a schema, as in json:id int, amount double"
            raise ConfigurationError(f"{topic}={name} takes {wants}")
        found[topic] = Decode(name, schema.strip())
    return found


def find_tables(
    names: Names,
    topics: Collection[str],
    keys: Mapping[str, Decode],
    values: Mapping[str, Decode],
    *,
    headers: bool,
) -> list[Table]:
    """Return the topics that a query names. Other tables, such as files, are left to Spark.

    Raises: ConfigurationError: a topic does not exist, two of them differ only in case, or a topic
        to decode is not in the query.
    """
    chosen: dict[str, str] = {}
    for parts in sorted(names.tables):
        topic = _topic(parts, names.local, topics)
        if topic is None:
            continue
        other = chosen.setdefault(parts[0].lower(), topic)
        if other != topic:
            raise ConfigurationError(f"Spark does not distinguish {topic!r} and {other!r}: query one at a time")
    for asked in sorted({*keys, *values}):
        if asked not in chosen.values():
            raise ConfigurationError(f"the query does not name {asked!r}, which has a decode option")
    plain = Decode()
    return [
        Table(name, topic, keys.get(topic, plain), values.get(topic, plain), headers)
        for name, topic in sorted(chosen.items())
    ]


def _topic(parts: tuple[str, ...], local: Collection[str], topics: Collection[str]) -> str | None:
    """Return the topic of a name, None if it is not the name of a topic."""
    if len(parts) > 1:
        dotted = ".".join(parts)
        if dotted in topics:
            raise ConfigurationError(f"write the topic {dotted} in backticks: `{dotted}`")
        return None
    name = parts[0]
    if name in topics:
        return name
    same = [topic for topic in topics if topic.lower() == name.lower()]
    if len(same) == 1:
        return same[0]
    if same:
        raise ConfigurationError(f"{name!r} may be {' or '.join(sorted(same))}: write the topic's exact name")
    if name.lower() in local:
        return None
    nearest = difflib.get_close_matches(name, topics, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ConfigurationError(f"topic {name!r} does not exist{hint}")


def place_options(start: str | None, end: str | None) -> dict[str, str]:
    """Return the source's options for a start and an end time.

    Raises: ConfigurationError: see `milliseconds`.
    """
    found = {}
    if start is not None:
        found["startingTimestamp"] = str(milliseconds(start))
        found["startingOffsetsByTimestampStrategy"] = "latest"  # partitions without later records are empty
    if end is not None:
        found["endingTimestamp"] = str(milliseconds(end))
    return found


def milliseconds(text: str) -> int:
    """Parse a time in ISO 8601 (UTC by default) or in milliseconds since the epoch.

    Raises: ConfigurationError: it is neither.
    """
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is not a time: use 2026-01-31T12:00, or milliseconds since the epoch"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return round(time.timestamp() * 1000)
