"""The results of a sink's tasks, and the check that they are complete, before the commit."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.producer import TransactionTicket
from aiokwire.spark.sink.writing import Counts
from aiokwire.types import TopicPartition


@dataclasses.dataclass
class Written(WriterCommitMessage):
    """The result of a task whose rows were all acknowledged."""

    task: int
    rows: int
    counts: Counts
    ticket: TransactionTicket | None = None
    batch_id: int | None = None
    """The microbatch's, as Spark passed it to the task."""
    query_id: str = ""
    repeated: bool = False
    """The batch is already committed, so that the task wrote nothing."""


class Whole(NamedTuple):
    """The results of all tasks of a batch."""

    ticket: TransactionTicket
    rows: int
    places: frozenset[TopicPartition]
    query_id: str


def ticket_of(messages: Sequence[Written | None]) -> TransactionTicket | None:
    """Return the transaction that the tasks wrote to, None if no message names it."""
    return next((message.ticket for message in messages if message is not None and not message.repeated), None)


def whole(messages: Sequence[Written | None], batch_id: int | None) -> Whole | None:
    """Combine the results; None if the batch is already committed, or had no task.

    Raises: KafkaError, ConfigurationError: the batch must not be committed.
    """
    present = [message for message in messages if message is not None]
    if len(present) < len(messages):
        raise KafkaError(f"commit messages missing from {len(messages) - len(present)} of {len(messages)} tasks")
    if not present:
        return None
    if any(message.batch_id != batch_id for message in present):
        found = sorted({str(message.batch_id) for message in present})
        raise KafkaError(f"the tasks wrote batch {' and '.join(found)}, Spark commits batch {batch_id}")
    if all(message.repeated for message in present):
        return None
    tickets = {message.ticket for message in present}
    ticket = present[0].ticket
    if len(tickets) > 1 or ticket is None or any(message.repeated for message in present):
        raise KafkaError("the tasks wrote to different transactions, or some of them to none")
    _check_owners(present)
    places = frozenset(TopicPartition(*place) for message in present for place in message.counts)
    return Whole(ticket, sum(message.rows for message in present), places, present[0].query_id)


def _check_owners(messages: Sequence[Written]) -> None:
    owners: dict[tuple[str, int], int] = {}
    for message in messages:
        if message.rows != sum(message.counts.values()):
            raise KafkaError(
                f"task {message.task} had {message.rows} rows and {sum(message.counts.values())} acknowledgements"
            )
        for place in message.counts:
            other = owners.setdefault(place, message.task)
            if other != message.task:
                topic, partition = place
                raise ConfigurationError(
                    f"delivery=exactly-once: tasks {other} and {message.task} both wrote to {topic}[{partition}], and "
                    "each partition has one writer: repartition with aiokwire.spark.one_owner before writing"
                )
