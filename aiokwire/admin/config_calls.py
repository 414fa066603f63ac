"""Requests of `Admin` about settings, each to the broker that has them, by the call's deadline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

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
from aiokwire.admin.results import Results
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, Client, Node, Target
from aiokwire.errors import InvalidArgument, UnsupportedVersion

T = TypeVar("T")


async def describe(
    client: Client, resources: Iterable[ConfigResource], names: Sequence[str] | None, deadline: Deadline
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    """Describe the settings of resources."""
    results: Results[ConfigResource, dict[str, ConfigEntry]] = Results({}, {})
    for target, group in _by_target(resources).items():
        response = await client.request(describe_request(group, names), to=target, timeout=deadline.remaining)
        _merge(results, read_configs(response))
    return results


async def alter(
    client: Client, changes: Changes, deadline: Deadline, *, validate_only: bool
) -> Results[ConfigResource, None]:
    """Change single settings."""
    results: Results[ConfigResource, None] = Results({}, {})
    for target, group in _by_target(changes).items():
        part = {resource: changes[resource] for resource in group}
        try:
            request = alter_request(part, validate_only=validate_only)
            response = await client.request(request, to=target, timeout=deadline.remaining)
            _merge(results, read_altered(response))
        except UnsupportedVersion:
            _merge(results, await _replace(client, part, target, deadline, validate_only=validate_only))
    return results


async def _replace(
    client: Client, changes: Changes, target: Target, deadline: Deadline, *, validate_only: bool
) -> Results[ConfigResource, None]:
    present = await client.request(describe_request(changes, None), to=target, timeout=deadline.remaining)
    request = replace_request(changes, read_configs(present).check(), validate_only=validate_only)
    return read_altered(await client.request(request, to=target, timeout=deadline.remaining))


def _by_target(resources: Iterable[ConfigResource]) -> dict[Target, list[ConfigResource]]:
    """Group resources by destination: a broker for its own settings, any broker for all others."""
    groups: dict[Target, list[ConfigResource]] = {}
    for resource in resources:
        own = resource.kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name
        if own and not resource.name.isdecimal():
            raise InvalidArgument(f"{resource}: a broker's name must be its node id")
        groups.setdefault(Node(int(resource.name)) if own else ANY, []).append(resource)
    return groups


def _merge(into: Results[ConfigResource, T], more: Results[ConfigResource, T]) -> None:
    into.succeeded.update(more.succeeded)
    into.errors.update(more.errors)
