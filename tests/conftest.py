"""The rules of the suite: every async test runs on asyncio's loop and on uvloop.

A test fails if it blocks the loop or leaks a task. With AIOKWIRE_EAGER_TASKS=1 the loops start
tasks eagerly (CPython 3.12 and later).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import pytest_asyncio
import uvloop
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

# Property tests check bytes, not time: a busy machine must not fail them. Runs do not depend on earlier ones.
settings.register_profile("aiokwire", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("aiokwire")

# The broker reads and writes the page cache on the loop on purpose: writing a batch costs less than a switch to a
# thread. Calls that really block (fsync, deletion) go through aiokwire.threads.
BLOCKS_ON_PURPOSE = "aiokwire/broker/log/storage.py"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the loops on which every async test runs."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]]
    loops = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    if os.environ.get("AIOKWIRE_EAGER_TASKS"):
        return {f"{name}-eager": functools.partial(_eager, new_loop) for name, new_loop in loops.items()}
    return loops


def _eager(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    loop = new_loop()
    loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined, unused-ignore]
    return loop


@pytest_asyncio.fixture
async def _no_leaked_tasks() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    for _ in range(5):  # closed clients may need a turn of the loop to end
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
    leaked = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not leaked, f"tasks outlive their test: {leaked}"


@pytest.fixture
def _no_blocking_calls() -> Iterator[None]:
    with blockbuster_ctx("aiokwire") as detector:
        for function in detector.functions.values():
            function.can_block_in(BLOCKS_ON_PURPOSE, _EVERY_FUNCTION)
        yield


class _Everything(set[str]):
    """A set that contains every name: blockbuster allows functions, this allows a whole file."""

    def __contains__(self, name: object) -> bool:
        return True


_EVERY_FUNCTION = _Everything()


@pytest.fixture(autouse=True)
def _forbid_the_classic_async_bugs(request: pytest.FixtureRequest) -> None:
    function = getattr(request.node, "function", None)
    if function is not None and inspect.iscoroutinefunction(function):
        request.getfixturevalue("_no_leaked_tasks")
        request.getfixturevalue("_no_blocking_calls")
