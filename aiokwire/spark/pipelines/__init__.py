"""Pipelines that people run on Spark: each a function with keyword options, and a verb of `aiokwire spark`.

launch     the session, the driver's questions to the cluster      stopping  a clean end, asked for by anybody
progress   how far it is, and what came of it                      manifest  which files are part of an archive
auditing   `audit`

Importing it loads nothing: names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.pipelines.auditing.auditor import audit
    from aiokwire.spark.pipelines.auditing.html import audit_as_html
    from aiokwire.spark.pipelines.auditing.report import AuditReport, audit_as_json
    from aiokwire.spark.pipelines.auditing.table import audit_tables
    from aiokwire.spark.pipelines.launch import ask, spark_session
    from aiokwire.spark.pipelines.manifest import Archive, ArchiveDamaged, DataFile, Manifest, read_archive
    from aiokwire.spark.pipelines.progress import Progress, print_summary
    from aiokwire.spark.pipelines.stopping import JobFailed, Stop, Stopped

__all__ = [
    "Archive",
    "ArchiveDamaged",
    "AuditReport",
    "DataFile",
    "JobFailed",
    "Manifest",
    "Progress",
    "Stop",
    "Stopped",
    "ask",
    "audit",
    "audit_as_html",
    "audit_as_json",
    "audit_tables",
    "print_summary",
    "read_archive",
    "spark_session",
]

# Where each name is; a pipeline's own names stand in a line of its own.
_HOMES = {
    "auditing.auditor": ("audit",),
    "auditing.html": ("audit_as_html",),
    "auditing.report": ("AuditReport", "audit_as_json"),
    "auditing.table": ("audit_tables",),
    "launch": ("ask", "spark_session"),
    "manifest": ("Archive", "ArchiveDamaged", "DataFile", "Manifest", "read_archive"),
    "progress": ("Progress", "print_summary"),
    "stopping": ("JobFailed", "Stop", "Stopped"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
