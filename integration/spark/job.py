"""A query without Spark: the sink's own classes in the same processes that Spark runs them in.

A driver plans a batch (pickles the sink), commits it (with another sink, as Spark does) or aborts
it, and notes it; forked workers write it. It exits with status 3 when a batch fails, as Spark's
query does; after a restart it continues after the last noted batch. `kills.py` kills the driver or
a worker at any request.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import IntegerType, StringType, StructType

from aiokwire.errors import KafkaError
from aiokwire.spark.options import parse_sink
from aiokwire.spark.sink.columns import sink_columns
from aiokwire.spark.sink.commit_messages import Written
from aiokwire.spark.sink.exactly_once import BATCH_ID, QUERY_ID
from aiokwire.spark.sink.writer import TransactionalSink

FAILED: Final = 3
COLUMNS: Final = StructType().add("key", StringType()).add("value", StringType()).add("partition", IntegerType())
_STOP: Final = "stop"
_PAUSE: Final = "pause"
_PAUSED: Final = "paused"
_POLL: Final = 0.005


@dataclasses.dataclass(frozen=True)
class Job:
    """The topic, size and checkpoint of the query."""

    servers: str
    topic: str
    checkpoint: str
    tasks: int
    rows: int
    """The rows of each task in each batch."""

    def sink(self) -> TransactionalSink:
        given = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.batch.size": "300",  # so that a task sends several requests
            "topic": self.topic,
            "sink.id": self.topic,
            "delivery": "exactly-once",
        }
        return TransactionalSink(parse_sink(given), sink_columns(COLUMNS, self.topic), streaming=True)

    @property
    def folder(self) -> pathlib.Path:
        return pathlib.Path(self.checkpoint)

    def noted(self) -> int:
        """Return the number of batches that the checkpoint notes as done."""
        return len([path for path in self.folder.iterdir() if path.name.isdecimal()])

    def stop(self) -> None:
        """Ask the query to end after a batch."""
        (self.folder / _STOP).touch()

    @property
    def stopped(self) -> bool:
        return (self.folder / _STOP).exists()

    def pause(self) -> None:
        """Ask the query to wait before its next batch."""
        (self.folder / _PAUSE).touch()

    @property
    def paused(self) -> bool:
        """Whether the query waits."""
        return (self.folder / _PAUSED).exists()

    def resume(self) -> None:
        """End the pause of a waiting query."""
        (self.folder / _PAUSED).unlink()
        (self.folder / _PAUSE).unlink()

    def await_turn(self) -> None:
        """Wait while a pause is requested."""
        while (self.folder / _PAUSE).exists():
            (self.folder / _PAUSED).touch()
            time.sleep(_POLL)


def rows_of_task(job: Job, batch_id: int, task: int, attempt: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an attempt.

    Each attempt has other values, as with a nondeterministic plan.
    """
    for part in range(2):
        numbers = range(part, job.rows, 2)
        yield pa.record_batch(
            {
                "key": pa.array([None] * len(numbers), pa.string()),
                "value": [f"{batch_id} {task} {number} {attempt}" for number in numbers],
                "partition": pa.array([task] * len(numbers), pa.int32()),
            }
        )


def work(job: Job, pickled: bytes, batch_id: int, task: int, attempt: str) -> Written:
    """Run a task with the context that Spark would pass."""
    context = object.__new__(TaskContext)
    properties = {BATCH_ID: str(batch_id), QUERY_ID: "query"}
    context.__dict__.update(_attemptNumber=0, _partitionId=task, _localProperties=properties)
    TaskContext._setTaskContext(context)
    sink = pickle.loads(pickled)
    assert isinstance(sink, TransactionalSink)
    return sink.write(rows_of_task(job, batch_id, task, attempt))


def fork(job: Job, pickled: bytes, batch_id: int, task: int, attempt: str) -> tuple[int, int]:
    """Fork a worker process; return its id and the pipe with its message."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writes)
        return pid, reads
    status = FAILED
    try:
        os.close(reads)
        message = pickle.dumps(work(job, pickled, batch_id, task, attempt))
        os.write(writes, message)
        status = 0
    except KafkaError as error:
        print(f"task {task} of batch {batch_id}: {error}", file=sys.stderr)
    finally:
        os._exit(status)


def message_of(pid: int, reads: int) -> Written | None:
    """Return the message of a worker; None if it failed or was killed."""
    with os.fdopen(reads, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        return None
    message = pickle.loads(data)
    assert isinstance(message, Written)
    return message


def run_batch(job: Job, batch_id: int) -> bool:
    """Run one microbatch; return whether it was committed.

    Raises: KafkaError.
    """
    attempt = uuid.uuid4().hex
    pickled = pickle.dumps(job.sink())
    workers = [fork(job, pickled, batch_id, task, attempt) for task in range(job.tasks)]
    messages = [message_of(*worker) for worker in workers]
    committer = job.sink()
    if None in messages:
        committer.abort(messages, batch_id)
        return False
    try:
        committer.commit(messages, batch_id)
    except KafkaError:
        committer.abort(messages, batch_id)
        raise
    return True


def main(job: Job, log: str) -> None:
    """Run the driver in its own process group, which includes its workers."""
    os.setpgid(0, 0)
    with open(log, "a", buffering=1) as sys.stderr:
        batch_id = job.noted()
        while not job.stopped:
            job.await_turn()
            try:
                if not run_batch(job, batch_id):
                    sys.exit(FAILED)
            except KafkaError as error:
                print(f"batch {batch_id}: {error}", file=sys.stderr)
                sys.exit(FAILED)
            (job.folder / str(batch_id)).touch()
            batch_id += 1
