"""Stops are a flag that each wait checks; Spark's error reports become one line."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from aiokwire.errors import ConfigurationError
from aiokwire.spark.jobs.stopping import JobFailed, Stop, Stopped, one_line, reason


def test_the_first_signal_requests_a_stop_and_the_second_interrupts() -> None:
    stop = Stop()
    before = signal.getsignal(signal.SIGINT)
    with stop.on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.requested, stop.signal) == (True, signal.SIGTERM)
        with pytest.raises(Stopped):
            stop.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_pause_ends_when_a_stop_is_requested() -> None:
    stop = Stop()
    waiting = threading.Thread(target=stop.pause, args=(600,))
    waiting.start()
    stop.request()
    waiting.join(10)
    assert not waiting.is_alive()


def test_the_reason_of_a_failure_is_the_line_of_our_own_error_if_there_is_one() -> None:
    trace = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: Job aborted\n"
        "Traceback (most recent call last):\n  File x\naiokwire.spark.fetching.LostData: orders[0]: 3 is gone\n\n"
        "\tat org.apache.spark.Foo\n"
    )
    assert reason(trace) == "orders[0]: 3 is gone"
    without_traceback = (
        "[X] Failed to create it: aiokwire.errors.ConfigurationError: no option 'a': try 'b'\n SQLSTATE: 1"
    )
    assert reason(without_traceback) == "no option 'a': try 'b'"
    assert reason("Traceback\nKeyError: 'x'\nValueError: bad\n\tat z") == "ValueError: bad"
    assert reason("An error occurred.\n: org.spark.NotFoundException: [X] no\n\tat y") == (
        "org.spark.NotFoundException: [X] no"
    )
    assert reason("\n  something else\n") == "something else"
    assert reason("") == "Spark gives no reason"


def test_errors_that_are_not_sparks_stay_as_they_are() -> None:
    ours = ConfigurationError("no")
    assert one_line(ours) is ours
    theirs = ValueError("no")
    assert one_line(theirs) is theirs


def _fail(_number: int) -> int:
    raise ConfigurationError("no such thing")


def _wait_for(path: str) -> Any:
    def task(number: int) -> int:
        Path(path).touch()
        threading.Event().wait(60)
        return number

    return task


@pytest.mark.timeout(60)
def test_a_job_returns_its_result_fails_with_one_line_or_is_cancelled(spark: SparkSession, tmp_path: Path) -> None:
    stop = Stop()
    context = spark.sparkContext
    ticks: list[int] = []
    assert stop.job(spark, lambda: spark.range(10).count(), tick=lambda: ticks.append(1)) == 10
    with pytest.raises(JobFailed, match=r"^no such thing$"):
        stop.job(spark, lambda: context.parallelize([1], 1).map(_fail).collect())
    started = tmp_path / "started"

    def stop_when_started() -> None:
        if started.exists():
            stop.request()

    with pytest.raises(Stopped):
        stop.job(
            spark, lambda: context.parallelize([1], 1).map(_wait_for(str(started))).collect(), tick=stop_when_started
        )
    with pytest.raises(Stopped):
        stop.job(spark, lambda: 1)


@pytest.mark.timeout(60)
def test_a_stopped_stream_ends_after_its_microbatch_and_a_failed_one_reports_why(
    spark: SparkSession, tmp_path: Path
) -> None:
    stop = Stop()
    rates = spark.readStream.format("rate").option("rowsPerSecond", 100).load()

    def begin(frame: DataFrame, name: str) -> StreamingQuery:
        return frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / name)).start()

    query = begin(rates, "good")

    def stop_when_it_runs() -> None:
        if query.lastProgress is not None:
            stop.request()

    stop.query(query, tick=stop_when_it_runs)
    assert not query.isActive
    assert query.exception() is None
    failing = begin(rates.selectExpr("assert_true(value < 0, 'not that')"), "bad")
    with pytest.raises(JobFailed, match="not that"):
        Stop().query(failing)
