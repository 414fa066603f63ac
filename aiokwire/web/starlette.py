"""Starlette, and so FastAPI: the health routes, and back-pressure as a 503."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aiokwire.errors import BufferFullError
from aiokwire.web.services import RETRY_AFTER, TOO_MANY, Services


def install(app: Starlette, services: Services, *, retry_after: int = RETRY_AFTER) -> None:
    """Add the health routes, and a 503 for a full buffer; the lifespan is the application's.

    Args:
        app: the application, of Starlette or FastAPI.
        services: those of its lifespan.
        retry_after: seconds for the header `Retry-After`.
    """
    app.router.routes.extend(health_routes(services))

    async def refuse(request: Request, error: Exception) -> Response:
        return await on_buffer_full(request, error, retry_after=retry_after)

    app.add_exception_handler(BufferFullError, refuse)


def health_routes(services: Services) -> list[Route]:
    """Return the routes `/livez` and `/readyz`, which respond with JSON and the status 200 or 503.

    `/livez` fails when a client or worker has ended by itself, so that the process needs a restart;
    `/readyz` also while the application starts and stops, a partition is stalled, a coordinator is
    unreachable, records wait for room in the buffer, or are retried. It names the reasons.
    """

    async def livez(request: Request) -> Response:
        report = services.report()
        return JSONResponse(report.liveness(), 200 if report.is_alive else 503)

    async def readyz(request: Request) -> Response:
        report = services.report()
        return JSONResponse(report.as_dict(), 200 if report.is_ready else 503)

    return [Route("/livez", livez, include_in_schema=False), Route("/readyz", readyz, include_in_schema=False)]


async def on_buffer_full(request: Request, error: Exception, *, retry_after: int = RETRY_AFTER) -> Response:
    """Respond with 503 and Retry-After: a record of the request found no room in the buffer."""
    headers = {"Retry-After": str(retry_after)}
    return JSONResponse({"detail": TOO_MANY}, 503, headers)
