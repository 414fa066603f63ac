"""Pipelines that people run on Spark: each a function with keyword options, and a verb of `aiokwire spark`.

launch     the session, the driver's questions to the cluster      stopping  a clean end, asked for by anybody
progress   how far it is, and what came of it

Importing it loads nothing: names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.pipelines.declaration import Pipeline
    from aiokwire.spark.pipelines.launch import ask, spark_session
    from aiokwire.spark.pipelines.pipeline import Prepared, RunSummary, prepare, run
    from aiokwire.spark.pipelines.progress import Progress, print_summary
    from aiokwire.spark.pipelines.stopping import JobFailed, Stop, Stopped

__all__ = [
    "JobFailed", "Pipeline", "Prepared", "Progress", "RunSummary", "Stop", "Stopped", "ask", "prepare", "print_summary",
    "run", "spark_session",
]  # fmt: skip

# Where each name is; a pipeline's own names stand in a line of its own.
_HOMES = {
    "declaration": ("Pipeline",),
    "launch": ("ask", "spark_session"),
    "pipeline": ("Prepared", "RunSummary", "prepare", "run"),
    "progress": ("Progress", "print_summary"),
    "stopping": ("JobFailed", "Stop", "Stopped"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
