"""Requests of `Admin` about groups, each sent to the group's coordinator by the call's deadline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import anyio

from aiokwire.admin import groups
from aiokwire.admin.calls import fetch_metadata, for_each, results_of
from aiokwire.admin.groups import GroupDescription, GroupListing, Leaver, PartitionLag
from aiokwire.admin.offset_resets import OffsetChange, ResetKind, ResetTo, plan_reset
from aiokwire.admin.results import Results
from aiokwire.backoff import Deadline
from aiokwire.cluster import COORDINATOR, EARLIEST, LATEST, Client, Coordinator, CoordinatorKind, Node, list_offsets
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, InvalidRequestError, UnsupportedVersion, error_for
from aiokwire.group import GroupOffsets
from aiokwire.net import ApiVersions
from aiokwire.protocol.messages import consumer_group_describe, delete_groups, describe_groups, leave_group, list_groups
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

DEFAULT_REASON: Final = "removed by an administrator"


# --- groups -----------------------------------------------------------------------------------------------------------


async def list_all(
    client: Client, states: Iterable[str], types: Iterable[str], deadline: Deadline
) -> list[GroupListing]:
    """List the groups of all brokers, by name."""
    request = groups.list_request(states, types)
    found: dict[str, GroupListing] = {}

    async def ask(node_id: int) -> None:
        for listing in await _list_at(client, node_id, request, deadline):
            found.setdefault(listing.group_id, listing)

    await for_each(ask, list(client.cluster.brokers))
    return [found[group_id] for group_id in sorted(found)]


async def _list_at(
    client: Client, node_id: int, request: list_groups.ListGroupsRequest, deadline: Deadline
) -> list[GroupListing]:
    backoff = client.new_backoff()
    while True:
        response = await client.request(request, to=Node(node_id), timeout=deadline.remaining)
        if not response.error_code:
            return groups.read_listed(response, node_id)
        error = error_for(response.error_code, f"cannot list the groups of node {node_id}")
        if not error.retriable:
            raise error
        deadline.check(error)
        await anyio.sleep(min(backoff.next(), deadline.remaining))


async def describe(
    client: Client, group_id: str, deadline: Deadline, *, with_operations: bool = False
) -> GroupDescription:
    """Describe a group of either protocol."""
    coordinator = _coordinator_of(group_id)
    try:
        answer = await client.request(
            consumer_group_describe.ConsumerGroupDescribeRequest(
                group_ids=[group_id], include_authorized_operations=with_operations
            ),
            to=coordinator,
            timeout=deadline.remaining,
        )
        return groups.read_consumer_protocol(answer, group_id, await _node_of(client, group_id, deadline))
    except UnsupportedVersion:
        pass  # a broker before 3.7, or one without the consumer protocol
    except BrokerError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
    request = describe_groups.DescribeGroupsRequest(groups=[group_id], include_authorized_operations=with_operations)
    classic = await client.request(request, to=coordinator, timeout=deadline.remaining)
    return groups.read_classic(classic, group_id, await _node_of(client, group_id, deadline))


async def delete(client: Client, group_ids: Iterable[str], deadline: Deadline) -> Results[str, None]:
    """Delete groups without members, and their offsets."""

    async def ask(group_id: str) -> None:
        request = delete_groups.DeleteGroupsRequest(groups_names=[group_id])
        response = await client.request(request, to=_coordinator_of(group_id), timeout=deadline.remaining)
        groups.read_deleted(response, group_id)

    return await results_of(group_ids, ask)


async def remove_members(
    client: Client, group_id: str, leavers: list[Leaver], reason: str, deadline: Deadline
) -> Results[str, None]:
    """Remove `leavers` from a group; an empty list: all members."""
    if not leavers:
        members = (await describe(client, group_id, deadline)).members
        leavers = [Leaver(member.member_id, member.group_instance_id) for member in members]
    results: Results[str, None] = Results({}, {})
    if not leavers:
        return results
    node_id = await _node_of(client, group_id, deadline)
    connection = await client.connection(node_id, COORDINATOR, timeout=deadline.remaining)
    at_once = connection.versions.pick(leave_group.LeaveGroupRequest) >= groups.FIRST_VERSION_WITH_MEMBERS
    for some in [leavers] if at_once else [[leaver] for leaver in leavers]:
        request = leave_group.LeaveGroupRequest(group_id=group_id)

        def version(
            versions: ApiVersions, request: leave_group.LeaveGroupRequest = request, some: list[Leaver] = some
        ) -> int:
            return groups.shape_leave(request, some, versions, reason)

        to = _coordinator_of(group_id)
        response = await client.request(request, to=to, timeout=deadline.remaining, version=version)
        left = groups.read_left(response, group_id, some)
        results.succeeded.update(dict.fromkeys(map(str, left.succeeded)))
        results.errors.update({str(leaver): error for leaver, error in left.errors.items()})
    return results


# --- offsets ----------------------------------------------------------------------------------------------------------


async def committed_offsets(
    client: Client, group_id: str, deadline: Deadline, *, stable: bool = False
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Fetch all committed offsets of a group; `stable`: wait for open transactions."""
    backoff = client.new_backoff()
    while True:
        fetch = groups.AllOffsets(group_id, stable=stable)
        to = _coordinator_of(group_id)
        response = await client.request(fetch.request, to=to, timeout=deadline.remaining, version=fetch.version)
        try:
            return fetch.read(response)
        except BrokerError as error:
            if not error.retriable:
                raise
            deadline.check(error)
        await anyio.sleep(min(backoff.next(), deadline.remaining))


