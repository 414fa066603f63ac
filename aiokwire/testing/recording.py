"""Records the work of a worker in a test: calls of handlers, outcomes, dead letters."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeAlias

import anyio

from aiokwire.clock import loop_time
from aiokwire.consumer import ConsumerRecord
from aiokwire.hooks import Hooks
from aiokwire.records import Record
from aiokwire.types import TopicPartition
from aiokwire.worker import LetterHeader, Origin, Skip, parsed_origin

RawRecord: TypeAlias = ConsumerRecord[bytes, bytes]
Place: TypeAlias = tuple[TopicPartition, int]


class Result(enum.StrEnum):
    """The outcome of a record."""

    COMPLETED = "completed"
    """Its handler returned."""
    SKIPPED = "skipped"
    """Its handler raised `Skip`, or its policy ends in "skip"."""
    DEAD_LETTER = "dead-letter"
    """It is in the dead-letter topic."""
    UNFINISHED = "unfinished"
    """It is being handled, waits for its next attempt, or made the worker stop."""


class Call(NamedTuple):
    """One call of a handler."""

    handler: str
    record: RawRecord
    attempt: int
    error: BaseException | None
    """The exception that it raised; None: it returned."""
    started: float
    """By the loop's clock, in seconds."""
    elapsed: float
    """In seconds; in virtual time only what the handler waited for counts."""


class PeriodicCall(NamedTuple):
    """One run of a periodic handler that has ended."""

    handler: str
    error: BaseException | None
    """Why it failed; None: it succeeded."""
    started: float
    """By the loop's clock, in seconds."""
    elapsed: float
    """In seconds; in virtual time only what the handler waited for counts."""


class Outcome(NamedTuple):
    """The outcome of one record."""

    record: RawRecord
    handler: str
    result: Result
    attempts: int
    error: BaseException | None
    """The exception of the last attempt."""


class SentDeadLetter(NamedTuple):
    """A record in a dead-letter topic, with what its headers name."""

    record: Record
    origin: Origin | None
    handler: str
    attempts: int
    exception: str
    """The qualified name of the exception's class."""
    message: str

    @classmethod
    def of(cls, record: Record) -> SentDeadLetter:
        """Read the headers of a dead letter; one from another program may lack some."""
        headers = dict(record.headers)

        def text(name: str) -> str:
            return (headers.get(name) or b"").decode(errors="backslashreplace")

        return cls(
            record,
            parsed_origin(headers),
            text(LetterHeader.HANDLER),
            int(text(LetterHeader.ATTEMPTS) or 0),
            text(LetterHeader.EXCEPTION),
            text(LetterHeader.MESSAGE),
        )


class Recorder(Hooks):
    """Hooks of a worker that keep its calls, and wake tasks that wait for its progress."""

    def __init__(self, handler_of: Callable[[str], str]) -> None:
        """`handler_of` returns the name of a topic's handler."""
        self._handler_of = handler_of
        self.calls: list[Call] = []
        self.running: list[Call] = []
        self.periodic: list[PeriodicCall] = []
        self._changed = anyio.Event()

    async def changed(self, within: float) -> None:
        """Wait until something happened, at most `within` seconds."""
        self._changed = anyio.Event()
        with anyio.move_on_after(within):
            await self._changed.wait()

    def around_process(self, record: Any) -> AbstractContextManager[object]:
        """Keep an attempt."""
        return self._attempt(record)

    @contextmanager
    def _attempt(self, record: RawRecord) -> Iterator[None]:
        place = origin_of(record)
        before = sum(origin_of(call.record) == place for call in self.calls)
        call = Call(self._handler_of(place[0].topic), record, before + 1, None, loop_time(), 0.0)
        self.running.append(call)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.running.remove(call)
            self.calls.append(call._replace(error=error, elapsed=loop_time() - call.started))
            self._changed.set()

    def around_periodic(self, handler: str) -> AbstractContextManager[object]:
        """Keep a run."""
        return self._run(handler)

    @contextmanager
    def _run(self, handler: str) -> Iterator[None]:
        started = loop_time()
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.periodic.append(PeriodicCall(handler, error, started, loop_time() - started))
            self._changed.set()

    def on_response_received(self, node_id: int | None, api: str, version: int, size: int, elapsed: float) -> None:
        """Wake waiting tasks: a commit may have been acknowledged."""
        self._changed.set()


def origin_of(record: RawRecord) -> Place:
    """Return where a record was first read; retries name it in their headers."""
    headers = dict(record.headers)
    origin = parsed_origin(headers) if LetterHeader.NOT_BEFORE in headers else None
    if origin is None:
        return TopicPartition(record.topic, record.partition), record.offset
    return origin.topic_partition, origin.offset


def result_of(call: Call, *, is_dead_letter: bool, is_finished: bool) -> Result:
    """Return the outcome of a record's last call."""
    if is_dead_letter:
        return Result.DEAD_LETTER
    if call.error is None:
        return Result.COMPLETED
    if isinstance(call.error, Skip):
        return Result.SKIPPED
    return Result.SKIPPED if is_finished else Result.UNFINISHED


def last_calls(calls: Iterable[Call]) -> list[Call]:
    """Return the last call of each record, in the order of the first ones."""
    return list({origin_of(call.record): call for call in calls}.values())
