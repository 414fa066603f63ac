"""What an audit asks the cluster beside the records: whether topics are compacted, and how far groups are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from aiokwire.admin import Admin, ConfigResource, ResourceType
from aiokwire.errors import AuthorizationError, KafkaError
from aiokwire.spark.audit.report import GroupLag
from aiokwire.types import TopicPartition

_POLICY: Final = "cleanup.policy"
# Groups that commit offsets as consumers do; old brokers tell no type, and a group without members no protocol.
_TYPES: Final = frozenset({"classic", "consumer", ""})
_PROTOCOLS: Final = frozenset({"consumer", ""})


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
    """How far groups are in these partitions, up to their ends; None: all consumer groups that may be looked at.

    Raises: AuthorizationError: a group that was named may not be looked at; KafkaError: a broker refuses.
    """
    if groups is not None:
        names = sorted(groups)
    else:
        listed = await admin.list_groups()
        names = [one.group_id for one in listed if one.type in _TYPES and one.protocol_type in _PROTOCOLS]
    found = []
    for name in names:
        try:
            committed = await admin.list_group_offsets(name)
        except AuthorizationError:
            if groups is not None:
                raise
            continue
        for tp, place in sorted(committed.items()):
            if tp in ends:
                lag = max(0, ends[tp] - place.offset)
                found.append(GroupLag(name, tp.topic, tp.partition, place.offset, ends[tp], lag))
    return found
