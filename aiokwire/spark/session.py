"""One client for each process and configuration, reused by the tasks of the process.

Spark reuses its forked Python workers, so that the next task finds the connections open. The loop
runs only while a task or the planner waits, so that Spark ends a process without a thread to stop.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Awaitable
from typing import Final, TypeVar

from aiokwire.cluster import Client, ClientConfig

try:
    from uvloop import new_event_loop  # a fetch costs a quarter less with it
except ImportError:
    from asyncio import new_event_loop  # type: ignore[assignment]  # uvloop names its own class

T = TypeVar("T")

# Sessions that a process keeps open; a streaming job needs one or two.
MOST_SESSIONS: Final = 4

# Timeout of the first connection (seconds): Spark retries the task.
START_PATIENCE: Final = 10.0

_sessions: OrderedDict[tuple[int, ClientConfig], Session] = OrderedDict()
# Sessions of the parent process. Kept: collecting their loops would remove the parent's sockets from its selectors.
_inherited: list[Session] = []


class Session:
    """A started client and its loop."""

    def __init__(self, config: ClientConfig) -> None:
        """Raises: ConnectionFailed: no broker could be reached."""
        self.config = config
        self._loop = new_event_loop()
        self.client: Client = Client(config)
        try:
            self.wait(self.client.start(timeout=min(config.default_api_timeout, START_PATIENCE)))
        except BaseException:
            self._loop.close()
            raise

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run the loop until `awaitable` is done, and return its result."""
        return self._loop.run_until_complete(_as_coroutine(awaitable))

    @property
    def closed(self) -> bool:
        return self.client.closed

    def close(self) -> None:
        """Close the client and the loop."""
        try:
            self.wait(self.client.close(timeout=1.0))
        finally:
            self._loop.close()


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def session_for(config: ClientConfig) -> Session:
    """Return the process's session of this configuration; start the first.

    Raises: KafkaError: the client cannot start.
    """
    key = (os.getpid(), config)
    session = _sessions.get(key)
    if session is not None and not session.closed:
        _sessions.move_to_end(key)
        return session
    if session is not None:
        session.close()  # its client has failed; only the loop is left to close
    session = _sessions[key] = Session(config)
    others = [each for each in _sessions if each[0] != key[0]]
    _inherited.extend(_sessions.pop(other) for other in others)
    while len(_sessions) > MOST_SESSIONS:
        _, oldest = _sessions.popitem(last=False)
        oldest.close()
    return session


def close_sessions() -> None:
    """Close the sessions of this process, for tests and for tools that continue without Spark."""
    while _sessions:
        (process, _), session = _sessions.popitem()
        if process == os.getpid():
            session.close()
        else:
            _inherited.append(session)
