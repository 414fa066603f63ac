"""Names asyncio as the running library to sniffio in callbacks of the loop, where no task runs.

anyio asks sniffio, if it is installed, and cannot start a task in a callback otherwise.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio.abc

_library: ContextVar[str | None] | None
try:
    _library = importlib.import_module("sniffio").current_async_library_cvar
except ImportError:
    _library = None


def start_soon(tasks: anyio.abc.TaskGroup, func: Callable[..., Any], *args: Any, name: str | None = None) -> None:
    """Start a task as `tasks.start_soon` does, also in a callback of the loop."""
    if _library is None:
        tasks.start_soon(func, *args, name=name)
        return
    token = _library.set("asyncio")
    try:
        tasks.start_soon(func, *args, name=name)
    finally:
        _library.reset(token)
