"""The broker's state: topics, logs, configs, producers, transactions, groups, offsets, sessions.

Independent of sockets. The broker opens one, handlers receive it with every call, tests may use it
without a connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from aiokwire.broker.client_metrics import ClientMetrics
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.fetch_sessions import FetchSessions
from aiokwire.broker.groups import GroupCoordinator
from aiokwire.broker.log import LogConfig, LogManager, Storage, Work
from aiokwire.broker.metrics import BrokerCounts
from aiokwire.broker.nodes import Node, Nodes
from aiokwire.broker.offsets import OffsetStore
from aiokwire.broker.peers import LastingErrors, PeerLog, RequestMemory, UnreadAnswers
from aiokwire.broker.producer_ids import ProducerIds
from aiokwire.broker.security import Authorizer, ClientQuotas, DelegationTokens, SecurityStore, new_authorizer
from aiokwire.broker.security.users import Users
from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.broker.topics import Partition, Topic
from aiokwire.broker.transactions import TransactionCoordinator
from aiokwire.broker.turns import Slices
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError, error_for
from aiokwire.security import Secret
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.broker.faults import Interceptor

logger: logging.Logger = logging.getLogger(__name__)


async def run_work(work: Work | None) -> None:
    """Run work in a thread, then finish it on the loop. Does nothing for None."""
    if work is not None:
        await run_in_thread(work.run)
        work.finish()


class BrokerState:
    """The broker without its sockets."""

    def __init__(
        self,
        storage: Storage,
        configs: BrokerConfigs,
        rng: random.Random,
        *,
        cluster_id: str | None = None,
        node_ids: Sequence[int] = (),
        receives_metrics: bool = False,
    ) -> None:
        """`node_ids`: the nodes; by default the one that the configs name. `receives_metrics`:
        clients may push theirs."""
        self.storage = storage
        self.configs = configs
        self.rng = rng
        self.node_id: int = configs.node_id
        self.logs: LogManager = LogManager(
            storage,
            config=LogConfig(),
            node_id=configs.node_id,
            cluster_id=cluster_id,
            producer_expiration_ms=configs.integer("producer.id.expiration.ms"),
            rng=rng,
        )
        slots = configs.integer("max.incremental.fetch.session.cache.slots")
        self.nodes: Nodes = Nodes([Node(one, FetchSessions(slots, rng)) for one in node_ids or (configs.node_id,)])
        self.plays_several: bool = len(self.nodes) > 1
        self.topics: TopicRegistry = TopicRegistry(storage, self.logs, configs, rng, place=self.nodes.place)
        self.producer_ids: ProducerIds = ProducerIds(storage)
        self.offsets: OffsetStore = OffsetStore(self.topics, configs)
        self.lasting_errors: LastingErrors = LastingErrors()
        self.groups: GroupCoordinator = GroupCoordinator(self.topics, configs, rng, self.offsets, self.lasting_errors)
        self.transactions: TransactionCoordinator = TransactionCoordinator(
            self.topics, configs, self.producer_ids, self.offsets.on_marker
        )
        self.security: SecurityStore = SecurityStore(storage)
        self.quotas: ClientQuotas = ClientQuotas(
            self.security,
            lambda: asyncio.get_running_loop().time(),
            windows=(configs.integer("quota.window.num"), configs.integer("quota.window.size.seconds")),
            mutations=(
                configs.integer("controller.quota.window.num"),
                configs.integer("controller.quota.window.size.seconds"),
            ),
        )
        secret_key = configs.text("delegation.token.secret.key")
        self.tokens: DelegationTokens = DelegationTokens(
            self.security,
            Secret(secret_key) if secret_key else None,
            wall_ms,
            max_lifetime_ms=configs.integer("delegation.token.max.lifetime.ms"),
            renewal_ms=configs.integer("delegation.token.expiry.time.ms"),
        )
        self.users: Users = Users(self.security)
        self.authorizer: Authorizer | None = new_authorizer(configs, self.security)
        self.counts: BrokerCounts = BrokerCounts()
        self.client_metrics: ClientMetrics | None = ClientMetrics(configs, rng) if receives_metrics else None
        self.unread: UnreadAnswers = UnreadAnswers()
        self.request_memory: RequestMemory = RequestMemory(configs.integer("queued.max.request.bytes"))
        self.slices: Slices = Slices()
        self.peer_log: PeerLog = PeerLog()
        self.log_dir: str = "memory"  # the data directory in responses, once it is open
        self.interceptor: Interceptor | None = None  # set by `Broker` while a test needs one

    @property
    def cluster_id(self) -> str:
        return self.logs.cluster_id

    def partitions(self) -> Iterator[Partition]:
        """Return every partition of every topic."""
        return (partition for topic in self.topics for partition in topic.partitions)

    def partition(self, topic: str, partition: int) -> Partition:
        """Return a partition.

        Raises: BrokerError: it does not exist.
        """
        found = self.topics.partition(topic, partition)
        if found is None:
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}[{partition}]", topic=topic, partition=partition
            )
        return found

    def open(self) -> None:
        """Lock the data directory, load or recover its content.

        Raises: StorageError: another broker has it, or it cannot be read.
        """
        if given := self.configs.text("log.dirs"):
            self.log_dir = os.path.abspath(given)
        self.logs.open(wall_ms(), self.topics.read_ids)
        try:
            self.security.load()
            self.quotas.load()
            self.tokens.load()
            self.users.load()
            if self.authorizer is not None:
                self.authorizer.load()
            self.topics.load()
            self.offsets.load(self.groups.take_in)
            self.transactions.load()
            # A directory that Kafka wrote has producers, but no file that names the allocated ids.
            known = (max(log.producers.states, default=-1) for log in self.logs.logs.values())
            highest = max(known, default=-1)
            used = max(highest, self.transactions.highest_producer_id) + 1
            self.producer_ids.load(max(used, self.topics.next_producer_id))
        except BaseException:
            self.logs.close(wall_ms())
            raise

    async def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and the offsets that groups committed for it.

        Raises: StorageError: the deletion cannot be stored.
        """
        await self.topics.delete(topic)
        try:
            self.offsets.forget_topic(topic.name, wall_ms())
        except StorageError as error:
            logger.error("the committed offsets of the deleted topic %s were not deleted: %s", topic.name, error)

    def close(self) -> None:
        """Flush and unlock. Slow: call it in a thread."""
        self.logs.close(wall_ms())
