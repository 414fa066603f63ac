"""Administration: topics, settings, groups, the cluster, offsets.

admin        the public class       topics, configs, groups, cluster  values and messages by area
group_calls  requests about groups  offset_resets                     the offsets after a reset
calls        shared functions       results                           a value or error per item
"""

from aiokwire.admin.admin import Admin
from aiokwire.admin.cluster import BrokerDescription, ClusterDescription
from aiokwire.admin.config import AdminConfig
from aiokwire.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from aiokwire.admin.groups import GroupDescription, GroupListing, GroupMember, PartitionLag
from aiokwire.admin.offset_resets import OffsetChange, ResetTo
from aiokwire.admin.results import Results
from aiokwire.admin.topics import CreatedTopic, NewTopic, PartitionDescription, TopicDescription, TopicListing

__all__ = [
    "Admin",
    "AdminConfig",
    "BrokerDescription",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "CreatedTopic",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "NewTopic",
    "OffsetChange",
    "PartitionDescription",
    "PartitionLag",
    "ResetTo",
    "ResourceType",
    "Results",
    "TopicDescription",
    "TopicListing",
]
