"""What aiokafka's instrumentation for OpenTelemetry records of the compat layer's clients.

Run by `ecosystem_suite.py`, in an environment that has the instrumentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import anyio
import pytest
from opentelemetry import baggage, context
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from aiokwire.compat.aiokafka import AIOKafkaConsumer, AIOKafkaProducer

ADDRESS = os.environ["TEST_KAFKA_URL"]
SECONDS = 30.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex}"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    AIOKafkaInstrumentor().instrument(tracer_provider=provider, async_produce_hook=hook, async_consume_hook=hook)
    yield exporter
    AIOKafkaInstrumentor().uninstrument()


async def hook(span: Any, *_: Any) -> None:
    span.set_attribute("hooked", True)


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    assert span.attributes is not None
    return span.attributes


async def send(topic: str, **options: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=ADDRESS, client_id="till") as producer:
        await producer.send_and_wait(topic, b"paid", key=b"42", **options)


def consumer_of(topic: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(topic, bootstrap_servers=ADDRESS, group_id="billing", auto_offset_reset="earliest")


@pytest.mark.anyio
async def test_a_sent_and_a_received_record_are_one_trace(topic: str, spans: InMemorySpanExporter) -> None:
    context.attach(baggage.set_baggage("customer", "7"))
    await send(topic)
    async with consumer_of(topic) as consumer:
        with anyio.fail_after(SECONDS):
            record = await consumer.getone()
    sent, received = spans.get_finished_spans()
    assert (sent.name, sent.kind) == (f"{topic} send", SpanKind.PRODUCER)
    assert (received.name, received.kind) == (f"{topic} receive", SpanKind.CONSUMER)
    assert received.parent is not None
    assert received.parent.span_id == sent.context.span_id
    assert received.context.trace_id == sent.context.trace_id
    assert dict(record.headers)["baggage"] == b"customer=7"
    for span in (sent, received):
        assert attributes(span)["server.address"] == f'["{ADDRESS}"]'
        assert attributes(span)["messaging.destination.partition.id"] == str(record.partition)
        assert attributes(span)["messaging.kafka.message.key"] == "42"
        assert attributes(span)["hooked"]
    assert attributes(sent)["messaging.client.id"] == "till"
    assert attributes(received)["messaging.consumer.group.name"] == "billing"
    assert attributes(received)["messaging.kafka.message.offset"] == record.offset


@pytest.mark.anyio
async def test_a_list_of_records_has_a_span_each_and_one_of_its_own(topic: str, spans: InMemorySpanExporter) -> None:
    for _ in range(2):
        await send(topic)
    spans.clear()
    async with consumer_of(topic) as consumer:
        count = 0
        with anyio.fail_after(SECONDS):
            while count < 2:
                found = await consumer.getmany(timeout_ms=1000)
                count += sum(map(len, found.values()))
    finished = spans.get_finished_spans()
    assert [span.name for span in finished] == [f"{topic} receive"] * len(finished)
    offsets = [attributes(span)["messaging.kafka.message.offset"] for span in finished if is_of_a_record(span)]
    assert offsets == [0, 1]
    batches = [attributes(span) for span in finished if "messaging.batch.message_count" in attributes(span)]
    assert sum(each["messaging.batch.message_count"] for each in batches) >= 2


def is_of_a_record(span: ReadableSpan) -> bool:
    return "messaging.kafka.message.offset" in attributes(span)


@pytest.mark.anyio
async def test_headers_of_the_application_stay(topic: str, spans: InMemorySpanExporter) -> None:
    await send(topic, headers=[("source", b"till")])
    async with consumer_of(topic) as consumer:
        with anyio.fail_after(SECONDS):
            record = await consumer.getone()
    assert [name for name, _ in record.headers] == ["source", "traceparent"]
