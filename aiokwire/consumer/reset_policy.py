"""Parses `auto_offset_reset`: where to continue without a position, or out of range. No I/O."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Final

from aiokwire.clock import wall_ms
from aiokwire.cluster import EARLIEST, LATEST
from aiokwire.errors import ConfigurationError
from aiokwire.types import OffsetReset
from aiokwire.units import parse_iso_duration

BY_DURATION: Final = "by_duration:"


@dataclasses.dataclass(frozen=True, slots=True)
class ByDuration:
    """A duration before the time of the reset (KIP-1106)."""

    milliseconds: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class AtMost:
    """This offset, or the log's end if lower: "nearest" for a position after the log's start."""

    offset: int


# The names of the policies in other tools.
_OTHERWISE: Final = {
    "beginning": "earliest", "smallest": "earliest", "start": "earliest", "end": "latest", "largest": "latest",
    "error": "none",
}  # fmt: skip

# A policy, a time in milliseconds since the epoch, or one of the above.
ResetTarget = OffsetReset | int | ByDuration | AtMost


def parse_reset(given: object) -> ResetTarget:
    """Parse the option.

    Raises: ConfigurationError: the value is not a policy, a time or a duration.
    """
    if isinstance(given, datetime.datetime):
        if given.tzinfo is None:
            raise ConfigurationError(f"must be a datetime with a time zone, not {given!r}")
        return round(given.timestamp() * 1000)
    if isinstance(given, datetime.timedelta):
        if given < datetime.timedelta(0):
            raise ConfigurationError(f"must not be a negative duration: {given!r}")
        return ByDuration(given // datetime.timedelta(milliseconds=1), str(given))
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 0:
            raise ConfigurationError(f"must be milliseconds since the epoch, 0 or more, not {given!r}")
        return given
    if isinstance(given, str) and given.startswith(BY_DURATION):
        return _by_duration(given)
    try:
        return OffsetReset.parse(given)
    except ConfigurationError:
        meant = _OTHERWISE.get(str(given).lower())
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise ConfigurationError(
            'must be "earliest", "latest", "nearest", "none", "by_duration:PT1H" or an aware datetime, '
            f"not {given!r}{hint}"
        ) from None


def _by_duration(given: str) -> ByDuration:
    try:
        return ByDuration(parse_iso_duration(given.removeprefix(BY_DURATION)), given)
    except ValueError as error:
        raise ConfigurationError(f"by_duration: {error}") from None


def time_of(target: ResetTarget) -> int | None:
    """Return the timestamp for ListOffsets; None for the policy "none"."""
    if target in (OffsetReset.EARLIEST, OffsetReset.NEAREST):
        return EARLIEST
    if target is OffsetReset.LATEST or isinstance(target, AtMost):
        return LATEST
    if isinstance(target, ByDuration):
        return max(0, wall_ms() - target.milliseconds)
    return target if isinstance(target, int) else None


def describe(target: ResetTarget) -> str:
    """Return a target's name for messages."""
    if isinstance(target, OffsetReset):
        return target.value
    if isinstance(target, ByDuration):
        return target.text
    if isinstance(target, AtMost):
        return OffsetReset.NEAREST.value
    return f"time {target}"
