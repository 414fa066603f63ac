"""`audit`: looks the offsets up once, counts in Spark's tasks, compares, and judges."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiokwire.admin import Admin
from aiokwire.clock import wall_ms
from aiokwire.cluster import Client
from aiokwire.spark.archive.manifest import read_archive
from aiokwire.spark.audit import cluster
from aiokwire.spark.audit.duplicates import find_duplicates, parse_identity
from aiokwire.spark.audit.report import (
    AuditReport,
    Finding,
    GroupLag,
    PartitionReport,
    judge,
    parse_findings,
)
from aiokwire.spark.audit.tally import PartitionTally
from aiokwire.spark.audit.tasks import tally_scope
from aiokwire.spark.jobs.progress import Progress, watch
from aiokwire.spark.jobs.ranges import Scope, admin_options, explicit, find_scope
from aiokwire.spark.jobs.spark_session import ask, spark_session
from aiokwire.spark.jobs.stopping import Stop
from aiokwire.spark.options import SourceOptions, parse_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What is wrong unless the caller says otherwise.
FAIL_ON: Final = (Finding.GAPS.value, Finding.DIFFERENCES.value)
SKEW_LIMIT: Final = 2.0

# Tasks of a core: enough to show how far it is.
_TASKS_A_CORE: Final = 4


def audit(
    topics: str | Sequence[str],
    *,
    bootstrap: str,
    options: Mapping[str, str] | None = None,
    duplicates: str | None = "key,value",
    groups: Collection[str] | None = None,
    against: str | Path | None = None,
    fail_on: Collection[str] = FAIL_ON,
    skew_limit: float = SKEW_LIMIT,
    max_lag: int | None = None,
    spark: SparkSession | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> AuditReport:
    """Count what is in topics, partition by partition, and tell what is wrong.

    `options` are the source's (`startingOffsets`, `endingTimestamp`, `kafka.client.rack`, ...). `duplicates`:
    what makes two records equal, `key,value`, `key`, `value` or `header:NAME`; None: they are not looked for.
    `groups`: whose lag is told; None: of all that have committed something. `against`: an archive's place.
    `fail_on` names the findings that count as wrong, see `Finding`. `skew_limit`: how many times the mean of bytes a
    partition may have.

    Raises: ConfigurationError: an option is wrong, or a topic or the archive is not there; LostData: offsets that the
        options name are gone; JobFailed: a task failed, as for a corrupt batch; Stopped: `stop` asked for the end.
    """
    names = (topics,) if isinstance(topics, str) else tuple(topics)
    failing = parse_findings(fail_on)
    if duplicates is not None:
        parse_identity(duplicates)
    if against is not None:
        read_archive(str(against))
    given = source_options(names, bootstrap, options or {})
    parsed = parse_source(given, streaming=False)
    session = spark_session("aiokwire audit", given=spark, master=master, conf=conf)
    stop = stop or Stop()
    show = functools.partial(watch, session, progress or Progress("audit", quiet=True))
    began = time.perf_counter()
    scope = ask(parsed.consumer, functools.partial(find_scope, options=parsed))
    compacted, lags = ask(parsed.consumer, functools.partial(_around, scope=scope, options=parsed, groups=groups))
    cores = session.sparkContext.defaultParallelism * _TASKS_A_CORE
    tallies = stop.job(session, lambda: tally_scope(session, scope, parsed, cores), tick=show("counting"))
    fixed = explicit(given, scope)
    repeated = comparison = None
    if duplicates is not None and scope.size:
        by = duplicates
        look = show("looking for duplicates")
        repeated = stop.job(session, lambda: find_duplicates(session, fixed, scope.topics, by), tick=look)
    if against is not None:
        from aiokwire.spark.audit.archived import compare

        place, ranges = str(against), {tally.tp: (tally.start, tally.end) for tally in tallies}
        look = show("comparing")
        comparison = stop.job(session, lambda: compare(session, fixed, ranges, place), tick=look)
    partitions = _reports(tallies, scope, compacted)
    found = judge(partitions, repeated, lags, comparison, skew_limit=skew_limit, max_lag=max_lag)
    seconds = time.perf_counter() - began
    return AuditReport(scope.topics, wall_ms(), seconds, partitions, repeated, tuple(lags), comparison, found, failing)


def source_options(topics: Sequence[str], bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """The source's options for these topics, as readers of what is committed."""
    own = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": ",".join(topics),
        "kafka.isolation.level": "read_committed",  # the broker tells what was aborted to such readers only
    }
    return {name: text for name, text in options.items() if name.lower() not in own} | own


async def _around(
    client: Client, *, scope: Scope, options: SourceOptions, groups: Collection[str] | None
) -> tuple[dict[str, bool], list[GroupLag]]:
    del client  # the admin client has one of its own
    async with Admin(**admin_options(options.consumer)) as admin:
        return await cluster.compaction(admin, scope.topics), await cluster.lags(admin, groups, scope.latest)


def _reports(
    tallies: Sequence[PartitionTally], scope: Scope, compacted: Mapping[str, bool]
) -> tuple[PartitionReport, ...]:
    return tuple(
        PartitionReport(
            tally, scope.earliest[tally.tp], scope.stable[tally.tp], scope.latest[tally.tp], compacted.get(tally.topic)
        )
        for tally in tallies
    )
