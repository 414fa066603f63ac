"""Deserializers, plain and async, and what becomes of a record that they refuse. No I/O of its own.

Plain functions run where records are decoded. Async ones run in the decoder's task, some at a time; the order of the
records stays.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import CoroutineType
from typing import Any, Final, Literal, NamedTuple, TypeVar

import anyio

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.records import DeserializedRecord, Record

logger = logging.getLogger("aiokwire.consumer")

# Records of one batch that async deserializers work on at the same time.
CONCURRENCY: Final = 16
RAISE: Final = "raise"
SKIP: Final = "skip"

T = TypeVar("T")


class DeserializationError(KafkaError):
    """A deserializer raised for a record; the position stays before it.

    `record` has the bytes as they came (KIP-1036): look at them, then seek past `record.offset` or stop.
    """

    def __init__(self, message: str, *, record: Record) -> None:
        super().__init__(message)
        self.record = record
        self.topic = record.topic
        self.partition = record.partition
        self.offset = record.offset


# Returns the object that the bytes stand for, or an awaitable of it.
Deserializer = Callable[[bytes], Awaitable[T] | T]
AnyRecord = Record | DeserializedRecord[Any, Any]
# Receives the raw record and the error; returns the record to hand over instead, or None to skip it.
ErrorHandler = Callable[[Record, DeserializationError], AnyRecord | Awaitable[AnyRecord | None] | None]
ErrorPolicy = Literal["raise", "skip"] | ErrorHandler


class Deserialized(NamedTuple):
    """The records before the first failure, and that failure; skipped records are left out."""

    records: list[AnyRecord]
    failure: DeserializationError | None = None


class CoroutineReturned(Exception):
    """A function that is not declared `async def` returned a coroutine: only `apply_async` can await it."""


class Deserialization:
    """Applies a consumer's deserializers."""

    def __init__(
        self, key: Deserializer[Any] | None, value: Deserializer[Any] | None, on_error: ErrorPolicy = RAISE
    ) -> None:
        self._key = key
        self._value = value
        self._on_error = on_error
        self.is_needed = key is not None or value is not None
        self.has_value = value is not None
        # Whether records have to go through `apply_async`. Set later when a plain function returns a coroutine.
        self.is_async = any(is_async_function(function) for function in (key, value, on_error))

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
                if key_of is not None and key is not None:
                    key = key_of(key)
                if value_of is not None and value is not None:
                    value = value_of(value)
            except Exception as error:  # whatever the user's function raises
                failure = _failure(record, error)
                replacement = self._handle(failure)
                if isinstance(replacement, DeserializationError):
                    failure = replacement
                    break
                _keep(replacement, failure, done, skipped)
                failure = None
                continue
            if value.__class__ is CoroutineType or key.__class__ is CoroutineType:
                self._refuse(key, value)
            done.append(DeserializedRecord(record, key, value))
        _log(skipped)
        return Deserialized(done, failure)

    async def apply_async(self, records: Sequence[Record]) -> Deserialized:
        """Deserialize with any functions, up to `CONCURRENCY` records at a time; results are in the records' order."""
        results: list[AnyRecord | DeserializationError | None] = [None] * len(records)
        handled: dict[int, DeserializationError] = {}  # failures that the policy replaced or skipped
        failed = _Lowest(len(records))
        pending = iter(enumerate(records))
        async with anyio.create_task_group() as tasks:
            for _ in range(min(CONCURRENCY, len(records))):
                tasks.start_soon(self._work, pending, results, handled, failed)
        done: list[AnyRecord] = []
        for index in range(failed.index):
            result = results[index]
            if result is not None and not isinstance(result, DeserializationError):
                done.append(result)
        _log([handled[index] for index in sorted(handled) if index < failed.index and results[index] is None])
        failure = results[failed.index] if failed.index < len(records) else None
        return Deserialized(done, failure if isinstance(failure, DeserializationError) else None)

    async def _work(
        self,
        pending: Iterator[tuple[int, Record]],
        results: list[AnyRecord | DeserializationError | None],
        handled: dict[int, DeserializationError],
        failed: _Lowest,
    ) -> None:
        for index, record in pending:
            if index > failed.index:
                return
            try:
                key = await _resolved(self._key, record.key)
                results[index] = DeserializedRecord(record, key, await _resolved(self._value, record.value))
                continue
            except Exception as error:  # whatever the user's function raises
                failure = handled[index] = _failure(record, error)
            result = self._handle(failure, may_await=True)
            results[index] = result if result is None or isinstance(result, AnyRecord) else await _settled(result)
            if isinstance(results[index], DeserializationError):
                failed.add(index)

    def _handle(self, failure: DeserializationError, *, may_await: bool = False) -> Any:
        """What takes a refused record's place: a record, None, or an error; with `may_await` perhaps an awaitable."""
        if self._on_error == RAISE:
            return failure
        if self._on_error == SKIP:
            return None
        assert callable(self._on_error)
        try:
            result = self._on_error(failure.record, failure)
        except Exception as error:  # whatever the user's function raises
            return _handler_failure(failure, f"raised {type(error).__name__}: {error}", error)
        if inspect.isawaitable(result):
            if may_await:
                return _Pending(result, failure)
            self._refuse(result)
        return _checked(result, failure)

    def _refuse(self, *results: Any) -> None:
        for result in results:
            if result.__class__ is CoroutineType:
                result.close()  # it has not begun; `apply_async` calls its function again
        self.is_async = True
        raise CoroutineReturned


class _Lowest:
    """The lowest index that failed."""

    def __init__(self, index: int) -> None:
        self.index = index

    def add(self, index: int) -> None:
        self.index = min(self.index, index)


class _Pending(NamedTuple):
    """The result of an async error handler, and for which failure."""

    result: Awaitable[AnyRecord | None]
    failure: DeserializationError


async def _settled(pending: _Pending | DeserializationError) -> AnyRecord | DeserializationError | None:
    if isinstance(pending, DeserializationError):
        return pending
    try:
        return _checked(await pending.result, pending.failure)
    except Exception as error:  # whatever the user's function raises
        return _handler_failure(pending.failure, f"raised {type(error).__name__}: {error}", error)


async def _resolved(function: Deserializer[Any] | None, data: bytes | None) -> Any:
    if function is None or data is None:
        return data
    result = function(data)
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
        f"{type(error).__name__}: {error}; seek past the record to go on without it, or set on_deserialization_error",
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
    """One line, however many records of a batch were skipped."""
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


def is_async_function(function: object) -> bool:
    """Whether calling an object returns a coroutine, as far as its declaration says."""
    call = getattr(type(function), "__call__", None)  # noqa: B004 - how it is declared
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def require_error_policy(given: object) -> None:
    """Check the option `on_deserialization_error`.

    Raises: ConfigurationError: it is neither a choice nor a function.
    """
    if given not in (RAISE, SKIP) and (isinstance(given, str) or not callable(given)):
        raise ConfigurationError(
            f"on_deserialization_error must be {RAISE!r}, {SKIP!r} or a function of the raw record and the error, "
            f"not {given!r}"
        )
