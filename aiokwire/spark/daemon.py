"""Spark's daemon for Python workers, which loads what a task needs before it forks: `spark.python.daemon.module`.

Spark's own daemon forks first. Each worker then loads PySpark, pyarrow and aiokwire by itself, and again after a minute
without tasks. The setting is for executors; it is harmless where other data sources and functions run in the session.
"""

from __future__ import annotations

import pyspark.worker  # noqa: F401 - what a worker runs
from pyspark import daemon
from pyspark.sql.worker import plan_data_source_read, write_into_data_source  # noqa: F401 - made the tasks of sources

from aiokwire.consumer import ConsumerConfig  # noqa: F401 - what pickled options are made of
from aiokwire.producer import ProducerConfig  # noqa: F401
from aiokwire.spark import compat
from aiokwire.spark.sink import writer  # noqa: F401 - what the tasks call
from aiokwire.spark.source import batch  # noqa: F401 - what the tasks call

if compat.HAS_STREAM_WRITES:
    from aiokwire.spark.sink import stream_writer  # noqa: F401
if compat.HAS_STREAM_READS:
    from aiokwire.spark.source import stream  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
