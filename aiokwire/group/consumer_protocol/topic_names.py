"""Looks up the names of topics by their ids: the coordinator of a KIP-848 group assigns topics by
id, also topics that match a pattern and are not in the client's metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

import anyio

from aiokwire.cluster import Client, failure_level
from aiokwire.errors import KafkaError, UnsupportedVersion
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import metadata

logger = logging.getLogger(__name__)

# The first version of Metadata with requests by topic id (KIP-516).
FIRST_VERSION_BY_ID: Final = 12
TIMEOUT: Final = 5.0  # seconds


async def names_of(client: Client, topic_ids: Collection[bytes]) -> dict[bytes, str]:
    """Return the names in the client's metadata or from one broker; one attempt."""
    found = {topic_id: name for topic_id in topic_ids if (name := client.cluster.topic_name(topic_id)) is not None}
    missing = sorted(set(topic_ids) - found.keys())
    if not missing:
        return found

    def ask(versions: ApiVersions) -> tuple[metadata.MetadataRequest, int]:
        version = versions.pick(metadata.MetadataRequest)
        if version < FIRST_VERSION_BY_ID:
            raise UnsupportedVersion("this broker does not support Metadata by topic id", request="Metadata")
        topics = [metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in missing]
        return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False), version

    try:
        with anyio.fail_after(TIMEOUT):
            answer = await client.ask_any(ask)
    except TimeoutError:
        return found
    except KafkaError as error:
        level = failure_level(error)
        logger.log(level, "the names of %d assigned topics are not known yet: %s", len(missing), error)
        return found
    found.update({topic.topic_id: topic.name for topic in answer.topics if topic.name and not topic.error_code})
    return found
