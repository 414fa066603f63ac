"""`replay`: an archive, or other Parquet, back to a topic.

    archive -> rounds of offsets -> a Spark job: tasks read Parquet and write records -> commit
        -> next round

Without a pace, a round has a fixed count of records; with one, the records that are due. With
exactly-once, each round is a transaction whose number is in the sink's ledger, and the checkpoint
maps the number to offsets. Other Parquet is read by Spark and written by the sink in one job: it
needs the sink's columns, and keeps the order of a file that Spark reads in one task.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.producer import TransactionTicket
from aiokwire.spark.archive.manifest import Archive, DataFile, load
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.jobs.progress import Progress, watch
from aiokwire.spark.jobs.spark_session import ask, on_loop, spark_session
from aiokwire.spark.jobs.stopping import Stop, Stopped, one_line, tasks
from aiokwire.spark.offsets import Offsets, to_json
from aiokwire.spark.options import Delivery, SinkOptions, parse_sink
from aiokwire.spark.replay.plan import Selection, State, Timeline, check_replayable, resume, shares
from aiokwire.spark.replay.tasks import Replaying, ordered, write_share
from aiokwire.spark.sink import exactly_once
from aiokwire.spark.sink.commit_messages import Written, whole
from aiokwire.spark.sink.exactly_once import Plan
from aiokwire.spark.sink.partition_owner import one_owner
from aiokwire.spark.source import planning

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession

logger: logging.Logger = logging.getLogger("aiokwire.spark")

STATE: Final = "replay.json"
NAME: Final = "replay-name"  # of a replay of other Parquet
RUN: Final = "all"
LOCK: Final = ".lock"
ROUND_RECORDS: Final = 2_000_000
# With a pace, the least duration of a round (seconds), which is a Spark job.
TICK: Final = 0.5


@dataclasses.dataclass(frozen=True)
class Replayed:
    """The result of a run."""

    path: str
    topic: str | None
    delivery: str
    records: int
    rounds: int
    seconds: float
    offsets: dict[str, Any]
    """The offsets of the archive up to which it was replayed; empty for other Parquet."""
    stopped: bool
    """Whether a stop was requested before the run was complete."""


def replay(
    path: str | os.PathLike[str],
    topic: str | None = None,
    *,
    bootstrap: str,
    select: Selection | None = None,
    pace: float | None = None,
    rekey: bool = False,
    coordinates: bool = False,
    delivery: str = "at-least-once",
    checkpoint: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    round_records: int = ROUND_RECORDS,
    spark: SparkSession | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Replayed:
    """Write the records of an archive to a topic, or each to its original topic.

    Keys, headers, timestamps and the order within a partition are kept, and partitions unless
    `rekey` lets the keys choose. `pace` is the speed relative to the original one; the default is
    as fast as possible. `coordinates` adds headers with topic, partition and offset in the archive.
    With a `checkpoint`, a replay that ended early is resumed; `delivery="exactly-once"`, which
    needs one, writes each record once across restarts. `options` are those of the Spark sink.

    Raises: ConfigurationError: an option is invalid, or does not suit the archive or the topic;
        JobFailed; KafkaError: a transaction could not be opened or committed.
    """
    if pace is not None and pace <= 0:
        raise ConfigurationError(f"pace must be above 0, not {pace}")
    given = {"kafka.bootstrap.servers": bootstrap, **(options or {})}
    sink = parse_sink({**given, "delivery": delivery})
    if sink.delivery is Delivery.EXACTLY_ONCE and checkpoint is None:
        raise ConfigurationError("delivery=exactly-once needs a checkpoint: a directory for the replay's position")
    store = Store.at(path)
    session = spark_session("aiokwire replay", given=spark)
    stop, progress = stop or Stop(), progress or Progress("", quiet=True)
    kept = None if checkpoint is None else Store.at(checkpoint)
    archive = load(store)
    if not archive.number:
        if pace is not None or coordinates or select is not None:
            raise ConfigurationError(
                f"{store.root} is not an archive: it can only be replayed as a whole, as fast as possible"
            )
        if kept is not None and sink.delivery is not Delivery.EXACTLY_ONCE:
            raise ConfigurationError(f"{store.root} is not an archive: a checkpoint needs delivery=exactly-once")
        frame = _other_parquet(session, store.root, rekey)
        return _write_frame(frame, store.root, topic, given, sink, kept, stop, progress)
    check_replayable(archive.layout)
    chosen = select or Selection()
    settings: dict[str, Any] = {"path": store.root, "topic": topic, "rekey": rekey, "coordinates": coordinates}
    settings |= {"delivery": sink.delivery.value, "select": chosen.to_json()}
    with contextlib.nullcontext() if kept is None else kept.alone(LOCK):
        run = _Run(session, store, archive, chosen, settings, sink, kept, stop=stop, progress=progress)
        return run.until_done(pace, round_records)


def _other_parquet(spark: SparkSession, path: str, rekey: bool) -> DataFrame:
    """Read Parquet that is not an archive.

    Raises: JobFailed: Spark cannot read it.
    """
    try:
        frame = spark.read.parquet(path)
    except Exception as error:
        raise one_line(error) from error
    return frame.drop("partition") if rekey else frame


def _write_frame(
    frame: DataFrame,
    path: str,
    topic: str | None,
    options: Mapping[str, str],
    sink: SinkOptions,
    checkpoint: Store | None,
    stop: Stop,
    progress: Progress,
) -> Replayed:
    """Write other Parquet through the sink.

    Raises: ConfigurationError: exactly-once delivery has no topic; Stopped; JobFailed.
    """
    began = time.perf_counter()
    given = dict(options) | ({"topic": topic} if topic is not None else {})
    if sink.delivery is Delivery.EXACTLY_ONCE:
        assert checkpoint is not None
        if topic is None:
            raise ConfigurationError("delivery=exactly-once of Parquet that is not an archive needs a topic")
        counts = ask(sink.producer, lambda client: _partitions(client, [topic]))
        frame = one_owner(frame, counts[topic])
        given |= {"delivery": "exactly-once", "sink.id": _name_of(checkpoint), "run.id": RUN}
    writer: Any = frame.write.format("aiokwire").mode("append").options(**given)
    stop.job(frame.sparkSession, writer.save, tick=watch(frame.sparkSession, progress, "tasks"))
    records = stop.job(frame.sparkSession, frame.count)
    seconds = time.perf_counter() - began
    return Replayed(path, topic, sink.delivery.value, records, 1, seconds, {}, stop.requested)


def _name_of(checkpoint: Store) -> str:
    """Return the replay's name, which a restart with this checkpoint keeps."""
    data = checkpoint.read(NAME)
    if data is None:
        data = f"aiokwire-replay-{uuid.uuid4().hex[:16]}".encode()
        checkpoint.replace(NAME, data)
    return data.decode()


