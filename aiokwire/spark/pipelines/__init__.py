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

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.spark.archive.archive import Archived as Archived, archive as archive
    from aiokwire.spark.archive.compact import Compacted as Compacted, compact as compact
    from aiokwire.spark.archive.manifest import (
        Archive as Archive,
        ArchiveDamaged as ArchiveDamaged,
        DataFile as DataFile,
        Manifest as Manifest,
        read_archive as read_archive,
    )
    from aiokwire.spark.archive.verify import Verified as Verified, verify as verify
    from aiokwire.spark.audit.audit import audit as audit
    from aiokwire.spark.audit.html import audit_as_html as audit_as_html
    from aiokwire.spark.audit.report import (
        AuditReport as AuditReport,
        audit_as_json as audit_as_json,
        audit_verdict as audit_verdict,
    )
    from aiokwire.spark.audit.table import audit_tables as audit_tables
    from aiokwire.spark.jobs.lag import (
        PartitionLag as PartitionLag,
        find_lag as find_lag,
        lag as lag,
        read_positions as read_positions,
    )
    from aiokwire.spark.jobs.progress import Progress as Progress, print_summary as print_summary, watch as watch
    from aiokwire.spark.jobs.spark_session import ask as ask, spark_session as spark_session
    from aiokwire.spark.jobs.stopping import JobFailed as JobFailed, Stop as Stop, Stopped as Stopped
    from aiokwire.spark.pipelines.declaration import Pipeline as Pipeline
    from aiokwire.spark.pipelines.pipeline import (
        Prepared as Prepared,
        RunSummary as RunSummary,
        prepare as prepare,
        run as run,
    )
    from aiokwire.spark.replay.plan import Selection as Selection
    from aiokwire.spark.replay.replay import Replayed as Replayed, replay as replay
    from aiokwire.spark.sql.output import (
        RowForm as RowForm,
        Shown as Shown,
        take_rows as take_rows,
        write_parquet as write_parquet,
        write_rows as write_rows,
    )
    from aiokwire.spark.sql.query import Query as Query, sql as sql
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "spark.archive.archive": "Archived archive",
            "spark.archive.compact": "Compacted compact",
            "spark.archive.manifest": "Archive ArchiveDamaged DataFile Manifest read_archive",
            "spark.archive.verify": "Verified verify",
            "spark.audit.audit": "audit",
            "spark.audit.html": "audit_as_html",
            "spark.audit.report": "AuditReport audit_as_json audit_verdict",
            "spark.audit.table": "audit_tables",
            "spark.jobs.lag": "PartitionLag find_lag lag read_positions",
            "spark.jobs.progress": "Progress print_summary watch",
            "spark.jobs.spark_session": "ask spark_session",
            "spark.jobs.stopping": "JobFailed Stop Stopped",
            "spark.pipelines.declaration": "Pipeline",
            "spark.pipelines.pipeline": "Prepared RunSummary prepare run",
            "spark.replay.plan": "Selection",
            "spark.replay.replay": "Replayed replay",
            "spark.sql.output": "RowForm Shown take_rows write_parquet write_rows",
            "spark.sql.query": "Query sql",
        },
    )
