"""Hooks: methods that a client calls, for the user's logging, tracing and monitoring.

Subclass `Hooks`, override the methods you need, and pass an instance as `hooks=`. Methods run on
the event loop and must not block; their exceptions are logged and have no other effect. Hooks that
are not overridden cost nothing. `combined_hooks` makes one object of several.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from aiokwire.types import Headers, OffsetAndMetadata, RecordMetadata, TopicPartition

P = ParamSpec("P")
R = TypeVar("R")

logger: logging.Logger = logging.getLogger(__name__)


class Accepted(Protocol):
    """The `Delivery` of an accepted record, as hooks see it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def error(self) -> Exception | None: ...
    def result(self) -> RecordMetadata: ...
    def add_done_callback(self, callback: Callable[[Any], object]) -> None: ...


class Hooks:
    """The base class of hooks: each method does nothing until it is overridden."""

    def for_client(self, client_id: str, group_id: str | None) -> Hooks:
        """Return the hooks that one client calls; called once, when the client is created.

        `client_id` is that of the client, `group_id` that of a consumer, None without one.
        """
        return self

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        """A connection is ready, `elapsed` seconds after the attempt started."""

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        """A connection ended; `error` is None if this side closed it."""

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        """A request of `size` bytes was written to the socket."""

    def on_response_received(self, node_id: int | None, api: str, version: int, size: int, elapsed: float) -> None:
        """A response of `size` bytes arrived, `elapsed` seconds after its request."""

    def on_throttle(self, node_id: int, seconds: float) -> None:
        """A broker throttles the client for this time (KIP-219)."""

    def on_metadata(self, version: int, brokers: int, topics: int) -> None:
        """The client has a new metadata snapshot."""

    # --- of a producer, per record; overriding one of them turns off the compiled methods `submit` ------------------

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        """Called before a serialized record is accepted. Returned headers replace its own."""
        return None

    def on_accepted(self, headers: Headers | None, delivery: Accepted) -> None:
        """A record was accepted; not called for those of `send_many` and of Arrow data.

        `headers` is the object that `on_send` returned, or the record's own.
        """

    def on_refused(self, headers: Headers | None, error: BaseException) -> None:
        """A record was refused after `on_send`, or gave up its wait for room; see `on_accepted`."""

    # --- of a producer, per call or batch -----------------------------------------------------------------------------

    def around_send_many(self, topic: str) -> AbstractContextManager[Callable[[Any], object] | None]:
        """Return a context manager to enter around a `send_many` and its `on_send` calls.

        Entering it may return a function, which is called with the `SendManyResult`.
        """
        return nullcontext()

    def on_batch_sealed(self, topic: str, partition: int, count: int, size: int) -> None:
        """A batch of `count` records and `size` bytes is complete and waits for its broker."""

    def on_produce_request(self, node_id: int, batches: int, count: int) -> None:
        """A request with `count` records in `batches` batches was sent, first or as a retry."""

    def on_delivered(self, topic: str, partition: int, base_offset: int, count: int) -> None:
        """A batch was acknowledged; `base_offset` is -1 if the broker does not return it."""

    def on_delivery_failed(self, topic: str, partition: int, count: int, error: Exception) -> None:
        """Records could not be delivered; `partition` is -1 if none was chosen."""

    # --- of a consumer ------------------------------------------------------------------------------------------------

    def on_read(self, records: Sequence[Any], elapsed: float) -> None:
        """`getone` or `getmany` is about to return these records, `elapsed` seconds after its call.

        Not called without records.
        """

    def on_iterate(self, records: AsyncIterator[R]) -> AsyncIterator[R]:
        """A loop over the consumer or one of its streams begins; it uses the returned iterator."""
        return records

    def around_process(self, record: Any) -> AbstractContextManager[object]:
        """Return a context manager to enter around each attempt of a worker's handler for a record,
        or for the list of records of a batch."""
        return nullcontext()

    def around_periodic(self, handler: str) -> AbstractContextManager[object]:
        """Return a context manager to enter around each run of a worker's periodic handler."""
        return nullcontext()

    def around_commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], is_automatic: bool
    ) -> AbstractContextManager[object]:
        """Return a context manager to enter around a commit of offsets: a call of `commit`, or a
        background commit (`is_automatic`): periodic, by `commit_nowait`, at a revocation."""
        return nullcontext()

    def on_reset(self, topic: str, partition: int, before: int | None, after: int, reason: str) -> None:
        """A position was set by a lookup: from `before` (None: there was none) to `after`.

        `reason` names policy and cause. The records in between are skipped or delivered again.
        """

    def on_partition_end(self, topic: str, partition: int, offset: int) -> None:
        """All records up to `offset` that the last fetch found were delivered, or are by the call
        that is just returning. Called once for each end, and again after a seek."""

    def on_batch_read(self, topic: str, partition: int, base_offset: int, count: int, size: int) -> None:
        """A whole batch was delivered to the application, or is by the call that is just returning.

        `base_offset` is its first wanted offset, `count` its number of records, `size` its bytes as
        fetched. A batch that a seek or a rebalance ended early is not reported; one of many
        thousand records is reported in several parts.
        """


_NAMES: Final = frozenset(name for name in vars(Hooks) if not name.startswith("_"))


def overrides(hooks: Hooks, name: str) -> bool:
    """Return whether hooks override the method `name`."""
    return getattr(type(hooks), name) is not getattr(Hooks, name)


