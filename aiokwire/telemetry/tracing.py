"""Traces: spans for sending, receiving, processing and committing, by OpenTelemetry's conventions.

send orders -> (headers) -> process orders -> send invoices -> (headers) -> process invoices
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, TypeVar, overload

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from aiokwire._version import __version__
from aiokwire.clock import wall_ns
from aiokwire.consumer import ConsumerRecord
from aiokwire.hooks import Accepted, Hooks
from aiokwire.producer import SendManyResult
from aiokwire.telemetry import conventions as names
from aiokwire.telemetry.processing import (
    Nested,
    Processing,
    TracedList,
    TracedRecords,
    current_processing,
    set_error,
)
from aiokwire.telemetry.propagation import HeaderPropagator, with_span
from aiokwire.types import Headers, OffsetAndMetadata, TopicPartition

R = TypeVar("R")
Attributes = dict[str, str | int | bool]
Record = ConsumerRecord[Any, Any]

# The links of a span with many records; OpenTelemetry's SDK keeps no more by default.
MAX_LINKS: Final = 128
# Spans leave out longer keys.
LONGEST_KEY: Final = 256


class SentHeaders(list[tuple[str, bytes | None]]):
    """The headers of a record whose `send` span is recorded, and the span."""

    __slots__ = ("span",)

    def __init__(self, headers: Sequence[tuple[str, bytes | None]], span: Span) -> None:
        super().__init__(headers)
        self.span: Span = span


class Tracing(Hooks):
    """Hooks that record spans, and the functions that process records within one.

        tracing = Tracing()
        producer = Producer(..., hooks=tracing)
        consumer = Consumer(..., hooks=tracing)
        async for record in consumer: ...  # each record in a span `process <topic>`

    One object serves all clients of a program.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        propagator: TextMapPropagator | None = None,
        *,
        parent: Literal["current", "record"] = "current",
        record_keys: bool = True,
        max_pending: int = 10_000,
    ) -> None:
        """Create hooks; the provider and the propagator are OpenTelemetry's global ones by default.

        Args:
            parent: the parent of a `process` span: the span that is current where the record is
                processed, or without one the span that sent it ("current"); or always the span that
                sent it ("record"). The other one is linked.
            record_keys: whether spans contain the keys of records.
            max_pending: the `send` spans that wait for an acknowledgement, for each producer; the
                span of a record beyond them ends when the record is accepted.
        """
        self._tracer = trace.get_tracer("aiokwire", __version__, tracer_provider, names.SCHEMA_URL)
        self._headers = HeaderPropagator(propagator)
        self._is_record_parent = parent == "record"
        self._record_keys = record_keys
        self._max_pending = max_pending
        self._pending = 0
        self._client: Attributes = {}
        self._group: Attributes = {}

    def for_client(self, client_id: str, group_id: str | None = None) -> Tracing:
        """Return hooks whose spans contain a client's id and group. Clients call it themselves."""
        bound = copy.copy(self)
        bound._client = {names.CLIENT_ID: client_id}
        bound._group = {} if group_id is None else {names.GROUP: group_id}
        return bound

    # --- sending ------------------------------------------------------------------------------------------------------

    def on_send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> Headers | None:
        """Start the span `send <topic>`, and put its context into the headers."""
        many = _sending_many.get()
        if many is not None:
            many.count += 1
            return self._headers.inject(many.context, headers)
        attributes = self._attributes(names.SEND, names.SEND, topic)
        if partition is not None:
            attributes[names.PARTITION] = str(partition)
        self._add_content(attributes, key, value)
        span = self._tracer.start_span(f"{names.SEND} {topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        if span.is_recording() and headers:
            self._link(span, [self._headers.extract(headers).sender], but=trace.get_current_span())
        carried = self._headers.inject(with_span(span), headers)
        if not span.is_recording():
            return carried
        return SentHeaders(carried or headers or (), span)

    def on_accepted(self, headers: Headers | None, delivery: Accepted) -> None:
        """End the record's span when it is acknowledged or fails."""
        if type(headers) is not SentHeaders:
            return
        if self._pending >= self._max_pending:
            headers.span.end()
            return
        self._pending += 1
        delivery.add_done_callback(partial(self._on_done, headers.span))

    def on_refused(self, headers: Headers | None, error: BaseException) -> None:
        """End the record's span."""
        if type(headers) is SentHeaders:
            set_error(headers.span, error)
            headers.span.end()

    def _on_done(self, span: Span, delivery: Accepted) -> None:
        self._pending -= 1
        if delivery.partition >= 0:
            span.set_attribute(names.PARTITION, str(delivery.partition))
        if delivery.error is not None:
            set_error(span, delivery.error)
        else:
            offset = delivery.result().offset
            if offset >= 0:
                span.set_attribute(names.OFFSET, offset)
        span.end()

    def around_send_many(self, topic: str) -> AbstractContextManager[Callable[[SendManyResult], None]]:
        """Record one span for a `send_many`; its context is in the headers of all records."""
        attributes = self._attributes(names.SEND, names.SEND, topic)
        span = self._tracer.start_span(f"{names.SEND} {topic}", kind=SpanKind.PRODUCER, attributes=attributes)
        return _SendingMany(span)

    # --- reading ------------------------------------------------------------------------------------------------------

    def on_read(self, records: Sequence[Any], elapsed: float) -> None:
        """Record the span `poll <topic>` of a `getone` or `getmany`, with links to the senders."""
        attributes, topic = self._describe(records, names.POLL, names.RECEIVE)
        end = wall_ns()
        span = self._tracer.start_span(
            f"{names.POLL} {topic}".rstrip(),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=end - round(elapsed * 1e9),
        )
        if span.is_recording():
            self._link_senders(span, records)
        span.end(end_time=end)

    def on_iterate(self, records: AsyncIterator[R]) -> AsyncIterator[R]:
        """Process each record of a loop within a span."""
        return TracedRecords(records, self._start)

    def around_process(self, record: Any) -> AbstractContextManager[Span]:
        """Process a record of a worker within a span."""
        return self.process(record)

    def around_periodic(self, handler: str) -> AbstractContextManager[Span]:
        """Run a periodic handler of a worker within a span, the root of a trace."""
        return self._tracer.start_as_current_span(f"periodic {handler}", context=Context(), attributes=self._client)

    def around_commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], is_automatic: bool
    ) -> AbstractContextManager[object]:
        """Record the span `commit <topic>`; that of an automatic commit is the root of a trace."""
        topics = {tp.topic for tp in offsets}
        topic = topics.pop() if len(topics) == 1 else ""
        attributes = self._attributes(names.COMMIT, names.SETTLE, topic) | {names.GROUP: group_id}
        if len(offsets) == 1:
            ((tp, position),) = offsets.items()
            attributes |= {names.PARTITION: str(tp.partition), names.OFFSET: position.offset - 1}
        return _Operation(
            self._tracer.start_span(
                f"{names.COMMIT} {topic}".rstrip(),
                context=Context() if is_automatic else None,
                kind=SpanKind.CLIENT,
                attributes=attributes,
            )
        )

    # --- processing ---------------------------------------------------------------------------------------------------

    def process(self, record: Record | Sequence[Record]) -> AbstractContextManager[Span]:
        """Process a record, or a list of records, within the span `process <topic>`.

            for record in await consumer.getmany():
                with tracing.process(record) as span: ...

        The span is current within the block, and ends with it; an exception that leaves the block
        is recorded. A list's span has no sender as its parent, and links to at most 128. A block
        within the processing of the same object uses its span.
        """
        outer = current_processing(record)
        return self._start(record) if outer is None else Nested(outer)

    @overload
    def traced(self, records: AsyncIterable[R]) -> AsyncIterator[R]: ...
    @overload
    def traced(self, records: Iterable[R]) -> Iterator[R]: ...
    def traced(self, records: AsyncIterable[R] | Iterable[R]) -> AsyncIterator[R] | Iterator[R]:
        """Iterate over records; each iteration of the loop is within a span, as in `process`.

            async for record in tracing.traced(consumer): ...
            for record in tracing.traced(await consumer.getmany()): ...

        The span ends when the next record is requested or the loop is left. It does not see an
        exception that leaves the loop: use `process` in the loop to record it. Consumers with
        these hooks are traced already.
        """
        if not isinstance(records, AsyncIterable):
            return TracedList(records, self._start)
        iterator = aiter(records)
        return iterator if isinstance(iterator, TracedRecords) else TracedRecords(iterator, self._start)

    def context_of(self, record: Record) -> Context:
        """Return the context of the span that sent a record, with its baggage, as a parent.

            with tracer.start_as_current_span("bill", context=tracing.context_of(record)): ...

        For a record without one, it is the current context.
        """
        carried = self._headers.extract(record.headers)
        return carried.context if carried.sender is not None else with_span(trace.get_current_span(), carried.context)

    def _start(self, record: Any) -> Processing:
        if isinstance(record, (list, tuple)):
            return self._start_many(record)
        attributes = self._attributes(names.PROCESS, names.PROCESS, record.topic) | self._group
        self._add_place(attributes, record)
        current = trace.get_current_span()
        carried = self._headers.extract(record.headers)
        context, linked = carried.context, None
        if current.get_span_context().is_valid:
            if not self._is_record_parent or carried.sender is None:
                context = with_span(current, context)
            else:
                linked = current.get_span_context()
        span = self._tracer.start_span(
            f"{names.PROCESS} {record.topic}", context=context, kind=SpanKind.CONSUMER, attributes=attributes
        )
        if span.is_recording():
            self._link(span, [carried.sender, linked])
        return Processing(record, span, context)

    def _start_many(self, records: Sequence[Record]) -> Processing:
        attributes, topic = self._describe(records, names.PROCESS, names.PROCESS)
        attributes[names.BATCH_COUNT] = len(records)
        span = self._tracer.start_span(
            f"{names.PROCESS} {topic}".rstrip(), kind=SpanKind.CONSUMER, attributes=attributes
        )
        if span.is_recording():
            self._link_senders(span, records)
        return Processing(records, span, with_span(span))

    # --- attributes and links -----------------------------------------------------------------------------------------

    def _attributes(self, name: str, kind: str, topic: str) -> Attributes:
        attributes: Attributes = {
            names.SYSTEM: names.KAFKA,
            names.OPERATION_NAME: name,
            names.OPERATION_TYPE: kind,
            **self._client,
        }
        if topic:
            attributes[names.DESTINATION] = topic
        return attributes

    def _describe(self, records: Sequence[Record], name: str, kind: str) -> tuple[Attributes, str]:
        """The attributes of a span for several records, and their topic if they have one."""
        places = {(record.topic, record.partition) for record in records}
        topics = {topic for topic, _ in places}
        topic = topics.pop() if len(topics) == 1 else ""
        attributes = self._attributes(name, kind, topic) | self._group
        if len(records) == 1:
            self._add_place(attributes, records[0])
            return attributes, topic
        attributes[names.BATCH_COUNT] = len(records)
        if len(places) == 1:
            attributes[names.PARTITION] = str(records[0].partition)
        return attributes, topic

    def _add_place(self, attributes: Attributes, record: Record) -> None:
        attributes[names.PARTITION] = str(record.partition)
        attributes[names.OFFSET] = record.offset
        self._add_content(attributes, record.key, record.value)

    def _add_content(self, attributes: Attributes, key: object, value: object) -> None:
        if value is None:
            attributes[names.TOMBSTONE] = True
        text = key_text(key) if self._record_keys and key is not None else None
        if text is not None:
            attributes[names.KEY] = text

    def _link_senders(self, span: Span, records: Sequence[Record]) -> None:
        self._link(span, [self._headers.extract(record.headers).sender for record in records[:MAX_LINKS]])

    def _link(self, span: Span, targets: Iterable[trace.SpanContext | None], but: Span | None = None) -> None:
        """Add links, one for each target; none to the span `but`."""
        seen = {None if but is None else but.get_span_context().span_id}
        for target in targets:
            if target is not None and target.span_id not in seen:
                seen.add(target.span_id)
                span.add_link(target)


