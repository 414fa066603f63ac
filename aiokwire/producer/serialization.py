"""Runs the serializers and the `on_send` hook on each record before it is accepted.

Used by `producer.py`, and only where there is something to do: without serializers and `on_send` the accumulator's
compiled methods take records themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from aiokwire.errors import InvalidArgument, KafkaError
from aiokwire.hooks import Hooks
from aiokwire.producer.config import ProducerConfig, Serializer
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.types import Headers

# object, topic, headers -> bytes, or what gives them when it is awaited
_Full = Callable[[Any, str, Headers], Any]


class RecordSerializer:
    """The serializers and the `on_send` hook of one producer; on its loop."""

    def __init__(self, config: ProducerConfig[Any, Any], hooks: Hooks | None) -> None:
        self._key = _with_context(config.key_serializer)
        self._value = _with_context(config.value_serializer)
        self._hooks = ProducerHooks.per_record(hooks)

    @property
    def needed(self) -> bool:
        """Whether there is anything to do per record."""
        return self._key is not None or self._value is not None or self._hooks is not None

    def serialize(self, topic: str, value: Any, key: Any, partition: int | None, headers: Headers | None) -> Any:
        """Return (value, key, headers) to be accepted, or an awaitable of them where a serializer is asynchronous.

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
        """Serialize where the caller cannot wait.

        Raises: InvalidArgument: a serializer is asynchronous, or failed.
        """
        ready = self.serialize(topic, value, key, partition, headers)
        if isinstance(ready, _PendingRecord):
            ready.drop()
            raise InvalidArgument(
                f"{ready.who}: an asynchronous serializer needs to be awaited: use `await producer.send(...)` or "
                "`await producer.submit(...)` instead of submit_nowait"
            )
        return ready  # type: ignore[no-any-return]  # what `finish` gave

    def finish(
        self, topic: str, value: Any, key: Any, partition: int | None, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Let the hook change the headers of a serialized record."""
        if self._hooks is not None:
            headers = self._hooks.headers_to_send(topic, partition, key, value, headers)
        return value, key, headers


class _PendingRecord:
    """A record with a serializer that is not done: await it for (value, key, headers)."""

    def __init__(
        self,
        serializer: RecordSerializer,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers | None,
    ) -> None:
        self._serializer = serializer
        self._rest = (topic, partition, headers)
        self._value = value
        self._key = key
        self.who = "value_serializer" if inspect.isawaitable(value) else "key_serializer"

    def __await__(self) -> Any:
        return self._run().__await__()

    async def _run(self) -> tuple[Any, Any, Headers | None]:
        topic, partition, headers = self._rest
        value, key = self._value, self._key
        try:
            if inspect.isawaitable(value):
                value = await _awaited("value", value)
            if inspect.isawaitable(key):
                key = await _awaited("key", key)
        except BaseException:
            self.drop()
            raise
        return self._serializer.finish(topic, value, key, partition, headers)

    def drop(self) -> None:
        """Close the coroutines of the serializers: nobody will await them."""
        _forget(self._value)
        _forget(self._key)


def _with_context(serializer: Serializer[Any] | None) -> _Full | None:
    """A serializer of three required arguments is given the topic and headers, any other the object alone."""
    if serializer is None:
        return None
    try:
        parameters = inspect.signature(serializer).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        parameters = ()  # type: ignore[assignment]  # nothing is known of it
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
    """Close a coroutine that is not going to run, or Python warns that it was never awaited."""
    close = getattr(pending, "close", None)
    if close is not None and inspect.iscoroutine(pending):
        close()