class HookCaller:
    """Calls hooks and logs their exceptions. The base of each client's caller, on its loop."""

    def __init__(self, hooks: Hooks | None, logger: logging.Logger) -> None:
        """`logger` logs exceptions of hooks."""
        self._hooks = Hooks() if hooks is None else hooks
        self._logger = logger

    def is_overridden(self, name: str) -> bool:
        """Return whether the user has overridden a hook."""
        return overrides(self._hooks, name)

    def _call(self, hook: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(*args, **kwargs)
        except Exception:
            self._logger.exception("hook %s of %r raised", getattr(hook, "__name__", hook), self._hooks)

    def _around(
        self, hook: Callable[P, AbstractContextManager[R]], *args: P.args, **kwargs: P.kwargs
    ) -> AbstractContextManager[R | None]:
        return Guarded(lambda: hook(*args, **kwargs), self._logger)


class Guarded(AbstractContextManager[R | None]):
    """Enters a hook's context manager. Its exceptions are logged; it swallows none of the block."""

    def __init__(self, make: Callable[[], AbstractContextManager[R]], logger: logging.Logger = logger) -> None:
        self._make = make
        self._logger = logger
        self._entered: AbstractContextManager[R] | None = None

    def __enter__(self) -> R | None:
        try:
            manager = self._make()
            given = manager.__enter__()
        except Exception:
            self._logger.exception("a hook's context manager raised when it was entered")
            return None
        self._entered = manager
        return partial(self._give, given) if callable(given) else given  # type: ignore[return-value]

    def _give(self, receive: Callable[[Any], object], result: Any) -> None:
        try:
            receive(result)
        except Exception:
            self._logger.exception("a hook's function for the result raised")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entered is None:
            return
        try:
            self._entered.__exit__(kind, error, traceback)
        except Exception as raised:
            if raised is not error:
                self._logger.exception("a hook's context manager raised when it was left")


def hooks_for(hooks: Hooks | None, client_id: str, group_id: str | None = None) -> Hooks | None:
    """Return the hooks that a new client calls: see `Hooks.for_client`."""
    return None if hooks is None else hooks.for_client(client_id, group_id)


# --- several hooks as one ---------------------------------------------------------------------------------------------


def combined_hooks(*hooks: Hooks) -> Hooks:
    """Return hooks that call all of these, in order; only what one of them overrides is overridden.

    Each `on_send` receives the headers of the one before. `on_accepted` and `on_refused` receive
    those of the last: put hooks that compare them by identity, such as `Tracing`, last.
    """
    if len(hooks) == 1:
        return hooks[0]
    names = {name for name in _NAMES for each in hooks if overrides(each, name)}
    methods = {name: getattr(_Combined, f"_{name}", None) or _to_all(name) for name in names}
    return type("CombinedHooks", (_Combined,), methods)(hooks)  # type: ignore[no-any-return]


def _to_all(name: str) -> Callable[..., None]:
    def call(self: _Combined, *args: Any, **kwargs: Any) -> None:
        for hook in self._each(name):
            self._guarded(hook, None, *args, **kwargs)

    return call


class _Combined(Hooks):
    """The hooks of `combined_hooks`. A subclass has the methods that one of them overrides."""

    def __init__(self, hooks: Sequence[Hooks]) -> None:
        self.hooks = tuple(hooks)

    def __repr__(self) -> str:
        return f"combined_hooks({', '.join(map(repr, self.hooks))})"

    def _each(self, name: str) -> list[Callable[..., Any]]:
        return [getattr(each, name) for each in self.hooks if overrides(each, name)]

    def _guarded(self, hook: Callable[..., Any], otherwise: R, *args: Any, **kwargs: Any) -> R:
        """Call a hook; log its exception and return `otherwise`, so that the others are called."""
        try:
            result: R = hook(*args, **kwargs)
        except Exception:
            logger.exception("hook %s raised", getattr(hook, "__qualname__", hook))
            return otherwise
        return result

    def _for_client(self, client_id: str, group_id: str | None) -> Hooks:
        return combined_hooks(*(each.for_client(client_id, group_id) for each in self.hooks))

    def _on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        for hook in self._each("on_send"):
            wanted: Headers | None = self._guarded(hook, None, topic, partition, key, value, headers)
            headers = headers if wanted is None else wanted
        return headers

    def _on_iterate(self, records: AsyncIterator[R]) -> AsyncIterator[R]:
        for hook in self._each("on_iterate"):
            records = self._guarded(hook, records, records)
        return records

    def _around_send_many(self, topic: str) -> AbstractContextManager[Any]:
        return _All([Guarded(partial(hook, topic)) for hook in self._each("around_send_many")])

    def _around_process(self, record: Any) -> AbstractContextManager[Any]:
        return _All([Guarded(partial(hook, record)) for hook in self._each("around_process")])

    def _around_periodic(self, handler: str) -> AbstractContextManager[Any]:
        return _All([Guarded(partial(hook, handler)) for hook in self._each("around_periodic")])

    def _around_commit(self, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
        return _All([Guarded(partial(hook, *args, **kwargs)) for hook in self._each("around_commit")])


class _All(AbstractContextManager[Callable[[Any], None]]):
    """Enters several context managers; returns a function that calls what each has returned."""

    def __init__(self, managers: Sequence[Guarded[Any]]) -> None:
        self._managers = managers

    def __enter__(self) -> Callable[[Any], None]:
        given = [manager.__enter__() for manager in self._managers]

        def give(result: Any) -> None:
            for each in given:
                if callable(each):
                    each(result)

        return give

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for manager in reversed(self._managers):
            manager.__exit__(kind, error, traceback)
