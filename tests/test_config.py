"""Options: unknown ones name the nearest valid one, bad values name the option."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from aiokwire.config import from_options, require_bool, require_int, require_number
from aiokwire.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Settings:
    linger_ms: int = 5
    batch_size: int = 16384

    def __post_init__(self) -> None:
        require_int("linger_ms", self.linger_ms, minimum=0)
        require_int("batch_size", self.batch_size, minimum=1)


def test_known_options_are_taken() -> None:
    assert from_options(Settings, {"linger_ms": 7}) == Settings(linger_ms=7)


@pytest.mark.parametrize("spelling", ["linger", "lingerms", "linger.ms", "LINGER_MS", "linger-ms"])
def test_an_unknown_option_names_the_nearest_valid_one(spelling: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no option .*did you mean 'linger_ms'"):
        from_options(Settings, {spelling: 1})


def test_an_option_like_no_other_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigurationError, match="valid options: linger_ms, batch_size"):
        from_options(Settings, {"zzz": 1})


@pytest.mark.parametrize("value", [-1, True, "5", 1.5, None])
def test_a_bad_value_names_its_option(value: object) -> None:
    with pytest.raises(ConfigurationError, match="linger_ms"):
        from_options(Settings, {"linger_ms": value})


def test_bounds_are_named() -> None:
    assert require_int("x", 3, minimum=3, maximum=3) == 3
    with pytest.raises(ConfigurationError, match="x must be at most 3, not 4"):
        require_int("x", 4, maximum=3)
    assert require_number("y", 0.5, minimum=0.5) == 0.5
    with pytest.raises(ConfigurationError, match="y must be a number"):
        require_number("y", float("nan"))
    with pytest.raises(ConfigurationError, match="z must be True or False, not 1"):
        require_bool("z", 1)
