"""What the admin client does with groups: each is asked of its own coordinator."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import anyio

from aiokwire.admin import groups
from aiokwire.admin.calls import Calls, checked_names
from aiokwire.admin.groups import GroupDescription, GroupListing, Leaver, PartitionLag
from aiokwire.admin.offset_resets import OffsetChange, ResetKind, ResetTo, plan_reset
from aiokwire.admin.results import Results
from aiokwire.backoff import Deadline
from aiokwire.cluster import COORDINATOR, EARLIEST, LATEST, Coordinator, CoordinatorKind, Node, list_offsets
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, InvalidRequestError, UnsupportedVersion, error_for
from aiokwire.group import GroupOffsets
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    leave_group,
)
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

T = TypeVar("T")

AT_ONCE = 16  # groups that are asked about at the same time
DEFAULT_REASON = "removed by an administrator"


class GroupCalls(Calls):
    """Consumer groups: their members, their offsets, and how far they are."""

    # --- what there is ------------------------------------------------------------------------------------------------

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """The groups that all brokers know, by name; only those in one of `states` (`Stable`, `Empty`, ...; brokers
        since 2.6) and of one of `types` (`classic`, `consumer`; brokers since 3.8), where these are given.

        Raises: BrokerError: a broker refuses, or is too old for the filters; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, "listing groups")
        request = groups.list_request(states, types)
        found: dict[str, GroupListing] = {}

        async def ask(node_id: int) -> None:
            for one in await self._list_at(node_id, request, deadline):
                found.setdefault(one.group_id, one)

        await _each(ask, list(self._client.cluster.brokers))
        return [found[group_id] for group_id in sorted(found)]

    async def _list_at(self, node_id: int, request: Any, deadline: Deadline) -> list[GroupListing]:
        backoff = self._client.new_backoff()
        while True:
            response = await self._client.request(request, to=Node(node_id), timeout=deadline.remaining)
            if not response.error_code:
                return groups.read_listed(response, node_id)
            error = error_for(response.error_code, f"listing the groups of node {node_id}")
            if not error.retriable:
                raise error
            deadline.check(error)
            await anyio.sleep(min(backoff.next(), deadline.remaining))

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """State and members of groups, of the classic and of the consumer protocol."""
        self._check_open()
        deadline = self._deadline(timeout, "describing groups")
        return await _results(group_ids, lambda group_id: self._describe(group_id, deadline))

    async def describe_group(self, group_id: str, *, timeout: float | None = None) -> GroupDescription:
        """State and members of one group.

        Raises: InvalidRequestError: it does not exist; AuthorizationError; RequestTimedOut.
        """
        return (await self.describe_groups([group_id], timeout=timeout))[group_id]

    async def _describe(self, group_id: str, deadline: Deadline) -> GroupDescription:
        coordinator = Coordinator(CoordinatorKind.GROUP, group_id)
        try:
            answer = await self._client.request(
                consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group_id]),
                to=coordinator,
                timeout=deadline.remaining,
            )
            return groups.read_consumer_protocol(answer, group_id, await self._coordinator(group_id, deadline))
        except UnsupportedVersion:
            pass  # a broker before 3.7, or one that does not have the consumer protocol switched on
        except BrokerError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        classic = await self._client.request(
            describe_groups.DescribeGroupsRequest(groups=[group_id]), to=coordinator, timeout=deadline.remaining
        )
        return groups.read_classic(classic, group_id, await self._coordinator(group_id, deadline))

    async def _coordinator(self, group_id: str, deadline: Deadline) -> int:
        return await self._client.coordinators.find(CoordinatorKind.GROUP, group_id, deadline.remaining)

    # --- offsets ------------------------------------------------------------------------------------------------------

    async def list_group_offsets(
        self, group_id: str, *, require_stable: bool = False, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything that a group has committed; nothing for a group that does not exist. Brokers since 0.10.2.

        `require_stable`: wait while a transaction is open that may change it (brokers since 2.5).

        Raises: AuthorizationError; RequestTimedOut; UnsupportedVersion: the broker is too old.
        """
        self._check_open()
        deadline = self._deadline(timeout, f"reading the offsets of group {group_id!r}")
        backoff = self._client.new_backoff()
        while True:
            question = groups.AllOffsets(group_id, stable=require_stable)
            response = await self._client.request(
                question.request,
                to=Coordinator(CoordinatorKind.GROUP, group_id),
                timeout=deadline.remaining,
                version=question.version,
            )
            try:
                return question.read(response)
            except BrokerError as error:
                if not error.retriable:
                    raise
                deadline.check(error)
            await anyio.sleep(min(backoff.next(), deadline.remaining))

    async def group_lag(self, group_id: str, *, timeout: float | None = None) -> dict[TopicPartition, PartitionLag]:
        """How far a group is in each partition that it has committed or has assigned, of topics that still exist.

        Raises: InvalidRequestError: there is no such group; AuthorizationError; RequestTimedOut.
        """
        deadline = self._deadline(timeout, f"the lag of group {group_id!r}")
        description = await self.describe_group(group_id, timeout=deadline.remaining)
        committed = await self.list_group_offsets(group_id, timeout=deadline.remaining)
        assigned = {tp for member in description.members for tp in member.assignment}
        present = await self._present({*committed, *assigned}, deadline)
        return groups.lags(committed, await self._offsets_at(dict.fromkeys(present, LATEST), deadline))

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for a group that has no members; one that does not exist begins to.

        Raises: InvalidRequestError: it has members; BrokerError: a partition is refused; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, f"altering the offsets of group {group_id!r}")
        await self._check_without_members(group_id, deadline)
        entries = {
            tp: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            for tp, offset in offsets.items()
        }
        for tp, entry in entries.items():
            if entry.offset < 0:
                raise InvalidArgument(f"{tp}: {entry.offset} is not a valid offset")
        await self._client.metadata.wait_for_topics({tp.topic for tp in entries}, deadline.remaining)
        await GroupOffsets(self._client, group_id).commit(entries, GroupMetadata(group_id), timeout=deadline.remaining)

    async def reset_group_offsets(
        self,
        group_id: str,
        to: ResetTo,
        partitions: Iterable[str | TopicPartition] | None = None,
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> dict[TopicPartition, OffsetChange]:
        """Move a group without members to other offsets; with `validate_only` only say what would change.

        `partitions` are topics (all of their partitions) and single partitions; without them, those that have a
        committed offset, or those that `to` names. Never before the first record that is there, nor behind the end.

        Raises: InvalidRequestError: the group has members; InvalidArgument: no partition, or a shift from nowhere;
        StaleMetadataError: a topic does not exist; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, f"resetting the offsets of group {group_id!r}")
        await self._check_without_members(group_id, deadline)
        committed = await self.list_group_offsets(group_id, timeout=deadline.remaining)
        if partitions is None:
            chosen = await self._present(set(to.offsets) or set(committed), deadline)
        else:
            chosen = await self._partitions_of(partitions, deadline)
        if not chosen:
            raise InvalidArgument(f"group {group_id!r} has no committed offsets: name topics or partitions")
        begins = await self._offsets_at(dict.fromkeys(chosen, EARLIEST), deadline)
        ends = await self._offsets_at(dict.fromkeys(chosen, LATEST), deadline)
        times: dict[TopicPartition, int] = {}
        if to.kind is ResetKind.TIME:
            times = await self._offsets_at(dict.fromkeys(chosen, to.number), deadline)
        changes = plan_reset(to, committed, begins, ends, times)
        if not validate_only:
            after = {tp: change.after for tp, change in changes.items()}
            await self.alter_group_offsets(group_id, after, timeout=deadline.remaining)
        return changes

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Forget committed offsets, but those of topics that members of the group subscribe to. Brokers since 2.4.

        Raises: InvalidRequestError: there is no such group; AuthorizationError; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, f"deleting offsets of group {group_id!r}")
        request = groups.delete_offsets_request(group_id, partitions)
        to = Coordinator(CoordinatorKind.GROUP, group_id)
        response = await self._client.request(request, to=to, timeout=deadline.remaining)
        return groups.read_deleted_offsets(response, group_id)

    # --- groups and members -------------------------------------------------------------------------------------------

    async def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete groups that have no members, with their offsets. Brokers since 1.1."""
        self._check_open()
        deadline = self._deadline(timeout, "deleting groups")

        async def delete(group_id: str) -> None:
            request = delete_groups.DeleteGroupsRequest(groups_names=[group_id])
            to = Coordinator(CoordinatorKind.GROUP, group_id)
            groups.read_deleted(await self._client.request(request, to=to, timeout=deadline.remaining), group_id)

        return await _results(group_ids, delete)

    async def delete_group(self, group_id: str, *, timeout: float | None = None) -> None:
        """Delete one group that has no members, with its offsets.

        Raises: InvalidRequestError: it has members or does not exist; AuthorizationError; RequestTimedOut.
        """
        (await self.delete_groups([group_id], timeout=timeout)).check()

    async def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] | None = None,
        instance_ids: Iterable[str] = (),
        reason: str = DEFAULT_REASON,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Have members leave a group: by member id, static ones also by group instance id (brokers since 2.4); all of
        them when none is named. A member that still runs joins again.

        Raises: InvalidRequestError: there is no such group; AuthorizationError; RequestTimedOut.
        """
        self._check_open()
        deadline = self._deadline(timeout, f"removing members of group {group_id!r}")
        leavers = [Leaver(group_instance_id=one) for one in instance_ids]
        if member_ids is not None:
            leavers += [Leaver(one) for one in member_ids]
        elif not leavers:
            members = (await self.describe_group(group_id, timeout=deadline.remaining)).members
            leavers = [Leaver(one.member_id, one.group_instance_id) for one in members]
        results: Results[str, None] = Results({}, {})
        if leavers:
            await self._remove(group_id, leavers, reason, deadline, results)
        return results

    async def _remove(
        self, group_id: str, leavers: list[Leaver], reason: str, deadline: Deadline, results: Results[str, None]
    ) -> None:
        node_id = await self._coordinator(group_id, deadline)
        connection = await self._client.connection(node_id, COORDINATOR, timeout=deadline.remaining)
        at_once = connection.versions.pick(leave_group.LeaveGroupRequest) >= groups.FIRST_VERSION_WITH_MEMBERS
        for some in [leavers] if at_once else [[one] for one in leavers]:
            request = leave_group.LeaveGroupRequest(group_id=group_id)

            def version(
                versions: ApiVersions, request: leave_group.LeaveGroupRequest = request, some: list[Leaver] = some
            ) -> int:
                return groups.shape_leave(request, some, versions, reason)

            to = Coordinator(CoordinatorKind.GROUP, group_id)
            response = await self._client.request(request, to=to, timeout=deadline.remaining, version=version)
            left = groups.read_left(response, group_id, some)
            results.succeeded.update(dict.fromkeys(map(str, left.succeeded)))
            results.errors.update({str(one): error for one, error in left.errors.items()})

    # --- helpers ------------------------------------------------------------------------------------------------------

    async def _check_without_members(self, group_id: str, deadline: Deadline) -> None:
        """Raises: InvalidRequestError: the group has members, which would commit over what is written now."""
        try:
            description = await self._describe(group_id, deadline)
        except InvalidRequestError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return
            raise
        if description.state not in groups.WITHOUT_MEMBERS:
            what = f"is {description.state} with {len(description.members)} member(s); stop them first"
            raise groups.group_error(ErrorCode.NON_EMPTY_GROUP, group_id, what)

    async def _present(self, partitions: Iterable[TopicPartition], deadline: Deadline) -> list[TopicPartition]:
        """Those of `partitions` whose topics exist and have them."""
        wanted = sorted(partitions)
        if not wanted:
            return []
        response = await self._metadata(sorted({tp.topic for tp in wanted}), deadline)
        there = {
            TopicPartition(topic.name or "", one.partition_index)
            for topic in response.topics
            for one in topic.partitions
        }
        return [tp for tp in wanted if tp in there]

    async def _partitions_of(self, given: Iterable[str | TopicPartition], deadline: Deadline) -> list[TopicPartition]:
        """Topics by their partitions, and partitions as they are."""
        names = {one for one in given if isinstance(one, str)}
        chosen = {one for one in given if not isinstance(one, str)}
        cluster = await self._client.metadata.wait_for_topics(
            {*names, *(tp.topic for tp in chosen)}, deadline.remaining
        )
        chosen |= {TopicPartition(name, one.partition) for name in names for one in cluster.topics[name].partitions}
        return sorted(chosen)

    async def _offsets_at(self, times: Mapping[TopicPartition, int], deadline: Deadline) -> dict[TopicPartition, int]:
        found = await list_offsets(self._client, times, timeout=deadline.remaining)
        return {tp: offset.offset for tp, offset in found.items()}


async def _each(ask: Callable[[T], Coroutine[Any, Any, None]], of: Iterable[T]) -> None:
    """Ask at the same time, some at once; the first error is raised as it is."""
    failure: list[Exception] = []
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(thing: T) -> None:
        async with limiter:
            if not failure:
                try:
                    await ask(thing)
                except Exception as error:
                    failure.append(error)

    async with anyio.create_task_group() as tasks:
        for thing in of:
            tasks.start_soon(one, thing)
    if failure:
        raise failure[0]


async def _results(group_ids: Iterable[str], ask: Callable[[str], Coroutine[Any, Any, T]]) -> Results[str, T]:
    """Ask about each group: what a coordinator says against one is the result for it."""
    wanted = checked_names(group_ids)
    found: dict[str, T] = {}
    errors: dict[str, BrokerError] = {}

    async def one(group_id: str) -> None:
        try:
            found[group_id] = await ask(group_id)
        except BrokerError as error:
            errors[group_id] = error

    await _each(one, wanted)
    return Results(
        {name: found[name] for name in wanted if name in found},
        {name: errors[name] for name in wanted if name in errors},
    )
