"""A clean stop on SIGINT, SIGTERM, or a request of the caller.

    signal -> Stop.requested -> a batch job is cancelled, a stream ends after its microbatch,
        a pause ends at once

A signal only sets a flag, which a thread polls: no call to the JVM is interrupted.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

from aiokwire.errors import KafkaError
from aiokwire.threads import start_thread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

T = TypeVar("T")

# The interval at which the flag is polled (seconds).
LOOK: Final = 0.1

# An error of aiokwire, and any error, in the trace that Spark reports for a task.
_OURS: Final = re.compile(r"(?:^|: )aiokwire\.[\w.]+: (.+)$", re.MULTILINE)
_ANY: Final = re.compile(r"^(?:: )?([\w.]+(?:Error|Exception|Failed|Warning): .+)$", re.MULTILINE)


class Stopped(Exception):
    """A job was cancelled because a stop was requested. Not an error; earlier commits stay."""


class JobFailed(KafkaError):
    """A Spark job failed; the message is the error of its task or of Spark."""


class Stop:
    """The request to stop a job. May be set and read from any thread."""

    def __init__(self) -> None:
        self.requested: bool = False
        self.signal: int | None = None

    def request(self) -> None:
        """Request a stop."""
        self.requested = True

    def check(self) -> None:
        """Raises: Stopped: a stop was requested."""
        if self.requested:
            raise Stopped("stopped")

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Request a stop on SIGINT and SIGTERM in the block; a second SIGINT interrupts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread receives signals
            return

        def handle(number: int, _frame: FrameType | None) -> None:
            if self.requested and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.signal, self.requested = number, True

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def pause(self, seconds: float) -> None:
        """Sleep, but return as soon as a stop is requested."""
        end = time.perf_counter() + seconds
        while not self.requested and (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, LOOK))

    # --- waiting for Spark --------------------------------------------------------------------------------------------

    def job(self, spark: SparkSession, work: Callable[[], T], *, tick: Callable[[], None] | None = None) -> T:
        """Run an action of Spark, and cancel it on a stop; `tick` is called periodically.

        Raises: Stopped: it was cancelled; JobFailed: Spark reports a failure; other errors of
            `work`.
        """
        self.check()
        context = spark.sparkContext
        tag = f"aiokwire-{uuid.uuid4().hex}"

        done = threading.Event()

        def watch() -> None:
            while not done.wait(LOOK):
                if self.requested:
                    context.cancelJobsWithTag(tag)  # repeated: the action may start another job
                elif tick is not None:
                    tick()

        # The work runs in the caller's thread, to which Spark binds the session and its local properties.
        watching = start_thread(watch, name="aiokwire-watch")
        context.addJobTag(tag)
        try:
            return work()
        except Exception as error:
            self.check()
            raise one_line(error) from error
        finally:
            done.set()
            watching.result()
            context.removeJobTag(tag)

    def query(self, query: StreamingQuery, *, tick: Callable[[], None] | None = None) -> None:
        """Wait for a stream to end; on a stop, end it after its current microbatch.

        Raises: JobFailed: the query failed.
        """
        last: int | None = None  # the last finished microbatch when the stop was first seen
        try:
            while not query.awaitTermination(LOOK):  # type: ignore[arg-type]  # PySpark accepts fractions of a second
                if self.requested:
                    done = _last_batch(query)
                    last = done if last is None else last
                    if done > last or not query.status["isTriggerActive"]:
                        query.stop()
                elif tick is not None:
                    tick()
        except Exception as error:
            raise one_line(error) from error


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def tasks(spark: SparkSession) -> tuple[int, int]:
    """Return the counts of finished tasks and of all tasks in the running stages."""
    tracker = spark.sparkContext.statusTracker()
    stages = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def one_line(error: Exception) -> Exception:
    """Reduce an error of Spark to a JobFailed with one line; return other errors unchanged."""
    if isinstance(error, KafkaError):
        return error
    home = type(error).__module__
    if not home.startswith(("py4j", "pyspark")):
        return error
    return JobFailed(reason("\n".join(_texts(error))))


def _texts(error: BaseException) -> Iterator[str]:
    """Yield the messages of an error and its causes: a stream's own is "Writing job failed"."""
    yield str(error)
    cause = getattr(error, "_cause", None) or error.__cause__
    if cause is not None:
        yield from _texts(cause)


def reason(trace: str) -> str:
    """Return the last error of aiokwire in a trace, else the last of any other."""
    for pattern in (_OURS, _ANY):
        if found := pattern.findall(trace):
            return str(found[-1]).strip()
    return next((text.strip() for text in trace.splitlines() if text.strip()), "Spark gives no reason")
