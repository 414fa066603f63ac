"""The client of a cluster: metadata, connections to its nodes, routing and retries of requests.

snapshot      immutable: brokers, topics, leaders  client      shared by producer, consumer, admin
metadata      refreshes the snapshot               router      routes and retries one request
schedule      when to refresh                      nodes       connections by node and lane
bootstrap     finds the cluster                    coordinators  lookup of coordinators
metrics       the metrics that all clients share
metrics_push  pushes them to brokers that ask           pushed_metrics  their contents
leaders       one request to each of many leaders  list_offsets  offsets by time
fetch, fetch_request  fetches without a session    supervisor  the task that owns all tasks
"""

from typing import TYPE_CHECKING

from aiokwire.cluster.client import Client
from aiokwire.cluster.config import ClientConfig, ClientOptions
from aiokwire.cluster.coordinators import CoordinatorKind
from aiokwire.cluster.fetch import Fetched
from aiokwire.cluster.fetch_request import new_fetch_request
from aiokwire.cluster.leaders import Answers, ask_leaders
from aiokwire.cluster.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    ask_leader,
    list_offsets,
)
from aiokwire.cluster.metrics import push_metrics
from aiokwire.cluster.nodes import COORDINATOR, JOIN, failure_level, retry_level
from aiokwire.cluster.router import ProduceUncertain
from aiokwire.cluster.snapshot import Broker, Cluster, Partition, Topic
from aiokwire.cluster.supervisor import Supervisor
from aiokwire.cluster.targets import ANY, CONTROLLER, Controller, Coordinator, Leader, Node, Target
from aiokwire.cluster.unclosed import Owner, Unclosed

if TYPE_CHECKING:  # loaded when a broker takes metrics
    from aiokwire.cluster.metrics_push import MetricsPush as MetricsPush

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
    "Answers",
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
    "Supervisor",
    "Target",
    "Topic",
    "Unclosed",
    "ask_leader",
    "ask_leaders",
    "failure_level",
    "list_offsets",
    "new_fetch_request",
    "push_metrics",
    "retry_level",
]
