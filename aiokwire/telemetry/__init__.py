"""Telemetry by OpenTelemetry: traces of records. Needs the extra `telemetry`.

The names load their module when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.telemetry.instrumentation import AiokwireInstrumentor as AiokwireInstrumentor
    from aiokwire.telemetry.tracing import Tracing as Tracing
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "telemetry.instrumentation": "AiokwireInstrumentor",
            "telemetry.tracing": "Tracing",
        },
    )
