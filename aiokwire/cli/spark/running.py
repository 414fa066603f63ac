"""Runs a Spark verb in a session: clean stops on SIGINT and SIGTERM, errors in one line."""

from __future__ import annotations

import importlib.util
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from aiokwire.cli.running import FAILED, INTERRUPTED
from aiokwire.errors import KafkaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import Progress, Stop

T = TypeVar("T")


def run(
    work: Callable[[SparkSession, Stop, Progress], object],
    *,
    title: str,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    as_json: bool = False,
) -> None:
    """Run a pipeline, print its summary, and exit: 0 after its end or SIGTERM, 130 after Ctrl-C.

    `work` returns the summary, or None if it has printed its output; if the summary has a true
    attribute `failed`, the status is 1.
    """
    _require_pyspark()
    sys.exit(_status(work, title, master, conf, as_json))


def before_spark(work: Callable[[], T]) -> T:
    """Run a verb's checks before Spark, which starts in seconds; exit on errors as `run` does."""
    _require_pyspark()
    try:
        return work()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except KafkaError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(FAILED)


def _require_pyspark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        print("error: the Spark verbs need pyspark: pip install 'aiokwire[spark]'", file=sys.stderr)
        sys.exit(FAILED)


def _status(
    work: Callable[[SparkSession, Stop, Progress], object],
    title: str,
    master: str | None,
    conf: Mapping[str, str] | None,
    as_json: bool,
) -> int:
    from aiokwire.spark.pipelines import Progress, Stop, Stopped, print_summary, spark_session

    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about pandas, which is unused
    stop = Stop()
    try:
        with Progress(title) as progress:
            progress.update(note="starting Spark")
            spark = spark_session(title, master=master, conf=conf)
            try:
                with stop.on_signals():  # after the start of Spark, which sets a handler for SIGINT
                    summary = work(spark, stop, progress)
            finally:
                progress.close()
                spark.stop()
        if summary is not None:
            print_summary(summary, as_json=as_json)
    except Stopped:
        return INTERRUPTED if stop.signal in (None, signal.SIGINT) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except KafkaError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    return FAILED if getattr(summary, "failed", False) else 0
