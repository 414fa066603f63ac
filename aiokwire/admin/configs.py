"""Settings of topics, brokers and other resources: values, requests and responses.

Requests alter single settings (KIP-339). Brokers before 2.3 can only replace all settings of a
resource; for them `Admin.alter_configs` writes the current settings back with the changes.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.admin.topics import config_text
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, Client, Node, Target
from aiokwire.errors import BrokerError, InvalidArgument, UnsupportedVersion, error_for
from aiokwire.protocol.messages import alter_configs, describe_configs, incremental_alter_configs

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


class ResourceType(enum.IntEnum):
    """The types of resources that have settings; the values are those on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic or broker by name. A broker's name is its node id, "" the default of all brokers."""

    kind: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.name!r}"


class ConfigSource(enum.IntEnum):
    """The source of a config's value; numbered as on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def of(cls, code: int) -> ConfigSource:
        return cls(code) if code in cls._value2member_map_ else cls.UNKNOWN


class ConfigOperation(enum.IntEnum):
    """A change of a setting; numbered as on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change that is not just a new value: `ConfigChange(ConfigOperation.APPEND, "compact")`."""

    operation: ConfigOperation
    value: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting; `value` is None if it is unset or secret."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source in (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)


# A new value, or a change; None deletes the setting and so restores the default.
Change = ConfigChange | str | int | float | bool | Sequence[str] | None
Changes = Mapping[ConfigResource, Mapping[str, Change]]


def describe_request(
    resources: Iterable[ConfigResource], names: Sequence[str] | None
) -> describe_configs.DescribeConfigsRequest:
    """Build the request; `names` None: for all settings."""
    wanted = [
        describe_configs.DescribeConfigsResource(
            resource_type=int(resource.kind),
            resource_name=resource.name,
            configuration_keys=None if names is None else list(names),
        )
        for resource in resources
    ]
    return describe_configs.DescribeConfigsRequest(resources=wanted)


def read_configs(
    response: describe_configs.DescribeConfigsResponse,
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    succeeded: dict[ConfigResource, dict[str, ConfigEntry]] = {}
    errors: dict[ConfigResource, BrokerError] = {}
    for result in response.results:
        resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
        if result.error_code:
            errors[resource] = config_error("describe", resource, result.error_code, result.error_message)
        else:
            succeeded[resource] = {one.name: _entry(one) for one in result.configs}
    return Results(succeeded, errors)


def _entry(one: describe_configs.DescribeConfigsResourceResult) -> ConfigEntry:
    source = ConfigSource.of(one.config_source)
    if one.config_source < 0:  # version 0 contains only whether it is the default
        source = ConfigSource.DEFAULT if one.is_default else ConfigSource.UNKNOWN
    return ConfigEntry(one.name, one.value, source, one.read_only, one.is_sensitive, one.documentation or None)


def change_of(given: Change) -> ConfigChange:
    """Convert a plain value, which sets, and None, which deletes."""
    if isinstance(given, ConfigChange):
        return given
    if given is None:
        return ConfigChange(ConfigOperation.DELETE)
    return ConfigChange(ConfigOperation.SET, given)


def alter_request(changes: Changes, *, validate_only: bool) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    resources = []
    for resource, settings in changes.items():
        configs = []
        for name, given in settings.items():
            change = change_of(given)
            configs.append(
                incremental_alter_configs.AlterableConfig(
                    name=name, config_operation=int(change.operation), value=config_text(change.value)
                )
            )
        resources.append(
            incremental_alter_configs.AlterConfigsResource(
                resource_type=int(resource.kind), resource_name=resource.name, configs=configs
            )
        )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)


def replace_request(
    changes: Changes, present: Mapping[ConfigResource, Mapping[str, ConfigEntry]], *, validate_only: bool
) -> alter_configs.AlterConfigsRequest:
    """Build the request that replaces all settings, for brokers before 2.3.

    Raises: InvalidArgument: a change neither sets nor deletes.
    """
    resources = []
    for resource, settings in changes.items():
        values: dict[str, str | None] = {
            entry.name: entry.value
            for entry in present[resource].values()
            if entry.source in (ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER, ConfigSource.UNKNOWN)
            and entry.value is not None
            and not entry.is_read_only
        }
        for name, given in settings.items():
            change = change_of(given)
            if change.operation is ConfigOperation.SET:
                values[name] = config_text(change.value)
            elif change.operation is ConfigOperation.DELETE:
                values.pop(name, None)
            else:
                verb = change.operation.name.lower()
                raise InvalidArgument(f"{resource}: {name}: brokers before 2.3 cannot {verb}; set the whole value")
        configs = [alter_configs.AlterableConfig(name=name, value=value) for name, value in values.items()]
        resources.append(
            alter_configs.AlterConfigsResource(
                resource_type=int(resource.kind), resource_name=resource.name, configs=configs
            )
        )
    return alter_configs.AlterConfigsRequest(resources=resources, validate_only=validate_only)


def read_altered(
    response: incremental_alter_configs.IncrementalAlterConfigsResponse | alter_configs.AlterConfigsResponse,
) -> Results[ConfigResource, None]:
    succeeded: dict[ConfigResource, None] = {}
    errors: dict[ConfigResource, BrokerError] = {}
    for result in response.responses:
        resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
        if result.error_code:
            errors[resource] = config_error("alter", resource, result.error_code, result.error_message)
        else:
            succeeded[resource] = None
    return Results(succeeded, errors)


def config_error(verb: str, resource: ConfigResource, code: int, message: str | None) -> BrokerError:
    context = f"cannot {verb} the settings of {resource}"
    topic = resource.name if resource.kind is ResourceType.TOPIC else None
    return error_for(code, with_message(context, message), topic=topic)
