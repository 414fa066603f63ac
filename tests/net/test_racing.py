"""The first success wins, the others leave nothing behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from aiokwire.net import Race


class Runner:
    """Counts what its attempts do."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.cancelled: list[str] = []
        self.discarded: list[str] = []

    def race(self, *attempts: Callable[[], Awaitable[str]], delay: float = 30.0) -> Race[str]:
        return Race(attempts, delay=delay, expected=OSError, discard=self.discarded.append)

    def wins(self, name: str) -> Callable[[], Awaitable[str]]:
        async def attempt() -> str:
            self.began.append(name)
            await anyio.lowlevel.checkpoint()
            return name

        return attempt

    def fails(self, name: str) -> Callable[[], Awaitable[str]]:
        async def attempt() -> str:
            self.began.append(name)
            await anyio.lowlevel.checkpoint()
            raise OSError(name)

        return attempt

    def hangs(self, name: str) -> Callable[[], Awaitable[str]]:
        async def attempt() -> str:
            self.began.append(name)
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.append(name)
            return name

        return attempt


async def test_a_failure_starts_the_next_attempt_at_once() -> None:
    runner = Runner()
    race = runner.race(runner.fails("a"), runner.wins("b"), runner.wins("c"))
    assert await race.run() == "b"
    assert runner.began == ["a", "b"]
    assert str(race.errors[0]) == "a"


async def test_silence_starts_the_next_attempt_after_the_delay() -> None:
    runner = Runner()
    assert await runner.race(runner.hangs("a"), runner.wins("b"), delay=0.01).run() == "b"
    assert runner.cancelled == ["a"]


async def test_when_all_fail_there_is_an_error_for_each() -> None:
    runner = Runner()
    race = runner.race(runner.fails("a"), runner.fails("b"))
    assert await race.run() is None
    assert {index: str(error) for index, error in race.errors.items()} == {0: "a", 1: "b"}


async def test_one_attempt_alone_needs_no_race() -> None:
    runner = Runner()
    assert await runner.race(runner.wins("a")).run() == "a"
    race = runner.race(runner.fails("a"))
    assert await race.run() is None


async def test_an_unexpected_error_is_not_hidden() -> None:
    async def broken() -> str:
        raise ZeroDivisionError

    runner = Runner()
    with pytest.raises(ExceptionGroup) as caught:
        await runner.race(broken, runner.hangs("b")).run()
    assert caught.group_contains(ZeroDivisionError)


async def test_a_second_winner_is_discarded() -> None:
    runner = Runner()
    both = anyio.Event()

    async def waits(name: str) -> str:
        await both.wait()
        return name

    async def last() -> str:
        both.set()
        await anyio.sleep_forever()
        return "never"

    assert await runner.race(lambda: waits("a"), lambda: waits("b"), last, delay=0.01).run() == "a"
    assert runner.discarded == ["b"]


async def test_a_cancelled_race_cancels_its_attempts() -> None:
    runner = Runner()
    with anyio.CancelScope() as scope:

        async def last() -> str:
            scope.cancel()
            await anyio.sleep_forever()
            return "never"

        await runner.race(runner.hangs("a"), runner.hangs("b"), last, delay=0.01).run()
    assert sorted(runner.cancelled) == ["a", "b"]
