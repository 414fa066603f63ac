"""The driver's lookups: existing partitions, and the offsets where logs begin, end, or pass a time.

Used by the readers. Decisions about the responses are in `planning`.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import EARLIEST, LATEST, Client, list_offsets, new_fetch_request
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConfigurationError, UnsupportedVersion, error_for
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import metadata
from aiokwire.records import scan_batches
from aiokwire.spark.offsets import Kind, Offsets, Place
from aiokwire.spark.options import SourceOptions, Topics
from aiokwire.spark.source.fetching import LANE
from aiokwire.types import TopicPartition

logger: logging.Logger = logging.getLogger(__name__)

# How long to wait for an unknown topic (seconds), which may just have been created.
TOPIC_PATIENCE: Final = 3.0
TOPIC_PAUSE: Final = 0.1

_PERMANENT: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})

# The size of the fetch that estimates the bytes of an offset.
PROBE_BYTES: Final = 256 * 1024


class Lookup:
    """Lookups in the topics of one job."""

    def __init__(self, client: Client, options: SourceOptions) -> None:
        self._client = client
        self._options = options
        self._timeout = options.consumer.default_api_timeout

    # --- partitions ---------------------------------------------------------------------------------------------------

    async def partitions(self) -> tuple[list[TopicPartition], dict[str, bytes]]:
        """Return the job's partitions, and the ids of its topics where the brokers have ids.

        Partitions that `assign` names and that do not exist are left out, as in spark-sql-kafka.

        Raises: ConfigurationError: a topic of the job does not exist, or none of its partitions.
        """
        chosen = self._options.topics
        described = await self._described(chosen)
        if dead_letter_topic := self._options.decoding.dead_letter_topic:
            await self._described(Topics(names=(dead_letter_topic,)))
        found = sorted(
            TopicPartition(name, each.partition_index) for name, topic in described.items() for each in topic.partitions
        )
        if chosen.partitions:
            found = _assigned(chosen.partitions, found)
        ids = {name: topic.topic_id for name, topic in described.items() if topic.topic_id != ZERO_UUID}
        return found, ids

    async def _described(self, chosen: Topics) -> dict[str, metadata.MetadataResponseTopic]:
        """Describe the topics, with a request each time: the client's metadata may be older."""
        if chosen.pattern:
            pattern = re.compile(chosen.pattern)
            answer = await self._client.request(metadata.MetadataRequest(topics=None), timeout=self._timeout)
            return {
                topic.name: topic
                for topic in answer.topics
                if topic.name is not None and not topic.is_internal and pattern.fullmatch(topic.name)
            }
        names = sorted({tp.topic for tp in chosen.partitions} or set(chosen.names))
        deadline = Deadline(min(TOPIC_PATIENCE, self._timeout), "looking for topics")
        while True:
            answer = await self._ask(names)
            missing = [topic for topic in answer.topics if not topic.partitions]
            if not missing:
                return {topic.name: topic for topic in answer.topics if topic.name is not None}
            if deadline.expired or missing[0].error_code in _PERMANENT:
                raise _not_there(missing[0])
            await anyio.sleep(TOPIC_PAUSE)

    async def _ask(self, names: Sequence[str]) -> metadata.MetadataResponse:
        topics = [metadata.MetadataRequestTopic(name=name) for name in names]
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            return await self._client.request(request, timeout=self._timeout)
        except UnsupportedVersion:  # before 0.11, the brokers' configuration decides whether topics are auto-created
            return await self._client.request(metadata.MetadataRequest(topics=topics), timeout=self._timeout)

    # --- offsets ------------------------------------------------------------------------------------------------------

    async def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return await self._at(dict.fromkeys(partitions, EARLIEST))

    async def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the ends; with read_committed, the last stable offsets."""
        return await self._at(dict.fromkeys(partitions, LATEST))

    async def _at(self, times: Mapping[TopicPartition, int]) -> Offsets:
        isolation = self._options.consumer.isolation
        answers = await list_offsets(self._client, times, isolation=isolation, timeout=self._timeout)
        return {tp: answer.offset for tp, answer in answers.items()}

    async def resolve(
        self,
        place: Place,
        partitions: Collection[TopicPartition],
        earliest: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
        *,
        is_end: bool,
    ) -> Offsets:
        """Resolve a place to offsets; other partitions are read from their start, or to their end.

        Raises: ConfigurationError: it names a partition that is not read, or a time after the last
            record; times are given for some partitions only.
        """
        if place.kind is Kind.EARLIEST:
            return dict(earliest)
        if place.kind is Kind.LATEST:
            return dict(latest)
        if place.kind is not Kind.TIMESTAMP:
            _check_named(place, partitions, self._options.topics.partitions)
        if place.kind is Kind.OFFSETS:
            edges = {EARLIEST: earliest, LATEST: latest}
            unnamed = LATEST if is_end else EARLIEST
            offsets = {tp: place.by_partition.get(tp, unnamed) for tp in partitions}
            return {tp: edges[offset][tp] if offset in edges else offset for tp, offset in offsets.items()}
        times = place.timestamps(partitions)
        found = await self._at({tp: times[tp] for tp in partitions})
        late = sorted(tp for tp, offset in found.items() if offset < 0)
        if late and not is_end and not self._options.fall_back_to_latest:
            raise ConfigurationError(
                f"{place.option}: {_some(late)} has no record at that time or later; "
                "startingOffsetsByTimestampStrategy=latest starts at the end there"
            )
        return {tp: latest[tp] if offset < 0 else offset for tp, offset in found.items()}

    async def later_than(self, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
        """Return each partition's first offset at or after a time, for those that have one."""
        found = await self._at(dict.fromkeys(partitions, timestamp))
        return {tp: offset for tp, offset in found.items() if offset >= 0}

    # --- bytes --------------------------------------------------------------------------------------------------------

    async def bytes_per_offset(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """Estimate the bytes of an offset on the wire, from the first batches at these places."""
        found: dict[TopicPartition, float] = {}

        async def probe(tp: TopicPartition, offset: int) -> None:
            if size := await self._probe(tp, offset):
                found[tp] = size

        async with anyio.create_task_group() as group:
            for tp, offset in places.items():
                group.start_soon(probe, tp, offset)
        return found

    async def _probe(self, tp: TopicPartition, offset: int) -> float:
        leader = self._client.cluster.leader(tp)
        if leader is None:
            return 0.0
        topic_id = self._client.cluster.topic_id(tp.topic) or ZERO_UUID
        connection = await self._client.connection(leader, LANE)
        request, version = new_fetch_request(
            connection.versions,
            {tp: offset},
            {tp: PROBE_BYTES},
            {tp.topic: topic_id},
            max_wait=0,
            max_bytes=PROBE_BYTES,
        )
        response = await connection.request(request, version=version)
        data = next((data for topic_ in response.responses for data in topic_.partitions), None)
        if data is None or data.error_code or not data.records:
            return 0.0  # the task reports the error
        batches = scan_batches(data.records, stop_at_fault=True)
        offsets = batches[-1].next_offset - batches[0].base_offset if batches else 0
        return sum(batch.size for batch in batches) / offsets if offsets else 0.0


def _not_there(topic: metadata.MetadataResponseTopic) -> Exception:
    if topic.error_code in _PERMANENT:
        return error_for(topic.error_code, f"topic {topic.name!r}", topic=topic.name, request="Metadata")
    return ConfigurationError(f"topic {topic.name!r} does not exist, or has no partitions")


def _assigned(wanted: Collection[TopicPartition], found: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return the wanted partitions that exist.

    Raises: ConfigurationError: none of them exists.
    """
    existing = set(found)
    missing = sorted(tp for tp in wanted if tp not in existing)
    if len(missing) == len(wanted):
        raise ConfigurationError(f"assign names {_some(missing)}, which the cluster does not have")
    if missing:
        _warn_missing(_some(missing))
    return sorted(existing.intersection(wanted))


@functools.lru_cache(maxsize=64)  # logged once: a stream looks it up before every microbatch
def _warn_missing(partitions: str) -> None:
    logger.warning("assign names %s, which the cluster does not have: the others are read", partitions)


def _check_named(place: Place, partitions: Collection[TopicPartition], assigned: Collection[TopicPartition]) -> None:
    """Raises: ConfigurationError: the place names other partitions, or has times for some only."""
    read, named = set(partitions), set(place.by_partition)
    if place.kind is Kind.TIMESTAMPS and read - named:
        raise ConfigurationError(f"{place.option} must name every partition: {_some(sorted(read - named))} is missing")
    if unread := sorted(named - read - set(assigned)):
        raise ConfigurationError(f"{place.option} names {_some(unread)}, which is not read")


def _some(partitions: list[TopicPartition]) -> str:
    more = f" and {len(partitions) - 5} more" if len(partitions) > 5 else ""
    return ", ".join(map(str, partitions[:5])) + more
