"""Deserializers, plain and async, and the policy for records that they refuse. No I/O of its own.

Plain functions run where records are decoded. Async functions run in the decoder's task, several at
a time; the order of the records is kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, Final, Literal, NamedTuple, TypeVar

import anyio

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.records import DeserializedRecord, Record

logger: FieldLogger = get_logger("aiokwire.consumer")

# Records of one batch that async deserializers process concurrently.
CONCURRENCY: Final = 16
RAISE: Final = "raise"
SKIP: Final = "skip"

T = TypeVar("T")


class DeserializationError(KafkaError):
    """A deserializer raised for a record; the position stays before it.

    `record` holds the raw bytes (KIP-1036): inspect them, then seek past `record.offset` or stop.
    """

    def __init__(self, message: str, *, record: Record) -> None:
        super().__init__(message)
        self.record = record
        self.topic: str = record.topic
        self.partition: int = record.partition
        self.offset: int = record.offset


# Returns the deserialized object, or an awaitable of it. With a true attribute `receives_null` it is also called with
# None.
Deserializer = Callable[[bytes], Awaitable[T] | T]
AnyRecord = Record | DeserializedRecord[Any, Any]
# Receives the raw record and the error; returns the record to deliver instead, or None to skip it.
ErrorHandler = Callable[[Record, DeserializationError], AnyRecord | Awaitable[AnyRecord | None] | None]
ErrorPolicy = Literal["raise", "skip"] | ErrorHandler


class Deserialized(NamedTuple):
    """The records before the first failure, and that failure; skipped records are left out."""

    records: list[AnyRecord]
    failure: DeserializationError | None = None


class CoroutineReturned(Exception):
    """A function not declared `async def` returned a coroutine: only `apply_async` can await it."""


class Deserialization:
    """Applies a consumer's deserializers."""

    def __init__(
        self, key: Deserializer[Any] | None, value: Deserializer[Any] | None, on_error: ErrorPolicy = RAISE
    ) -> None:
        self._key = key
        self._value = value
        self._key_null = receives_null(key)
        self._value_null = receives_null(value)
        self._on_error = on_error
        self.is_needed: bool = key is not None or value is not None
        self.has_value: bool = value is not None
        # Whether records need `apply_async`. Also set when a plain function turns out to return a coroutine.
        self.is_async: bool = any(is_async_function(function) for function in (key, value, on_error))

    def apply(self, records: Sequence[Record]) -> Deserialized:
        """Deserialize with plain functions.

        Raises: CoroutineReturned: a function returned a coroutine; nothing was awaited.
        """
        key_of, value_of = self._key, self._value
        done: list[AnyRecord] = []
        skipped: list[DeserializationError] = []
        failure: DeserializationError | None = None
        for record in records:
            key: Any = record.key
            value: Any = record.value
            try:
                if key_of is not None and (key is not None or self._key_null):
                    key = key_of(key)
                if value_of is not None and (value is not None or self._value_null):
                    value = value_of(value)
            except Exception as error:  # whatever the user's function raises
                refused = _failure(record, error)
                result = self._handle(refused)
                if isinstance(result, DeserializationError):
                    failure = result
                    break
                if result is None:
                    skipped.append(refused)
                else:
                    done.append(result)
                continue
            if value.__class__ is CoroutineType or key.__class__ is CoroutineType:
                self._refuse(key, value)
            done.append(DeserializedRecord(record, key, value))
        _log(skipped)
        return Deserialized(done, failure)

    async def apply_async(self, records: Sequence[Record]) -> Deserialized:
        """Deserialize with any functions, up to `CONCURRENCY` records at a time; keeps order."""
        results: list[AnyRecord | DeserializationError | None] = [None] * len(records)
        refused: dict[int, DeserializationError] = {}
        first_failed = len(records)  # the lowest index whose result is an error; nothing after it is needed
        pending = iter(enumerate(records))

        async def work() -> None:
            nonlocal first_failed
            for index, record in pending:
                if index > first_failed:
                    return
                try:
                    key = await _resolved(self._key, record.key)
                    results[index] = DeserializedRecord(record, key, await _resolved(self._value, record.value))
                except Exception as error:  # whatever the user's function raises
                    failure = refused[index] = _failure(record, error)
                    results[index] = result = await self._handle_async(failure)
                    if isinstance(result, DeserializationError):
                        first_failed = min(first_failed, index)

        async with anyio.create_task_group() as tasks:
            for _ in range(min(CONCURRENCY, len(records))):
                tasks.start_soon(work)
        kept = [result for result in results[:first_failed] if isinstance(result, AnyRecord)]
        _log([refused[index] for index in range(first_failed) if results[index] is None])
        failure = results[first_failed] if first_failed < len(records) else None
        return Deserialized(kept, failure if isinstance(failure, DeserializationError) else None)

    def _handle(self, failure: DeserializationError) -> AnyRecord | DeserializationError | None:
        """Return the record that replaces a refused one, None to skip it, or the error to raise."""
        if self._on_error == RAISE:
            return failure
        try:
            result = self._call_policy(failure)
        except Exception as error:  # whatever the user's function raises
            return _handler_failure(failure, f"raised {type(error).__name__}: {error}", error)
        if inspect.isawaitable(result):
            self._refuse(result)
        return _checked(result, failure)

    async def _handle_async(self, failure: DeserializationError) -> AnyRecord | DeserializationError | None:
        """As `_handle`, and awaits the policy."""
        if self._on_error == RAISE:
            return failure
        try:
            result = self._call_policy(failure)
            return _checked(await result if inspect.isawaitable(result) else result, failure)
        except Exception as error:  # whatever the user's function raises
            return _handler_failure(failure, f"raised {type(error).__name__}: {error}", error)

    def _call_policy(self, failure: DeserializationError) -> Any:
        return self._on_error(failure.record, failure) if callable(self._on_error) else None

    def _refuse(self, *results: Any) -> None:
        for result in results:
            if result.__class__ is CoroutineType:
                result.close()  # it has not begun; `apply_async` calls its function again
        self.is_async = True
        raise CoroutineReturned


