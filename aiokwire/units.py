"""Parses durations and sizes with units: `90s`, `2 hours`, `64m`. No I/O.

A duration needs a unit; a bare number is refused: seconds to some tools, milliseconds to others.
Options that end in `_ms` or `Ms` are milliseconds and not parsed here. A bare size is bytes.
"""

from __future__ import annotations

import re
from typing import Final

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
# The spellings of each unit, the long name first, and its seconds.
_UNITS: Final = (
    (("microsecond", "us"), 1e-6),
    (("millisecond", "ms"), 1e-3),
    (("second", "s", "sec"), 1.0),
    (("minute", "m", "min"), 60.0),
    (("hour", "h"), 3600.0),
    (("day", "d"), 86_400.0),
    (("week", "w"), 604_800.0),
)
_SECONDS: Final = {spelling: seconds for spellings, seconds in _UNITS for spelling in spellings}
_SECONDS.update({f"{spellings[0]}s": seconds for spellings, seconds in _UNITS})
_LONG: Final = {short: f"{spellings[0]}s" for spellings, _ in _UNITS for short in spellings[1:]}

# The part of ISO 8601 that Java's Duration.parse accepts: days, hours, minutes and seconds, none of them negative.
_ISO: Final = re.compile(
    r"P(?=\d|T\d)(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:[.,](?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)

_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.ASCII)
_BYTES: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_duration(text: str, *, bare_unit: str | None = None) -> float:
    """Parse a number with a unit, microseconds (`us`) to weeks (`w`): `500ms`, `1.5h`, `2 hours`.

    `bare_unit`: the unit of a bare number, as other tools define options; None refuses all but 0.

    Returns: seconds.

    Raises: ValueError: the text is not a duration; the message completes "<option> ...".
    """
    number, unit = _split(text)
    if not unit and float(number) != 0:
        if bare_unit is None:
            raise ValueError(f"must have a unit, such as {number}s or {number}ms, not {text!r}")
        unit = bare_unit
    return float(number) * _SECONDS[unit or "s"]


def duration_in_words(text: str) -> str:
    """Convert a duration to the spelling of Spark's intervals: `200ms` to `200 milliseconds`.

    Raises: ValueError: as `parse_duration`.
    """
    seconds = parse_duration(text)
    number, unit = _split(text)
    if "." in number:  # an interval has a fraction of seconds at most
        return f"{round(seconds * 1000)} milliseconds"
    return f"{number} {_LONG.get(unit, unit) or 'seconds'}"


def _split(text: str) -> tuple[str, str]:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or (match[2] and match[2] not in _SECONDS):
        raise ValueError(f"must be a duration such as 500ms, 30s, 15m or 2 hours, not {text!r}")
    return match[1], match[2]


def parse_iso_duration(text: str) -> int:
    """Parse an ISO 8601 duration of days to seconds, as Java's `Duration.parse`: `PT1H30M`, `P2D`.

    Returns: whole milliseconds, rounded down.

    Raises: ValueError: the text is not such a duration.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError(
            f"must be an ISO 8601 duration of days, hours, minutes and seconds, as PT1H30M or P2D, not {text!r}"
        )
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    fraction = int((found["fraction"] or "0").ljust(9, "0")) // 1_000_000
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction


def parse_size(text: str) -> int:
    """Parse bytes or binary multiples `k`, `m`, `g`, `t`: `67108864`, `64m`, `64MiB`.

    Returns: bytes, 1 or more.

    Raises: ValueError: the text is not a size; the message completes "<option> ...".
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or int(match[1]) < 1:
        raise ValueError(f"must be a size such as 67108864 (bytes) or 64m, not {text!r}")
    return int(match[1]) * _BYTES[match[2]]
