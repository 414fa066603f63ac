"""One process of a worker under chaos: `python -m integration.chaos.worker_process JOB`.

The outcome of a record is computed from its number, so that every process, and the check, agree.
Each event is appended to the process's journal at once, and survives its SIGKILL.
"""

from __future__ import annotations

import enum
import json
import logging
import os
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import uvloop

import aiokwire
from aiokwire import ConsumerRecord, Context, DeadLetter, RetryPolicy
from integration.chaos.diagnosis import dump_on_signal

EVENT: Final = struct.Struct("<dIB")  # time, number of the record, event
EXACTLY_ONCE: Final = "exactly-once"
AT_MOST_ONCE: Final = "at-most-once"
# With at-most-once a process that is killed loses what it has fetched: at most these, and one list of the consumer.
AT_MOST_ONCE_RECORDS: Final = 500
# With the other protocol the broker decides.
CLASSIC: Final[Any] = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}


class Event(enum.IntEnum):
    """An event of a record, in the journal of a process."""

    STARTED = 1
    DONE = 2
    FAILED = 3
    REJECTED = 4  # it goes to the dead-letter topic


@dataclass(frozen=True)
class Job:
    """The work of a process."""

    bootstrap_servers: str
    group: str
    source: str
    target: str
    journal: str
    delivery: str
    protocol: str
    concurrency: int
    longest_ms: int  # the longest time of a handler


def mixed(number: int) -> int:
    """Return 32 bits that look random."""
    return number * 2_654_435_761 % (1 << 32)


def is_rejected(number: int) -> bool:
    """Whether the handler always rejects this record: one of 1,000."""
    return mixed(number) % 1000 == 1


def fails_first(number: int) -> bool:
    """Whether the first attempt fails: one of 100."""
    return mixed(number) % 100 == 7


def new_worker(job: Job, journal: int) -> aiokwire.Worker:
    """Return the worker of this process."""
    is_early = job.delivery == AT_MOST_ONCE
    worker = aiokwire.Worker(
        job.bootstrap_servers,
        group_id=job.group,
        group_protocol=job.protocol,
        order="key",
        concurrency=job.concurrency,
        delivery=job.delivery,
        retry=RetryPolicy(attempts=1 if is_early else 5, backoff=0.01, backoff_max=0.1),
        max_in_flight_records=AT_MOST_ONCE_RECORDS if is_early else 10_000,
        **(CLASSIC if job.protocol == "classic" else {}),
        transaction_timeout_ms=10_000,
        bootstrap_timeout_ms=300_000,  # Kafka may take a minute to start on a busy machine
        shutdown_timeout_ms=5000,
        revoke_timeout_ms=5000,
    )

    def note(number: int, event: Event) -> None:
        os.write(journal, EVENT.pack(time.perf_counter(), number, event))

    @worker.handler(job.source)
    async def handle(record: ConsumerRecord[bytes, bytes], context: Context) -> None:
        number = int(record.value or b"")
        note(number, Event.STARTED)
        pause = mixed(number) // 1000 % (2 * job.longest_ms) - job.longest_ms
        if pause > 0:
            await anyio.sleep(pause / 1000)
        if is_rejected(number):
            note(number, Event.REJECTED)
            raise DeadLetter("refused by the chaos")
        if fails_first(number) and context.attempt == 1 and not is_early:
            note(number, Event.FAILED)
            raise ValueError("the first attempt fails")
        if job.delivery == EXACTLY_ONCE:
            await context.send(job.target, record.value, record.key)
        note(number, Event.DONE)

    return worker


async def main(job: Job) -> None:
    """Run until SIGTERM."""
    journal = os.open(job.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    worker = new_worker(job, journal)
    dump_on_signal(worker, Path(job.journal).with_suffix(".state"))
    await worker.run()


if __name__ == "__main__":
    given = Job(**json.loads(sys.argv[1]))
    logging.basicConfig(filename=Path(given.journal).with_suffix(".log"), format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("aiokwire").setLevel(logging.INFO)
    logging.getLogger("aiokwire.worker").setLevel(logging.ERROR)  # dead letters are expected
    uvloop.run(main(given))
