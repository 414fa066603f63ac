"""`AIOKafkaAdminClient`: aiokafka's admin client. Results have aiokafka's form: error codes in
tuples."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

from aiokwire.admin import Admin
from aiokwire.cluster import ANY, CONTROLLER, Client, ClientConfig, Node, Target
from aiokwire.compat.aiokafka._version import CLIENT_ID
from aiokwire.compat.aiokafka.admin import responses
from aiokwire.compat.aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokwire.compat.aiokafka.admin.new_partitions import NewPartitions
from aiokwire.compat.aiokafka.admin.new_topic import NewTopic
from aiokwire.compat.aiokafka.admin.records_to_delete import RecordsToDelete
from aiokwire.compat.aiokafka.client import AIOKafkaClient
from aiokwire.compat.aiokafka.errors import KafkaConnectionError, for_code, translating
from aiokwire.compat.aiokafka.options import client_options, warn_of_deprecated
from aiokwire.compat.aiokafka.structs import OffsetAndMetadata
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    describe_groups,
    list_groups,
    metadata,
)
from aiokwire.types import TopicPartition

log: logging.Logger = logging.getLogger("aiokwire.compat.aiokafka")

ResponseT = TypeVar("ResponseT", bound=Response)


class AIOKafkaAdminClient:
    """Administers a cluster. Options and defaults are aiokafka's."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | list[str] = "localhost",
        client_id: str = CLIENT_ID,
        request_timeout_ms: int = 40000,
        connections_max_idle_ms: int | None = 540000,
        retry_backoff_ms: int = 100,
        metadata_max_age_ms: int = 300000,
        security_protocol: str = "PLAINTEXT",
        ssl_context: Any = None,
        api_version: str | None = None,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: Any = None,
    ) -> None:
        """Take aiokafka's options.

        Raises: ValueError: an option is wrong.
        """
        options = client_options(locals()) | {"allow_auto_create_topics": False}
        warn_of_deprecated(loop, api_version)
        self._timeout_ms = request_timeout_ms
        client = Client(ClientConfig(**options))
        self._own = client
        self._admin = Admin(**options)
        self._client = AIOKafkaClient.of(lambda: client)
        self._started = False
        self._closed = False

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect.

        Raises: KafkaConnectionError: no bootstrap server responds.
        """
        if self._started:
            return
        with translating(KafkaConnectionError):
            await self._own.start()
            await self._admin.start()
        self._started = True

    async def close(self) -> None:
        """Disconnect."""
        if self._closed:
            return
        self._closed = True
        await self._admin.close()
        await self._own.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def _request(self, request: Request[ResponseT], to: Target = ANY) -> ResponseT:
        with translating(KafkaConnectionError):
            return await self._own.request(request, to=to)

    # --- topics -------------------------------------------------------------------------------------------------------

    async def create_topics(
        self, new_topics: Iterable[NewTopic], timeout_ms: int | None = None, validate_only: bool = False
    ) -> responses.CreateTopicsResponse:
        """Create topics. The response has an error code for each."""
        request = create_topics.CreateTopicsRequest(
            topics=[_creatable(each) for each in new_topics],
            timeout_ms=timeout_ms or self._timeout_ms,
            validate_only=validate_only,
        )
        return responses.created_topics(await self._request(request, CONTROLLER))

    async def delete_topics(
        self, topics: Iterable[str], timeout_ms: int | None = None
    ) -> responses.DeleteTopicsResponse:
        """Delete topics. The response has an error code for each."""
        names = list(topics)
        request = delete_topics.DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms or self._timeout_ms)
        with translating(KafkaConnectionError):
            answer = await self._own.request(request, to=CONTROLLER, version=5)
        return responses.deleted_topics(answer)

    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions],
        timeout_ms: int | None = None,
        validate_only: bool = False,
    ) -> responses.CreatePartitionsResponse:
        """Add partitions to topics.

        Raises: the error of a topic.
        """
        request = create_partitions.CreatePartitionsRequest(
            topics=[_enlarged(name, each) for name, each in topic_partitions.items()],
            timeout_ms=timeout_ms or self._timeout_ms,
            validate_only=validate_only,
        )
        answer = responses.created_partitions(await self._request(request, CONTROLLER))
        for topic, code, message in answer.topic_errors:
            if code:
                raise for_code(code)(f"no partitions were added to {topic}: {message}")
        return answer

    async def list_topics(self) -> list[str]:
        """Return the names of all topics."""
        return [topic for _, topic, *_ in (await self._get_cluster_metadata()).topics]

    async def describe_topics(self, topics: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return topics with their partitions; None: all."""
        found: list[dict[str, Any]] = (await self._get_cluster_metadata(topics)).to_object()["topics"]
        return found

    async def describe_cluster(self) -> dict[str, Any]:
        """Return the brokers, the id and the controller of the cluster."""
        found = (await self._get_cluster_metadata()).to_object()
        del found["topics"]
        return found

    async def _get_cluster_metadata(self, topics: Sequence[str] | None = None) -> responses.MetadataResponse:
        wanted = None if topics is None else [metadata.MetadataRequestTopic(name=each) for each in topics]
        request = metadata.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        return responses.described_cluster(await self._request(request))

    # --- settings -----------------------------------------------------------------------------------------------------

    async def describe_configs(
        self, config_resources: Iterable[ConfigResource], include_synonyms: bool = False
    ) -> list[responses.DescribeConfigsResponse]:
        """Return configs: one response from each broker that was named, and one for all topics."""
        found = []
        for target, group in _by_target(config_resources).items():
            resources = [
                describe_configs.DescribeConfigsResource(
                    resource_type=each.resource_type,
                    resource_name=str(each.name),
                    configuration_keys=list(each.configs) if each.configs else None,
                )
                for each in group
            ]
            request = describe_configs.DescribeConfigsRequest(resources=resources, include_synonyms=include_synonyms)
            found.append(responses.described_configs(await self._request(request, target)))
        return found

    async def alter_configs(self, config_resources: Iterable[ConfigResource]) -> list[responses.AlterConfigsResponse]:
        """Replace all configs of topics or brokers: those that are not named return to their
        defaults."""
        found = []
        for target, group in _by_target(config_resources).items():
            resources = [
                alter_configs.AlterConfigsResource(
                    resource_type=each.resource_type,
                    resource_name=str(each.name),
                    configs=[
                        alter_configs.AlterableConfig(name=name, value=None if value is None else str(value))
                        for name, value in (each.configs or {}).items()
                    ],
                )
                for each in group
            ]
            request = alter_configs.AlterConfigsRequest(resources=resources)
            found.append(responses.altered_configs(await self._request(request, target)))
        return found

    # --- groups -------------------------------------------------------------------------------------------------------

    async def find_coordinator(self, group_id: str, coordinator_type: int = 0) -> int:
        """Return the node id of a group's coordinator; type 1: of a transactional id's."""
        return await self._client.coordinator_lookup(coordinator_type, group_id)

    async def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
    ) -> list[responses.DescribeGroupsResponse]:
        """Return the members of groups: one response from each coordinator."""
        by_node: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            node = group_coordinator_id if group_coordinator_id is not None else await self.find_coordinator(group_id)
            by_node.setdefault(node, []).append(group_id)
        found = []
        for node, names in by_node.items():
            request = describe_groups.DescribeGroupsRequest(
                groups=names, include_authorized_operations=include_authorized_operations
            )
            found.append(responses.described_groups(await self._request(request, Node(node))))
        return found

    async def list_consumer_groups(self, broker_ids: Iterable[int] | None = None) -> list[tuple[str, str]]:
        """Return the groups and their protocol types, of all brokers by default.

        Raises: the error of a broker.
        """
        nodes = [each[0] for each in (await self._get_cluster_metadata()).brokers] if broker_ids is None else broker_ids
        found: dict[tuple[str, str], None] = {}
        for node in nodes:
            answer = await self._request(list_groups.ListGroupsRequest(), Node(node))
            if answer.error_code:
                raise for_code(answer.error_code)(f"broker {node} could not list its groups")
            found |= {(each.group_id, each.protocol_type): None for each in answer.groups}
        return list(found)

    async def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets: all, or those of `partitions`, -1 for those without
        one.

        `group_coordinator_id` has no effect: the coordinator is found, and found again if it moves.
        """
        with translating(KafkaConnectionError):
            found = await self._admin.list_group_offsets(group_id)
        if partitions is None:
            return {tp: OffsetAndMetadata(each.offset, each.metadata) for tp, each in found.items()}
        none = OffsetAndMetadata(-1, "")
        return {
            tp: OffsetAndMetadata(found[tp].offset, found[tp].metadata) if tp in found else none for tp in partitions
        }

    async def delete_records(
        self, records_to_delete: Mapping[TopicPartition, RecordsToDelete], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset; return the first offset of each partition after
        that.

        Raises: the error of a partition.
        """
        before = {tp: each.before_offset for tp, each in records_to_delete.items()}
        with translating(KafkaConnectionError):
            return await self._admin.delete_records(before, timeout=(timeout_ms or self._timeout_ms) / 1000)


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            create_topics.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in topic.replica_assignments.items()
        ],
        configs=[
            create_topics.CreatableTopicConfig(name=name, value=None if value is None else str(value))
            for name, value in topic.topic_configs.items()
        ],
    )


def _enlarged(name: str, new: NewPartitions) -> create_partitions.CreatePartitionsTopic:
    assignments = new.new_assignments
    return create_partitions.CreatePartitionsTopic(
        name=name,
        count=new.total_count,
        assignments=None
        if assignments is None
        else [create_partitions.CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments],
    )


def _by_target(resources: Iterable[ConfigResource]) -> dict[Target, list[ConfigResource]]:
    """Group resources by destination: a broker for its own configs, any for topics."""
    groups: dict[Target, list[ConfigResource]] = {}
    for each in resources:
        own = each.resource_type is ConfigResourceType.BROKER
        groups.setdefault(Node(int(each.name)) if own else ANY, []).append(each)
    return groups
