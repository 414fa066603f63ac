"""The admin client that users hold: topics, settings, the cluster, offsets.

Builds requests and reads answers with the modules of its nouns (`topics`, `configs`, `cluster`); sends them where they
belong, again when the controller has moved, all under one deadline for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import anyio

from aiokwire.admin.calls import checked_names, milliseconds
from aiokwire.admin.cluster import ClusterDescription, read_cluster, read_cluster_from_metadata
from aiokwire.admin.config import AdminConfig
from aiokwire.admin.configs import (
    Changes,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    alter_request,
    describe_request,
    read_altered,
    read_configs,
    replace_request,
)
from aiokwire.admin.group_calls import GroupCalls
from aiokwire.admin.results import Results
from aiokwire.admin.topics import (
    BROKERS_DEFAULT,
    CreatedTopic,
    NewTopic,
    TopicDescription,
    TopicListing,
    create_request,
    delete_request,
    grow_request,
    read_created,
    read_deleted,
    read_described,
    read_grown,
    read_listed,
)
from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster import ANY, CONTROLLER, Node, Target, list_offsets
from aiokwire.config import documents_options
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, UnsupportedVersion, error_for
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages import describe_cluster
from aiokwire.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

ResponseT = TypeVar("ResponseT", bound=Response)
K = TypeVar("K")
T = TypeVar("T")


@documents_options(AdminConfig)
class Admin(GroupCalls):
    """Looks after topics, settings, groups and the cluster.

        async with Admin("localhost:9092") as admin:
            await admin.create_topic("orders", partitions=6)

    A call about one thing raises its error; one about several gives `Results`, where looking up what failed raises.
    """

    # --- topics -------------------------------------------------------------------------------------------------------

    async def create_topic(
        self,
        name: str,
        partitions: int = BROKERS_DEFAULT,
        *,
        replication_factor: int = BROKERS_DEFAULT,
        configs: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> CreatedTopic:
        """Create a topic and wait until every partition has a leader.

        Raises: InvalidRequestError: it exists, or a number or setting is wrong; AuthorizationError; RequestTimedOut.
        """
        topic = NewTopic(name, partitions, replication_factor, configs or {})
        return (await self.create_topics([topic], timeout=timeout))[name]

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, CreatedTopic]:
        """Create topics and wait until they can be used. With `validate_only` nothing is created, only checked.

        Raises: RequestTimedOut: the time is over.
        """
        wanted = {topic.name: topic for topic in topics}
        deadline = self._deadline(timeout, f"creating {', '.join(wanted)}")
        results = await self._on_controller(
            lambda: create_request(wanted.values(), timeout_ms=milliseconds(deadline), validate_only=validate_only),
            read_created,
            deadline,
        )
        if not validate_only and results.succeeded:
            await self._wait_usable(results.succeeded, deadline)
        return results

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> list[TopicListing]:
        """The topics by name; with `internal` also those that the brokers keep for themselves."""
        deadline = self._deadline(timeout, "listing topics")
        return read_listed(await self._metadata(None, deadline), internal=internal)

    async def describe_topics(
        self, names: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TopicDescription]:
        """Partitions, leaders and replicas of topics."""
        wanted = checked_names(names)
        deadline = self._deadline(timeout, f"describing {', '.join(wanted)}")
        response = await self._metadata(wanted, deadline)
        return read_described(response, wanted)

    async def describe_topic(self, name: str, *, timeout: float | None = None) -> TopicDescription:
        """Partitions, leaders and replicas of one topic.

        Raises: StaleMetadataError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        return (await self.describe_topics([name], timeout=timeout))[name]

    async def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete topics with all their records."""
        wanted = checked_names(names)
        deadline = self._deadline(timeout, f"deleting {', '.join(wanted)}")

        async def send(by_state: bool) -> Results[str, None]:
            return await self._on_controller(
                lambda: delete_request(wanted, timeout_ms=milliseconds(deadline), by_state=by_state),
                read_deleted,
                deadline,
            )

        try:
            results = await send(by_state=True)
        except UnsupportedVersion:
            results = await send(by_state=False)
        self._client.metadata.request_update("topics were deleted")
        return results

    async def delete_topic(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a topic with all its records.

        Raises: StaleMetadataError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        (await self.delete_topics([name], timeout=timeout)).check()

    async def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, int]:
        """Let topics have that many partitions in all. Keys map to other partitions from then on."""
        for name, count in counts.items():
            if type(count) is not int or count < 1:
                raise InvalidArgument(f"{name}: a topic has at least 1 partition, not {count!r}")
        deadline = self._deadline(timeout, f"adding partitions to {', '.join(counts)}")
        results = await self._on_controller(
            lambda: grow_request(counts, timeout_ms=milliseconds(deadline), validate_only=validate_only),
            lambda response: read_grown(response, counts),
            deadline,
        )
        self._client.metadata.request_update("partitions were added")
        return results

    # --- settings -----------------------------------------------------------------------------------------------------

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of topics or brokers, all or those of `names`."""
        deadline = self._deadline(timeout, "describing settings")
        results: Results[ConfigResource, dict[str, ConfigEntry]] = Results({}, {})
        for target, group in _by_target(resources).items():
            response = await self._client.request(describe_request(group, names), to=target, timeout=deadline.remaining)
            _merge(results, read_configs(response))
        return results

    async def alter_configs(
        self, changes: Changes, *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[ConfigResource, None]:
        """Change single settings: a value sets, None goes back to the default, `ConfigChange` appends or subtracts.

        Brokers before 2.3 replace all settings at once: the present ones are read and written back with the changes,
        so a change that somebody else makes in between is lost there.
        """
        deadline = self._deadline(timeout, "altering settings")
        results: Results[ConfigResource, None] = Results({}, {})
        for target, group in _by_target(changes).items():
            part = {resource: changes[resource] for resource in group}
            try:
                response = await self._client.request(
                    alter_request(part, validate_only=validate_only), to=target, timeout=deadline.remaining
                )
                _merge(results, read_altered(response))
            except UnsupportedVersion:
                _merge(results, await self._replace_configs(part, target, validate_only, deadline))
        return results

    async def _replace_configs(
        self, changes: Changes, target: Target, validate_only: bool, deadline: Deadline
    ) -> Results[ConfigResource, None]:
        present = await self._client.request(describe_request(changes, None), to=target, timeout=deadline.remaining)
        request = replace_request(changes, read_configs(present).check(), validate_only=validate_only)
        return read_altered(await self._client.request(request, to=target, timeout=deadline.remaining))

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def describe_cluster(self, *, timeout: float | None = None) -> ClusterDescription:
        """The brokers, the cluster's id, and the broker that takes administrative requests."""
        deadline = self._deadline(timeout, "describing the cluster")
        self._check_open()
        try:
            response = await self._client.request(
                describe_cluster.DescribeClusterRequest(), to=ANY, timeout=deadline.remaining
            )
        except UnsupportedVersion:
            return read_cluster_from_metadata(await self._metadata([], deadline))
        if response.error_code:
            raise error_for(response.error_code, f"cannot describe the cluster: {response.error_message}")
        return read_cluster(response)

    async def list_offsets(
        self,
        times: Mapping[TopicPartition, int],
        *,
        isolation_level: str | IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """For each partition the offset at its time: milliseconds since the epoch, or what `aiokwire.cluster` names
        `EARLIEST`, `LATEST`, `MAX_TIMESTAMP`, `EARLIEST_LOCAL`, `LATEST_TIERED`. An offset of -1 says that no record is
        that late.

        Raises: BrokerError: a partition does not exist or is forbidden, or the broker is too old; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, "listing offsets")
        return await list_offsets(
            self._client, times, isolation=IsolationLevel.parse(isolation_level), timeout=deadline.remaining
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    async def _on_controller(
        self,
        build: Callable[[], Request[ResponseT]],
        read: Callable[[ResponseT], Results[str, T]],
        deadline: Deadline,
    ) -> Results[str, T]:
        """Send to the controller, and again while it says that another broker is it now."""
        self._check_open()
        backoff = self._client.new_backoff()
        while True:
            response = await self._client.request(build(), to=CONTROLLER, timeout=deadline.remaining)
            results = read(response)
            moved = [e for e in results.errors.values() if e.code is ErrorCode.NOT_CONTROLLER]
            if not moved or results.succeeded:
                return results
            deadline.check(moved[0])
            self._client.metadata.request_update(str(moved[0]))
            await anyio.sleep(min(backoff.next(), deadline.remaining))

    async def _wait_usable(self, names: Iterable[str], deadline: Deadline) -> None:
        """Until the metadata names a leader for every partition."""
        wanted = list(names)
        backoff = Backoff(0.02, 0.5, rng=self._client.rng)
        while True:
            described = read_described(await self._metadata(wanted, deadline), wanted)
            if not described.errors and all(
                partition.leader is not None for topic in described.succeeded.values() for partition in topic.partitions
            ):
                return
            error: BrokerError | None = next(iter(described.errors.values()), None)
            deadline.check(error)
            await anyio.sleep(min(backoff.next(), deadline.remaining))


def _by_target(resources: Iterable[ConfigResource]) -> dict[Target, list[ConfigResource]]:
    """A broker's own settings are asked of it; everything else of any broker."""
    groups: dict[Target, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name
        if own and not resource.name.isdecimal():
            raise InvalidArgument(f"{resource}: a broker is named by its node id")
        groups.setdefault(Node(int(resource.name)) if own else ANY, []).append(resource)
    return groups


def _merge(into: Results[K, T], more: Results[K, T]) -> None:
    into.succeeded.update(more.succeeded)
    into.errors.update(more.errors)
