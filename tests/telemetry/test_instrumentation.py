"""The instrumentor: programs are traced without a change, as by `opentelemetry-instrument`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.hooks import Hooks, combined_hooks
from aiokwire.telemetry import AiokwireInstrumentor, Tracing
from aiokwire.telemetry.instrumentation import traced_hooks
from tests.telemetry.conftest import Spans, consumer, producer


@pytest.fixture
def _instrumented(spans: Spans) -> Iterator[None]:
    instrumentor = AiokwireInstrumentor()
    instrumentor.instrument(tracer_provider=spans.provider)
    yield
    instrumentor.uninstrument()


@pytest.mark.usefixtures("_instrumented")
async def test_a_program_without_hooks_is_traced(kafka_broker: Broker, spans: Spans) -> None:
    async with producer(kafka_broker, None) as sender, consumer(kafka_broker, None, "orders") as orders:
        await sender.send("orders", b"book")
        async for record in orders:
            await sender.send("invoices", record.value)
            break
    first, process, second = (spans.one(name) for name in ("send orders", "process orders", "send invoices"))
    assert [spans.parent(span) for span in (first, process, second)] == [None, first, process]


async def test_clients_created_after_the_end_of_the_instrumentation_are_not_traced(
    kafka_broker: Broker, spans: Spans
) -> None:
    instrumentor = AiokwireInstrumentor()
    instrumentor.instrument(tracer_provider=spans.provider)
    instrumentor.uninstrument()
    async with producer(kafka_broker, None) as sender:
        await sender.send("orders", b"book")
    assert spans.all == []


class Own(Hooks):
    def on_send(self, *record: Any) -> Any:
        return None


def test_hooks_of_the_program_are_kept_and_its_own_tracing_is_not_repeated(tracing: Tracing) -> None:
    own = Own()
    added = traced_hooks(own, tracing)
    assert added.hooks == (own, tracing)  # type: ignore[attr-defined]
    assert traced_hooks(None, tracing) is tracing
    theirs = Tracing()
    assert traced_hooks(theirs, tracing) is theirs
    both = combined_hooks(own, theirs)
    assert traced_hooks(both, tracing) is both


def test_the_command_finds_the_instrumentor() -> None:
    found = {point.name: point for point in entry_points(group="opentelemetry_instrumentor")}
    if "aiokwire" not in found:
        pytest.skip("the package was installed before it had the entry point")
    assert found["aiokwire"].load() is AiokwireInstrumentor
