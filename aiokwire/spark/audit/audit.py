"""`audit`: looks up offsets once, counts records in Spark's tasks, and reports findings."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiokwire.admin import Admin, ConfigResource, ResourceType
from aiokwire.clock import wall_ms
from aiokwire.cluster import Client
from aiokwire.errors import AuthorizationError, KafkaError
from aiokwire.spark.archive.manifest import read_archive
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
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The findings that fail an audit by default.
FAIL_ON: Final = (Finding.GAPS.value, Finding.DIFFERENCES.value)
SKEW_LIMIT: Final = 2.0

# Tasks per core: enough to show progress.
_TASKS_PER_CORE: Final = 4

_POLICY: Final = "cleanup.policy"
# Groups that commit offsets as consumers do; old brokers report no type, groups without members no protocol.
_TYPES: Final = frozenset({"classic", "consumer", ""})
_PROTOCOLS: Final = frozenset({"consumer", ""})


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
    """Count the contents of topics by partition, and report findings.

    `options` are the source's (`startingOffsets`, `endingTimestamp`, `kafka.client.rack`, ...).
    `duplicates` is the identity of a record: `key,value`, `key`, `value` or `header:NAME`; None
    skips the search. `groups` are those whose lag is reported, by default all with commits.
    `against` is the path of an archive. `fail_on` are the findings that fail the audit, see
    `Finding`. `skew_limit` is the largest size of a partition relative to the mean.

    Raises: ConfigurationError: an option is invalid, or a topic or the archive does not exist;
        LostData: offsets that the options name are gone; JobFailed: a task failed, for instance on
        a corrupt batch; Stopped: a stop was requested.
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
    tasks = session.sparkContext.defaultParallelism * _TASKS_PER_CORE
    tallies = stop.job(session, lambda: tally_scope(session, scope, parsed, tasks), tick=show("counting"))
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
    """Return the source's options for these topics, with read_committed."""
    own = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": ",".join(topics),
        "kafka.isolation.level": "read_committed",  # the broker reports aborted transactions to such readers only
    }
    return {name: text for name, text in options.items() if name.lower() not in own} | own


async def _around(
    client: Client, *, scope: Scope, options: SourceOptions, groups: Collection[str] | None
) -> tuple[dict[str, bool], list[GroupLag]]:
    del client  # the admin client has its own
    async with Admin(**admin_options(options.consumer)) as admin:
        return await compaction(admin, scope.topics), await lags_of(admin, groups, scope.latest)


async def compaction(admin: Admin, topics: Iterable[str]) -> dict[str, bool]:
    """Return which topics are compacted, for those whose policy the broker reports."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    try:
        described = await admin.describe_configs(resources, [_POLICY])
    except KafkaError:
        return {}  # an old broker: the audit reports it as unknown
    found = {}
    for resource in resources:
        entry = described[resource].get(_POLICY) if resource not in described.errors else None
        if entry is not None and entry.value is not None:
            found[resource.name] = "compact" in entry.value
    return found


async def lags_of(admin: Admin, groups: Collection[str] | None, ends: Mapping[TopicPartition, int]) -> list[GroupLag]:
    """Return the lag of groups in these partitions; None: of all visible consumer groups.

    Raises: AuthorizationError: a named group may not be described; KafkaError: a broker refuses.
    """
    if groups is not None:
        names = sorted(groups)
    else:
        listed = await admin.list_groups()
        names = [each.group_id for each in listed if each.type in _TYPES and each.protocol_type in _PROTOCOLS]
    found = []
    for name in names:
        try:
            committed = await admin.list_group_offsets(name)
        except AuthorizationError:
            if groups is not None:
                raise
            continue
        for tp, place in sorted(committed.items()):
            if tp in ends:
                lag = max(0, ends[tp] - place.offset)
                found.append(GroupLag(name, tp.topic, tp.partition, place.offset, ends[tp], lag))
    return found


def _reports(
    tallies: Sequence[PartitionTally], scope: Scope, compacted: Mapping[str, bool]
) -> tuple[PartitionReport, ...]:
    return tuple(
        PartitionReport(
            tally, scope.earliest[tally.tp], scope.stable[tally.tp], scope.latest[tally.tp], compacted.get(tally.topic)
        )
        for tally in tallies
    )
