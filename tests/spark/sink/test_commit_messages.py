"""Commit messages of tasks, and batches that must not be committed."""

from __future__ import annotations

import dataclasses

import pytest

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.producer import TransactionTicket
from aiokwire.spark.sink.commit_messages import Whole, Written, ticket_of, whole
from aiokwire.types import TopicPartition

TICKET = TransactionTicket("sink", 7, 3, transaction_v2=True)
FIRST = Written(0, 5, {("t", 0): 2, ("t", 2): 3}, TICKET, 4, "query")
SECOND = Written(1, 1, {("t", 1): 1}, TICKET, 4, "query")


def test_a_batch_is_complete_when_all_tasks_acknowledged_it() -> None:
    found = whole([FIRST, SECOND], 4)
    assert found == Whole(TICKET, 6, frozenset(TopicPartition("t", number) for number in range(3)), "query")
    assert ticket_of([None, SECOND]) == TICKET


def test_a_committed_batch_needs_no_further_commit() -> None:
    repeated = [dataclasses.replace(message, rows=0, counts={}, repeated=True) for message in (FIRST, SECOND)]
    assert whole(repeated, 4) is None
    assert ticket_of(repeated) is None
    assert whole([], 4) is None
    assert ticket_of([]) is None


BROKEN: list[tuple[list[Written | None], str]] = [
    ([FIRST, None], "missing from 1 of 2 tasks"),
    ([FIRST, dataclasses.replace(SECOND, batch_id=5)], "the tasks wrote batch 4 and 5, Spark commits batch 4"),
    ([FIRST, dataclasses.replace(SECOND, ticket=TICKET._replace(producer_epoch=4))], "wrote to different transactions"),
    ([FIRST, dataclasses.replace(SECOND, ticket=None)], "wrote to different transactions"),
    ([FIRST, dataclasses.replace(SECOND, repeated=True)], "wrote to different transactions"),
    ([FIRST, dataclasses.replace(SECOND, rows=2)], "task 1 had 2 rows and 1 acknowledgements"),
]


@pytest.mark.parametrize(("messages", "error"), BROKEN)
def test_an_incomplete_batch_is_not_committed(messages: list[Written | None], error: str) -> None:
    with pytest.raises(KafkaError, match=error):
        whole(messages, 4)


def test_an_error_names_two_owners_of_a_partition() -> None:
    with pytest.raises(ConfigurationError, match=r"tasks 0 and 1 both wrote to t\[2\].*one_owner"):
        whole([FIRST, dataclasses.replace(SECOND, counts={("t", 2): 1})], 4)
