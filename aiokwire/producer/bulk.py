"""What `Producer.send_many` takes and gives back."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from aiokwire.errors import KafkaError
from aiokwire.producer._delivery import Delivery, outcomes
from aiokwire.types import Headers


class ProducerRecord(NamedTuple):
    """One record for `send_many`, where a value alone does not say enough."""

    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class SendManyResult:
    """What became of the records of one `send_many`."""

    topic: str
    delivered: int
    failed: int
    ranges: dict[int, list[tuple[int, int]]]
    """By partition: the offsets, first and last included, in order; none with acks=0."""
    errors: dict[int, KafkaError]
    """By partition: the first error of those that failed."""
    failures: list[tuple[int, int, KafkaError]]
    """What to look at or to send again: (first, last, error), places in what was given, in order."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.delivered + self.failed

    def raise_for_errors(self) -> None:
        """Nothing when all were delivered.

        Raises: KafkaError: the first error.
        """
        for error in self.errors.values():
            raise error


def summary(topic: str, runs: list[tuple[Delivery, int]]) -> SendManyResult:
    """The result of runs whose batches are done."""
    delivered = failed = 0
    ranges: dict[int, list[tuple[int, int]]] = {}
    errors: dict[int, KafkaError] = {}
    failures: list[tuple[int, int, KafkaError]] = []
    for partition, first, count, error in outcomes(runs):
        if error is not None:
            place = delivered + failed
            if failures and failures[-1][1] + 1 == place and failures[-1][2] is error:
                failures[-1] = (failures[-1][0], place + count - 1, error)
            else:
                failures.append((place, place + count - 1, error))
            failed += count
            errors.setdefault(partition, error)
            continue
        delivered += count
        extend_ranges(ranges, partition, first, count)
    return SendManyResult(topic, delivered, failed, ranges, errors, failures)


def extend_ranges(ranges: dict[int, list[tuple[int, int]]], partition: int, first: int, count: int) -> None:
    """More offsets of a partition; an unknown first one (-1) says nothing."""
    if first < 0:
        return
    known = ranges.setdefault(partition, [])
    if known and known[-1][1] + 1 == first:
        known[-1] = (known[-1][0], first + count - 1)
    else:
        known.append((first, first + count - 1))
