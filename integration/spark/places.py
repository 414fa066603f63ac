"""The kills of the exactly-once sink, by request, moment and process."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

from aiokwire.protocol import ApiKey
from integration.spark.proxy import Moment

DRIVER: Final = "driver"
WORKER: Final = "worker"
ALL: Final = "all"
"""Driver and workers, as when the machine fails."""
BROKER: Final = "broker"
"""Sends requests itself: a coordinator writes the markers of a transaction to its partitions."""

_EACH: Final = tuple(Moment)
_TWICE: Final = (Moment.BEFORE, Moment.AFTER)  # for requests without effect, for which LATE equals BEFORE


@dataclasses.dataclass(frozen=True)
class Kill:
    """A kill: the request and its sender, the moment, and the process that dies."""

    api: ApiKey
    sender: str
    moment: Moment
    whom: str
    nth: int = 1
    """The number of the request among those of its kind since the start of the batch."""
    aborting: bool = False
    """A worker was killed first, so that the driver is about to abort."""

    def __str__(self) -> str:
        number = f" {self.nth}" if self.nth > 1 else ""
        step = f"{self.sender}'s {self.api.name}{number}{' in an abort' if self.aborting else ''}"
        return f"{step}, {self.moment.value}: {self.whom} killed"


def places(*, transaction_v2: bool, markers: bool) -> list[Kill]:
    """Return all kills, in the order of the protocol.

    `transaction_v2`: clients use KIP-890, without AddPartitionsToTxn and AddOffsetsToTxn.
    `markers`: the broker sends transaction markers over the network.
    """
    found: list[Kill] = []

    def driver(api: ApiKey, moments: tuple[Moment, ...] = _EACH, nth: int = 1, *, aborting: bool = False) -> None:
        found.extend(Kill(api, DRIVER, moment, DRIVER, nth, aborting) for moment in moments)

    def worker(api: ApiKey, moments: tuple[Moment, ...] = _EACH, nth: int = 1) -> None:
        whom = (WORKER, DRIVER, ALL)
        found.extend(Kill(api, WORKER, moment, who, nth) for moment, who in itertools.product(moments, whom))

    driver(ApiKey.FIND_COORDINATOR, _TWICE)
    driver(ApiKey.INIT_PRODUCER_ID)
    driver(ApiKey.FIND_COORDINATOR, _TWICE, 2)
    driver(ApiKey.OFFSET_FETCH, _TWICE)
    worker(ApiKey.METADATA, _TWICE)
    if not transaction_v2:
        worker(ApiKey.ADD_PARTITIONS_TO_TXN)
    worker(ApiKey.PRODUCE)
    worker(ApiKey.PRODUCE, nth=2)
    worker(ApiKey.PRODUCE, nth=5)
    driver(ApiKey.FIND_COORDINATOR, _TWICE, 3)
    driver(ApiKey.DESCRIBE_TRANSACTIONS, _TWICE)
    if not transaction_v2:
        driver(ApiKey.ADD_OFFSETS_TO_TXN)
    driver(ApiKey.FIND_COORDINATOR, _TWICE, 4)
    driver(ApiKey.TXN_OFFSET_COMMIT)
    driver(ApiKey.END_TXN)
    if markers:
        found.extend(Kill(ApiKey.WRITE_TXN_MARKERS, BROKER, moment, DRIVER) for moment in _EACH)
    driver(ApiKey.INIT_PRODUCER_ID, aborting=True)
    return found
