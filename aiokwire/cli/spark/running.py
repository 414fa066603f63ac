"""How a Spark verb runs: in a session, ended cleanly by Ctrl-C or SIGTERM, with its errors in one line."""

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
    """Run a pipeline, print its summary, and exit: 0 when it ended or was told to by SIGTERM, 130 after Ctrl-C.

    `work` gives back the summary, or None when it has printed what there is to print; a summary with an attribute
    `failed` that is true ends with status 1.
    """
    _require_pyspark()
    sys.exit(_status(work, title, master, conf, as_json))


def before_spark(work: Callable[[], T]) -> T:
    """What a verb can find wrong before it starts Spark, which takes seconds; it ends as `run` does."""
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

    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # about pandas, which is not used
    stop = Stop()
    try:
        with Progress(title) as progress:
            progress.update(note="starting Spark")
            spark = spark_session(title, master=master, conf=conf)
            try:
                with stop.on_signals():  # after Spark has started, which takes SIGINT for itself
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
