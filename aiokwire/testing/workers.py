"""Tests of a worker: it runs against an embedded broker, and the test asserts on what it did."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import importlib
import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

import anyio

from aiokwire.broker import Broker
from aiokwire.errors import ClosedError
from aiokwire.producer import Producer
from aiokwire.records import Record
from aiokwire.security import SecurityConfig
from aiokwire.testing.recording import (
    Call,
    Outcome,
    PeriodicCall,
    Place,
    Recorder,
    Result,
    SentDeadLetter,
    last_calls,
    origin_of,
    result_of,
)
from aiokwire.testing.virtual_time import VirtualTimeLoop
from aiokwire.types import Headers, RecordMetadata, TopicPartition
from aiokwire.worker import LetterHeader, decode_ranges

if TYPE_CHECKING:
    from aiokwire.worker import Worker, WorkerOptions


def encoded(value: Any) -> bytes | None:
    """Return a key or value as bytes: `bytes` and None unchanged, `str` as UTF-8, others as JSON.

    JSON is written of dicts, lists, scalars, dataclasses, pydantic's models, msgspec's structs.

    Raises: TypeError: it has no form in JSON.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "__pydantic_serializer__"):
        return bytes(importlib.import_module("pydantic").TypeAdapter(type(value)).dump_json(value))
    if hasattr(value, "__struct_fields__"):
        return bytes(importlib.import_module("msgspec").json.encode(value))
    return json.dumps(value, default=_as_json).encode()


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ in ("uuid", "decimal"):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON: send bytes")


T = TypeVar("T")

DAY: Final = 86_400.0
# How long `drain` waits (seconds) in virtual and in real time.
DRAIN_TIMEOUT: Final = 30 * DAY
REAL_DRAIN_TIMEOUT: Final = 10.0
MOMENT: Final = 0.001
_LONG_MS: Final = 2**31 - 1
# Otherwise heartbeats and long polls would be most of the work of a jump over days.
_RARE: Final[dict[str, Any]] = {
    "fetch_max_wait_ms": 600_000,
    "heartbeat_interval_ms": 600_000,
    "session_timeout_ms": _LONG_MS,
}
_PATIENT: Final[dict[str, Any]] = {
    "group_max_session_timeout_ms": _LONG_MS,
    "group_consumer_session_timeout_ms": 1_800_000,
    "group_consumer_max_session_timeout_ms": 1_800_000,
    "group_consumer_max_heartbeat_interval_ms": 600_000,
    "group_consumer_heartbeat_interval_ms": 600_000,
}


