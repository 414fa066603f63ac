"""A batch as one transaction: opened on the driver, written to by all tasks, committed with its ledger on the driver.

    driver, when Spark plans the batch    open: fence what was before, read the ledger
    tasks                                 join: each owns its partitions; nothing at all when the ledger has the batch
    driver, when all tasks are done       verify, then ledger and EndTxn; or abort

The batch that a crash has left open is aborted by the next opening; the one that was committed before Spark noted it is
in the ledger, and its repetition writes nothing.
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

# Spark's own names of what a task is told of its microbatch.
BATCH_ID: Final = "streaming.sql.batchId"
QUERY_ID: Final = "sql.streaming.queryId"


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that driver and tasks need to know of the sink; made from the options alone, so that each process has it."""

    config: ProducerConfig
    ledger_group: str
    topic: str | None
    begin_ledger: bool
    """A ledger that is missing, or another query's, begins at whatever batch comes."""
    run_id: str | None
    """Of a batch job; None for a stream."""

    def ledger(self) -> Ledger:
        """Where its batches are written down."""
        return Ledger(self.ledger_group, self.topic)


@dataclasses.dataclass(frozen=True)
class Opened:
    """A transaction, and the last batch that was committed before it."""

    ticket: TransactionTicket
    last: Entry | None


def plan_of(options: SinkOptions, *, streaming: bool) -> Plan:
    """What exactly-once needs of the options.

    Raises: ConfigurationError: something is missing that tells one batch from another.
    """
    if streaming:
        name = options.sink_id or _name_of(options.checkpoint_location)
        if options.run_id is not None:
            raise ConfigurationError("run.id belongs to df.write: a stream numbers its batches itself")
        group = f"{name}.batches"
    else:
        if options.sink_id is None or options.run_id is None:
            raise ConfigurationError(
                "delivery=exactly-once of a batch job needs the options sink.id, which names the sink, and run.id, "
                "which names what is written: without them a repetition cannot be told from the next run"
            )
        name, group = options.sink_id, f"{options.sink_id}.run.{options.run_id}"
    config = dataclasses.replace(options.producer, transactional_id=name)
    return Plan(config, group, options.topic, options.begin_ledger, options.run_id)


def _name_of(checkpoint_location: str | None) -> str:
    if not checkpoint_location:
        raise ConfigurationError(
            "delivery=exactly-once needs a name that stays the same when the query starts again: set the option "
            "sink.id, or checkpointLocation as an option of this sink"
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
    """The driver's first step for a batch; whatever was left open under this name is aborted, its writers are fenced.

    Raises: KafkaError.
    """
    async with _client(plan) as client:
        ticket = await SharedTransactions(client, plan.config).open()
        return Opened(ticket, await plan.ledger().read(client, plan.config.default_api_timeout))


async def commit_transaction(plan: Plan, found: Whole, batch_id: int | None) -> None:
    """The driver's last step: the rows of all tasks and the ledger, or nothing.

    Raises: KafkaError: it did not take place, or that is not known; a repetition of the batch finds out.
    """
    ledger = plan.ledger()
    note = found.query_id if plan.run_id is None else plan.run_id
    entry = Entry(batch_id or 0, note)
    async with _client(plan) as client:
        transactions = SharedTransactions(client, plan.config)
        offsets = await ledger.entry(client, entry, found.places, plan.config.request_timeout)
        await transactions.commit(found.ticket, offsets, ledger.group, found.places)


async def abort_transaction(plan: Plan, ticket: TransactionTicket | None) -> None:
    """Give up a batch now, not when its time is over, as readers of what is committed wait for that. Without a ticket,
    when no task told of it, whatever is open under this name.

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
    """Where a task stands: which one of which batch."""

    task: int
    batch_id: int | None
    query_id: str


def place_of(context: TaskContext | None, *, streaming: bool) -> Place:
    """What Spark tells a task.

    Raises: ConfigurationError: what exactly-once needs is not told; KafkaError: this is not the task's first attempt.
    """
    if context is None:
        raise ConfigurationError("delivery=exactly-once: this does not run in a Spark task")
    if context.attemptNumber() > 0:
        raise KafkaError(
            f"delivery=exactly-once: task {context.partitionId()} is attempted again (retry or speculation), and what "
            "its first attempt wrote is in the transaction already: the batch must be aborted and repeated as a whole; "
            "spark.speculation must be false"
        )
    if not streaming:
        return Place(context.partitionId(), None, "")
    text = context.getLocalProperty(BATCH_ID)
    if text is None or not text.isdecimal():
        raise ConfigurationError(
            f"delivery=exactly-once: Spark does not tell this task the number of its batch ({BATCH_ID}), so that a "
            "repetition could not be told from a new batch: use another version of Spark, or at-least-once"
        )
    return Place(context.partitionId(), int(text), context.getLocalProperty(QUERY_ID) or "")


def is_repeated(opened: Opened, place: Place, plan: Plan) -> bool:
    """Whether the batch was committed before.

    Raises: ConfigurationError: the ledger cannot say so: it is gone, another query's, or ahead of this one.
    """
    last = opened.last
    if place.batch_id is None:
        return last is not None
    if last is None or _is_of_another(last, place):
        if plan.begin_ledger or (last is None and place.batch_id == 0):
            return False
        raise ConfigurationError(_lacks_ledger(last, place, plan))
    if place.batch_id < last.batch_id:  # Spark repeats none but the last one
        raise ConfigurationError(
            f"delivery=exactly-once: this is batch {place.batch_id}, and the ledger, group {plan.ledger_group!r}, says "
            f"that batch {last.batch_id} of this query was committed: the checkpoint is older than the topic, and its "
            "batches may be others. Begin behind what is in the topic, with a new checkpoint and another sink.id"
        )
    return place.batch_id == last.batch_id


def _is_of_another(last: Entry, place: Place) -> bool:
    return bool(last.note and place.query_id and last.note != place.query_id)


def _lacks_ledger(last: Entry | None, place: Place, plan: Plan) -> str:
    here = f"delivery=exactly-once: this is batch {place.batch_id}"
    if last is None:
        return (
            f"{here}, and the ledger of the batches before, group {plan.ledger_group!r}, is not there: it expired "
            "while the query stood still, or there was none yet. Whether this batch was written already cannot be "
            "told: look, then set the option ledger=begin"
        )
    return (
        f"{here} of query {place.query_id}, and the ledger, group {plan.ledger_group!r}, is that of query "
        f"{last.note}, which wrote up to batch {last.batch_id}: the checkpoint is new, or not the one that goes with "
        "this sink. What this query reads may have been written already: look, then set the option ledger=begin, or "
        "another sink.id"
    )