class _Run:
    """One call of `replay` for an archive."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        archive: Archive,
        select: Selection,
        settings: Mapping[str, Any],
        sink: SinkOptions,
        checkpoint: Store | None,
        *,
        stop: Stop,
        progress: Progress,
    ) -> None:
        self._spark = spark
        self._store = store
        self._select = select
        self._settings = settings
        self._sink = sink
        self._checkpoint = checkpoint
        self._stop = stop
        self._progress = progress
        self._files: list[DataFile] = select.files(archive)
        self._total = sum(file.records for file in self._files)
        self._start, self._end = select.bounds(self._files)
        self._name = f"aiokwire-replay-{uuid.uuid4().hex[:16]}"
        self._number = 0
        self._repeat: Offsets | None = None
        self._records = self._rounds = 0
        self._keep = not settings["rekey"]
        self._exactly_once = sink.delivery is Delivery.EXACTLY_ONCE
        self._resume()
        self._plan = self._transactions()
        self._partitions = self._count_partitions()

    def _resume(self) -> None:
        """Start where an earlier run ended."""
        data = self._checkpoint.read(STATE) if self._checkpoint is not None else None
        if data is None:
            return
        assert self._checkpoint is not None
        state = State.decode(data, self._checkpoint.full(STATE))
        state.check(self._settings, self._checkpoint.root)
        self._name = state.replay
        committed = None
        if self._exactly_once and not state.done:
            plan = self._transactions()
            committed = ask(plan.config, lambda client: _last(plan, client))
        found = resume(state, committed, exactly_once=self._exactly_once)
        self._number, self._start, self._repeat = found.number, dict(found.start), found.repeat
        self._end = dict(state.until)

    def _transactions(self) -> Plan:
        config = dataclasses.replace(self._sink.producer, transactional_id=self._name if self._exactly_once else None)
        return Plan(config, f"{self._name}.batches", self._settings["topic"], True, None)

    def _count_partitions(self) -> int:
        """Return the partition count of the target, the lowest if there are several.

        Raises: ConfigurationError: a target has too few partitions.
        """
        topic = self._settings["topic"]
        wanted: dict[str, int] = {}
        for tp in self._end:
            name = topic or tp.topic
            wanted[name] = max(wanted.get(name, 0), tp.partition + 1)
        if not wanted:
            return 1
        counts = ask(self._sink.producer, lambda client: _partitions(client, list(wanted)))
        for name, count in counts.items():
            if self._keep and count < wanted[name]:
                raise ConfigurationError(
                    f"{name} has {count} partition(s), and the archive's records have {wanted[name]}: add partitions, "
                    "or let the keys choose (rekey)"
                )
        if not self._keep and self._exactly_once and len(set(counts.values())) > 1:
            raise ConfigurationError("delivery=exactly-once with rekey needs topics with equal partition counts")
        return min(counts.values())

    # --- rounds -------------------------------------------------------------------------------------------------------

    def until_done(self, pace: float | None, round_records: int) -> Replayed:
        """Run all rounds."""
        began = time.perf_counter()
        try:
            if self._repeat is not None:
                self._round(self._repeat)
            if pace is None:
                self._fast(round_records)
            else:
                self._paced(pace)
        except Stopped:
            logger.info("stopped after %d rounds", self._rounds)
        return Replayed(
            path=self._store.root,
            topic=self._settings["topic"],
            delivery=self._sink.delivery.value,
            records=self._records,
            rounds=self._rounds,
            seconds=time.perf_counter() - began,
            offsets=to_json(self._start),
            stopped=self._stop.requested,
        )

    def _fast(self, round_records: int) -> None:
        while self._start != self._end:
            self._round(planning.admit(self._start, self._end, round_records))

    def _paced(self, pace: float) -> None:
        lines = {
            each.tp: Timeline(
                ordered(self._store, self._files, each, ("offset", "timestamp")),
                each.end,
                self._select.since,
                self._select.until,
            )
            for each in planning.ranges_between(self._start, self._end)
        }
        origin = min((first for line in lines.values() if (first := line.first) is not None), default=0)
        began = time.perf_counter()
        while self._start != self._end:
            self._stop.check()
            now = origin + int((time.perf_counter() - began) * 1000 * pace)
            end = self._start | {tp: line.until(now) for tp, line in lines.items()}
            looked = time.perf_counter()
            if end != self._start:
                self._round(end)
            self._progress.update(self._records, self._total, f"{self._rounds} rounds")
            self._stop.pause(max(0.0, TICK - (time.perf_counter() - looked)))

    def _round(self, end: Offsets) -> None:
        """Write the records up to `end`, and store the position."""
        self._stop.check()
        ranges = planning.ranges_between(self._start, end)
        self._note(end, done=False)
        records = self._transaction(ranges) if self._exactly_once else self._write(ranges, None)[1]
        self._note(end, done=True)
        self._start = end
        if records:
            self._records += records
            self._number += 1
            self._rounds += 1

    def _note(self, end: Offsets, *, done: bool) -> None:
        if self._checkpoint is not None:
            state = State(self._name, self._number, self._start, end, self._end, done, self._settings)
            self._checkpoint.replace(STATE, state.encode())

    def _transaction(self, ranges: list[planning.Range]) -> int:
        plan = self._plan
        ticket = on_loop(functools.partial(exactly_once.open_transaction, plan)).ticket
        try:
            written, records = self._write(ranges, ticket)
            found = whole(written, self._number)
            if found is None or not found.rows:
                on_loop(functools.partial(exactly_once.abort_transaction, plan, ticket))
                return 0  # not committed: the ledger has rounds with records only
        except BaseException:
            try:
                on_loop(functools.partial(exactly_once.abort_transaction, plan, ticket))
            except KafkaError as error:  # the coordinator aborts it after its timeout, or the next run does
                logger.warning("cannot abort the transaction of a failed round: %s", error)
            raise
        on_loop(functools.partial(exactly_once.commit_transaction, plan, found, self._number))
        return records

    def _write(self, ranges: list[planning.Range], ticket: TransactionTicket | None) -> tuple[list[Written], int]:
        select, context = self._select, self._spark.sparkContext
        most = max(1, min(self._partitions, context.defaultParallelism))
        parts = shares(ranges, self._files, keep_partitions=self._keep, exactly_once=ticket is not None, tasks=most)
        if not parts:
            return [], 0
        replaying = Replaying(
            store=self._store,
            config=self._plan.config,
            target=self._settings["topic"],
            keep_partitions=self._keep,
            partitions=self._partitions,
            coordinates=self._settings["coordinates"],
            since=select.since,
            until=select.until,
            number=self._number,
            ticket=ticket,
        )
        job = functools.partial(write_share, replaying)

        def tick() -> None:
            done, total = tasks(self._spark)
            self._progress.update(self._records, self._total, f"round {self._number + 1}: task {done} of {total}")

        def work() -> list[Written]:
            return context.parallelize(parts, len(parts)).map(job).collect()

        written = self._stop.job(self._spark, work, tick=tick)
        return written, sum(each.rows for each in written)


async def _last(plan: Plan, client: Client) -> int | None:
    entry = await plan.ledger().read(client, plan.config.default_api_timeout)
    return None if entry is None else entry.batch_id


async def _partitions(client: Client, topics: list[str]) -> dict[str, int]:
    """Return the partition counts of topics.

    Raises: KafkaError: a topic does not exist.
    """
    cluster = await client.metadata.wait_for_topics(topics, client.config.request_timeout)
    return {name: len(cluster.topics[name].partitions) for name in topics}
