"""Applications of Starlette and FastAPI over HTTP: dependencies, health, back-pressure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aiokwire.broker import Broker
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.web import Services, install
from aiokwire.web.fastapi import KafkaProducer, KafkaServices, service


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Run an application with its lifespan, as a server does, and return a client."""
    async with app.router.lifespan_context(app) as state:

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


async def test_a_fastapi_service_sends_and_reports_its_health(kafka_broker: Broker) -> None:
    services = Services(producer=lambda: Producer(kafka_broker.bootstrap_servers))
    async with serving(fastapi_app(services)) as client:
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
    async with serving(fastapi_app(services)) as client:
        assert (await client.post("/orders", json={"item": "lamp"})).json() == {"offset": 1}, "it can start again"


async def test_a_full_buffer_becomes_503_with_retry_after(kafka_broker: Broker) -> None:
    options: dict[str, Any] = {"buffer_memory": 5024, "max_request_size": 4000, "batch_size": 1024}
    services = Services(producer=lambda: Producer(kafka_broker.bootstrap_servers, **options))
    async with serving(fastapi_app(services)) as client:
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


def test_the_module_does_not_import_fastapi() -> None:
    script = "import sys; sys.modules['fastapi'] = None; import aiokwire.web as web; web.install; web.Services"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
