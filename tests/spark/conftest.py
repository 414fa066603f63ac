"""One Spark session and one embedded broker for all Spark tests: starting them takes seconds."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from aiokwire import Producer
from aiokwire.admin import Admin
from aiokwire.spark import compat
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.session import close_sessions

T = TypeVar("T")

# Tests of features that the installed PySpark does not have (see `integration.spark.versions`).
collect_ignore = [
    *([] if compat.HAS_STREAM_READS else ["test_stream.py"]),
    *([] if compat.HAS_FILTERS else ["test_pushdown.py"]),
]
Options = dict[str, str]


@contextlib.contextmanager
def broker_process(*options: str, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """Run an embedded broker in its own process, because the tests block on Spark."""
    command = [sys.executable, "-m", "aiokwire", "broker", "--listen", listen, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.kill()


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with broker_process() as servers:
        yield servers


def spark_home(place: pathlib.Path) -> pathlib.Path:
    """Copy the installed PySpark without its `pyspark.zip`.

    Spark puts the zip first in the path of each Python process it starts. Modules in a zip are
    compiled again in each process, which makes a start one second slower.
    """
    for each in pathlib.Path(pyspark.__file__).parent.iterdir():
        if each.name != "python":
            (place / each.name).symlink_to(each)
    return place


@pytest.fixture(scope="session")
def spark(monkeypatch_session: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("Spark needs Java 17 or newer")
    monkeypatch_session.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch_session.setenv("SPARK_HOME", str(spark_home(tmp_path_factory.mktemp("spark"))))
    builder: Any = SparkSession.builder
    session = (
        builder.master("local[2]")
        .appName("aiokwire tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # quick to start
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling takes longer than a few rows
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.eventLog.enabled", "true")  # test_secrets reads it
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", tmp_path_factory.mktemp("events").as_uri())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def monkeypatch_session() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture
def no_sessions() -> Iterator[None]:
    """Close the clients of this process at the end of the test."""
    yield
    close_sessions()


_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType().add("key", StringType()).add("value", BinaryType())),
}


def columns_of(options: SourceOptions, **decoded: DataType) -> StructType:
    """Return the columns that Spark parses from the source's DDL; Spark's parser is in the JVM."""
    types = _TYPES | decoded
    names = [*options.columns, *filter(None, [options.decoding.bad_record_column])]
    return StructType([StructField(name, types.get(name, BinaryType())) for name in names])


class Kafka:
    """The broker, as tests use it: topics with unique names, and their records."""

    _numbers = itertools.count()

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def run(self, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run(main())

    def topic(self, partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(self._numbers)}"
        self.create(name, partitions, **configs)
        return name

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        async def main() -> None:
            async with Admin(self.servers) as admin:
                await admin.create_topic(name, partitions, configs=configs)

        self.run(main)

    def delete(self, topic: str) -> None:
        async def main() -> None:
            async with Admin(self.servers) as admin:
                await admin.delete_topics([topic])

        self.run(main)

    def produce(self, topic: str, values: list[bytes | None], partition: int = 0, **options: Any) -> None:
        """Send the values with the same `options` of `submit`."""

        async def main() -> None:
            async with Producer(self.servers) as producer:
                for value in values:
                    await producer.submit(topic, value, partition=partition, **options)

        self.run(main)


@pytest.fixture
def kafka(servers: str) -> Kafka:
    return Kafka(servers)


class Reads:
    """Batch reads of a topic; option names have underscores for dots."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        self._spark = spark
        self._servers = servers

    def __call__(self, topic: str | None = None, **options: Any) -> DataFrame:
        reader = self._spark.read.format("aiokwire").option("kafka.bootstrap.servers", self._servers)
        if topic is not None:
            reader = reader.option("subscribe", topic)
        return reader.options(**{name.replace("__", "."): value for name, value in options.items()}).load()


@pytest.fixture
def read(spark: SparkSession, servers: str) -> Reads:
    return Reads(spark, servers)
