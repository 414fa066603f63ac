"""The check of a pipeline's topics, before Spark starts. Used by `pipeline`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Client
from aiokwire.errors import ConfigurationError
from aiokwire.protocol.messages import metadata
from aiokwire.spark.jobs.spark_session import ask
from aiokwire.spark.options import SourceOptions, parse_sink, parse_source
from aiokwire.spark.pipelines.declaration import Pipeline
from aiokwire.spark.source.lookup import TOPIC_PATIENCE, TOPIC_PAUSE, Lookup


@dataclasses.dataclass(frozen=True)
class Survey:
    """The clusters and topics of a pipeline."""

    clusters: Mapping[str, str | None]
    """The cluster id of each source; None if the broker is too old to have one."""
    partitions: Mapping[str, int]
    """Of each sink's topic, by the sink's name."""


def survey(pipeline: Pipeline) -> Survey:
    """Look up every topic that the pipeline names.

    Raises: ConfigurationError: a topic does not exist; the message names its source or sink;
        KafkaError: a broker cannot be reached, or refuses.
    """
    clusters: dict[str, str | None] = {}
    for source in pipeline.sources:
        options = parse_source(source.spark_options(pipeline.bootstrap), streaming=True)
        try:
            clusters[source.name] = ask(options.consumer, functools.partial(_of_source, options))
        except ConfigurationError as error:
            raise ConfigurationError(f"source {source.name!r}: {error}") from None
    partitions: dict[str, int] = {}
    for sink in pipeline.sinks:
        if sink.topic is None:
            continue
        producer = parse_sink(sink.spark_options(pipeline.bootstrap)).producer
        count = ask(producer, functools.partial(_partitions, sink.topic))
        if not count:
            raise ConfigurationError(
                f"sink {sink.name!r}: topic {sink.topic!r} does not exist: create it, for example with "
                f"`aiokwire topics create {sink.topic} --partitions 4`"
            )
        partitions[sink.name] = count
    return Survey(clusters, partitions)


async def _of_source(options: SourceOptions, client: Client) -> str | None:
    await Lookup(client, options).partitions()
    answer = await client.request(metadata.MetadataRequest(topics=[]), timeout=options.consumer.default_api_timeout)
    return answer.cluster_id


async def _partitions(topic: str, client: Client) -> int:
    """Return the partition count of a topic; 0 if it does not exist within `TOPIC_PATIENCE`."""
    deadline = Deadline(TOPIC_PATIENCE, "looking for a topic")
    while True:
        asked = [metadata.MetadataRequestTopic(name=topic)]
        answer = await client.request(metadata.MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        found = next((each.partitions for each in answer.topics if each.name == topic), None)
        if found or deadline.expired:
            return len(found or ())
        await anyio.sleep(TOPIC_PAUSE)