def key_text(key: object) -> str | None:
    """Return a key as text; None if it has no canonical one, or is long."""
    if isinstance(key, bytes):
        try:
            text = key[: LONGEST_KEY + 1].decode()
        except UnicodeDecodeError:
            return None
    elif isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)):
        text = str(key)
    else:
        return None
    return text if len(text) <= LONGEST_KEY and text.isprintable() else None


class _Operation(AbstractContextManager[Span]):
    """A span around a block; it is not the current one."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Span:
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            set_error(self._span, error)
        self._span.end()


class _SendingMany(AbstractContextManager[Callable[[SendManyResult], None]]):
    """The span of a `send_many`, which the `on_send` calls of its task use."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.context = with_span(span)
        self.count = 0

    def __enter__(self) -> Callable[[SendManyResult], None]:
        self._token = _sending_many.set(self)
        return self._on_result

    def _on_result(self, result: SendManyResult) -> None:
        if result.failed:
            first = result.failures[0][2]
            set_error(self._span, first)
            text = f"{result.failed} of {result.count} records failed; the first: {first}"
            self._span.set_status(Status(StatusCode.ERROR, text))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _sending_many.reset(self._token)
        self._span.set_attribute(names.BATCH_COUNT, self.count)
        if error is not None:
            set_error(self._span, error)
        self._span.end()


_sending_many: ContextVar[_SendingMany | None] = ContextVar("aiokwire_sending_many", default=None)
