"""`archive`: topics to Parquet, each record once, even for readers that only list the directory.

    ends of the logs -> a round of fixed offsets -> a Spark job writes files -> commit
        -> offsets committed to the group -> next round

The manifests hold the position; an archive has no other checkpoint.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive import manifest as manifests
from aiokwire.spark.archive.commit import commit, recover
from aiokwire.spark.archive.layout import Layout
from aiokwire.spark.archive.manifest import FOLDER, Archive, Manifest
from aiokwire.spark.archive.tasks import Writing, Written, write_task
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.jobs.progress import Progress
from aiokwire.spark.jobs.spark_session import ask, commit_ends, spark_session
from aiokwire.spark.jobs.stopping import Stop, Stopped, tasks
from aiokwire.spark.offsets import Offsets, to_json
from aiokwire.spark.options import COLUMNS, SourceOptions, parse_source
from aiokwire.spark.source import planning
from aiokwire.spark.source.batch import on_loss
from aiokwire.spark.source.lookup import Lookup
from aiokwire.spark.source.planning import Range
from aiokwire.spark.source.schema import ddl
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

logger: logging.Logger = logging.getLogger("aiokwire.spark")

LOCK: Final = f"{FOLDER}/.lock"
CODECS: Final = ("snappy", "zstd", "lz4", "gzip", "none")

# A round is repeated after a kill, and adds one manifest.
ROUND_RECORDS: Final = 20_000_000
FILE_BYTES: Final = 256 << 20
# The fewest records of a task when a partition is cut to use idle cores.
TASK_RECORDS: Final = 250_000

_ISOLATION: Final = "kafka.isolation.level"


@dataclasses.dataclass(frozen=True)
class Archived:
    """The result of a run."""

    path: str
    records: int
    files: int
    bytes: int
    """Of the files."""
    rounds: int
    seconds: float
    offsets: dict[str, Any]
    """Where the next run resumes: `{"orders": {"0": 1234}}`."""
    stopped: bool
    """Whether a stop was requested before the run was complete."""


def archive(
    topics: str | Sequence[str],
    path: str | os.PathLike[str],
    *,
    bootstrap: str,
    options: Mapping[str, str] | None = None,
    hourly: bool = False,
    compression: str = "snappy",
    file_bytes: int = FILE_BYTES,
    round_records: int = ROUND_RECORDS,
    every: float | None = None,
    commit_group: str | None = None,
    spark: SparkSession | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Archived:
    """Write records of topics that are not yet in an archive to Parquet.

    It resumes where the archive at `path` ends, and ends where the logs ended when it started; with
    `every`, it looks for new records at that interval (seconds) until it is stopped. `options` are
    those of the Spark source, where the starting offsets apply to a new archive only, and
    `read_committed` is the default. `commit_group` is a group whose offsets follow the archive, for
    tools that show lag.

    Raises: ConfigurationError: an option is invalid, or the archive has another layout or recreated
        topics; LostData: offsets that were not archived are gone, with `onDataLoss=fail`;
        JobFailed.
    """
    source = _source(topics, bootstrap, options or {})
    if compression not in CODECS:
        raise ConfigurationError(f"compression must be one of {', '.join(CODECS)}, not {compression!r}")
    if file_bytes < 1 or round_records < 1:
        raise ConfigurationError("file_bytes and round_records must be positive")
    store = Store.at(path)
    session = spark_session("aiokwire archive", given=spark)
    layout = Layout(hourly, ddl(source.columns, source.decoding), source.consumer.isolation.name.lower())
    writing = Writing(
        store, source, _columns(session, layout), layout, compression, file_bytes, uuid.uuid4().hex[:12], {}
    )
    with store.alone(LOCK):
        run = _Run(session, writing, round_records, commit_group, stop or Stop(), progress or Progress("", quiet=True))
        return run.until_done(every)


def _source(topics: str | Sequence[str], bootstrap: str, options: Mapping[str, str]) -> SourceOptions:
    """Return the options of the source, with those that an archive requires."""
    given = {name.lower(): text for name, text in options.items()}
    if "columns" in given:
        raise ConfigurationError("an archive has all columns: leave out columns (or set includeHeaders=false)")
    names = [topics] if isinstance(topics, str) else list(topics)
    if names:
        given["subscribe"] = ",".join(names)
    given.setdefault("kafka.bootstrap.servers", bootstrap)
    given.setdefault(_ISOLATION, "read_committed")
    headers = given.pop("includeheaders", "true").strip().lower() != "false"
    kept = [name for name in COLUMNS if name not in ("topic", "partition") and (headers or name != "headers")]
    return parse_source({**given, "columns": ",".join(kept)}, streaming=False)


def _columns(spark: SparkSession, layout: Layout) -> Any:
    return spark.createDataFrame([], layout.schema).schema


class _Run:
    """One call of `archive`."""

    def __init__(
        self,
        spark: SparkSession,
        writing: Writing,
        round_records: int,
        commit_group: str | None,
        stop: Stop,
        progress: Progress,
    ) -> None:
        self._spark = spark
        self._writing = writing
        self._options = writing.options
        self._store = writing.store
        self._round_records = round_records
        self._commit_group = commit_group
        self._stop = stop
        self._progress = progress
        self._archive = recover(writing.store)
        writing.layout.check(self._archive.layout, writing.store.root)
        self._written: list[Written] = []
        self._rounds = 0

    def until_done(self, every: float | None) -> Archived:
        """Run all rounds."""
        began = time.perf_counter()
        try:
            self._to_the_end()
            while every is not None:
                self._progress.update(self._records, note=f"{self._rounds} rounds, waiting")
                self._stop.pause(every)
                self._stop.check()
                self._to_the_end()
        except Stopped:
            logger.info("stopped after %d rounds", self._rounds)
        files = [each.file for each in self._written]
        return Archived(
            path=self._store.root,
            records=self._records,
            files=len(files),
            bytes=sum(each.bytes for each in files),
            rounds=self._rounds,
            seconds=time.perf_counter() - began,
            offsets=to_json(self._archive.ends),
            stopped=self._stop.requested,
        )

    @property
    def _records(self) -> int:
        return sum(each.file.records for each in self._written)

    def _to_the_end(self) -> None:
        """Run rounds until the archive reaches the current ends of the logs."""
        plan = ask(self._options.consumer, self._plan)
        start = plan.start
        while start != plan.end:
            self._stop.check()
            end = planning.admit(start, plan.end, self._round_records)
            self._round(planning.ranges_between(start, end), plan.topic_ids, planning.lag(start, plan.end))
            start = end
        self._commit_to_group(plan.start)

    def _commit_to_group(self, chosen: Iterable[TopicPartition]) -> None:
        ends = self._archive.ends
        done = {tp: ends[tp] for tp in chosen if tp in ends}
        if self._commit_group is not None and done:
            commit_ends(self._options.consumer, self._commit_group, done)

    async def _plan(self, client: Client) -> Plan:
        lookup = Lookup(client, self._options)
        partitions, topic_ids = await lookup.partitions()
        check_topics(self._archive, {name: each.hex() for name, each in topic_ids.items()})
        earliest, latest = await lookup.earliest(partitions), await lookup.latest(partitions)
        end = await lookup.resolve(self._options.end, partitions, earliest, latest, is_end=True)
        known = self._archive.ends
        start: Offsets
        if any(tp in known for tp in partitions):
            start = {tp: known.get(tp, earliest[tp]) for tp in partitions}  # new partitions from their start
        else:
            start = await lookup.resolve(self._options.start, partitions, earliest, latest, is_end=False)
        check_not_behind(known, latest)
        start, losses = planning.without_lost(start, earliest, latest)
        end, cut_off = planning.until_end(end, latest)
        on_loss(losses + cut_off, self._options.on_data_loss)
        return Plan(start, {tp: max(end[tp], start[tp]) for tp in start}, topic_ids)

    def _round(self, ranges: Sequence[Range], topic_ids: Mapping[str, bytes], left: int) -> None:
        shares = shares_of(ranges, self._options, self._spark.sparkContext.defaultParallelism)
        job = functools.partial(write_task, dataclasses.replace(self._writing, topic_ids=topic_ids))
        context = self._spark.sparkContext

        def work() -> list[list[Written]]:
            return context.parallelize(shares, len(shares)).map(job).collect()

        def tick() -> None:
            done, total = tasks(self._spark)
            note = f"round {self._rounds + 1}: task {done} of {total}"
            self._progress.update(self._records, self._records + left, note)

        written = [each for found in self._stop.job(self._spark, work, tick=tick) for each in found]
        manifest = Manifest(
            number=self._archive.number + 1,
            ranges=tuple(ranges),
            files=(),
            topic_ids={name: each.hex() for name, each in topic_ids.items()},
            layout=self._writing.layout.to_json(),
        )
        commit(self._store, manifest, written)
        self._archive = manifests.load(self._store)
        self._written += written
        self._rounds += 1
        self._commit_to_group(each.tp for each in ranges)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The offsets to archive now."""

    start: Offsets
    end: Offsets
    topic_ids: Mapping[str, bytes]


# --- decisions ------------------------------------------------------------------------------------------------------


def shares_of(ranges: Sequence[Range], options: SourceOptions, cores: int) -> list[tuple[Range, ...]]:
    """Split a round into tasks: one for every core, if there are enough records."""
    total = sum(each.size for each in ranges)
    least = options.min_partitions or min(cores, max(1, total // TASK_RECORDS))
    return planning.split(ranges, min_tasks=least, max_records=options.max_records_per_partition)


def check_topics(archive: Archive, topic_ids: Mapping[str, str]) -> None:
    """Raises: ConfigurationError: a topic was recreated."""
    for name, known in archive.topic_ids.items():
        if topic_ids.get(name, known) != known:
            raise ConfigurationError(
                f"topic {name!r} was deleted and recreated since it was archived: its offsets start at 0 again: "
                "archive it to another path"
            )


def check_not_behind(known: Offsets, latest: Offsets) -> None:
    """Raises: ConfigurationError: a log ends before the archive does."""
    for tp, offset in known.items():
        if offset > latest.get(tp, offset):
            raise ConfigurationError(
                f"the archive has {tp} up to offset {offset}, but its log ends at {latest[tp]}: it was truncated or "
                "recreated: archive it to another path"
            )
