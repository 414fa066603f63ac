"""Jobs on Spark: each a function with keyword options, and a verb of `aiokwire spark`.

The front door of `archive`, `replay`, `audit`, `sql` and `lag`, which have their own packages, and
of declared pipelines, which are here:

declaration  sources, steps, sinks                 values      validation of users' values
toml_file    declarations from files               graph       checks of a declaration as a whole
sql_tables   tables that a query names             explain     drawings
frames       records as tables and back            checkpoint  the owner of a checkpoint
pipeline     `run`, with the brokers' part of the checks

Importing it loads nothing: names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.archive.archive import Archived, archive
    from aiokwire.spark.archive.compact import Compacted, compact
    from aiokwire.spark.archive.manifest import Archive, ArchiveDamaged, DataFile, Manifest, read_archive
    from aiokwire.spark.archive.verify import Verified, verify
    from aiokwire.spark.audit.audit import audit
    from aiokwire.spark.audit.html import audit_as_html
    from aiokwire.spark.audit.report import AuditReport, audit_as_json, audit_verdict
    from aiokwire.spark.audit.table import audit_tables
    from aiokwire.spark.jobs.lag import PartitionLag, find_lag, lag, read_positions
    from aiokwire.spark.jobs.progress import Progress, print_summary, watch
    from aiokwire.spark.jobs.spark_session import ask, spark_session
    from aiokwire.spark.jobs.stopping import JobFailed, Stop, Stopped
    from aiokwire.spark.pipelines.declaration import Pipeline
    from aiokwire.spark.pipelines.pipeline import Prepared, RunSummary, prepare, run
    from aiokwire.spark.replay.plan import Selection
    from aiokwire.spark.replay.replay import Replayed, replay
    from aiokwire.spark.sql.output import RowForm, Shown, take_rows, write_parquet, write_rows
    from aiokwire.spark.sql.query import Query, sql

__all__ = [
    "Archive",
    "ArchiveDamaged",
    "Archived",
    "AuditReport",
    "Compacted",
    "DataFile",
    "JobFailed",
    "Manifest",
    "PartitionLag",
    "Pipeline",
    "Prepared",
    "Progress",
    "Query",
    "Replayed",
    "RowForm",
    "RunSummary",
    "Selection",
    "Shown",
    "Stop",
    "Stopped",
    "Verified",
    "archive",
    "ask",
    "audit",
    "audit_as_html",
    "audit_as_json",
    "audit_tables",
    "audit_verdict",
    "compact",
    "find_lag",
    "lag",
    "prepare",
    "print_summary",
    "read_archive",
    "read_positions",
    "replay",
    "run",
    "spark_session",
    "sql",
    "take_rows",
    "verify",
    "watch",
    "write_parquet",
    "write_rows",
]

# The module of each name.
_HOMES = {
    "archive.archive": ("Archived", "archive"),
    "archive.compact": ("Compacted", "compact"),
    "archive.manifest": ("Archive", "ArchiveDamaged", "DataFile", "Manifest", "read_archive"),
    "archive.verify": ("Verified", "verify"),
    "audit.audit": ("audit",),
    "audit.html": ("audit_as_html",),
    "audit.report": ("AuditReport", "audit_as_json", "audit_verdict"),
    "audit.table": ("audit_tables",),
    "jobs.lag": ("PartitionLag", "find_lag", "lag", "read_positions"),
    "jobs.progress": ("Progress", "print_summary", "watch"),
    "jobs.spark_session": ("ask", "spark_session"),
    "jobs.stopping": ("JobFailed", "Stop", "Stopped"),
    "pipelines.declaration": ("Pipeline",),
    "pipelines.pipeline": ("Prepared", "RunSummary", "prepare", "run"),
    "replay.plan": ("Selection",),
    "replay.replay": ("Replayed", "replay"),
    "sql.output": ("RowForm", "Shown", "take_rows", "write_parquet", "write_rows"),
    "sql.query": ("Query", "sql"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"aiokwire.spark.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
