"""A job on a cluster of one executor without aiokwire; prints the error that the user sees.

Run by its test.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main(servers: str, topic: str) -> None:
    builder: Any = SparkSession.builder
    session = (
        builder.master("local-cluster[1,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.format("aiokwire").option("kafka.bootstrap.servers", servers).option("subscribe", topic).load()
    try:
        print(frame.collect())
    except PySparkException as error:
        print(error)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
