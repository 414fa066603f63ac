"""A broker in its own thread, for tests and programs that have no running event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from aiokwire.broker import Broker, Faults, Hold, On, Rule
from aiokwire.records import Record

# Parts of the broker's interface that use its loop: their methods run there, too.
_ON_ITS_LOOP = (Faults, On, Rule, Hold)


class ThreadedBroker:
    """A `Broker` in a thread: `with ThreadedBroker() as broker: client(broker.bootstrap_servers)`.

    Takes the options of `Broker`. Every method of `Broker` and of `Broker.faults` is available as a
    blocking call, from any thread. The methods that most tests need are typed.
    """

    KIND: type[Broker] = Broker

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._broker = self.KIND(*arguments, **options)
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal | None = None

    def start(self) -> None:
        """Start the thread and the broker.

        Raises: as `Broker.start`.
        """
        with contextlib.ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._broker))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close the broker and end the thread."""
        self._stack.close()
        self._portal = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`; of all nodes, separated by commas.

        Raises: BrokerClosed: it is not started, or closed.
        """
        return self._broker.bootstrap_servers

    def create_topic(self, name: str, partitions: int | None = None, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic. See `Broker.create_topic`."""
        self._call(self._broker.create_topic, name, partitions, configs)

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Return the records of a topic, or of one of its partitions. See `Broker.records`."""
        found: list[Record] = self._call(self._broker.records, topic, partition)
        return found

    def wait_for_records(self, topic: str, count: int, *, timeout: float = 10.0) -> list[Record]:
        """Wait for at least `count` records of a topic; return all. See `Broker.wait_for_records`.

        `timeout` in seconds.

        Raises: RequestTimedOut: too few records; the message has their count.
        """
        found: list[Record] = self._call(self._broker.wait_for_records, topic, count, timeout=timeout)
        return found

    def __getattr__(self, name: str) -> Any:
        return _blocking(getattr(self._broker, name), self._call)

    def _call(self, method: Any, *arguments: Any, **options: Any) -> Any:
        if self._portal is None:
            return method(*arguments, **options)  # which raises BrokerClosed
        return self._portal.call(lambda: method(*arguments, **options))

    def __repr__(self) -> str:
        return f"<Threaded{repr(self._broker).removeprefix('<')}"


def _blocking(value: Any, call: Any) -> Any:
    """Wrap methods as blocking calls on the loop, its objects as proxies with such methods."""
    if isinstance(value, _ON_ITS_LOOP):
        return _OnItsLoop(value, call)
    if callable(value):
        return lambda *arguments, **options: _blocking(call(value, *arguments, **options), call)
    return value


class _OnItsLoop:
    """A proxy, for other threads, of a rule or a held request."""

    def __init__(self, value: Any, call: Any) -> None:
        self._value = value
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return _blocking(getattr(self._value, name), self._call)
