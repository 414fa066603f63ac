"""Tasks that are started in callbacks of the loop, as sniffio sees them."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest

from aiokwire import async_library
from aiokwire.async_library import start_soon


async def test_a_task_started_in_a_callback_runs_with_asyncio_named_as_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = async_library._library
    if library is None:  # sniffio is not installed
        library = ContextVar("library", default=None)
        monkeypatch.setattr(async_library, "_library", library)
    seen: list[str | None] = []
    done = anyio.Event()

    async def look() -> None:
        seen.append(library.get())
        done.set()

    def callback() -> None:
        start_soon(tasks, look, name="look")
        seen.append(library.get())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            asyncio.get_running_loop().call_soon(callback)
            await done.wait()
    assert seen == [None, "asyncio"]
