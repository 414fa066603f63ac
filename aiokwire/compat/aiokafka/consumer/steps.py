"""Changes of a subscription, in the order of their calls, behind those that have to wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from aiokwire.cluster import Client

Step = Callable[[], Awaitable[object] | None]


class Steps:
    """Runs changes at once, or in a background task behind earlier ones."""

    def __init__(self) -> None:
        self._left: deque[Step] = deque()
        self._done = anyio.Event()

    @property
    def are_left(self) -> bool:
        """Whether changes are waiting or under way."""
        return bool(self._left)

    async def wait(self) -> None:
        """Wait until all changes were made."""
        while self._left:
            await self._done.wait()

    def now_or_later(self, client: Client | None, change: Callable[[], None]) -> None:
        """Make a change that does not wait: at once if no earlier one is left."""
        if self._left and client is not None:
            self.later(client, change)
        else:
            change()

    def later(self, client: Client, step: Step) -> None:
        """Make a change in a task of the client."""
        self._left.append(step)
        if len(self._left) == 1:
            self._done = anyio.Event()
            client.spawn(self._run, name="changes of a subscription")

    async def _run(self) -> None:
        try:
            while self._left:
                waiting = self._left[0]()
                if waiting is not None:
                    await waiting
                self._left.popleft()
        finally:
            self._left.clear()
            self._done.set()
