"""Web services: clients and workers in an application's lifespan, health routes, back-pressure.

`Services` needs no framework. Its routes and error handlers need Starlette; `aiokwire.web.fastapi`
has dependencies for FastAPI, `aiokwire.web.litestar` a plugin for Litestar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.web.services import Report as Report, ServiceReport as ServiceReport, Services as Services
    from aiokwire.web.starlette import (
        health_routes as health_routes,
        install as install,
        on_buffer_full as on_buffer_full,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "web.services": "Report ServiceReport Services",
            "web.starlette": "health_routes install on_buffer_full",
        },
    )
