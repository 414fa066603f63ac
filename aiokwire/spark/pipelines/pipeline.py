"""`run`: checks a declared pipeline, then runs one streaming query for each sink until all end.

    declaration -> graph (pure) -> survey (brokers) -> frames (Spark's analysis) -> checkpoint
        -> queries

Nothing is read or written before all checks have passed. When one query fails, the others end after
their current microbatch, and the failure is raised.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.protocol.messages import metadata
from aiokwire.spark.jobs.cluster import SHUFFLE, folder_notes, is_local, size_shuffles, waiting_note
from aiokwire.spark.jobs.progress import Progress
from aiokwire.spark.jobs.spark_session import ask, check_session, on_loop, spark_session
from aiokwire.spark.jobs.stopping import LOOK, JobFailed, Stop, one_line
from aiokwire.spark.options import SourceOptions, parse_sink, parse_source
from aiokwire.spark.pipelines import graph
from aiokwire.spark.pipelines.checkpoint import Folder, claim
from aiokwire.spark.pipelines.declaration import DEFAULT_BOOTSTRAP, Pipeline, Sink, Source
from aiokwire.spark.pipelines.explain import as_mermaid, as_svg, as_text
from aiokwire.spark.pipelines.frames import as_records, check_mode, schema_text, tables
from aiokwire.spark.pipelines.toml_file import load
from aiokwire.spark.sink import exactly_once
from aiokwire.spark.sink.partition_owner import one_owner
from aiokwire.spark.source.lookup import TOPIC_PATIENCE, TOPIC_PAUSE, Lookup
from aiokwire.spark.sql.plans import quiet_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PartT = TypeVar("PartT", Source, Sink)

logger: logging.Logger = logging.getLogger("aiokwire.spark")

START_PATIENCE: Final = 60.0
START_LOOK: Final = 0.02
DRAWINGS: Final = {"text": as_text, "mermaid": as_mermaid, "svg": as_svg}
_ROWS: Final = "rows"


@dataclasses.dataclass(frozen=True)
class Survey:
    """The clusters and topics of a pipeline."""

    clusters: Mapping[str, str | None]
    """The cluster id of each source; None if the broker is too old to have one."""
    partitions: Mapping[str, int]
    """Of each sink's topic, by the sink's name."""


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """The result of a run, with counts by sink."""

    pipeline: str
    seconds: float
    stopped: bool
    """Whether a stop was requested before the run was complete."""
    batches: dict[str, int]
    rows_read: dict[str, int]
    rows_written: dict[str, int]
    """By finished microbatches; an exactly-once sink does not count those committed earlier."""
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A pipeline that has passed the checks without Spark."""

    pipeline: Pipeline
    seen: Survey | None
    """None: no broker was contacted."""

    def settings(self, master: str | None, conf: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the session's settings: a default for shuffles, the pipeline's, then `conf`."""
        own = {SHUFFLE: str(os.cpu_count() or 1)} if is_local(master or os.environ.get("MASTER") or "local") else {}
        return {**own, **self.pipeline.spark, **(conf or {})}

    def run(self, spark: SparkSession, stop: Stop, progress: Progress) -> RunSummary:
        """Run the pipeline.

        Raises: KafkaError: as the function `run`.
        """
        seen = survey(self.pipeline) if self.seen is None else self.seen
        return _run(self.pipeline, seen, spark, stop, progress)

    def explain(self, spark: SparkSession, drawing: str = "text", *, plan: bool = False) -> str:
        """Draw the pipeline as `text`, `mermaid` or `svg`; with `plan`, add Spark's plans.

        Raises: ConfigurationError: Spark's analysis fails.
        """
        columns, plans = _analyse(self.pipeline, spark)
        drawn = DRAWINGS[drawing](self.pipeline, columns)
        return f"{drawn}\n\n{plans}" if plan else drawn


def prepare(
    pipeline: Pipeline | str | os.PathLike[str],
    *,
    parameters: Mapping[str, str] | None = None,
    bootstrap: str | None = None,
    checkpoint: str | None = None,
    trigger: str | None = None,
    connection: Mapping[str, str] | None = None,
    brokers: bool = True,
) -> Prepared:
    """Check a pipeline or the file that declares it; arguments override its settings.

    `brokers`: check the topics, too. `connection` has options for all sources and topics, such as
    `kafka.security.protocol`; their own options take precedence.

    Raises: ConfigurationError: the pipeline is invalid, or a topic does not exist; KafkaError: a
        broker cannot be reached.
    """
    found = pipeline if isinstance(pipeline, Pipeline) else load(pipeline, parameters)
    found = found.set(bootstrap=bootstrap, checkpoint=checkpoint, trigger=trigger)
    found = found.set(name=found.name or "pipeline", bootstrap=found.bootstrap or DEFAULT_BOOTSTRAP)
    found = _connected(found.set(checkpoint=found.checkpoint or f"checkpoints/{found.name}"), connection or {})
    graph.check(found)
    return Prepared(found, survey(found) if brokers else None)


def _connected(pipeline: Pipeline, connection: Mapping[str, str]) -> Pipeline:
    """Return a pipeline whose sources and topics have the options of a connection."""

    def merged(part: PartT) -> PartT:
        return dataclasses.replace(part, options={**connection, **part.options})

    return dataclasses.replace(
        pipeline,
        sources=tuple(merged(each) for each in pipeline.sources),
        sinks=tuple(merged(each) if each.topic is not None else each for each in pipeline.sinks),
    )


def run(
    pipeline: Pipeline | str | os.PathLike[str],
    *,
    parameters: Mapping[str, str] | None = None,
    bootstrap: str | None = None,
    checkpoint: str | None = None,
    trigger: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> RunSummary:
    """Run a pipeline, or the file that declares one, until it ends or is stopped.

    Without `spark`, the active session is used, or one is started with `master` and `conf`.

    Raises: ConfigurationError: the pipeline, its topics, or its checkpoint are invalid; nothing was
        started. KafkaError: a broker cannot be reached, or a query failed; all queries have ended.
    """
    if spark is not None:
        check_session(spark, "aiokwire run")
    found = prepare(pipeline, parameters=parameters, bootstrap=bootstrap, checkpoint=checkpoint, trigger=trigger)
    if spark is None:
        spark = spark_session(found.pipeline.name, master=master, conf=found.settings(master, conf))
    return found.run(spark, stop or Stop(), progress or Progress(found.pipeline.name, quiet=True))


def _run(pipeline: Pipeline, seen: Survey, spark: SparkSession, stop: Stop, progress: Progress) -> RunSummary:
    began = time.perf_counter()
    for name, value in pipeline.spark.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    warned = _warn(pipeline, spark)
    size_shuffles(spark, pipeline.spark, stop, progress)
    tallies = {sink.name: Tally() for sink in pipeline.sinks}
    with tables(spark, pipeline) as frames:
        ready = [(sink, _shaped(frames[_place(sink, frames)], sink)) for sink in pipeline.sinks]
        checkpoint_id, notes = claim(
            Folder(spark, pipeline.checkpoint), pipeline, seen.clusters, fresh_id=uuid.uuid4().hex[:12]
        )
        stop.check()
        queries: list[tuple[Sink, StreamingQuery]] = []
        try:
            for sink, frame in ready:
                if queries:
                    _until_its_sources_run(queries[-1][1], stop)
                queries.append((sink, _start(frame, sink, pipeline, checkpoint_id, seen)))
            wait(queries, tallies, stop, progress, functools.partial(waiting_note, spark))
        except BaseException:
            _end(queries, pipeline, checkpoint_id)
            raise
        if stop.requested:
            _end(queries, pipeline, checkpoint_id)
    return RunSummary(
        pipeline.name,
        round(time.perf_counter() - began, 3),
        stop.requested,
        {name: tally.batches for name, tally in tallies.items()},
        {name: tally.rows_read for name, tally in tallies.items()},
        {name: tally.rows_written for name, tally in tallies.items()},
        (*warned, *notes),
    )


def _warn(pipeline: Pipeline, spark: SparkSession) -> list[str]:
    """Log and return warnings about folders on this cluster."""
    context: Any = spark.sparkContext
    folders = [pipeline.checkpoint, *(sink.parquet for sink in pipeline.sinks if sink.parquet is not None)]
    file_system = str(context._jsc.hadoopConfiguration().get("fs.defaultFS"))
    notes = folder_notes(folders, context.master, file_system)
    for note in notes:
        logger.warning("pipeline %s: %s", pipeline.name, note)
    return notes


def _analyse(pipeline: Pipeline, spark: SparkSession) -> tuple[dict[str, str], str]:
    """Return the columns of sources and steps, and Spark's plan of each sink."""
    optimizer: Any = spark._jsparkSession.sessionState().optimizer()
    plans = []
    with tables(spark, pipeline) as frames:
        columns = {name: schema_text(frame.schema) for name, frame in frames.items()}
        for sink in pipeline.sinks:
            frame: Any = _shaped(frames[_place(sink, frames)], sink)
            plan = optimizer.execute(frame._jdf.queryExecution().analyzed()).toString()
            plans.append(f"sink {sink.name}\n{plan.rstrip()}")
    return columns, "\n\n".join(plans)


def _place(sink: Sink, frames: Mapping[str, DataFrame]) -> str:
    place = graph.find(sink.from_, frames)
    assert place is not None, "the graph was checked"
    return place


# --- one sink ---------------------------------------------------------------------------------------------------------


def _shaped(frame: DataFrame, sink: Sink) -> DataFrame:
    """Return the rows of a sink, counted by an observation."""
    if sink.kind == "topic":
        frame = as_records(frame, sink)
    check_mode(frame, sink)
    return frame.observe(_ROWS, f.count(f.lit(1)).alias(_ROWS))


def _start(frame: DataFrame, sink: Sink, pipeline: Pipeline, checkpoint_id: str, seen: Survey) -> StreamingQuery:
    options = _options(sink, pipeline, checkpoint_id)
    if sink.exactly_once and sink.topic is not None:
        partitions = seen.partitions[sink.name]
        cores = frame.sparkSession.sparkContext.defaultParallelism
        frame = one_owner(frame, partitions, tasks=min(partitions, sink.tasks or cores))
    elif sink.tasks is not None:
        frame = frame.coalesce(sink.tasks)
    writer = (
        frame.writeStream.format({"topic": "aiokwire"}.get(sink.kind, sink.kind))
        .queryName(f"{pipeline.name}.{sink.name}")
        .outputMode(sink.mode)
        .option("checkpointLocation", f"{pipeline.checkpoint.rstrip('/')}/{sink.name}")
        .options(**options)
        .trigger(**pipeline.trigger.arguments)
    )
    if sink.parquet is not None:
        writer = writer.partitionBy(*sink.partition_by).option("path", sink.parquet)
    try:
        with quiet_errors():
            return writer.start()
    except PySparkException as error:
        raise _of(sink, error) from error


def _until_its_sources_run(query: StreamingQuery, stop: Stop) -> None:
    """Wait before starting the next query, usually briefly, for at most `START_PATIENCE` seconds.

    All queries share one object for the data source. When Spark starts a source's Python process,
    it changes the environment in that object; serializing the tasks of a running query at that
    moment fails with "Task not serializable". Later starts change nothing.
    """
    began = time.perf_counter()
    while query.isActive and query.status["message"].startswith("Initializing"):
        if stop.requested or time.perf_counter() - began > START_PATIENCE:
            break
        time.sleep(START_LOOK)


def _options(sink: Sink, pipeline: Pipeline, checkpoint_id: str) -> dict[str, str]:
    options = sink.spark_options(pipeline.bootstrap)
    if sink.exactly_once and sink.topic is not None and not any(name.lower() == "sink.id" for name in options):
        options["sink.id"] = f"{pipeline.name}.{sink.name}.{checkpoint_id}"
    return options


def _end(queries: Sequence[tuple[Sink, StreamingQuery]], pipeline: Pipeline, checkpoint_id: str) -> None:
    """Stop running queries, and abort open transactions, which read_committed readers wait for."""
    for sink, query in queries:
        query.stop()
        if sink.exactly_once and sink.topic is not None:
            plan = exactly_once.plan_of(parse_sink(_options(sink, pipeline, checkpoint_id)), streaming=True)
            try:
                on_loop(functools.partial(exactly_once.abort_transaction, plan, None))
            except KafkaError as error:
                logger.warning("sink %s: a transaction may stay open until it times out: %s", sink.name, error)


def _of(sink: Sink, error: Exception) -> Exception:
    """Return an error that names its sink."""
    failed = one_line(error)
    return JobFailed(f"sink {sink.name!r}: {failed}") if isinstance(failed, KafkaError) else failed


# --- all sinks --------------------------------------------------------------------------------------------------------


class Tally:
    """Counts by microbatch of one query; Spark reports each several times."""

    def __init__(self) -> None:
        self._batches: dict[int, tuple[int, int]] = {}

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add Spark's progress of a microbatch; those without work are ignored."""
        if "addBatch" not in progress["durationMs"]:
            return
        observed = progress["observedMetrics"].get(_ROWS)
        written = 0 if observed is None else int(observed[_ROWS])
        self._batches[int(progress["batchId"])] = int(progress["numInputRows"]), written

    @property
    def batches(self) -> int:
        return len(self._batches)

    @property
    def last(self) -> int | None:
        return max(self._batches, default=None)

    @property
    def rows_read(self) -> int:
        return sum(read for read, _ in self._batches.values())

    @property
    def rows_written(self) -> int:
        return sum(written for _, written in self._batches.values())


def wait(
    queries: Sequence[tuple[Sink, StreamingQuery]],
    tallies: Mapping[str, Tally],
    stop: Stop,
    progress: Progress,
    waits_for: Callable[[], str],
) -> None:
    """Wait for all queries; on a failure or a stop, end each after its current microbatch.

    `waits_for` returns a note for the time before the first microbatch.

    Raises: KafkaError: the first failure.
    """
    running = list(queries)
    failure: tuple[Sink, Exception] | None = None
    while running and failure is None and not stop.requested:
        for sink, query in list(running):
            try:
                if query.awaitTermination(LOOK / len(running)):  # type: ignore[arg-type]  # PySpark accepts fractions of a second
                    running.remove((sink, query))
            except Exception as error:
                running.remove((sink, query))
                failure = failure or (sink, error)
        _show(queries, tallies, progress, waits_for)
    ending = Stop()
    ending.request()
    for sink, query in running:
        try:
            ending.query(query)
        except Exception as error:
            failure = failure or (sink, error)
    for sink, query in queries:
        for each in query.recentProgress:
            tallies[sink.name].add(each)
    if failure is not None:
        raise _of(*failure) from failure[1]


def _show(
    queries: Sequence[tuple[Sink, StreamingQuery]],
    tallies: Mapping[str, Tally],
    progress: Progress,
    waits_for: Callable[[], str],
) -> None:
    notes = []
    for sink, query in queries:
        tally = tallies[sink.name]
        last: Any = query.lastProgress
        if last is not None and last["batchId"] != tally.last:
            for each in query.recentProgress:
                tally.add(each)
        if tally.last is not None:
            notes.append(f"{sink.name}: batch {tally.last}, {tally.rows_written:,} rows written")
    rows = sum(tally.rows_read for tally in tallies.values()) if notes else None
    progress.update(rows, note="; ".join(notes) or waits_for())


def survey(pipeline: Pipeline) -> Survey:
    """Look up every topic that the pipeline names.

    Raises: ConfigurationError: a topic does not exist; the message names its source or sink;
        KafkaError: a broker cannot be reached, or refuses.
    """
    clusters: dict[str, str | None] = {}
    for source in pipeline.sources:
        options = parse_source(source.spark_options(pipeline.bootstrap), streaming=True)
        try:
            clusters[source.name] = ask(options.consumer, functools.partial(_of_source, options))
        except ConfigurationError as error:
            raise ConfigurationError(f"source {source.name!r}: {error}") from None
    partitions: dict[str, int] = {}
    for sink in pipeline.sinks:
        if sink.topic is None:
            continue
        producer = parse_sink(sink.spark_options(pipeline.bootstrap)).producer
        count = ask(producer, functools.partial(_partitions, sink.topic))
        if not count:
            raise ConfigurationError(
                f"sink {sink.name!r}: topic {sink.topic!r} does not exist: create it, for example with "
                f"`aiokwire topics create {sink.topic} --partitions 4`"
            )
        partitions[sink.name] = count
    return Survey(clusters, partitions)


async def _of_source(options: SourceOptions, client: Client) -> str | None:
    await Lookup(client, options).partitions()
    answer = await client.request(metadata.MetadataRequest(topics=[]), timeout=options.consumer.default_api_timeout)
    return answer.cluster_id


async def _partitions(topic: str, client: Client) -> int:
    """Return the partition count of a topic; 0 if it does not exist within `TOPIC_PATIENCE`."""
    deadline = Deadline(TOPIC_PATIENCE, "looking for a topic")
    while True:
        asked = [metadata.MetadataRequestTopic(name=topic)]
        answer = await client.request(metadata.MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        found = next((each.partitions for each in answer.topics if each.name == topic), None)
        if found or deadline.expired:
            return len(found or ())
        await anyio.sleep(TOPIC_PAUSE)