async def _resolved(function: Deserializer[Any] | None, data: bytes | None) -> Any:
    if function is None or (data is None and not receives_null(function)):
        return data
    result = function(data)  # type: ignore[arg-type]  # one that receives null
    return await result if inspect.isawaitable(result) else result


def _checked(result: Any, failure: DeserializationError) -> AnyRecord | DeserializationError | None:
    if result is None or isinstance(result, AnyRecord):
        return result
    return _handler_failure(failure, f"returned {type(result).__name__}, not a record or None", None)


def _handler_failure(failure: DeserializationError, what: str, cause: Exception | None) -> DeserializationError:
    error = DeserializationError(f"{failure}; on_deserialization_error {what}", record=failure.record)
    error.__cause__ = cause if cause is not None else failure.__cause__
    return error


def _failure(record: Record, error: Exception) -> DeserializationError:
    failure = DeserializationError(
        f"{record.topic}[{record.partition}] at offset {record.offset}: the deserializer raised "
        f"{type(error).__name__}: {error}; seek past the record to skip it, or set on_deserialization_error",
        record=record,
    )
    failure.__cause__ = error
    return failure


def _keep(
    replacement: AnyRecord | None,
    failure: DeserializationError,
    done: list[AnyRecord],
    skipped: list[DeserializationError],
) -> None:
    if replacement is None:
        skipped.append(failure)
    else:
        done.append(replacement)


def _log(skipped: Sequence[DeserializationError]) -> None:
    """Log one line for all skipped records of a batch."""
    if not skipped:
        return
    first, last = skipped[0], skipped[-1]
    tp = f"{first.topic}[{first.partition}]"
    cause = first.__cause__
    why = f"{type(cause).__name__}: {cause}"
    if len(skipped) == 1:
        logger.warning("%s at offset %d: skipped a record that cannot be deserialized: %s", tp, first.offset, why)
    else:
        logger.warning(
            "%s at offsets %d to %d: skipped %d records that cannot be deserialized; the first: %s",
            tp,
            first.offset,
            last.offset,
            len(skipped),
            why,
        )


def receives_null(function: object) -> bool:
    """Return whether a deserializer is also called for nulls."""
    return bool(getattr(function, "receives_null", False))


def is_async_function(function: object) -> bool:
    """Return whether an object is declared to return a coroutine when called."""
    call = getattr(type(function), "__call__", None)  # noqa: B004 - how it is declared
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def require_error_policy(given: object) -> None:
    """Check the option `on_deserialization_error`.

    Raises: ConfigurationError: the value is neither a choice nor a function.
    """
    if given not in (RAISE, SKIP) and (isinstance(given, str) or not callable(given)):
        raise ConfigurationError(
            f"on_deserialization_error must be {RAISE!r}, {SKIP!r} or a function of the raw record and the error, "
            f"not {given!r}"
        )
