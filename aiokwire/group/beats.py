"""When a member of the consumer protocol beats: at the coordinator's interval, and at once with something to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


class Beats:
    """Calls `send` when a heartbeat is due, one at a time, while it is told to."""

    def __init__(
        self,
        *,
        send: Callable[[], Awaitable[float]],
        limit: float,
        progressed_at: Callable[[float], float],
        expired: Callable[[], None],
    ) -> None:
        """`send` gives the seconds until the next is due. `expired` is called, and beating ends, when the application's
        last progress is `limit` seconds ago."""
        self._send = send
        self._limit = limit
        self._progressed_at = progressed_at
        self._expired = expired
        self._beating = False
        self._due = 0.0
        self._changed = anyio.Event()
        self._sending: anyio.CancelScope | None = None

    def start(self, after: float) -> None:
        """Beat, first after so many seconds."""
        self._beating = True
        self._due = anyio.current_time() + after
        self._changed.set()

    def stop(self) -> None:
        """Beat no more; the answer to one on its way is not waited for."""
        self._beating = False
        self._changed.set()
        if self._sending is not None:
            self._sending.cancel()

    def prod(self) -> None:
        """There is something to say."""
        self._due = 0.0
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed = anyio.Event()
            if not self._beating:
                await self._changed.wait()
                continue
            now = anyio.current_time()
            left = self._progressed_at(now) + self._limit - now
            if left <= 0:
                self._beating = False
                self._expired()
                continue
            wait = min(self._due - now, left)
            if wait > 0:
                with anyio.move_on_after(wait):
                    await self._changed.wait()
                continue
            self._due = float("inf")
            with anyio.CancelScope() as self._sending:
                seconds = await self._send()
                self._due = min(self._due, anyio.current_time() + seconds)
            self._sending = None
