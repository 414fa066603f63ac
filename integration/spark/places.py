"""Where the exactly-once sink is killed: each request of its protocol, at each moment, with whoever can die then."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

from aiokwire.protocol import ApiKey
from integration.spark.proxy import Moment

DRIVER: Final = "driver"
WORKER: Final = "worker"
ALL: Final = "all"
"""Driver and workers: the machine is gone."""
BROKER: Final = "broker"
"""Sends requests of its own: a coordinator tells the partitions how a transaction ended."""

_EACH: Final = tuple(Moment)
_TWICE: Final = (Moment.BEFORE, Moment.AFTER)  # of requests that have no effect: late is as good as never


@dataclasses.dataclass(frozen=True)
class Kill:
    """At which request, whose, at which moment of it, who dies."""

    api: ApiKey
    sender: str
    moment: Moment
    whom: str
    nth: int = 1
    """Of the requests of this kind from the beginning of a batch on."""
    aborting: bool = False
    """A worker was killed first, so that the driver is about to abort."""

    def __str__(self) -> str:
        number = f" {self.nth}" if self.nth > 1 else ""
        step = f"{self.sender}'s {self.api.name}{number}{' in an abort' if self.aborting else ''}"
        return f"{step}, {self.moment.value}: {self.whom} killed"


def places(*, second: bool, markers: bool) -> list[Kill]:
    """All of them, in the order of the protocol. `second`: of transactions (KIP-890), which does without
    AddPartitionsToTxn and AddOffsetsToTxn of clients. `markers`: the broker sends them by the network."""
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
    if not second:
        worker(ApiKey.ADD_PARTITIONS_TO_TXN)
    worker(ApiKey.PRODUCE)
    worker(ApiKey.PRODUCE, nth=2)
    worker(ApiKey.PRODUCE, nth=5)
    driver(ApiKey.FIND_COORDINATOR, _TWICE, 3)
    driver(ApiKey.DESCRIBE_TRANSACTIONS, _TWICE)
    if not second:
        driver(ApiKey.ADD_OFFSETS_TO_TXN)
    driver(ApiKey.FIND_COORDINATOR, _TWICE, 4)
    driver(ApiKey.TXN_OFFSET_COMMIT)
    driver(ApiKey.END_TXN)
    if markers:
        found.extend(Kill(ApiKey.WRITE_TXN_MARKERS, BROKER, moment, DRIVER) for moment in _EACH)
    driver(ApiKey.INIT_PRODUCER_ID, aborting=True)
    return found
