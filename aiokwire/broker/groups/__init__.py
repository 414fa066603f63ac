"""Consumer groups of the embedded broker: the classic protocol and the consumer protocol (KIP-848).

`coordinator` is the entry point.

    classic_*     group (data), decisions, protocol (moves groups), records
    consumer_*    group (data), decisions, protocol (moves groups), records; assignors
    both          requests, states, context
"""

from aiokwire.broker.groups.classic_group import CONSUMER, ClassicGroup, ClassicMember
from aiokwire.broker.groups.consumer_decisions import Heartbeat, HeartbeatResult
from aiokwire.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, Part, Parts, by_topic
from aiokwire.broker.groups.coordinator import Group, GroupCoordinator
from aiokwire.broker.groups.requests import Client, Committer, Join, Joined, Leaver, Reply, Sync, Synced, too_long
from aiokwire.broker.groups.states import ClassicState, ConsumerState, ReconciliationState

__all__ = [
    "CONSUMER",
    "ClassicGroup",
    "ClassicMember",
    "ClassicState",
    "Client",
    "Committer",
    "ConsumerGroup",
    "ConsumerMember",
    "ConsumerState",
    "Group",
    "GroupCoordinator",
    "Heartbeat",
    "HeartbeatResult",
    "Join",
    "Joined",
    "Leaver",
    "Part",
    "Parts",
    "ReconciliationState",
    "Reply",
    "Sync",
    "Synced",
    "by_topic",
    "too_long",
]
