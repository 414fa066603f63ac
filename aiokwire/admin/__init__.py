"""Administration: topics, settings, groups, the cluster, offsets, security.

admin   the public class       topics, configs, groups, cluster, acls, users, quotas, tokens:
calls   shared functions           values and messages by area
results a value or error per item  offset_resets  the offsets after a reset
topic_calls, configs, group_calls, record_calls, security_calls: requests by area
"""

from aiokwire.admin.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    PatternType,
)
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
from aiokwire.admin.quotas import ClientQuotaEntity, QuotaName
from aiokwire.admin.results import Results
from aiokwire.admin.tokens import DelegationToken
from aiokwire.admin.topics import CreatedTopic, NewTopic, PartitionDescription, TopicDescription, TopicListing
from aiokwire.admin.users import (
    ScramCredentialDeletion,
    ScramCredentialInfo,
    ScramCredentialUpsertion,
    ScramMechanism,
)

__all__ = [
    "CLUSTER_NAME",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AclResourceType",
    "Admin",
    "AdminConfig",
    "BrokerDescription",
    "ClientQuotaEntity",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "CreatedTopic",
    "DelegationToken",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "NewTopic",
    "OffsetChange",
    "PartitionDescription",
    "PartitionLag",
    "PatternType",
    "QuotaName",
    "ResetTo",
    "ResourceType",
    "Results",
    "ScramCredentialDeletion",
    "ScramCredentialInfo",
    "ScramCredentialUpsertion",
    "ScramMechanism",
    "TopicDescription",
    "TopicListing",
]
