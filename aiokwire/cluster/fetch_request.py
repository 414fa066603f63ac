"""Builds a Fetch request without a session, for callers that keep their own offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiokwire.net import ApiVersions
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch
from aiokwire.types import IsolationLevel, TopicPartition

FIRST_VERSION_WITH_IDS: Final = fetch.FetchRequest.FIRST_VERSION_WITH["topic_id"]  # and without names (KIP-516)
FIRST_ISOLATED_VERSION: Final = 4


def new_fetch_request(
    versions: ApiVersions,
    offsets: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, int],
    ids: Mapping[str, bytes],
    *,
    max_wait: float,
    max_bytes: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    min_bytes: int = 1,
    rack: str = "",
) -> tuple[fetch.FetchRequest, int]:
    """Build a request for these partitions, and choose its version by what the broker supports.

    `limits`: bytes by partition; `ids`: a topic's id, all zeros where it has none: then the request
    names topics; `max_wait`: how long the broker may wait for `min_bytes`, in seconds.

    Raises: UnsupportedVersion: the broker has no common version.
    """
    by_name = ZERO_UUID in ids.values()
    version = versions.pick(fetch.FetchRequest, FIRST_VERSION_WITH_IDS - 1 if by_name else None)
    topics = {name: fetch.FetchTopic(topic=name, topic_id=topic_id) for name, topic_id in ids.items()}
    for tp, offset in offsets.items():
        topics[tp.topic].partitions.append(
            fetch.FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=limits[tp])
        )
    request = fetch.FetchRequest(
        max_wait_ms=int(max_wait * 1000),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(isolation) if version >= FIRST_ISOLATED_VERSION else 0,
        session_epoch=-1,
        rack_id=rack,
        topics=list(topics.values()),
    )
    return request, version
