"""Validation of values from users, in files or in Python. Used by `declaration`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from aiokwire.errors import ConfigurationError

# A table's name in SQL, without quotes; a pipeline's or sink's name, used in folders and transactional ids.
TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def texts(given: object, what: str) -> dict[str, str]:
    """Convert the values of options to text, as Spark takes them.

    Raises: ConfigurationError: it is not a table of names and scalar values.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{what} must be names with values, not {given!r}")
    found = {}
    for name, value in given.items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            found[name] = str(value)
        else:
            raise ConfigurationError(f"{what}: {name} must be a string, a number, true or false, not {value!r}")
    return found


@contextlib.contextmanager
def errors_of(owner: str) -> Iterator[None]:
    """Prefix errors raised in the block with the owner of the option."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{owner}: {error}") from None


def settle(value: object, field: str, settled: object) -> None:
    """Set a field of a frozen value to its final form."""
    object.__setattr__(value, field, settled)


def check_name(name: object, pattern: re.Pattern[str], owner: str) -> None:
    """Check a name; `pattern` is `TABLE` or `NAME`.

    Raises: ConfigurationError: the name does not match.
    """
    if not isinstance(name, str) or not pattern.fullmatch(name):
        allowed = "letters, digits and _" if pattern is TABLE else "letters, digits, _, . and -"
        raise ConfigurationError(f"{owner}: a name is made of {allowed}, not {name!r}")


def check_text(value: object, what: str, must: str) -> None:
    """Raises: ConfigurationError: it is not a string, or is empty."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{what} {must}, not {value!r}")


def check_bool(value: object, what: str) -> None:
    """Raises: ConfigurationError: it is neither."""
    if not isinstance(value, bool):
        raise ConfigurationError(f"{what} must be true or false, not {value!r}")


def check_choice(value: object, choices: tuple[str, ...], what: str) -> None:
    """Raises: ConfigurationError: it is none of them."""
    if value not in choices:
        raise ConfigurationError(f"{what} must be one of {', '.join(choices)}, not {value!r}")


def columns(given: object, what: str) -> tuple[str, ...]:
    """Return one or several names as a tuple.

    Raises: ConfigurationError: there is a value that is not a name.
    """
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(name, str) and name for name in listed):
        raise ConfigurationError(f"{what} must be column names, not {given!r}")
    return tuple(listed)
