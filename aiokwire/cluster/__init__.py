"""Which broker: the picture of a cluster, the connections to its nodes, and requests that find their way.

snapshot      immutable: brokers, topics, leaders      client      what producer, consumer and admin stand on
metadata      keeps the snapshot fresh                 router      routes and retries one request
schedule      when to refresh                          nodes       connections by node and lane
bootstrap     the first contact, and the next          coordinators  who coordinates what
leaders       one question to many leaders             list_offsets  offsets by time
fetch, fetch_request  a piece of a log, without session  supervisor  the task that owns all tasks
"""

from aiokwire.cluster.client import Client
from aiokwire.cluster.config import ClientConfig, ClientOptions
from aiokwire.cluster.coordinators import CoordinatorKind
from aiokwire.cluster.fetch import Fetched
from aiokwire.cluster.fetch_request import new_fetch_request
from aiokwire.cluster.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ask_leader,
    list_offsets,
)
from aiokwire.cluster.nodes import COORDINATOR, JOIN, failure_level
from aiokwire.cluster.router import ProduceUncertain
from aiokwire.cluster.snapshot import Broker, Cluster, Partition, Topic
from aiokwire.cluster.targets import ANY, CONTROLLER, Controller, Coordinator, Leader, Node, Target
from aiokwire.cluster.unclosed import Owner, Unclosed

__all__ = [
    "ANY",
    "CONTROLLER",
    "COORDINATOR",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "JOIN",
    "LATEST",
    "LATEST_TIERED",
    "MAX_TIMESTAMP",
    "Broker",
    "Client",
    "ClientConfig",
    "ClientOptions",
    "Cluster",
    "Controller",
    "Coordinator",
    "CoordinatorKind",
    "Fetched",
    "Leader",
    "Node",
    "Owner",
    "Partition",
    "ProduceUncertain",
    "Target",
    "Topic",
    "Unclosed",
    "ask_leader",
    "failure_level",
    "list_offsets",
    "new_fetch_request",
]
