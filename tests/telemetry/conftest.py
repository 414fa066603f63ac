"""Spans in memory, and clients of the embedded broker that are traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.producer import Producer
from aiokwire.telemetry import Tracing


class Spans:
    """The spans that ended, in order."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def parent(self, span: ReadableSpan) -> ReadableSpan | None:
        """Return the parent of a span; None of a root."""
        if span.parent is None:
            return None
        (found,) = [each for each in self.all if each.context.span_id == span.parent.span_id]
        return found

    def linked(self, span: ReadableSpan) -> set[str]:
        """Return the names of the spans that a span links to."""
        targets = {link.context.span_id for link in span.links}
        return {each.name for each in self.all if each.context.span_id in targets}


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1, "refunds": 1, "invoices": 1, "copies": 1}}


@pytest.fixture
def spans() -> Iterator[Spans]:
    found = Spans()
    yield found
    found.provider.shutdown()


@pytest.fixture
def tracing(spans: Spans) -> Tracing:
    return Tracing(spans.provider)


def producer(broker: Broker, tracing: Tracing | None, **options: Any) -> AbstractAsyncContextManager[Producer]:
    return Producer(broker.bootstrap_servers, hooks=tracing, client_id="shop", **options)


def consumer(
    broker: Broker, tracing: Tracing | None, *topics: str, group_id: str | None = "billing", **options: Any
) -> AbstractAsyncContextManager[Consumer]:
    return Consumer(
        *topics,
        bootstrap_servers=broker.bootstrap_servers,
        hooks=tracing,
        client_id="biller",
        group_id=group_id,
        auto_offset_reset="earliest",
        **options,
    )
