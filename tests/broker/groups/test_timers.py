"""One heap and one timer for all deadlines."""

from __future__ import annotations

import asyncio

import anyio

from aiokwire.broker.groups.context import Due, Key, Timers


class Fired:
    """Records the keys that fire, and lets a test wait for one."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.timers = Timers(self._fire)
        self._came = anyio.Event()

    def _fire(self, key: Key) -> None:
        self.keys.append(key.member_id)
        self._came.set()
        self._came = anyio.Event()

    async def count(self, number: int) -> list[str]:
        with anyio.fail_after(5):
            while len(self.keys) < number:
                await self._came.wait()
        return self.keys


def key(name: str) -> Key:
    return Key(Due.SESSION, "g", name)


async def test_keys_fire_in_the_order_of_their_deadlines() -> None:
    fired = Fired()
    for name, delay_ms in (("c", 30), ("a", 10), ("b", 20)):
        fired.timers.set(key(name), delay_ms)
    assert await fired.count(3) == ["a", "b", "c"]
    assert len(fired.timers) == 0


async def test_a_deadline_that_is_put_off_fires_once_and_late() -> None:
    fired = Fired()
    loop = asyncio.get_running_loop()
    fired.timers.set(key("a"), 1)
    begun = loop.time()
    fired.timers.set(key("a"), 50)
    fired.timers.set(key("b"), 20)
    assert await fired.count(2) == ["b", "a"]
    assert loop.time() - begun >= 0.049


async def test_a_deadline_may_be_brought_forward() -> None:
    fired = Fired()
    fired.timers.set(key("a"), 1_000_000)
    fired.timers.set(key("a"), 1)
    fired.timers.set(key("b"), 2)
    assert await fired.count(2) == ["a", "b"]


async def test_a_cancelled_deadline_does_not_fire() -> None:
    fired = Fired()
    fired.timers.set(key("a"), 1)
    fired.timers.set(key("b"), 2)
    fired.timers.cancel(key("a"))
    fired.timers.cancel(key("unknown"))
    assert await fired.count(1) == ["b"]
    assert key("a") not in fired.timers


async def test_the_heap_stays_small_when_deadlines_are_set_and_cancelled() -> None:
    fired = Fired()
    for number in range(10_000):
        fired.timers.set(key(str(number % 3)), 1_000_000 + number)
        fired.timers.cancel(key(str(number % 3)))
    fired.timers.set(key("last"), 1)
    assert len(fired.timers._heap) < 200
    assert await fired.count(1) == ["last"]


async def test_nothing_fires_after_the_end() -> None:
    fired = Fired()
    fired.timers.set(key("a"), 0)
    fired.timers.close()
    fired.timers.set(key("b"), 1)
    assert await fired.count(1) == ["b"]
