"""A worker's handlers run within the spans of their records."""

from __future__ import annotations

import anyio
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from aiokwire.broker import Broker
from aiokwire.telemetry import Tracing
from aiokwire.worker import Context, PeriodicContext, RetryPolicy, Worker
from tests.telemetry.conftest import Spans, producer


async def test_a_flow_through_two_handlers_is_one_trace_with_a_span_for_each_attempt(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    worker = Worker(kafka_broker.bootstrap_servers, group_id="billing", hooks=tracing, auto_offset_reset="earliest")
    mailed = anyio.Event()
    attempts: list[int] = []

    @worker.handler("orders", retry=RetryPolicy(attempts=2, backoff=0.001))
    async def bill(value: bytes, context: Context) -> None:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise ValueError("the tax service is down")
        await context.send("invoices", value)

    @worker.handler("invoices")
    async def mail(value: bytes) -> None:
        assert trace.get_current_span().is_recording()
        mailed.set()

    async with worker, producer(kafka_broker, tracing) as sender:
        with spans.tracer.start_as_current_span("POST /orders"):
            await sender.send("orders", b"book")
        with anyio.fail_after(20):
            await mailed.wait()
    failed, billed = spans.named("process orders")
    flow = [spans.one(name) for name in ("POST /orders", "send orders")]
    flow += [billed, spans.one("send invoices"), spans.one("process invoices")]
    assert attempts == [1, 2]
    assert failed.status.status_code is StatusCode.ERROR
    assert {span.context.trace_id for span in [*flow, failed]} == {flow[0].context.trace_id}
    assert [spans.parent(span) for span in flow] == [None, *flow[:-1]]


async def test_each_run_of_a_periodic_handler_is_the_root_of_a_trace(
    kafka_broker: Broker, spans: Spans, tracing: Tracing
) -> None:
    worker = Worker(kafka_broker.bootstrap_servers, group_id="billing", hooks=tracing)
    reported = anyio.Event()

    @worker.handler("orders")
    async def bill(value: bytes) -> None: ...

    @worker.every(0.01, name="report")
    async def report(context: PeriodicContext) -> None:
        if context.number == 1:
            raise ValueError("the first run fails")
        await context.send("invoices", b"report")
        reported.set()

    with spans.tracer.start_as_current_span("startup"):
        async with worker:
            with anyio.fail_after(20):
                await reported.wait()
    failed, succeeded = spans.named("periodic report")[:2]
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.events[0].name == "exception"
    assert spans.parent(succeeded) is None
    assert (succeeded.attributes or {})["messaging.client.id"] == worker.config.client_id
    assert spans.parent(spans.named("send invoices")[0]) == succeeded