class WorkerTest:
    """Runs a copy of a worker against an embedded broker: `async with WorkerTest(worker) as test`.

    In virtual time (the fixture `kafka_worker`, `run_in_virtual_time`) the delays of retries take
    no time; heartbeats and long polls are rarer than with the worker's options.
    """

    def __init__(
        self,
        worker: Worker,
        *,
        broker: Broker | None = None,
        topics: Mapping[str, int] | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None:
        """`worker` is not started, and may be used by many tests.

        Args:
            worker: with its handlers.
            broker: a started broker; default: one of its own, in memory.
            topics: topics with their number of partitions; those that handlers name have one by
                default. Others are created when a record is sent to them.
            options: replace options of the worker. Its login is left out.

        Raises: ConfigurationError: an option is unknown, or out of its range.
        """
        self._original = worker
        self._options = options
        named = (topic for handler in worker.handlers for topic in handler.topics if isinstance(topic, str))
        self._topics = {**dict.fromkeys(named, 1), **(topics or {})}
        self._given_broker = broker
        self._recorder = Recorder(lambda topic: worker.handlers.find(topic).name)
        self._stack = contextlib.AsyncExitStack()
        self._broker: Broker | None = None
        self._producer: Producer[bytes, bytes] | None = None
        self._worker: Worker | None = None
        self._reported: BaseException | None = None  # why the worker stopped, once `drain` has raised it

    # --- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualTimeLoop):
            loop.watch_threads()
        async with contextlib.AsyncExitStack() as stack:
            self._broker = await self._start_broker(stack)
            servers = self._broker.bootstrap_servers
            self._producer = await stack.enter_async_context(Producer(servers, linger_ms=0))
            stack.push_async_callback(self._stop)
            await self._start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        if error is None:
            self._raise_failure()

    async def _start_broker(self, stack: contextlib.AsyncExitStack) -> Broker:
        if self._given_broker is None:
            patient = _PATIENT if self._is_virtual else {}
            broker = await stack.enter_async_context(Broker(topics=self._topics, journal=1000, **patient))
        else:
            broker = self._given_broker
            for topic, partitions in self._topics.items():
                if broker.state.topics.get(topic) is None:
                    await broker.create_topic(topic, partitions)
        return broker

    async def _start(self) -> None:
        options: dict[str, Any] = {
            **SecurityConfig.security_defaults(),
            "bootstrap_servers": self.broker.bootstrap_servers,
        }
        if self._is_virtual and self._given_broker is None:
            options.update(_RARE)
        self._worker = self._original.copy(hooks=self._recorder, **{**options, **self._options})
        await self._worker.start()

    async def _stop(self) -> None:
        worker = self.worker
        try:
            await worker.close()
        except BaseException as error:
            if error is not worker.failure:
                raise

    async def restart(self) -> None:
        """Stop the worker gracefully and start it again, as a deployment does.

        Raises: the error that had stopped the worker.
        """
        await self._stop()
        self._raise_failure()
        await self._start()

    @property
    def _is_virtual(self) -> bool:
        return isinstance(asyncio.get_running_loop(), VirtualTimeLoop)

    # --- what a test does ---------------------------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        """The broker, with `faults` and a `journal`.

        Raises: ClosedError: the test has not started.
        """
        return _started(self._broker)

    @property
    def worker(self) -> Worker:
        """The copy that runs.

        Raises: ClosedError: the test has not started.
        """
        return _started(self._worker)

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record; a value or key that is neither bytes nor text is written as JSON.

        Raises: TypeError: it has no form in JSON; as `Producer.send`.
        """
        producer = _started(self._producer)
        return await producer.send(
            topic, encoded(value), encoded(key), partition=partition, timestamp=timestamp, headers=headers
        )

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until every record of the worker's topics is finished and committed.

        `timeout` in seconds; default: 30 days in virtual time, 10 s in real time.

        Raises: the error that stopped the worker; TimeoutError: it names the unfinished records.
        """
        limit, pause = (DRAIN_TIMEOUT, 60.0) if self._is_virtual else (REAL_DRAIN_TIMEOUT, 0.1)
        limit = limit if timeout is None else timeout
        with anyio.move_on_after(limit):
            while True:
                self._raise_failure()
                if not self._is_busy():
                    await anyio.sleep(MOMENT)  # the worker admits the records that it read meanwhile
                    if not self._is_busy():
                        return
                await self._recorder.changed(pause)
        raise TimeoutError(self._describe_unfinished(limit))

    def _is_busy(self) -> bool:
        return self.worker.in_flight > 0 or any(self._unfinished())

    def _raise_failure(self) -> None:
        failure = self.worker.failure
        if failure is not None and failure is not self._reported:
            self._reported = failure
            raise failure

    # --- what it asserts on -------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """The calls of handlers that have ended, in the order of their ends."""
        return list(self._recorder.calls)

    @property
    def periodic_calls(self) -> list[PeriodicCall]:
        """The runs of periodic handlers that have ended, in the order of their ends."""
        return list(self._recorder.periodic)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of each record that a handler was called with, in the order of the calls."""
        letters = {(one.origin.topic_partition, one.origin.offset) for one in self.dead_letters if one.origin}
        unfinished = {place for place, _ in self._unfinished()}
        found = []
        for call in last_calls(self.calls):
            place = origin_of(call.record)
            result = result_of(call, is_dead_letter=place in letters, is_finished=place not in unfinished)
            found.append(Outcome(call.record, call.handler, result, call.attempt, call.error))
        return found

    @property
    def completed(self) -> list[Record]:
        """The records whose handlers have returned."""
        return [one.record for one in self.outcomes if one.result is Result.COMPLETED]  # type: ignore[misc]

    @property
    def dead_letters(self) -> list[SentDeadLetter]:
        """The dead letters of all topics, without those of aborted transactions."""
        found = (record for topic in self._existing() for record in self.sent(topic))
        return [SentDeadLetter.of(one) for one in found if _is_dead_letter(one)]

    def sent(self, topic: str) -> list[Record]:
        """Return the records of a topic, without those of aborted transactions; none if it does not
        exist."""
        if self.broker.state.topics.get(topic) is None:
            return []
        return self.broker.records(topic, committed=True)

    def committed(self, topic: str, partition: int = 0) -> int | None:
        """Return the offset that the worker's group has committed, None if there is none."""
        found = self.broker.state.offsets.of_group(self.worker.config.group).get(TopicPartition(topic, partition))
        return None if found is None else found.offset

    def _existing(self) -> list[str]:
        return sorted(topic.name for topic in self.broker.state.topics if not topic.name.startswith("__"))

    def _unfinished(self) -> Iterator[tuple[Place, Record]]:
        """Yield the records that are not committed as finished, with their origins."""
        offsets = self.broker.state.offsets.of_group(self.worker.config.group)
        own = {tp.topic for tp in self.worker.assignment} | {one for one in self._existing() if self._handles(one)}
        for topic in sorted(own):
            for index, partition in enumerate(self.broker.state.topics.require(topic).partitions):
                committed = offsets.get(TopicPartition(topic, index))
                if committed is not None and committed.offset >= partition.log.end_offset:
                    continue
                for record in self.broker.records(topic, index, committed=True):
                    if committed is None or not _covers(committed.offset, committed.metadata, record.offset):
                        yield origin_of(record), record

    def _handles(self, topic: str) -> bool:
        for handler in self._original.handlers:
            for one in handler.topics:
                if one == topic:
                    return True
                if (
                    not isinstance(one, str)
                    and one.fullmatch(topic)
                    and not any(map(_is_dead_letter, self.sent(topic)))
                ):
                    return True
        return False

    def _describe_unfinished(self, seconds: float) -> str:
        last = {origin_of(call.record): call for call in (*self.calls, *self._recorder.running)}
        running = {origin_of(call.record) for call in self._recorder.running}
        lines = []
        for place, record in self._unfinished():
            call = last.get(place)
            what = "no handler was called"
            if place in running:
                what = "its handler is running"
            elif call is not None and call.error is not None:
                what = f"attempt {call.attempt} raised {call.error!r}"
            lines.append(f"{record.topic}[{record.partition}] at offset {record.offset}: {what}")
        shown = "; ".join(lines[:10]) + (f" and {len(lines) - 10} more" if len(lines) > 10 else "")
        return f"{len(lines)} record(s) are not finished after {seconds:g} s: {shown}{self._advice()}"

    def _advice(self) -> str:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualTimeLoop):
            return ". This test runs in real time: use the fixture kafka_worker or run_in_virtual_time to skip delays"
        work = loop.real_work()
        return f". Time is not skipped because of {work}" if work is not None else ""


def _started(part: T | None) -> T:
    if part is None:
        raise ClosedError("the test of the worker has not started: use `async with WorkerTest(worker) as test`")
    return part


def _is_dead_letter(record: Record) -> bool:
    names = {name for name, _ in record.headers}
    return LetterHeader.EXCEPTION in names and LetterHeader.NOT_BEFORE not in names


def _covers(committed: int, metadata: str, offset: int) -> bool:
    """Return whether a commit names an offset as finished."""
    return offset < committed or any(one.start <= offset < one.end for one in decode_ranges(committed, metadata))
