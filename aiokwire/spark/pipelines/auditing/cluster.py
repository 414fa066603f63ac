"""What an audit asks the cluster beside the records: whether topics are compacted, and how far groups are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from aiokwire.admin import Admin, ConfigResource, ResourceType
from aiokwire.errors import KafkaError
from aiokwire.spark.pipelines.auditing.report import GroupLag
from aiokwire.types import TopicPartition

_POLICY: Final = "cleanup.policy"


async def compaction(admin: Admin, topics: Iterable[str]) -> dict[str, bool]:
    """Which topics are compacted; those that the broker does not tell about are left out."""
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    try:
        described = await admin.describe_configs(resources, [_POLICY])
    except KafkaError:
        return {}  # an old broker: the audit says then that it does not know
    found = {}
    for resource in resources:
        entry = described[resource].get(_POLICY) if resource not in described.errors else None
        if entry is not None and entry.value is not None:
            found[resource.name] = "compact" in entry.value
    return found


async def lags(admin: Admin, groups: Collection[str] | None, ends: Mapping[TopicPartition, int]) -> list[GroupLag]:
    """How far groups are in these partitions, up to their ends; None: all groups that the cluster knows.

    Raises: KafkaError: a broker refuses.
    """
    names = sorted(groups) if groups is not None else [one.group_id for one in await admin.list_groups()]
    found = []
    for name in names:
        for tp, committed in sorted((await admin.list_group_offsets(name)).items()):
            if tp in ends:
                lag = max(0, ends[tp] - committed.offset)
                found.append(GroupLag(name, tp.topic, tp.partition, committed.offset, ends[tp], lag))
    return found
