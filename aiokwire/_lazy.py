"""Public names of a package that load their module when they are first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    namespace: dict[str, Any], homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package (PEP 562).

    Type checkers read the package's `if TYPE_CHECKING:` imports instead, which name the same.

    Args:
        namespace: the package's `globals()`.
        homes: for each module, by its path within `aiokwire`, its public names, split by spaces.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}
    listed = sorted(home_of)

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(f"aiokwire.{home_of[name]}"), name)
        namespace[name] = value
        return value

    return listed, load, lambda: sorted(listed)
