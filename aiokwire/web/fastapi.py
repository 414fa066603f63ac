"""FastAPI: dependencies with types. Needs FastAPI.

@app.post("/orders")
async def create(order: Order, producer: KafkaProducer) -> None:
    await producer.send("orders", order.model_dump_json().encode())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request

from aiokwire.errors import ClosedError
from aiokwire.producer import Producer
from aiokwire.web.services import STATE, Services


def services_of(request: Request) -> Services:
    """Return the services of the application that serves a request.

    Raises: ClosedError: the application has another lifespan.
    """
    found = getattr(request.state, STATE, None)
    if not isinstance(found, Services):
        raise ClosedError("the application has no Kafka services: FastAPI(lifespan=services.lifespan)")
    return found


def producer_of(request: Request) -> Producer[Any, Any]:
    """Return the application's first producer.

    Raises: ClosedError: there is none, or it is not started.
    """
    return services_of(request).find(Producer)


def service(name: str) -> Callable[[Request], Any]:
    """Return a dependency for a named service: `Annotated[Producer, Depends(service("a"))]`."""

    def find(request: Request) -> Any:
        return services_of(request)[name]

    return find


KafkaProducer: TypeAlias = Annotated[Producer[bytes, bytes], Depends(producer_of)]
"""The application's first producer, as the type of an argument."""

KafkaServices: TypeAlias = Annotated[Services, Depends(services_of)]
"""The application's services."""
