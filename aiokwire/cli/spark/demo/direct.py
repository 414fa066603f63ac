"""The delays computed in plain Python, and their comparison with the topic."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

HOUR = datetime.timedelta(hours=1)
LATENESS = datetime.timedelta(days=7)  # the watermark of the pipeline

Place = tuple[datetime.datetime, str]  # an hour's start, and a carrier


@dataclass
class Hour:
    """One hour of one airline."""

    flights: int = 0
    arrived: int = 0
    minutes: int = 0  # arrival delays, added up


@dataclass
class Comparison:
    """The differences between the topic and the direct computation."""

    expected: int = 0  # hours that are complete
    open: int = 0  # hours that later flights may still change
    missing: list[Place] = field(default_factory=list)
    different: list[Place] = field(default_factory=list)
    doubled: list[Place] = field(default_factory=list)
    unexpected: list[Place] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not (self.missing or self.different or self.doubled or self.unexpected)


def time_of(text: str) -> datetime.datetime:
    """Parse a time of the data set or of Spark's JSON."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def compute(flights: Iterable[Mapping[str, Any]]) -> dict[Place, Hour]:
    """Compute every hour of every airline."""
    hours: dict[Place, Hour] = {}
    times: dict[str, datetime.datetime] = {}  # a few thousand, each some forty times
    for flight in flights:
        text = flight["time_hour"]
        start = times.get(text) or times.setdefault(text, time_of(text))
        hour = hours.setdefault((start, flight["carrier"]), Hour())
        hour.flights += 1
        if flight["arr_delay"] is not None:
            hour.arrived += 1
            hour.minutes += flight["arr_delay"]
    return hours


def read_hour(value: bytes) -> tuple[Place, Hour]:
    """Parse a record of the topic."""
    row = json.loads(value)
    return (time_of(row["hour"]), row["carrier"]), Hour(row["flights"], row["arrived"], row["minutes"])


def compare(wanted: Mapping[Place, Hour], found: Iterable[tuple[Place, Hour]]) -> Comparison:
    """Compare both; hours that end after the watermark are still open, and must be absent."""
    watermark = (
        max((start for start, _ in wanted), default=datetime.datetime.min.replace(tzinfo=datetime.UTC)) - LATENESS
    )
    closed = {place: hour for place, hour in wanted.items() if place[0] + HOUR <= watermark}
    result = Comparison(expected=len(closed), open=len(wanted) - len(closed))
    seen: Counter[Place] = Counter()
    for place, hour in found:
        seen[place] += 1
        if place not in closed:
            result.unexpected.append(place)
        elif hour != closed[place]:
            result.different.append(place)
    result.doubled = [place for place, times in seen.items() if times > 1]
    result.missing = [place for place in closed if place not in seen]
    return result
