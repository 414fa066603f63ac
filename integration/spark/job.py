"""A query in the shape of Spark's: a driver that plans, commits and notes batches, and forked workers that write them.

`python -m integration.spark.job JSON` runs until all batches are noted, or ends with status 3 when one failed, as Spark
does; started again, it goes on behind what it noted. `kills.py` kills it, or a worker of it, wherever it likes.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import pickle
import sys
import uuid
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructType

from aiokwire.errors import KafkaError
from aiokwire.spark import exactly_once as steps
from aiokwire.spark.exactly_once import Opened, Place, Plan
from aiokwire.spark.messages import Written, whole
from aiokwire.spark.options import parse_sink
from aiokwire.spark.sink_columns import sink_columns
from aiokwire.spark.writing import Joining, run, write

FAILED = 3
COLUMNS = StructType().add("key", StringType()).add("value", StringType()).add("partition", IntegerType())


@dataclasses.dataclass(frozen=True)
class Job:
    """What the query is to do."""

    servers: str
    topic: str
    sink_id: str
    checkpoint: str
    batches: int
    tasks: int
    rows: int
    """Of each task in each batch."""

    def plan(self) -> Plan:
        options = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, "sink.id": self.sink_id}
        return steps.plan_of(parse_sink({**options, "delivery": "exactly-once"}), streaming=True)


def rows_of_task(job: Job, batch_id: int, task: int, attempt: str) -> Iterator[pa.RecordBatch]:
    """Each attempt of a batch has other values: a plan that is not deterministic."""
    for part in range(2):
        numbers = range(part, job.rows, 2)
        yield pa.record_batch(
            {
                "key": pa.array([None] * len(numbers), pa.string()),
                "value": [f"{batch_id} {task} {number} {attempt}" for number in numbers],
                "partition": pa.array([task] * len(numbers), pa.int32()),
            }
        )


def work(job: Job, opened: Opened, batch_id: int, task: int, attempt: str) -> Written:
    """A task, as `TransactionalSink.write` does it."""
    plan, place = job.plan(), Place(task, batch_id, "query")
    written = Written(task, 0, {}, opened.ticket, batch_id, "query")
    if steps.is_repeated(opened, place, plan):
        written.repeated = True
        return written
    columns = sink_columns(COLUMNS, job.topic)
    batches = rows_of_task(job, batch_id, task, attempt)
    tally = run(functools.partial(write, batches, plan.config, columns, Joining(opened.ticket, task)))
    written.rows, written.counts = tally.rows, tally.counts
    return written


def fork(job: Job, opened: Opened, batch_id: int, task: int, attempt: str) -> tuple[int, int]:
    """A worker process: its id, and where its message will be read."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writes)
        return pid, reads
    status = FAILED
    try:
        os.close(reads)
        message = pickle.dumps(work(job, opened, batch_id, task, attempt))
        os.write(writes, message)
        status = 0
    except KafkaError as error:
        print(f"task {task} of batch {batch_id}: {error}", file=sys.stderr)
    finally:
        os._exit(status)


def message_of(pid: int, reads: int) -> Written | None:
    """What a worker said; None when it failed or was killed."""
    with os.fdopen(reads, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        return None
    message = pickle.loads(data)
    assert isinstance(message, Written)
    return message


def run_batch(job: Job, batch_id: int) -> bool:
    """One microbatch; whether it was committed.

    Raises: KafkaError.
    """
    plan, attempt = job.plan(), uuid.uuid4().hex
    opened = run(functools.partial(steps.open_transaction, plan))
    workers = [fork(job, opened, batch_id, task, attempt) for task in range(job.tasks)]
    print("workers", *(pid for pid, _ in workers), flush=True)
    messages = [message_of(*worker) for worker in workers]
    if None in messages:
        run(functools.partial(steps.abort_transaction, plan, opened.ticket))
        return False
    found = whole(messages, batch_id)
    if found is not None:
        run(functools.partial(steps.commit_transaction, plan, found, batch_id))
    return True


def main(job: Job) -> int:
    folder = pathlib.Path(job.checkpoint)
    for batch_id in range(len(list(folder.iterdir())), job.batches):
        try:
            if not run_batch(job, batch_id):
                return FAILED
        except KafkaError as error:
            print(f"batch {batch_id}: {error}", file=sys.stderr)
            return FAILED
        (folder / str(batch_id)).touch()
        print("noted", batch_id, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Job(**json.loads(sys.argv[1]))))
