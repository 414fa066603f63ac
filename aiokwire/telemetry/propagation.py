"""Trace context in the headers of records: W3C's by default, or that of the propagator in use."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context, get_current
from opentelemetry.propagators.textmap import Getter, TextMapPropagator
from opentelemetry.trace import Link, Span, SpanContext

from aiokwire.types import Headers

# Longer values are ignored: W3C limits baggage to this many bytes.
LONGEST: Final = 8192
_STATE: Final = "tracestate"
_NO_SPAN: Final = trace.INVALID_SPAN


class HeaderGetter(Getter[Headers]):
    """Reads text from headers; of several headers of one name, the last counts, as in Kafka."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        """Return the value in a list; None without a header of this name that is UTF-8."""
        for name, value in reversed(carrier):
            if name == key and value is not None and len(value) <= LONGEST:
                try:
                    return [value.decode()]
                except UnicodeDecodeError:
                    return None
        return None

    def keys(self, carrier: Headers) -> list[str]:
        """Return the names of all headers."""
        return [name for name, _ in carrier]


_GETTER: Final = HeaderGetter()


class Carried:
    """The trace context in a record's headers: the sender's span, and baggage."""

    __slots__ = ("context", "sender")

    def __init__(self, context: Context, sender: SpanContext | None) -> None:
        """`context`: the current context with the baggage of the record, and without a span."""
        self.context: Context = context
        self.sender: SpanContext | None = sender

    @property
    def link(self) -> Link | None:
        """A link to the sender's span."""
        return None if self.sender is None else Link(self.sender)


class HeaderPropagator:
    """Writes and reads trace context; uses the global propagator unless it has one."""

    def __init__(self, propagator: TextMapPropagator | None) -> None:
        self._own = propagator

    @property
    def _propagator(self) -> TextMapPropagator:
        return propagate.get_global_textmap() if self._own is None else self._own

    def inject(self, context: Context, headers: Headers | None) -> list[tuple[str, bytes | None]] | None:
        """Return the headers with the context in place of an earlier one; None if it is empty."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context)
        if not carrier:
            return None
        replaced = {*carrier, _STATE} if "traceparent" in carrier else carrier.keys()
        kept = [header for header in headers or () if header[0] not in replaced]
        return kept + [(name, value.encode()) for name, value in carrier.items()]

    def extract(self, headers: Any, context: Context | None = None) -> Carried:
        """Return what headers carry, on top of `context` (None: the current one)."""
        base = trace.set_span_in_context(_NO_SPAN, get_current() if context is None else context)
        if not headers:
            return Carried(base, None)
        found = self._propagator.extract(headers, base, _GETTER)
        sender = trace.get_current_span(found).get_span_context()
        return Carried(found, sender if sender.is_valid else None)


def with_span(span: Span, context: Context | None = None) -> Context:
    """Return a context in which a span is the current one."""
    return trace.set_span_in_context(span, context)
