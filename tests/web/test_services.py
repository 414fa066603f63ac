"""The services of an application: order, health, and errors."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import ClosedError, ConfigurationError, ConnectionFailed
from aiokwire.producer import Producer
from aiokwire.web import Services


class Step:
    """Writes down when it is entered and left."""

    def __init__(self, name: str, diary: list[str], *, fails: bool = False) -> None:
        self.name = name
        self.diary = diary
        self.fails = fails
        self.failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        self.diary.append(f"+{self.name}")
        if self.fails:
            raise ConnectionFailed(f"{self.name} cannot start")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.diary.append(f"-{self.name}")


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(40):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def test_services_start_in_order_and_close_in_reverse() -> None:
    diary: list[str] = []
    services = Services(producer=Step("producer", diary), worker=lambda: Step("worker", diary))
    assert services.report().phase == "new"
    assert not services.report().is_ready
    async with services.lifespan() as state:
        assert state == {"aiokwire": services}
        assert services.report().is_ready
        assert services["worker"].name == "worker"
        assert list(services) == ["producer", "worker"]
    assert diary == ["+producer", "+worker", "-worker", "-producer"]
    assert services.report().phase == "stopped"
    assert not services.report().is_ready


async def test_a_service_that_cannot_start_closes_those_before_it() -> None:
    diary: list[str] = []
    services = Services(
        first=Step("first", diary), second=Step("second", diary, fails=True), third=Step("third", diary)
    )
    with pytest.raises(ConnectionFailed):
        async with services.lifespan():
            pass
    assert diary == ["+first", "+second", "-first"]


async def test_a_failed_worker_makes_the_process_neither_ready_nor_alive() -> None:
    step = Step("worker", [])
    services = Services(worker=step)
    async with services.lifespan():
        step.failure = ValueError("no")
        report = services.report()
        assert (report.is_ready, report.is_alive) == (False, False)
        assert report.services["worker"].reasons == ("it has failed: no",)


async def test_a_stalled_partition_and_an_ended_client_are_reasons(kafka_broker: Broker) -> None:
    await kafka_broker.create_topic("orders", 1)
    servers = kafka_broker.bootstrap_servers
    producer: Producer = Producer(servers)
    consumer: Consumer = Consumer(
        "orders", bootstrap_servers=servers, auto_offset_reset="earliest", stalled_after_ms=1000
    )
    services = Services(producer=producer, consumer=consumer)
    async with services.lifespan():
        assert services.report().is_ready
        await kafka_broker.faults.stop_node(1, fail_over=False)
        await producer.submit("orders", b"book")
        await until(lambda: not services.report().services["consumer"].is_ready)
        report = services.report()
        assert report.is_alive, "it may become ready again"
        assert "orders[0]" in report.services["consumer"].reasons[0]
        await kafka_broker.faults.start_node(1)
        await until(lambda: services.report().is_ready)
        await producer.close()
        report = services.report()
        assert not report.is_alive
        assert report.services["producer"].reasons == ("the producer has ended",)


async def test_wrong_services_are_refused_with_advice() -> None:
    with pytest.raises(ConfigurationError, match="producer must be an asynchronous context manager"):
        Services(producer="localhost:9092")  # type: ignore[arg-type]
    services = Services(step=Step("step", []))
    with pytest.raises(ClosedError, match="is not started"):
        services["step"]
    with pytest.raises(KeyError, match="there are: step"):
        services["other"]
    with pytest.raises(ClosedError, match="no Producer is started"):
        services.find(Producer)
