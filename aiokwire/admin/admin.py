"""The public admin client: topics, settings, groups, the cluster, offsets.

Builds requests and reads responses with the module of each area (`topics`, `configs`, `cluster`,
`groups`). Every call has one deadline for all its requests.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import anyio

from aiokwire.admin import group_calls
from aiokwire.admin.calls import checked_names, fetch_metadata, milliseconds, request_controller, results_of
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
from aiokwire.admin.groups import GroupDescription, GroupListing, Leaver, PartitionLag
from aiokwire.admin.offset_resets import OffsetChange, ResetTo
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
from aiokwire.cluster import ANY, Client, ClientOptions, Node, Owner, Target, Unclosed, list_offsets
from aiokwire.config import config_of, documents_options
from aiokwire.errors import BrokerError, ClosedError, InvalidArgument, UnsupportedVersion, error_for
from aiokwire.hooks import Hooks
from aiokwire.protocol.messages import describe_cluster
from aiokwire.types import IsolationLevel, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

K = TypeVar("K")
T = TypeVar("T")


@documents_options(AdminConfig)
class Admin(Owner):
    """Manages topics, settings, groups and the cluster.

        async with Admin("localhost:9092") as admin:
            await admin.create_topic("orders", partitions=6)

    A call for one item raises its error; a call for several returns `Results`, which raise when a
    failed item is read.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: AdminConfig | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        """Create a client from `AdminConfig` options or one `config`. Needs no running event loop.

        Raises: ConfigurationError: an option is unknown or invalid.
        """
        self.config: AdminConfig = config_of(AdminConfig, config, {"bootstrap_servers": bootstrap_servers, **options})
        self._unclosed = Unclosed()
        self._client = Client(self.config, hooks=hooks, rng=rng, unclosed=self._unclosed)
        self._started = False
        self._closed = False

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], *, hooks: Hooks | None = None) -> Admin:
        """Create one from options named as in Java or librdkafka: see `AdminConfig.from_dict`.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        return cls(config=AdminConfig.from_dict(options), hooks=hooks)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect.

        Raises: ConnectionFailed: no broker could be reached.
        """
        if self._closed:
            raise ClosedError("this admin client was closed; create a new one")
        if not self._started:
            await self._client.start()
            self._started = True
            self._unclosed.watch(self, self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:
        """Disconnect. May be called from any task, and repeatedly."""
        self._closed = True
        self._unclosed.forget()
        await self._client.close(timeout=timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self._started else "new"
        return f"<{type(self).__name__} {state}, {self.config.bootstrap_servers}>"

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

        Raises: InvalidRequestError: it exists, or a number or setting is invalid;
        AuthorizationError; RequestTimedOut.
        """
        topic = NewTopic(name, partitions, replication_factor, configs or {})
        return (await self.create_topics([topic], timeout=timeout))[name]

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, CreatedTopic]:
        """Create topics and wait until they are usable. With `validate_only` they are only checked.

        Raises: RequestTimedOut: the timeout has passed.
        """
        wanted = {topic.name: topic for topic in topics}
        deadline = self._begin(timeout, f"creating {', '.join(wanted)}")
        results = await request_controller(
            self._client,
            lambda: create_request(wanted.values(), timeout_ms=milliseconds(deadline), validate_only=validate_only),
            read_created,
            deadline,
        )
        if not validate_only and results.succeeded:
            await self._wait_usable(results.succeeded, deadline)
        return results

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> list[TopicListing]:
        """Return all topics by name; with `internal` including the brokers' own topics."""
        deadline = self._begin(timeout, "listing topics")
        return read_listed(await fetch_metadata(self._client, None, deadline), internal=internal)

    async def describe_topics(
        self, names: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TopicDescription]:
        """Return the partitions, leaders and replicas of topics."""
        wanted = checked_names(names)
        deadline = self._begin(timeout, f"describing {', '.join(wanted)}")
        response = await fetch_metadata(self._client, wanted, deadline)
        return read_described(response, wanted)

    async def describe_topic(self, name: str, *, timeout: float | None = None) -> TopicDescription:
        """Return the partitions, leaders and replicas of one topic.

        Raises: StaleMetadataError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        return (await self.describe_topics([name], timeout=timeout))[name]

    async def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete topics with all their records."""
        wanted = checked_names(names)
        deadline = self._begin(timeout, f"deleting {', '.join(wanted)}")

        async def send(by_state: bool) -> Results[str, None]:
            return await request_controller(
                self._client,
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
        """Raise the total partition count of topics. Keys map to other partitions from then on."""
        for name, count in counts.items():
            if type(count) is not int or count < 1:
                raise InvalidArgument(f"{name}: the number of partitions must be at least 1, not {count!r}")
        deadline = self._begin(timeout, f"adding partitions to {', '.join(counts)}")
        results = await request_controller(
            self._client,
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
        """Return the settings of topics or brokers, all or those in `names`."""
        deadline = self._begin(timeout, "describing settings")
        results: Results[ConfigResource, dict[str, ConfigEntry]] = Results({}, {})
        for target, group in _by_target(resources).items():
            response = await self._client.request(describe_request(group, names), to=target, timeout=deadline.remaining)
            _merge(results, read_configs(response))
        return results

    async def alter_configs(
        self, changes: Changes, *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[ConfigResource, None]:
        """Change single settings to a value or default (None); `ConfigChange` appends or subtracts.

        Brokers before 2.3 can only replace all settings: the present ones are read and written back
        with the changes, so a concurrent change of another client may be lost there.
        """
        deadline = self._begin(timeout, "altering settings")
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

    # --- groups -------------------------------------------------------------------------------------------------------

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """Return the groups of all brokers by name, if given only those of `states` (`Stable`,
        `Empty`, ...; brokers since 2.6) and `types` (`classic`, `consumer`; brokers since 3.8).

        Raises: BrokerError: a broker refuses, or is too old for the filters; RequestTimedOut.
        """
        return await group_calls.list_all(self._client, states, types, self._begin(timeout, "listing groups"))

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Return the state and members of groups, of the classic and of the consumer protocol."""
        deadline = self._begin(timeout, "describing groups")
        return await results_of(group_ids, lambda group_id: group_calls.describe(self._client, group_id, deadline))

    async def describe_group(self, group_id: str, *, timeout: float | None = None) -> GroupDescription:
        """Return the state and members of one group.

        Raises: InvalidRequestError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        return await group_calls.describe(
            self._client, group_id, self._begin(timeout, f"describing group {group_id!r}")
        )

    async def list_group_offsets(
        self, group_id: str, *, require_stable: bool = False, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all committed offsets of a group, none if it does not exist. Brokers since 0.10.2.

        `require_stable`: wait for open transactions that may change them (brokers since 2.5).

        Raises: AuthorizationError; RequestTimedOut; UnsupportedVersion: the broker is too old.
        """
        deadline = self._begin(timeout, f"reading the offsets of group {group_id!r}")
        return await group_calls.committed_offsets(self._client, group_id, deadline, stable=require_stable)

    async def group_lag(self, group_id: str, *, timeout: float | None = None) -> dict[TopicPartition, PartitionLag]:
        """Return a group's lag in each existing partition it has committed or that a member has.

        Raises: InvalidRequestError: the group does not exist; AuthorizationError; RequestTimedOut.
        """
        return await group_calls.lag(self._client, group_id, self._begin(timeout, f"the lag of group {group_id!r}"))

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for a group that has no members; creates the group if it does not exist.

        Raises: InvalidRequestError: it has members; BrokerError: a partition is refused;
        RequestTimedOut.
        """
        deadline = self._begin(timeout, f"altering the offsets of group {group_id!r}")
        await group_calls.alter_offsets(self._client, group_id, offsets, deadline)

    async def reset_group_offsets(
        self,
        group_id: str,
        to: ResetTo,
        partitions: Iterable[str | TopicPartition] | None = None,
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetChange]:
        """Move a group without members to other offsets; `validate_only` only returns the changes.

        `partitions`: topics (all partitions) and partitions; by default those with a committed
        offset, or those in `to`. Offsets stay between the first available record and the end.

        Raises: InvalidRequestError: it has members; InvalidArgument: no partition, or no committed
        offset to shift; StaleMetadataError: a topic does not exist; RequestTimedOut.
        """
        deadline = self._begin(timeout, f"resetting the offsets of group {group_id!r}")
        return await group_calls.reset_offsets(
            self._client, group_id, to, partitions, deadline, validate_only=validate_only
        )

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Delete committed offsets, except of topics to which members subscribe. Brokers since 2.4.

        Raises: InvalidRequestError: the group does not exist; AuthorizationError; RequestTimedOut.
        """
        deadline = self._begin(timeout, f"deleting offsets of group {group_id!r}")
        return await group_calls.delete_offsets(self._client, group_id, partitions, deadline)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete groups that have no members, with their offsets. Brokers since 1.1."""
        return await group_calls.delete(self._client, group_ids, self._begin(timeout, "deleting groups"))

    async def delete_group(self, group_id: str, *, timeout: float | None = None) -> None:
        """Delete one group that has no members, with its offsets.

        Raises: InvalidRequestError: it has members or does not exist; AuthorizationError;
        RequestTimedOut.
        """
        (await self.delete_groups([group_id], timeout=timeout)).check()

    async def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] | None = None,
        instance_ids: Iterable[str] = (),
        reason: str = group_calls.DEFAULT_REASON,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Remove members from a group: by member id, static ones also by group instance id (brokers
        since 2.4); all of them if none is named. A member that still runs rejoins.

        Raises: InvalidRequestError: the group does not exist; AuthorizationError; RequestTimedOut.
        """
        deadline = self._begin(timeout, f"removing members of group {group_id!r}")
        leavers = [Leaver(group_instance_id=instance_id) for instance_id in instance_ids]
        if member_ids is not None:
            leavers += [Leaver(member_id) for member_id in member_ids]
            if not leavers:
                return Results({}, {})
        return await group_calls.remove_members(self._client, group_id, leavers, reason, deadline)

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def describe_cluster(self, *, timeout: float | None = None) -> ClusterDescription:
        """Return the brokers, the cluster's id, and the controller."""
        deadline = self._begin(timeout, "describing the cluster")
        try:
            response = await self._client.request(
                describe_cluster.DescribeClusterRequest(), to=ANY, timeout=deadline.remaining
            )
        except UnsupportedVersion:
            return read_cluster_from_metadata(await fetch_metadata(self._client, [], deadline))
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
        """Return for each partition the offset at its time: milliseconds since the epoch, or a
        constant of `aiokwire.cluster`: `EARLIEST`, `LATEST`, `MAX_TIMESTAMP`, `EARLIEST_LOCAL`,
        `LATEST_TIERED`. It is -1 if no record is that late.

        Raises: BrokerError: a partition does not exist or is forbidden, or the broker is too old;
        RequestTimedOut.
        """
        deadline = self._begin(timeout, "listing offsets")
        return await list_offsets(
            self._client, times, isolation=IsolationLevel.parse(isolation_level), timeout=deadline.remaining
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _begin(self, timeout: float | None, what: str) -> Deadline:
        """Check that the client is open; return the deadline of a call."""
        if self._closed:
            raise ClosedError("this admin client was closed; create a new one")
        self._client.check()
        return Deadline(self.config.default_api_timeout if timeout is None else timeout, what)

    async def _wait_usable(self, names: Iterable[str], deadline: Deadline) -> None:
        """Wait until the metadata names a leader for every partition."""
        wanted = list(names)
        backoff = Backoff(0.02, 0.5, rng=self._client.rng)
        while True:
            described = read_described(await fetch_metadata(self._client, wanted, deadline), wanted)
            if not described.errors and all(
                partition.leader is not None for topic in described.succeeded.values() for partition in topic.partitions
            ):
                return
            error: BrokerError | None = next(iter(described.errors.values()), None)
            deadline.check(error)
            await anyio.sleep(min(backoff.next(), deadline.remaining))


def _by_target(resources: Iterable[ConfigResource]) -> dict[Target, list[ConfigResource]]:
    """Group resources by destination: a broker for its own settings, any broker for all others."""
    groups: dict[Target, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name
        if own and not resource.name.isdecimal():
            raise InvalidArgument(f"{resource}: a broker's name must be its node id")
        groups.setdefault(Node(int(resource.name)) if own else ANY, []).append(resource)
    return groups


def _merge(into: Results[K, T], more: Results[K, T]) -> None:
    into.succeeded.update(more.succeeded)
    into.errors.update(more.errors)
