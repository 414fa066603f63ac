"""Shared credentials: one fetch for all connections and loops, refreshed before they expire."""

from __future__ import annotations

import asyncio
import functools
import logging
import random
import threading

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.security.credentials import RETRY_INTERVAL, Fetched, Provider, RefreshPolicy, Shared
from aiokwire.threads import run_beside
from tests.simulation.loop import SimLoop, run


class Source:
    """Numbers its values, and fails on demand; they are valid for 100 s, and due after 80."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.release = anyio.Event()
        self.release.set()

    async def fetch(self) -> Fetched[int]:
        self.calls += 1
        number = self.calls
        await self.release.wait()
        await anyio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        now = wall_ms() / 1000
        return Fetched(number, now + 80, now + 100)


class Clock(SimLoop):
    """A simulated loop whose wall clock is the loop's."""

    def wall_time(self) -> float:
        return self.time()


def test_a_value_is_fetched_once_until_it_is_due() -> None:
    async def main() -> None:
        source = Source()
        shared = Shared(source.fetch, what="the token")
        assert [await shared.get(), await shared.get()] == [1, 1]
        await anyio.sleep(79)
        assert await shared.get() == 1
        await anyio.sleep(2)
        assert await shared.get() == 2

    run(Clock(seed=1), main())


def test_a_failed_refresh_keeps_the_valid_value_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        source = Source()
        shared = Shared(source.fetch, what="the token")
        await shared.get()
        await anyio.sleep(81)
        source.error = ConnectionFailed("the endpoint is down", stage="sasl")
        assert await shared.get() == 1
        assert await shared.get() == 1
        assert source.calls == 2, "the next attempt waits"
        await anyio.sleep(RETRY_INTERVAL)
        assert await shared.get() == 1
        assert source.calls == 3
        await anyio.sleep(10)
        with pytest.raises(ConnectionFailed, match="the endpoint is down"):
            await shared.get()
        source.error = None
        assert await shared.get() == 5

    with caplog.at_level(logging.WARNING):
        run(Clock(seed=1), main())
    (message,) = [record.getMessage() for record in caplog.records if record.name.startswith("aiokwire")]
    assert message.startswith("the token cannot be refreshed: the endpoint is down; the current one expires in 19 s")


async def test_many_connections_cause_one_fetch() -> None:
    source = Source()
    source.release = anyio.Event()
    shared = Shared(source.fetch, what="the token")
    found = []

    async def connect() -> None:
        found.append(await shared.get())

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(connect)
        await anyio.wait_all_tasks_blocked()
        source.release.set()
    assert found == [1] * 20
    assert source.calls == 1


async def test_a_failure_reaches_every_waiting_connection_after_one_attempt() -> None:
    source = Source()
    source.release, source.error = anyio.Event(), AuthenticationFailed("no")
    shared = Shared(source.fetch, what="the token")
    refused = 0

    async def connect() -> None:
        nonlocal refused
        with pytest.raises(AuthenticationFailed):
            await shared.get()
        refused += 1

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(connect)
        await anyio.wait_all_tasks_blocked()
        source.release.set()
    assert (refused, source.calls) == (5, 1)


async def test_another_connection_fetches_if_the_first_is_cancelled() -> None:
    source = Source()
    source.release = anyio.Event()
    shared = Shared(source.fetch, what="the token")
    found = []

    async def connect() -> None:
        found.append(await shared.get())

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as first:
            async with anyio.create_task_group() as inner:
                inner.start_soon(connect)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(connect)
                await anyio.wait_all_tasks_blocked()
                first.cancel()
        source.release.set()
    assert found == [2]


async def test_an_invalidated_value_is_fetched_again() -> None:
    source = Source()
    shared = Shared(source.fetch, what="the token")
    assert await shared.get() == 1
    shared.invalidate()
    assert await shared.get() == 2


async def test_two_loops_share_one_fetch() -> None:
    calls, started, released = 0, threading.Event(), anyio.Event()

    async def fetch() -> Fetched[int]:
        nonlocal calls
        calls += 1
        started.set()
        await released.wait()
        return Fetched(calls, float("inf"), float("inf"))

    shared = Shared(fetch, what="the token")
    found = []
    here = asyncio.get_running_loop()

    async def beside() -> None:
        async def joined() -> None:
            await anyio.wait_all_tasks_blocked()
            here.call_soon_threadsafe(released.set)

        async with anyio.create_task_group() as group:
            group.start_soon(joined)
            found.append(await shared.get())

    async def first() -> None:
        found.append(await shared.get())

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await anyio.wait_all_tasks_blocked()
        await run_beside(beside, name="beside")
    assert (found, calls) == ([1, 1], 1)
    assert started.is_set()


# --- user functions ---------------------------------------------------------------------------------------------------


async def test_a_plain_function_runs_in_a_thread() -> None:
    threads = []

    def provide() -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return "x"

    assert await Provider(provide, option="an_option").call() == "x"
    assert threads == [False]


async def test_an_async_function_runs_on_the_loop_that_called_it_first() -> None:
    loops = []

    async def provide() -> str:
        loops.append(asyncio.get_running_loop())
        return "x"

    provider: Provider[str] = Provider(provide, option="an_option")
    found = [await provider.call()]

    async def beside() -> None:
        found.append(await provider.call())

    await run_beside(beside, name="beside")
    assert found == ["x", "x"]
    assert loops == [asyncio.get_running_loop()] * 2


async def test_a_lambda_that_returns_a_coroutine_is_awaited() -> None:
    async def provide() -> str:
        return "x"

    provider: Provider[str] = Provider(functools.partial(lambda function: function(), provide), option="an_option")
    assert await provider.call() == "x"


async def test_an_exception_of_the_function_names_the_option() -> None:
    def provide() -> str:
        raise OSError("the vault is sealed")

    with pytest.raises(ConnectionFailed, match="an_option raised OSError: the vault is sealed") as caught:
        await Provider(provide, option="an_option").call()
    assert caught.value.stage == "sasl"


# --- the time of a refresh --------------------------------------------------------------------------------------------


@given(lifetime=st.floats(1, 1e7), seed=st.integers(0, 100))
def test_a_refresh_is_due_before_the_expiry(lifetime: float, seed: int) -> None:
    at = RefreshPolicy().refresh_at(1000.0, 1000.0 + lifetime, random.Random(seed))
    assert 1000.0 < at < 1000.0 + lifetime
    if lifetime > 360:
        assert 1060.0 <= at <= 1000.0 + max(lifetime - 300, 60)
    else:
        assert 0.79 * lifetime <= at - 1000.0 <= 0.86 * lifetime
