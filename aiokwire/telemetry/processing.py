"""Makes a span the current one while the application processes its records.

Contexts are restored by value: a token of `contextvars` is valid only in the task that created it,
and a loop may be left or continued in another task.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode

from aiokwire.error_codes import ErrorCode
from aiokwire.telemetry import conventions as names
from aiokwire.telemetry.propagation import with_span

R = TypeVar("R")

# The key of the `Processing` in a context.
_CURRENT: Final = "aiokwire-processing"


def set_error(span: Span, error: BaseException) -> None:
    """Mark a span as failed. `error.type` is the broker's code, or the class of the error."""
    code = getattr(error, "code", None)
    kind = code.name if isinstance(code, ErrorCode) else type(error).__qualname__
    span.set_attribute(names.ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR, str(error) or kind))


class Processing(AbstractContextManager[Span]):
    """The span of records that are being processed: current until it is left."""

    __slots__ = ("_before", "_context", "records", "span")

    def __init__(self, records: Any, span: Span, context: Context) -> None:
        """`records`: the record, or the sequence of records; `context`: that of the span."""
        self.records: Any = records
        self.span: Span = span
        self._context = context
        self._before: Context | None = None

    def __enter__(self) -> Span:
        self._before = contexts.get_current()
        contexts.attach(contexts.set_value(_CURRENT, self, with_span(self.span, self._context)))
        return self.span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.fail(error)
        self.finish()

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed, with the exception as an event."""
        if self.span.is_recording():
            self.span.record_exception(error)
            set_error(self.span, error)

    def finish(self) -> None:
        """End the span, and make the previous one current again; has no effect a second time."""
        before, self._before = self._before, None
        if before is None:
            return
        if contexts.get_value(_CURRENT) is self:
            contexts.attach(before)
        self.span.end()


class Nested(AbstractContextManager[Span]):
    """A block within the processing of the same records: it has no span of its own."""

    __slots__ = ("_outer",)

    def __init__(self, outer: Processing) -> None:
        self._outer = outer

    def __enter__(self) -> Span:
        return self._outer.span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._outer.fail(error)


def current_processing(records: object) -> Processing | None:
    """Return the processing of these records, if the caller is within it."""
    current = contexts.get_value(_CURRENT)
    return current if isinstance(current, Processing) and current.records is records else None


class _Loop:
    """The processing of the record of a loop's current iteration."""

    def __init__(self, start: Callable[[Any], Processing]) -> None:
        self._start = start
        self._current: Processing | None = None

    def begin(self, record: Any) -> None:
        self._current = self._start(record)
        self._current.__enter__()

    def end(self) -> None:
        if self._current is not None:
            current, self._current = self._current, None
            current.finish()


class TracedRecords(AsyncIterator[R], Generic[R]):
    """Records of an asynchronous iterator. Each iteration of the loop over them has a span.

    The span ends when the next record is requested, or the loop is left. It does not see an
    exception that leaves the loop.
    """

    def __init__(self, records: AsyncIterator[R], start: Callable[[Any], Processing]) -> None:
        self._records = records
        self._loop = _Loop(start)

    def __aiter__(self) -> AsyncIterator[R]:
        return self

    async def __anext__(self) -> R:
        self._loop.end()
        record = await self._records.__anext__()
        self._loop.begin(record)
        return record

    async def aclose(self) -> None:
        """End the span, and close the iterator if it can be closed."""
        self._loop.end()
        close = getattr(self._records, "aclose", None)
        if close is not None:
            await close()

    def __del__(self) -> None:
        self._loop.end()


class TracedList(Iterator[R], Generic[R]):
    """Records of an iterable, with a span for each; as `TracedRecords`."""

    def __init__(self, records: Iterable[R], start: Callable[[Any], Processing]) -> None:
        self._records = iter(records)
        self._loop = _Loop(start)

    def __iter__(self) -> Iterator[R]:
        return self

    def __next__(self) -> R:
        self._loop.end()
        record = next(self._records)
        self._loop.begin(record)
        return record

    def __del__(self) -> None:
        self._loop.end()
