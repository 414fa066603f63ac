"""Telemetry of clients for other systems: metrics and traces. Needs the extra `telemetry`.

prometheus       a collector of metrics for `prometheus_client`
opentelemetry    instruments for a meter provider of OpenTelemetry
clients          the clients whose metrics are exported
tracing          traces of records by OpenTelemetry
instrumentation  switches traces on for a whole program

The names load their module when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.telemetry.clients import Measured as Measured
    from aiokwire.telemetry.instrumentation import AiokwireInstrumentor as AiokwireInstrumentor
    from aiokwire.telemetry.opentelemetry import Instruments as Instruments, observe as observe
    from aiokwire.telemetry.prometheus import KafkaCollector as KafkaCollector
    from aiokwire.telemetry.tracing import Tracing as Tracing
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "telemetry.clients": "Measured",
            "telemetry.instrumentation": "AiokwireInstrumentor",
            "telemetry.opentelemetry": "Instruments observe",
            "telemetry.prometheus": "KafkaCollector",
            "telemetry.tracing": "Tracing",
        },
    )
