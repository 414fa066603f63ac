"""Hooks of several objects as one: order, headers, exceptions, and what is overridden."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest

from aiokwire.hooks import Guarded, Hooks, combined_hooks, hooks_for, overrides
from aiokwire.types import Headers


class Named(Hooks):
    """Records the arguments of its calls."""

    def __init__(self, name: str, diary: list[str]) -> None:
        self.name = name
        self.diary = diary

    def for_client(self, client_id: str, group_id: str | None) -> Hooks:
        return Named(f"{self.name}@{client_id}", self.diary)

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        return [*(headers or ()), (self.name, None)]

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        self.diary.append(f"{self.name} connected")

    @contextmanager
    def _around(self) -> Iterator[Callable[[Any], object]]:
        self.diary.append(f"{self.name} in")
        yield lambda result: self.diary.append(f"{self.name} {result}")
        self.diary.append(f"{self.name} out")

    def around_send_many(self, topic: str) -> AbstractContextManager[Callable[[Any], object] | None]:
        return self._around()

    async def _doubled(self, records: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for record in records:
            yield record + self.name

    def on_iterate(self, records: AsyncIterator[Any]) -> AsyncIterator[Any]:
        return self._doubled(records)


class Faulty(Hooks):
    """Raises in every hook that it has."""

    def on_send(self, *record: Any) -> Headers | None:
        raise ValueError("on_send")

    def on_connect(self, *what: Any) -> None:
        raise ValueError("on_connect")

    def around_send_many(self, topic: str) -> Any:
        raise ValueError("around_send_many")

    def on_iterate(self, records: Any) -> Any:
        raise ValueError("on_iterate")


async def letters() -> AsyncIterator[str]:
    for letter in "xy":
        yield letter


async def test_all_hooks_are_called_in_order_although_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    diary: list[str] = []
    hooks = combined_hooks(Named("a", diary), Faulty(), Named("b", diary))
    hooks.on_connect(1, "here", 0.0)
    assert hooks.on_send("t", None, None, None, [("own", None)]) == [("own", None), ("a", None), ("b", None)]
    with hooks.around_send_many("t") as give:
        assert give is not None
        give("sent")
    assert [record async for record in hooks.on_iterate(letters())] == ["xab", "yab"]
    assert diary == ["a connected", "b connected", "a in", "b in", "a sent", "b sent", "b out", "a out"]
    assert len(caplog.records) == 4


def test_only_what_one_of_them_overrides_is_overridden() -> None:
    hooks = combined_hooks(Faulty(), Hooks())
    assert overrides(hooks, "on_send")
    assert not overrides(hooks, "on_accepted")
    assert not overrides(hooks, "for_client")


def test_each_is_asked_for_the_hooks_of_a_client() -> None:
    diary: list[str] = []
    bound = hooks_for(combined_hooks(Named("a", diary), Faulty()), "shop")
    assert bound is not None
    assert bound.on_send("t", None, None, None, None) == [("a@shop", None)]
    assert hooks_for(None, "shop") is None
    only = Named("a", diary)
    assert combined_hooks(only) is only


@contextmanager
def rude() -> Iterator[Callable[[Any], object]]:
    yield lambda result: 1 // 0
    raise ValueError("rude")


@contextmanager
def greedy() -> Iterator[None]:
    with suppress(KeyError):
        yield


def test_a_hooks_block_neither_raises_nor_swallows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with Guarded(rude) as give:
        assert give is not None
        give("result")
    assert len(caplog.records) == 2
    with pytest.raises(KeyError), Guarded(greedy):
        raise KeyError("of the block")
