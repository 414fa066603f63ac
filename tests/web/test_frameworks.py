"""Applications of three frameworks over HTTP: dependencies, health, back-pressure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from litestar import Litestar, post
from litestar.params import JSONBody
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aiokwire.broker import Broker
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.web import Services, install
from aiokwire.web import litestar as for_litestar
from aiokwire.web.fastapi import KafkaProducer, KafkaServices, service


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Run an application with its lifespan, as a server does, and return a client."""
    lifespan = app.lifespan() if isinstance(app, Litestar) else app.router.lifespan_context(app)
    async with lifespan as state:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "state": dict(state or {})}, receive, send)

        transport = httpx.ASGITransport(with_state)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            yield client


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1}}


def fastapi_app(services: Services) -> FastAPI:
    app = FastAPI(lifespan=services.lifespan)
    install(app, services, retry_after=2)

    @app.post("/orders")
    async def create(order: dict[str, str], producer: KafkaProducer) -> dict[str, int]:
        meta = await producer.send("orders", order["item"].encode())
        return {"offset": meta.offset}

    @app.post("/clicks", status_code=202)
    async def click(producer: Annotated[Producer, Depends(service("producer"))], services: KafkaServices) -> None:
        assert list(services) == ["producer"]
        producer.submit_nowait("orders", bytes(3000))

    return app


@post("/orders", status_code=200)
async def create_order(data: JSONBody[dict[str, str]], producer: for_litestar.KafkaProducer) -> dict[str, int]:
    meta = await producer.send("orders", data["item"].encode())
    return {"offset": meta.offset}


@post("/clicks", status_code=202)
async def accept_click(producer: for_litestar.KafkaProducer, kafka_services: for_litestar.KafkaServices) -> None:
    assert list(kafka_services) == ["producer"]
    producer.submit_nowait("orders", bytes(3000))


def litestar_app(services: Services) -> Litestar:
    return Litestar([create_order, accept_click], plugins=[for_litestar.KafkaPlugin(services, retry_after=2)])


APPS = pytest.mark.parametrize("new_app", [fastapi_app, litestar_app])


@APPS
async def test_a_service_sends_and_reports_its_health(kafka_broker: Broker, new_app: Callable[[Services], Any]) -> None:
    services = Services(producer=lambda: Producer(kafka_broker.bootstrap_servers))
    async with serving(new_app(services)) as client:
        assert (await client.post("/orders", json={"item": "book"})).json() == {"offset": 0}
        ready = await client.get("/readyz")
        assert ready.status_code == 200
        assert ready.json() == {
            "phase": "running", "ready": True, "services": {"producer": {"ready": True, "reasons": []}},
        }  # fmt: skip
        assert (await client.get("/livez")).json() == {"alive": True, "failed": {}}
        await services["producer"].close()
        assert (await client.get("/readyz")).status_code == 503
        dead = await client.get("/livez")
        assert dead.status_code == 503
        assert dead.json() == {"alive": False, "failed": {"producer": ["the producer has ended"]}}
    assert services.report().phase == "stopped"
    async with serving(new_app(services)) as client:
        assert (await client.post("/orders", json={"item": "lamp"})).json() == {"offset": 1}, "it can start again"


@APPS
async def test_a_full_buffer_becomes_503_with_retry_after(
    kafka_broker: Broker, new_app: Callable[[Services], Any]
) -> None:
    options: dict[str, Any] = {"buffer_memory": 5024, "max_request_size": 4000, "batch_size": 1024}
    services = Services(producer=lambda: Producer(kafka_broker.bootstrap_servers, **options))
    async with serving(new_app(services)) as client:
        await services["producer"].partitions_for("orders")
        hold = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
        assert (await client.post("/clicks")).status_code == 202
        await hold.arrived()
        refused = await client.post("/clicks")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        hold.release()
        await services["producer"].flush()
        assert (await client.post("/clicks")).status_code == 202


async def test_starlette_needs_no_fastapi(kafka_broker: Broker) -> None:
    async def create(request: Request) -> Response:
        meta = await request.state.aiokwire["producer"].send("orders", await request.body())
        return JSONResponse({"offset": meta.offset})

    services = Services(producer=Producer(kafka_broker.bootstrap_servers))
    app = Starlette(routes=[Route("/orders", create, methods=["POST"])], lifespan=services.lifespan)
    install(app, services)
    async with serving(app) as client:
        assert (await client.post("/orders", content=b"book")).json() == {"offset": 0}
        assert (await client.get("/readyz")).status_code == 200


def test_the_module_imports_neither_fastapi_nor_litestar() -> None:
    missing = "import sys; sys.modules['fastapi'] = sys.modules['litestar'] = None;"
    script = f"{missing} import aiokwire.web as web; web.install; web.Services"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
