"""Options: from keyword arguments to a frozen dataclass, with errors that name the nearest valid option."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from aiokwire.errors import ConfigurationError

ConfigT = TypeVar("ConfigT")

INT32_MAX = 2**31 - 1


def from_options(cls: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
    """Build the config dataclass `cls` from keyword options.

    Raises: ConfigurationError: for an unknown option (with the nearest valid name) or a bad value.
    """
    valid = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]  # a dataclass by contract
    for name in options:
        if name not in valid:
            raise ConfigurationError(unknown_option(name, valid, cls.__name__))
    try:
        return cls(**options)
    except TypeError as error:
        raise ConfigurationError(f"{cls.__name__}: {error}") from error


def unknown_option(name: str, valid: list[str], owner: str) -> str:
    """The sentence for an option that does not exist; dots and dashes of Kafka's own spelling are understood."""
    nearest = difflib.get_close_matches(name.replace(".", "_").replace("-", "_").lower(), valid, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; valid options: {', '.join(valid)}"
    return f"{owner} has no option {name!r}{hint}"


def require_int(name: str, value: object, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """`value` as an int within its bounds.

    Raises: ConfigurationError: naming the option, the value and the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} must be an int, not {value!r} ({type(value).__name__})")
    _require_bounds(name, value, minimum, maximum)
    return value


def require_number(name: str, value: object, *, minimum: float | None = None, maximum: float | None = None) -> float:
    """`value` as an int or float within its bounds (milliseconds may have a fraction).

    Raises: ConfigurationError: naming the option, the value and the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124 - NaN only
        raise ConfigurationError(f"{name} must be a number, not {value!r} ({type(value).__name__})")
    _require_bounds(name, value, minimum, maximum)
    return value


def _require_bounds(name: str, value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise ConfigurationError(f"{name} must be at least {minimum}, not {value!r}")
    if maximum is not None and value > maximum:
        raise ConfigurationError(f"{name} must be at most {maximum}, not {value!r}")


def require_type(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Check that an option has one of the types that it takes.

    Raises: ConfigurationError: naming the option, what it takes and what came.
    """
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be {expected}, not {value!r} ({type(value).__name__})")


def require_bool(name: str, value: object) -> None:
    """Check that an option is True or False.

    Raises: ConfigurationError: naming the option and the value.
    """
    require_type(name, value, bool, "True or False")
