"""Runs the serializers and the `on_send` hook on each record before it is accepted.

`producer.py` uses it only with serializers or `on_send`: without them the accumulator's compiled
methods accept records directly.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.hooks import Hooks
from aiokwire.parameters import parameters_of
from aiokwire.producer.config import ProducerConfig, Serializer
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.types import Headers

# object, topic, headers -> bytes, or an awaitable of them
_Full = Callable[[Any, str, Headers], Any]


class RecordSerializer:
    """The serializers and the `on_send` hook of one producer; on its loop."""

    def __init__(self, config: ProducerConfig[Any, Any], hooks: Hooks | None) -> None:
        self._key = _with_context(config.key_serializer)
        self._value = _with_context(config.value_serializer)
        self.hooks: ProducerHooks | None = ProducerHooks.per_record(hooks)

    @property
    def needed(self) -> bool:
        """Whether there is a serializer or a hook."""
        return self._key is not None or self._value is not None or self.hooks is not None

    def sending_many(self, topic: str) -> AbstractContextManager[Callable[[Any], object] | None]:
        """Return the context manager around `send_many`; it may give a function for the result."""
        return nullcontext() if self.hooks is None else self.hooks.sending_many(topic)

    def serialize(self, topic: str, value: Any, key: Any, partition: int | None, headers: Headers | None) -> Any:
        """Return (value, key, headers) for the accumulator; an awaitable if a serializer is async.

        Raises: InvalidArgument: a serializer failed.
        """
        given = () if headers is None else headers
        if self._value is not None and value is not None:
            value = _call("value", self._value, value, topic, given)
        try:
            if self._key is not None and key is not None:
                key = _call("key", self._key, key, topic, given)
        except BaseException:
            _forget(value)
            raise
        if inspect.isawaitable(value) or inspect.isawaitable(key):
            return _PendingRecord(self, topic, value, key, partition, headers)
        return self.finish(topic, value, key, partition, headers)

    def serialize_nowait(
        self, topic: str, value: Any, key: Any, partition: int | None, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Serialize for a caller that cannot wait.

        Raises: InvalidArgument: a serializer is asynchronous, or failed.
        """
        ready = self.serialize(topic, value, key, partition, headers)
        if isinstance(ready, _PendingRecord):
            ready.drop()
            raise InvalidArgument(
                f"{ready.who}: an asynchronous serializer needs to be awaited: use `await producer.send(...)` or "
                "`await producer.submit(...)` instead of submit_nowait"
            )
        return ready  # type: ignore[no-any-return]  # of `finish`

    def finish(
        self, topic: str, value: Any, key: Any, partition: int | None, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Call the hook, which may change the headers, for a serialized record."""
        if self.hooks is not None:
            headers = self.hooks.headers_to_send(topic, partition, key, value, headers)
        return value, key, headers


@dataclasses.dataclass(frozen=True, slots=True)
class _PendingRecord:
    """A record whose serializer is not done: await it for (value, key, headers)."""

    serializer: RecordSerializer
    topic: str
    value: Any
    key: Any
    partition: int | None
    headers: Headers | None

    @property
    def who(self) -> str:
        """The option with the asynchronous serializer."""
        return "value_serializer" if inspect.isawaitable(self.value) else "key_serializer"

    def __await__(self) -> Any:
        return self._run().__await__()

    async def _run(self) -> tuple[Any, Any, Headers | None]:
        value, key = self.value, self.key
        try:
            if inspect.isawaitable(value):
                value = await _awaited("value", value)
            if inspect.isawaitable(key):
                key = await _awaited("key", key)
        except BaseException:
            self.drop()
            raise
        return self.serializer.finish(self.topic, value, key, self.partition, self.headers)

    def drop(self) -> None:
        """Close the coroutines of the serializers, which will not be awaited."""
        _forget(self.value)
        _forget(self.key)


def _with_context(serializer: Serializer[Any] | None) -> _Full | None:
    """Adapt a serializer: with three required arguments it receives the topic and headers, too."""
    if serializer is None:
        return None
    try:
        parameters = parameters_of(serializer).values()
    except (TypeError, ValueError):  # a builtin without a signature
        parameters = ()  # type: ignore[assignment]  # none is known
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    if len(required) == 3:
        full: Callable[..., Any] = serializer
        return full
    plain: Callable[..., Any] = serializer
    return lambda given, topic, headers: plain(given)


def _call(argument: str, serializer: _Full, given: Any, topic: str, headers: Headers) -> Any:
    try:
        return serializer(given, topic, headers)
    except KafkaError:
        raise
    except Exception as error:
        raise _fault(argument, f"on a {type(given).__name__}", error) from error


async def _awaited(argument: str, pending: Awaitable[Any]) -> Any:
    try:
        return await pending
    except KafkaError:
        raise
    except Exception as error:
        raise _fault(argument, "while it was awaited", error) from error


def _fault(argument: str, when: str, error: Exception) -> InvalidArgument:
    return InvalidArgument(f"{argument}: the {argument}_serializer failed {when}: {error!r}")


def _forget(pending: object) -> None:
    """Close a coroutine that will not run, so that Python does not warn about it."""
    close = getattr(pending, "close", None)
    if close is not None and inspect.iscoroutine(pending):
        close()
