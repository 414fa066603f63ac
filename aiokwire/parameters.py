"""The parameters of users' functions, whatever their annotations are."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format

    def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
        """Return a function's parameters, also when names in its annotations are not defined.

        Annotations are evaluated when they are read (PEP 649), and a signature reads them.
        """
        return inspect.signature(function, annotation_format=Format.FORWARDREF).parameters

else:

    def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
        """Return a function's parameters, also when names in its annotations are not defined."""
        return inspect.signature(function).parameters
