"""A batch as one transaction: opened on the driver, shared by all tasks, committed with its ledger.

    driver, when Spark plans the batch    open: fence earlier writers, read the ledger
    tasks                                 join: each owns its partitions; skip a batch in the ledger
    driver, after all tasks               verify, then commit with the ledger; or abort

The next batch aborts a transaction that a crash left open. If a batch is committed and Spark
crashes before noting it, the ledger has it, and the repeated batch writes nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from pyspark import TaskContext

from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.producer import ProducerConfig, SharedTransactions, TransactionTicket
from aiokwire.spark.options import SinkOptions
from aiokwire.spark.sink.commit_messages import Whole
from aiokwire.spark.sink.ledger import Entry, Ledger

# Spark's names of the local properties that identify a task's microbatch.
BATCH_ID: Final = "streaming.sql.batchId"
QUERY_ID: Final = "sql.streaming.queryId"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The sink's configuration for driver and tasks, derived from the options alone."""

    config: ProducerConfig
    ledger_group: str
    topic: str | None
    begin_ledger: bool
    """If the ledger is missing or another query's, start one with the next batch."""
    run_id: str | None
    """Of a batch job; None for a stream."""

    def ledger(self) -> Ledger:
        """Return the ledger of the sink's batches."""
        return Ledger(self.ledger_group, self.topic)


@dataclasses.dataclass(frozen=True)
class Opened:
    """An open transaction, and the last batch committed before it."""

    ticket: TransactionTicket
    last: Entry | None


def plan_of(options: SinkOptions, *, streaming: bool) -> Plan:
    """Return the plan for these options.

    Raises: ConfigurationError: an option that identifies the batches is missing.
    """
    if streaming:
        name = options.sink_id or _name_of(options.checkpoint_location)
        if options.run_id is not None:
            raise ConfigurationError("run.id belongs to df.write: Spark numbers the batches of a stream")
        group = f"{name}.batches"
    else:
        if options.sink_id is None or options.run_id is None:
            raise ConfigurationError(
                "delivery=exactly-once of a batch job needs the options sink.id, which names the sink, and run.id, "
                "which names the data: without them a repeated run cannot be distinguished from the next one"
            )
        name, group = options.sink_id, f"{options.sink_id}.run.{options.run_id}"
    config = dataclasses.replace(options.producer, transactional_id=name)
    return Plan(config, group, options.topic, options.begin_ledger, options.run_id)


def _name_of(checkpoint_location: str | None) -> str:
    if not checkpoint_location:
        raise ConfigurationError(
            "delivery=exactly-once needs a name that stays the same when the query restarts: set the option sink.id, "
            "or checkpointLocation as an option of this sink"
        )
    return "aiokwire-" + hashlib.sha256(checkpoint_location.rstrip("/").encode()).hexdigest()[:24]


@asynccontextmanager
async def _client(plan: Plan) -> AsyncIterator[Client]:
    client = Client(plan.config)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def open_transaction(plan: Plan) -> Opened:
    """Open the transaction of a batch, on the driver; abort an older one and fence its writers.

    Raises: KafkaError.
    """
    async with _client(plan) as client:
        ticket = await SharedTransactions(client, plan.config).open()
        return Opened(ticket, await plan.ledger().read(client, plan.config.default_api_timeout))


async def commit_transaction(plan: Plan, found: Whole, batch_id: int | None) -> None:
    """Commit the rows of all tasks and the ledger atomically, on the driver.

    Raises: KafkaError: the commit failed, or its outcome is unknown; the repeated batch reads the
        ledger.
    """
    ledger = plan.ledger()
    note = found.query_id if plan.run_id is None else plan.run_id
    entry = Entry(batch_id or 0, note)
    async with _client(plan) as client:
        transactions = SharedTransactions(client, plan.config)
        offsets = await ledger.entry(client, entry, found.places, plan.config.request_timeout)
        await transactions.commit(found.ticket, offsets, ledger.group, found.places)


async def abort_transaction(plan: Plan, ticket: TransactionTicket | None) -> None:
    """Abort a batch now: read_committed readers wait until then, or for the transaction's timeout.

    Without a ticket, abort any transaction that is open under this name.

    Raises: KafkaError.
    """
    async with _client(plan) as client:
        transactions = SharedTransactions(client, plan.config)
        if ticket is None:
            await transactions.open()
        else:
            await transactions.abort(ticket)


@dataclasses.dataclass(frozen=True)
class Place:
    """The identity of a task: its number and its batch."""

    task: int
    batch_id: int | None
    query_id: str


def place_of(context: TaskContext | None, *, streaming: bool) -> Place:
    """Return the identity of a task from Spark's context.

    Raises: ConfigurationError: Spark does not provide it; KafkaError: this is not the first
        attempt.
    """
    if context is None:
        raise ConfigurationError("delivery=exactly-once: the writer does not run in a Spark task")
    if context.attemptNumber() > 0:
        raise KafkaError(
            f"delivery=exactly-once: task {context.partitionId()} is attempted again (retry or speculation), and the "
            "rows of its first attempt are in the transaction: the batch must be aborted and repeated as a whole; "
            "spark.speculation must be false"
        )
    if not streaming:
        return Place(context.partitionId(), None, "")
    text = context.getLocalProperty(BATCH_ID)
    if text is None or not text.isdecimal():
        raise ConfigurationError(
            f"delivery=exactly-once: Spark did not set the batch number of this task ({BATCH_ID}), without which a "
            "repeated batch cannot be recognized: use another version of Spark, or at-least-once"
        )
    return Place(context.partitionId(), int(text), context.getLocalProperty(QUERY_ID) or "")


def is_repeated(opened: Opened, place: Place, plan: Plan) -> bool:
    """Whether the batch is already committed.

    Raises: ConfigurationError: unknown, because the ledger is missing, another query's, or ahead.
    """
    last = opened.last
    if place.batch_id is None:
        return last is not None
    if last is None or _is_of_another(last, place):
        if plan.begin_ledger or (last is None and place.batch_id == 0):
            return False
        raise ConfigurationError(_lacks_ledger(last, place, plan))
    if place.batch_id < last.batch_id:  # Spark repeats only the last one
        raise ConfigurationError(
            f"delivery=exactly-once: this is batch {place.batch_id}, but batch {last.batch_id} of this query is "
            f"committed in the ledger, group {plan.ledger_group!r}: the checkpoint is older than the topic, and its "
            "batches may differ. Start after the records of the topic, with a new checkpoint and another sink.id"
        )
    return place.batch_id == last.batch_id


def _is_of_another(last: Entry, place: Place) -> bool:
    return bool(last.note and place.query_id and last.note != place.query_id)


def _lacks_ledger(last: Entry | None, place: Place, plan: Plan) -> str:
    here = f"delivery=exactly-once: this is batch {place.batch_id}"
    if last is None:
        return (
            f"{here}, and the ledger of earlier batches, group {plan.ledger_group!r}, does not exist: it expired "
            "while the query was stopped, or there was none. The batch may already be written: check the topic, "
            "then set the option ledger=begin"
        )
    return (
        f"{here} of query {place.query_id}, and the ledger, group {plan.ledger_group!r}, belongs to query "
        f"{last.note}, which wrote up to batch {last.batch_id}: the checkpoint is new, or belongs to another sink. "
        "The input of this query may already be written: check the topic, then set the option ledger=begin, or "
        "another sink.id"
    )
