"""Administration: topics, settings, the cluster, offsets.

admin     what users hold             topics, configs, cluster   values, requests and answers of one noun each
results   a result or error for each
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
    "NewTopic",
    "PartitionDescription",
    "ResourceType",
    "Results",
    "TopicDescription",
    "TopicListing",
]
