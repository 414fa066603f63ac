"""A daemon for Spark's Python workers that imports before it forks: `spark.python.daemon.module`.

Spark's own daemon forks first: each worker then imports PySpark, pyarrow and aiokwire itself, and
again after a minute without tasks. The setting is for executors; it does not affect other data
sources and functions of the session.
"""

from __future__ import annotations

import pyspark.worker  # noqa: F401 - run by each worker
from pyspark import daemon
from pyspark.sql.worker import plan_data_source_read, write_into_data_source  # noqa: F401 - plan sources and sinks

from aiokwire.consumer import ConsumerConfig  # noqa: F401 - part of the pickled options
from aiokwire.producer import ProducerConfig  # noqa: F401
from aiokwire.spark import compat
from aiokwire.spark.sink import writer  # noqa: F401 - called by the tasks
from aiokwire.spark.source import batch  # noqa: F401 - called by the tasks

if compat.HAS_STREAM_READS:
    from aiokwire.spark.source import stream  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
