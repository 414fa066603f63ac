"""Pipelines that people run on Spark: each a function with keyword options, and a verb of `aiokwire spark`.

launch     the session, the driver's questions to the cluster      stopping  a clean end, asked for by anybody
progress   how far it is, and what came of it                      manifest  which files are part of an archive
auditing   `audit`                                                  querying  `sql`
lagging    how far queries are behind, by their checkpoints
scope      what is read, in offsets                                 watching  tasks as progress

archive    topics to Parquet: _layout (names), _writing (tasks), _commit, _compact, _verify
replay     an archive to topics: _plan (rounds), _reading (tasks), _frames (other Parquet)

Importing it loads nothing: names are looked up when they are first used.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiokwire.spark.pipelines.archive import Archived, archive
    from aiokwire.spark.pipelines.archive_compact import Compacted, compact
    from aiokwire.spark.pipelines.archive_verify import Verified, verify
    from aiokwire.spark.pipelines.auditing.auditor import audit
    from aiokwire.spark.pipelines.auditing.html import audit_as_html
    from aiokwire.spark.pipelines.auditing.report import AuditReport, audit_as_json, audit_verdict
    from aiokwire.spark.pipelines.auditing.table import audit_tables
    from aiokwire.spark.pipelines.declaration import Pipeline
    from aiokwire.spark.pipelines.lagging import PartitionLag, find_lag, lag, read_positions
    from aiokwire.spark.pipelines.launch import ask, spark_session
    from aiokwire.spark.pipelines.manifest import Archive, ArchiveDamaged, DataFile, Manifest, read_archive
    from aiokwire.spark.pipelines.pipeline import Prepared, RunSummary, prepare, run
    from aiokwire.spark.pipelines.progress import Progress, print_summary
    from aiokwire.spark.pipelines.querying.output import RowForm, Shown, take_rows, write_parquet, write_rows
    from aiokwire.spark.pipelines.querying.query import Query, sql
    from aiokwire.spark.pipelines.replay import Replayed, replay
    from aiokwire.spark.pipelines.replay_plan import Selection
    from aiokwire.spark.pipelines.stopping import JobFailed, Stop, Stopped
    from aiokwire.spark.pipelines.watching import watch

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

# Where each name is; a pipeline's own names stand in a line of its own.
_HOMES = {
    "auditing.auditor": ("audit",),
    "auditing.html": ("audit_as_html",),
    "auditing.report": ("AuditReport", "audit_as_json", "audit_verdict"),
    "auditing.table": ("audit_tables",),
    "archive": ("Archived", "archive"),
    "archive_compact": ("Compacted", "compact"),
    "archive_verify": ("Verified", "verify"),
    "declaration": ("Pipeline",),
    "lagging": ("PartitionLag", "find_lag", "lag", "read_positions"),
    "launch": ("ask", "spark_session"),
    "manifest": ("Archive", "ArchiveDamaged", "DataFile", "Manifest", "read_archive"),
    "pipeline": ("Prepared", "RunSummary", "prepare", "run"),
    "progress": ("Progress", "print_summary"),
    "querying.output": ("RowForm", "Shown", "take_rows", "write_parquet", "write_rows"),
    "querying.query": ("Query", "sql"),
    "watching": ("watch",),
    "replay": ("Replayed", "replay"),
    "replay_plan": ("Selection",),
    "stopping": ("JobFailed", "Stop", "Stopped"),
}


class _FrontDoor(types.ModuleType):
    """Keeps the pipelines' functions in reach, which have the names of their modules: the import system makes each
    module an attribute here when it loads."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, types.ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
