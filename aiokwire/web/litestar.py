"""Litestar 2.23: a plugin with lifespan, dependencies, health routes and back-pressure.

@post("/orders")
async def create(data: JSONBody[Order], producer: KafkaProducer) -> None:
    await producer.send("orders", msgspec.json.encode(data))


app = Litestar([create], plugins=[KafkaPlugin(Services(producer=...))])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from litestar import Request, Response, Router, get
from litestar.config.app import AppConfig
from litestar.di import NamedDependency, Provide
from litestar.params import SkipValidation
from litestar.plugins import InitPlugin

from aiokwire.errors import BufferFullError
from aiokwire.producer import Producer
from aiokwire.web.services import RETRY_AFTER, STATE, TOO_MANY, Services

KafkaProducer: TypeAlias = NamedDependency[SkipValidation[Producer[bytes, bytes]]]
"""A producer, as the type of an argument with the name of the service."""

KafkaServices: TypeAlias = NamedDependency[SkipValidation[Services]]
"""The application's services, as the type of an argument `kafka_services`."""

# The dependency on all services.
SERVICES: Final = "kafka_services"


class KafkaPlugin(InitPlugin):
    """Puts services into an application of Litestar.

    It adds their lifespan; `/livez` and `/readyz`; a 503 for a full buffer; a dependency for
    each service by its name, and one for all of them, `kafka_services`.
    """

    def __init__(self, services: Services, *, retry_after: int = RETRY_AFTER) -> None:
        """`retry_after`: seconds for the header `Retry-After`."""
        self._services = services
        self._retry_after = retry_after

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        """Add to the options of an application; Litestar calls it."""
        app_config.lifespan = [*app_config.lifespan, self._services.lifespan]
        app_config.state[STATE] = self._services
        app_config.route_handlers = [*app_config.route_handlers, health_router(self._services)]
        provided = {name: _provide(self._services, name) for name in self._services}
        own = {SERVICES: Provide(lambda: self._services, sync_to_thread=False)}
        app_config.dependencies = {**provided, **own, **app_config.dependencies}
        app_config.exception_handlers = {BufferFullError: self._refuse, **app_config.exception_handlers}
        return app_config

    def _refuse(self, _: Request[Any, Any, Any], error: Exception) -> Response[dict[str, str]]:
        """Respond with 503 and Retry-After: a record of the request found no room in the buffer."""
        headers = {"Retry-After": str(self._retry_after)}
        return Response({"detail": TOO_MANY}, status_code=503, headers=headers)


def _provide(services: Services, name: str) -> Provide:
    find: Callable[[], Any] = lambda: services[name]  # noqa: E731 - Litestar reads the annotations of a function
    return Provide(find, sync_to_thread=False)


def health_router(services: Services) -> Router:
    """Return the routes `/livez` and `/readyz`, as `aiokwire.web.health_routes`."""

    @get("/livez", include_in_schema=False)
    async def livez() -> Response[dict[str, Any]]:
        report = services.report()
        return Response(report.liveness(), status_code=200 if report.is_alive else 503)

    @get("/readyz", include_in_schema=False)
    async def readyz() -> Response[dict[str, Any]]:
        report = services.report()
        return Response(report.as_dict(), status_code=200 if report.is_ready else 503)

    return Router("/", route_handlers=[livez, readyz])
