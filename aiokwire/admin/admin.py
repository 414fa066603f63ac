"""The public admin client: topics, settings, groups, the cluster, offsets, security.

Every call has one deadline for all its requests, which the module of its area sends (`topic_calls`,
`configs`, `group_calls`, `record_calls`, `security_calls`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

from aiokwire.admin import cluster, configs, group_calls, record_calls, security_calls, topic_calls
from aiokwire.admin.acls import AclBinding, AclBindingFilter
from aiokwire.admin.calls import checked_names, fetch_metadata, results_of
from aiokwire.admin.cluster import ClusterDescription
from aiokwire.admin.config import AdminConfig
from aiokwire.admin.configs import (
    Changes,
    ConfigEntry,
    ConfigResource,
)
from aiokwire.admin.groups import GroupDescription, GroupListing, Leaver, PartitionLag
from aiokwire.admin.offset_resets import OffsetChange, ResetTo
from aiokwire.admin.quotas import ClientQuotaChanges, ClientQuotaEntity, QuotaName
from aiokwire.admin.results import Results
from aiokwire.admin.tokens import DelegationToken
from aiokwire.admin.topics import (
    BROKERS_DEFAULT,
    CreatedTopic,
    NewTopic,
    TopicDescription,
    TopicListing,
    read_described,
    read_listed,
)
from aiokwire.admin.users import ScramAlteration, ScramCredentialInfo
from aiokwire.backoff import Deadline
from aiokwire.cluster import Client, ClientOptions, Owner, Unclosed, list_offsets, push_metrics
from aiokwire.config import config_of, documents_options
from aiokwire.errors import ClosedError
from aiokwire.hooks import Hooks
from aiokwire.metrics import Metric, Sample
from aiokwire.types import IsolationLevel, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from aiokwire.cluster import MetricsPush

K = TypeVar("K")
T = TypeVar("T")


@documents_options(AdminConfig)
class Admin(Owner):
    """Manages topics, settings, groups, the cluster, ACLs, users, quotas and delegation tokens.

        async with Admin("localhost:9092") as admin:
            await admin.create_topic("orders", partitions=6)

    A call for one item raises its error; a call for several returns `Results`, which raise when a
    failed item is read.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = Client.METRICS

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
        self._push: MetricsPush | None = None  # while it runs, if a broker takes metrics
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
            self._push = push_metrics(self._client, "admin", self.metrics)
            self._started = True
            self._unclosed.watch(self, self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:
        """Disconnect. May be called from any task, and repeatedly."""
        self._closed = True
        self._unclosed.forget()
        if self._push is not None:
            await self._push.terminate(timeout)
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

    def metrics(self) -> list[Sample]:
        """Return the metrics now, from any thread; docs/metrics.md lists them."""
        return self._client.metrics()

    @property
    def client_instance_id(self) -> str | None:
        """The id that a broker assigned for the metrics that are pushed (KIP-714), if one did."""
        return None if self._push is None else self._push.client_instance_id

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
        return await topic_calls.create(self._client, list(wanted.values()), deadline, validate_only=validate_only)

    async def list_topics(self, *, internal: bool = False, timeout: float | None = None) -> list[TopicListing]:
        """Return all topics by name; with `internal` including the brokers' own topics."""
        deadline = self._begin(timeout, "listing topics")
        return read_listed(await fetch_metadata(self._client, None, deadline), internal=internal)

    async def describe_topics(
        self, names: Iterable[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, TopicDescription]:
        """Return the partitions, leaders and replicas of topics.

        `include_authorized_operations`: also what this client may do with them (brokers since 2.3).
        """
        wanted = checked_names(names)
        deadline = self._begin(timeout, f"describing {', '.join(wanted)}")
        response = await fetch_metadata(self._client, wanted, deadline, with_operations=include_authorized_operations)
        return read_described(response, wanted)

    async def describe_topic(
        self, name: str, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> TopicDescription:
        """Return the partitions, leaders and replicas of one topic.

        Raises: StaleMetadataError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        operations = include_authorized_operations
        return (await self.describe_topics([name], include_authorized_operations=operations, timeout=timeout))[name]

    async def delete_topics(self, names: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete topics with all their records."""
        wanted = checked_names(names)
        deadline = self._begin(timeout, f"deleting {', '.join(wanted)}")
        return await topic_calls.delete(self._client, wanted, deadline)

    async def delete_topic(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a topic with all its records.

        Raises: StaleMetadataError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        (await self.delete_topics([name], timeout=timeout)).check()

    async def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, int]:
        """Raise the total partition count of topics. Keys map to other partitions from then on."""
        deadline = self._begin(timeout, f"adding partitions to {', '.join(counts)}")
        return await topic_calls.add_partitions(self._client, counts, deadline, validate_only=validate_only)

    # --- settings -----------------------------------------------------------------------------------------------------

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Return the settings of topics or brokers, all or those in `names`."""
        return await configs.describe(self._client, resources, names, self._begin(timeout, "describing settings"))

    async def alter_configs(
        self, changes: Changes, *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[ConfigResource, None]:
        """Change single settings to a value or default (None); `ConfigChange` appends or subtracts.

        Brokers before 2.3 can only replace all settings: the current ones are read and written back
        with the changes, so a concurrent change of another client may be lost there.
        """
        deadline = self._begin(timeout, "altering settings")
        return await configs.alter(self._client, changes, deadline, validate_only=validate_only)

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
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Return the state and members of groups, of the classic and of the consumer protocol.

        `include_authorized_operations`: also what this client may do with them (brokers since 2.3).
        """
        deadline, operations = self._begin(timeout, "describing groups"), include_authorized_operations
        return await results_of(
            group_ids,
            lambda group_id: group_calls.describe(self._client, group_id, deadline, with_operations=operations),
        )

    async def describe_group(
        self, group_id: str, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> GroupDescription:
        """Return the state and members of one group.

        Raises: InvalidRequestError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        deadline, operations = self._begin(timeout, f"describing group {group_id!r}"), include_authorized_operations
        return await group_calls.describe(self._client, group_id, deadline, with_operations=operations)

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

        Raises: InvalidRequestError: it has members; BrokerError: a broker refuses a partition;
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

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Return the brokers, the cluster's id, and the controller.

        `include_authorized_operations`: also what this client may do (brokers since 2.8).
        """
        deadline = self._begin(timeout, "describing the cluster")
        return await cluster.describe(self._client, deadline, with_operations=include_authorized_operations)

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

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset of each partition, -1: all; return the new first
        offsets. Brokers since 0.11 (KIP-107).

        Raises: InvalidArgument: a negative offset; BrokerError: a partition does not exist or is
        forbidden, or its topic is compacted; RequestTimedOut.
        """
        return await record_calls.delete(self._client, before, self._begin(timeout, "deleting records"))

    # --- security -----------------------------------------------------------------------------------------------------

    async def create_acls(
        self, bindings: Iterable[AclBinding], *, timeout: float | None = None
    ) -> Results[AclBinding, None]:
        """Create ACLs; one that exists succeeds.

        Raises: InvalidArgument: a binding has a value that is for filters; RequestTimedOut.
        """
        return await security_calls.create_acls(self._client, bindings, self._begin(timeout, "creating ACLs"))

    async def describe_acls(
        self, wanted: AclBindingFilter | None = None, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """Return the ACLs that match a filter, by default all.

        Raises: InvalidRequestError: the broker has no authorizer; AuthorizationError;
        RequestTimedOut.
        """
        deadline = self._begin(timeout, "describing ACLs")
        return await security_calls.describe_acls(self._client, wanted or AclBindingFilter(), deadline)

    async def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout: float | None = None
    ) -> Results[AclBindingFilter, list[AclBinding]]:
        """Delete all ACLs that match a filter; return those deleted, for each filter."""
        return await security_calls.delete_acls(self._client, filters, self._begin(timeout, "deleting ACLs"))

    async def alter_user_scram_credentials(
        self, alterations: Iterable[ScramAlteration], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Store or delete credentials of users for SCRAM; passwords are hashed here (KIP-554).

        Raises: InvalidArgument: two alterations for one user and mechanism; RequestTimedOut.
        """
        deadline = self._begin(timeout, "altering users")
        return await security_calls.alter_users(self._client, alterations, deadline)

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """Return the SCRAM mechanisms of users, by default of all that have one.

        Raises: AuthorizationError; RequestTimedOut.
        """
        names = None if users is None else checked_names(users)
        return await security_calls.describe_users(self._client, names, self._begin(timeout, "describing users"))

    async def alter_client_quotas(
        self, changes: ClientQuotaChanges, *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[ClientQuotaEntity, None]:
        """Set quotas by Kafka's names, such as producer_byte_rate; None removes one.

        alice = ClientQuotaEntity(user="alice")
        await admin.alter_client_quotas({alice: {"producer_byte_rate": 1e6}})
        """
        deadline = self._begin(timeout, "altering quotas")
        return await security_calls.alter_quotas(self._client, changes, deadline, validate_only=validate_only)

    async def describe_client_quotas(
        self,
        *,
        user: str | QuotaName | None = None,
        client_id: str | QuotaName | None = None,
        ip: str | QuotaName | None = None,
        strict: bool = False,
        timeout: float | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Return the quotas of the entities that have all these parts; `strict`: and no others.

        A part is a name, or a `QuotaName`; without any, all entities are returned.

        Raises: InvalidRequestError: an ip with other parts; AuthorizationError; RequestTimedOut.
        """
        matches = {"user": user, "client-id": client_id, "ip": ip}
        deadline = self._begin(timeout, "describing quotas")
        return await security_calls.describe_quotas(self._client, matches, deadline, strict=strict)

    async def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Sequence[str] = (),
        max_lifetime_ms: int | None = None,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Create a token for this user or another `owner`; principals are `User:name`.

        Raises: BrokerError: tokens are off, or this connection has no login; AuthorizationError;
        RequestTimedOut.
        """
        deadline = self._begin(timeout, "creating a delegation token")
        return await security_calls.create_token(self._client, owner, renewers, max_lifetime_ms, deadline)

    async def renew_delegation_token(
        self, token: DelegationToken | bytes, *, renew_period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """Renew a token, by default for the broker's period; return when it expires, in ms.

        `token`: the token, or its HMAC. Raises: BrokerError: unknown, expired, or another user's.
        """
        deadline = self._begin(timeout, "renewing a delegation token")
        return await security_calls.renew_token(self._client, token, renew_period_ms, deadline)

    async def expire_delegation_token(
        self, token: DelegationToken | bytes, *, expiry_time_period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """Let a token expire, by default now; return when, in ms, or -1 for now.

        `token`: the token, or its HMAC. Raises: BrokerError: unknown, expired, or another user's.
        """
        deadline = self._begin(timeout, "expiring a delegation token")
        return await security_calls.expire_token(self._client, token, expiry_time_period_ms, deadline)

    async def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Return the tokens of `owners` (`User:name`; default: all) that this user may see.

        Raises: BrokerError: tokens are off, or this connection has no login; RequestTimedOut.
        """
        deadline = self._begin(timeout, "describing delegation tokens")
        return await security_calls.describe_tokens(self._client, owners, deadline)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _begin(self, timeout: float | None, what: str) -> Deadline:
        """Check that the client is open; return the deadline of a call."""
        if self._closed:
            raise ClosedError("this admin client was closed; create a new one")
        self._client.check()
        return Deadline(self.config.default_api_timeout if timeout is None else timeout, what)
