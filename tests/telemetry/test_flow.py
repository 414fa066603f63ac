"""A request over HTTP, a record, a handler, another record, another handler: one trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
from fastapi import FastAPI, Request, Response
from opentelemetry import propagate
from opentelemetry.trace import SpanKind

from aiokwire.broker import Broker
from aiokwire.telemetry import Tracing
from aiokwire.worker import Context, Worker
from tests.telemetry.conftest import Spans, producer

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def service(spans: Spans, sender: Any) -> FastAPI:
    """Return an application that opens a span for each request, as its instrumentation does."""
    app = FastAPI()

    @app.middleware("http")
    async def traced(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        name, context = f"{request.method} {request.url.path}", propagate.extract(dict(request.headers))
        with spans.tracer.start_as_current_span(name, context, SpanKind.SERVER):
            return await proceed(request)

    @app.post("/orders")
    async def order(request: Request) -> dict[str, int]:
        metadata = await sender.send("orders", await request.body())
        return {"offset": metadata.offset}

    return app


async def test_a_request_two_records_and_two_handlers_are_one_trace(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    worker = Worker(kafka_broker.bootstrap_servers, group_id="billing", hooks=tracing, auto_offset_reset="earliest")
    mailed = anyio.Event()

    @worker.handler("orders")
    async def bill(value: bytes, context: Context) -> None:
        await context.send("invoices", value)

    @worker.handler("invoices")
    async def mail(value: bytes) -> None:
        mailed.set()

    async with worker, producer(kafka_broker, tracing) as sender:
        transport = httpx.ASGITransport(service(spans, sender))
        async with httpx.AsyncClient(transport=transport, base_url="http://orders") as caller:
            answer = await caller.post("/orders", content=b"book", headers={"traceparent": CALLER})
        assert answer.json() == {"offset": 0}
        with anyio.fail_after(20):
            await mailed.wait()
    names = ["POST /orders", "send orders", "process orders", "send invoices", "process invoices"]
    flow = [spans.one(name) for name in names]
    assert [spans.parent(span) for span in flow[1:]] == flow[:-1]
    assert {f"{span.context.trace_id:032x}" for span in flow} == {CALLER.split("-")[1]}, "that of the caller, too"
    kinds = [SpanKind.SERVER, SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.PRODUCER, SpanKind.CONSUMER]
    assert [span.kind for span in flow] == kinds