async def lag(client: Client, group_id: str, deadline: Deadline) -> dict[TopicPartition, PartitionLag]:
    """Compute the lag of each partition that a group has committed or that a member has."""
    description = await describe(client, group_id, deadline)
    committed = await committed_offsets(client, group_id, deadline)
    assigned = {tp for member in description.members for tp in member.assignment}
    existing = await _existing(client, {*committed, *assigned}, deadline)
    return groups.lags(committed, await _offsets_at(client, dict.fromkeys(existing, LATEST), deadline))


async def alter_offsets(
    client: Client, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], deadline: Deadline
) -> None:
    """Commit offsets for a group without members."""
    await _check_without_members(client, group_id, deadline)
    entries = {
        tp: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        for tp, offset in offsets.items()
    }
    for tp, entry in entries.items():
        if entry.offset < 0:
            raise InvalidArgument(f"{tp}: an offset must be an int of at least 0, not {entry.offset!r}")
    await client.metadata.wait_for_topics({tp.topic for tp in entries}, deadline.remaining)
    await GroupOffsets(client, group_id).commit(entries, GroupMetadata(group_id), timeout=deadline.remaining)


async def reset_offsets(
    client: Client,
    group_id: str,
    to: ResetTo,
    partitions: Iterable[str | TopicPartition] | None,
    deadline: Deadline,
    *,
    validate_only: bool,
) -> dict[TopicPartition, OffsetChange]:
    """Plan a reset, and commit it unless `validate_only`."""
    await _check_without_members(client, group_id, deadline)
    committed = await committed_offsets(client, group_id, deadline)
    if partitions is None:
        chosen = await _existing(client, set(to.offsets) or set(committed), deadline)
    else:
        chosen = await _partitions_of(client, partitions, deadline)
    if not chosen:
        raise InvalidArgument(f"group {group_id!r} has no committed offsets: name topics or partitions")
    begins = await _offsets_at(client, dict.fromkeys(chosen, EARLIEST), deadline)
    ends = await _offsets_at(client, dict.fromkeys(chosen, LATEST), deadline)
    times: dict[TopicPartition, int] = {}
    if to.kind is ResetKind.TIME:
        times = await _offsets_at(client, dict.fromkeys(chosen, to.number), deadline)
    changes = plan_reset(to, committed, begins, ends, times)
    if not validate_only:
        await alter_offsets(client, group_id, {tp: change.after for tp, change in changes.items()}, deadline)
    return changes


async def delete_offsets(
    client: Client, group_id: str, partitions: Iterable[TopicPartition], deadline: Deadline
) -> Results[TopicPartition, None]:
    """Delete committed offsets of a group."""
    request = groups.delete_offsets_request(group_id, partitions)
    response = await client.request(request, to=_coordinator_of(group_id), timeout=deadline.remaining)
    return groups.read_deleted_offsets(response, group_id)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _coordinator_of(group_id: str) -> Coordinator:
    return Coordinator(CoordinatorKind.GROUP, group_id)


async def _node_of(client: Client, group_id: str, deadline: Deadline) -> int:
    return await client.coordinators.find(CoordinatorKind.GROUP, group_id, deadline.remaining)


async def _check_without_members(client: Client, group_id: str, deadline: Deadline) -> None:
    """Raises: InvalidRequestError: the group has members, which would overwrite the offsets."""
    try:
        description = await describe(client, group_id, deadline)
    except InvalidRequestError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        raise
    if description.state not in groups.WITHOUT_MEMBERS:
        count = len(description.members)
        what = f"cannot change the offsets of group {group_id!r}, which is {description.state} with {count} member(s)"
        raise error_for(ErrorCode.NON_EMPTY_GROUP, what)


async def _existing(client: Client, partitions: Iterable[TopicPartition], deadline: Deadline) -> list[TopicPartition]:
    """Return those of `partitions` that exist."""
    wanted = sorted(partitions)
    if not wanted:
        return []
    response = await fetch_metadata(client, sorted({tp.topic for tp in wanted}), deadline)
    existing = {
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in response.topics
        for partition in topic.partitions
    }
    return [tp for tp in wanted if tp in existing]


async def _partitions_of(
    client: Client, given: Iterable[str | TopicPartition], deadline: Deadline
) -> list[TopicPartition]:
    """Replace each topic by its partitions."""
    items = list(given)
    names = {item for item in items if isinstance(item, str)}
    chosen = {item for item in items if not isinstance(item, str)}
    cluster = await client.metadata.wait_for_topics({*names, *(tp.topic for tp in chosen)}, deadline.remaining)
    chosen |= {TopicPartition(name, found.partition) for name in names for found in cluster.topics[name].partitions}
    return sorted(chosen)


async def _offsets_at(
    client: Client, times: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    found = await list_offsets(client, times, timeout=deadline.remaining)
    return {tp: offset.offset for tp, offset in found.items()}
