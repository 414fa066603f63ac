"""What a sink's tasks tell the driver, and whether that makes a whole: decided before a transaction is committed."""

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
    """A task's rows were all acknowledged."""

    task: int
    rows: int
    counts: Counts
    ticket: TransactionTicket | None = None
    batch_id: int | None = None
    """Of a microbatch, as the task knows it."""
    query_id: str = ""
    repeated: bool = False
    """The batch was committed before, so that the task wrote nothing."""


class Whole(NamedTuple):
    """What all tasks of a batch have written together."""

    ticket: TransactionTicket
    rows: int
    places: frozenset[TopicPartition]
    query_id: str


def ticket_of(messages: Sequence[Written | None]) -> TransactionTicket | None:
    """The transaction that the tasks wrote to, None when no task says so."""
    return next((message.ticket for message in messages if message is not None and not message.repeated), None)


def whole(messages: Sequence[Written | None], batch_id: int | None) -> Whole | None:
    """What is to be committed; None when the batch was committed before, or had no task.

    Raises: KafkaError, ConfigurationError: why it must not be committed.
    """
    present = [message for message in messages if message is not None]
    if len(present) < len(messages):
        raise KafkaError(f"{len(messages) - len(present)} of {len(messages)} tasks did not say what they wrote")
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
        raise KafkaError("the tasks did not write to one transaction")
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
