"""A replay of Parquet that is no archive: Spark reads it, the sink writes it, in one go.

It needs the sink's columns: value, and as far as they are there key, headers, timestamp, partition and topic. Records
of one file keep their order where Spark reads the file in one task.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.jobs.progress import Progress
from aiokwire.spark.jobs.spark_session import ask
from aiokwire.spark.jobs.stopping import Stop, tasks, told
from aiokwire.spark.options import Delivery, SinkOptions
from aiokwire.spark.sink.partition_owner import one_owner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "replay-name"
RUN: Final = "all"


@dataclasses.dataclass(frozen=True)
class Frames:
    """What is written, and how."""

    path: str
    topic: str | None
    options: Mapping[str, str]
    """Of the sink, with the servers."""
    sink: SinkOptions
    rekey: bool
    checkpoint: Store | None


def write(spark: SparkSession, frames: Frames, stop: Stop, progress: Progress) -> int:
    """How many records there are, all of them written.

    Raises: ConfigurationError: there is no Parquet, or not with the sink's columns; Stopped; JobFailed.
    """
    try:
        frame = spark.read.parquet(frames.path)
    except Exception as error:
        raise told(error) from error
    if frames.rekey:
        frame = frame.drop("partition")
    given = dict(frames.options) | ({"topic": frames.topic} if frames.topic is not None else {})
    if frames.sink.delivery is Delivery.EXACTLY_ONCE:
        assert frames.checkpoint is not None
        if frames.topic is None:
            raise ConfigurationError("delivery=exactly-once of Parquet that is no archive needs the topic to write to")
        frame = one_owner(frame, ask(frames.sink.producer, lambda client: count_partitions(client, frames.topic or "")))
        given |= {"delivery": "exactly-once", "sink.id": name_of(frames.checkpoint), "run.id": RUN}
    writer: Any = frame.write.format("aiokwire").mode("append").options(**given)

    def tick() -> None:
        progress.update(*tasks(spark), "tasks")

    stop.job(spark, writer.save, tick=tick)
    return stop.job(spark, frame.count)


def name_of(checkpoint: Store) -> str:
    """The replay's name, the same whenever it is started with this checkpoint."""
    data = checkpoint.read(NAME)
    if data is None:
        data = f"aiokwire-replay-{uuid.uuid4().hex[:16]}".encode()
        checkpoint.replace(NAME, data)
    return data.decode()


async def count_partitions(client: Client, topic: str) -> int:
    """How many a topic has.

    Raises: KafkaError: it is not there.
    """
    cluster = await client.metadata.wait_for_topics([topic], client.config.request_timeout)
    return len(cluster.topics[topic].partitions)
