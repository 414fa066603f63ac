"""A clean end that anybody may ask for: SIGINT, SIGTERM, or the caller.

    signal -> Stop.requested -> a batch job is cancelled, a stream ends after its microbatch, a pause ends at once

A signal only sets a flag, which a thread beside the job looks at: no call to the JVM is left half done.
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

# How often what waits looks whether it is to stop (seconds).
LOOK: Final = 0.1

# How an error of ours reads in the trace that Spark makes of what happened in a task.
_OURS: Final = re.compile(r"(?:^|: )aiokwire\.[\w.]+: (.+)$", re.MULTILINE)
_ANY: Final = re.compile(r"^(?:: )?([\w.]+(?:Error|Exception|Failed|Warning): .+)$", re.MULTILINE)


class Stopped(Exception):
    """A job was given up because a stop was asked for. Not an error; what was committed before stays."""


class JobFailed(KafkaError):
    """A Spark job failed; the message is what its task or Spark said, the cause has the rest."""


class Stop:
    """Whether a pipeline is to end. May be asked from any thread."""

    def __init__(self) -> None:
        self.requested = False
        self.signal: int | None = None

    def request(self) -> None:
        """Ask for the end."""
        self.requested = True

    def check(self) -> None:
        """Raises: Stopped: the end was asked for."""
        if self.requested:
            raise Stopped("stopped")

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask for it within the block; a second SIGINT interrupts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread is told of signals
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
        """Wait, until a stop is asked for at most."""
        end = time.perf_counter() + seconds
        while not self.requested and (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, LOOK))

    # --- what waits for Spark -----------------------------------------------------------------------------------------

    def job(self, spark: SparkSession, work: Callable[[], T], *, tick: Callable[[], None] | None = None) -> T:
        """Run an action of Spark, cancelled when a stop is asked for; `tick` is called now and then meanwhile.

        Raises: Stopped: it was cancelled; JobFailed: Spark says that it failed; whatever else `work` raises.
        """
        self.check()
        context = spark.sparkContext
        tag = f"aiokwire-{uuid.uuid4().hex}"

        done = threading.Event()

        def watch() -> None:
            while not done.wait(LOOK):
                if self.requested:
                    context.cancelJobsWithTag(tag)  # again until it ends: it may start its next job in between
                elif tick is not None:
                    tick()

        # The work stays in the caller's thread, to which Spark has bound the session and its local properties.
        watching = start_thread(watch, name="aiokwire-watch")
        context.addJobTag(tag)
        try:
            return work()
        except Exception as error:
            self.check()
            raise told(error) from error
        finally:
            done.set()
            watching.result()
            context.removeJobTag(tag)

    def query(self, query: StreamingQuery, *, tick: Callable[[], None] | None = None) -> None:
        """Wait for a stream's end; when a stop is asked for, end it after the microbatch that it is in.

        Raises: JobFailed: the query failed.
        """
        last: int | None = None  # the microbatch that had ended when the stop was first seen
        try:
            while not query.awaitTermination(LOOK):  # type: ignore[arg-type]  # PySpark takes parts of a second too
                if self.requested:
                    done = _last_batch(query)
                    last = done if last is None else last
                    if done > last or not query.status["isTriggerActive"]:
                        query.stop()
                elif tick is not None:
                    tick()
        except Exception as error:
            raise told(error) from error


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def tasks(spark: SparkSession) -> tuple[int, int]:
    """How many tasks of the running stages are done, and how many there are."""
    tracker = spark.sparkContext.statusTracker()
    stages = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def told(error: Exception) -> Exception:
    """Spark's account of a failure as an error with one line; other errors as they are."""
    if isinstance(error, KafkaError):
        return error
    home = type(error).__module__
    if not home.startswith(("py4j", "pyspark")):
        return error
    return JobFailed(reason("\n".join(_texts(error))))


def _texts(error: BaseException) -> Iterator[str]:
    """What an error says, then what its causes say: that of a stream is "Writing job failed" by itself."""
    yield str(error)
    cause = getattr(error, "_cause", None) or error.__cause__
    if cause is not None:
        yield from _texts(cause)


def reason(trace: str) -> str:
    """The line of a trace that says what was wrong: ours where there is one, else the last that names an error."""
    for pattern in (_OURS, _ANY):
        if found := pattern.findall(trace):
            return str(found[-1]).strip()
    return next((text.strip() for text in trace.splitlines() if text.strip()), "Spark gives no reason")
