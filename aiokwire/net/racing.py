"""Staggered attempts at the same goal: the first success wins (RFC 8305's happy eyeballs).

Used for the addresses of one broker (`dial`) and for the brokers of a bootstrap list (`cluster`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import anyio

ResultT = TypeVar("ResultT")


class Race(Generic[ResultT]):
    """One race.

    `delay`: seconds until the next attempt starts while an earlier one is still running. `discard`
    takes the result of a second success, or the winner's when the race is cancelled. An attempt
    fails by an exception of `expected`; others end the race.
    """

    def __init__(
        self,
        attempts: Sequence[Callable[[], Awaitable[ResultT]]],
        *,
        delay: float,
        expected: type[Exception] | tuple[type[Exception], ...],
        discard: Callable[[ResultT], None] = lambda _: None,
    ) -> None:
        self._attempts = attempts
        self._delay = delay
        self._expected = expected
        self._discard = discard
        self._prize: list[ResultT] = []  # empty until an attempt succeeds
        self.errors: dict[int, Exception] = {}  # by the attempt's index

    async def run(self) -> ResultT | None:
        """Return the first success, or None if every attempt failed (see `errors`)."""
        try:
            if len(self._attempts) == 1:
                await self._try(0, anyio.Event())
            else:
                await self._run_many()
        except BaseException:
            for prize in self._prize:
                self._discard(prize)
            raise
        return self._prize[0] if self._prize else None

    async def _run_many(self) -> None:
        async with anyio.create_task_group() as group:
            for index in range(len(self._attempts)):
                failed = anyio.Event()
                group.start_soon(self._compete, index, failed, group.cancel_scope)
                with anyio.move_on_after(self._delay):
                    await failed.wait()
                if self._prize:
                    return

    async def _compete(self, index: int, failed: anyio.Event, everyone: anyio.CancelScope) -> None:
        await self._try(index, failed)
        if self._prize:
            everyone.cancel()

    async def _try(self, index: int, failed: anyio.Event) -> None:
        try:
            prize = await self._attempts[index]()
        except self._expected as error:
            self.errors[index] = error
            failed.set()
            return
        if self._prize:
            self._discard(prize)
        else:
            self._prize.append(prize)
