"""The service under test of `transactions.py`: copies a topic in transactions.

Reads its `Job` as JSON from its only argument. Writes lines to stdout: "started", "committed",
"aborted", and "done" at the end. Exits with status 3 when a newer instance has taken over.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import random
import sys
from contextlib import suppress
from typing import Final

import anyio
import uvloop

from aiokwire import (
    Consumer,
    ConsumerRecord,
    FencedError,
    Producer,
    TopicPartition,
    Transaction,
    TransactionAborted,
    TransactionFailed,
    transform,
)

FENCED: Final = 3
_LOOK_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.2

Records = list[ConsumerRecord[bytes, bytes]]


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """The work of a worker."""

    bootstrap_servers: str
    source: str
    target: str
    partitions: int
    inputs: int  # of each partition
    group: str
    transactional_id: str
    turn: int  # records of a transaction, at most
    abort_rate: float
    seed: int


class GaveUp(Exception):
    """The failure of a handler."""


class Worker:
    """One instance of the service."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rng = random.Random(job.seed)
        self._places = [TopicPartition(job.source, number) for number in range(job.partitions)]
        self._turn: list[tuple[int, int]] = []  # the records of the previous turn
        self._done = False

    async def run(self) -> None:
        """Run until all inputs are copied.

        Raises: FencedError, in a group: a newer instance took over.
        """
        job = self._job
        reader: Consumer[bytes, bytes] = Consumer(
            partitions=self._places,
            bootstrap_servers=job.bootstrap_servers,
            group_id=job.group,
            auto_offset_reset="earliest",
        )
        async with reader:
            while not self._done:
                try:
                    async with Producer(job.bootstrap_servers, transactional_id=job.transactional_id) as producer:
                        report("started")
                        await self._work(reader, producer)
                except* TransactionFailed as failed:  # the next producer aborts the transaction it left
                    print(failed.exceptions, file=sys.stderr)
        self._report_turn([])
        report("done")

    async def _work(self, reader: Consumer[bytes, bytes], producer: Producer[bytes, bytes]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_done, reader, tasks.cancel_scope)
            while True:
                with suppress(GaveUp), anyio.CancelScope() as scope:

                    async def work(records: Records, tx: Transaction, scope: anyio.CancelScope = scope) -> None:
                        await self._copy(records, tx, producer, scope)

                    await transform(reader, producer, work, max_records=self._job.turn, poll=_POLL_SECONDS)

    async def _copy(
        self, records: Records, tx: Transaction, producer: Producer[bytes, bytes], scope: anyio.CancelScope
    ) -> None:
        self._report_turn([(record.partition, record.offset) for record in records])
        fails = self._rng.random() < self._job.abort_rate
        for record in records[: self._rng.randrange(len(records) + 1)] if fails else records:
            await producer.submit(self._job.target, record.value, key=record.key, partition=record.partition)
        if fails:
            await self._abort(tx, producer, scope)

    async def _abort(self, tx: Transaction, producer: Producer[bytes, bytes], scope: anyio.CancelScope) -> None:
        """Abort in one of the ways that programs can."""
        if self._rng.random() < 0.5:
            await producer.flush()  # so that the broker has something to abort
        self._turn = []
        report("aborted")
        way = self._rng.randrange(4)
        if way == 0:
            raise GaveUp
        if way == 1:
            raise TransactionAborted("by its program")
        if way == 2:
            await tx.abort()
        else:
            scope.cancel()
            await anyio.sleep_forever()

    def _report_turn(self, turn: list[tuple[int, int]]) -> None:
        """Report the previous turn as committed, unless its records are delivered again."""
        if self._turn and self._turn[0] not in turn:
            report("committed")
        self._turn = turn

    async def _end_when_done(self, reader: Consumer[bytes, bytes], scope: anyio.CancelScope) -> None:
        while not self._done:
            await anyio.sleep(_LOOK_SECONDS)
            positions = [place.offset if place else 0 for place in reader.positions().values()]
            if min(positions) >= self._job.inputs:
                committed = (await reader.committed()).values()
                self._done = all(place is not None and place.offset >= self._job.inputs for place in committed)
        scope.cancel()


def report(what: str) -> None:
    """Write a line for the parent process."""
    print(what, flush=True)


async def _main(job: Job) -> int:
    try:
        await Worker(job).run()
    except* FencedError as fenced:
        print(fenced.exceptions, file=sys.stderr)
        return_code = FENCED
    else:
        return_code = 0
    return return_code


def main() -> int:
    """Run the worker process."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(process)d %(name)s %(message)s")
    return uvloop.run(_main(Job(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    sys.exit(main())
