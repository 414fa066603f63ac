"""Changes configs (AlterConfigs, IncrementalAlterConfigs): all changes of a resource, or none."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from aiokwire.broker.client_metrics import check_subscription
from aiokwire.broker.configs import (
    ConfigKey,
    ConfigType,
    broker_keys,
    check_topic_configs,
    client_metrics_keys,
    topic_keys,
)
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16


class Operation(enum.IntEnum):
    """An operation on one config, numbered as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """An operation (set, delete, append, subtract) on one config of a resource."""

    name: str
    operation: int
    value: str | None


class Altered(NamedTuple):
    """The result of a resource's changes, as in the responses."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def alter(
    state: BrokerState, kind: int, name: str, changes: list[Change], *, replace: bool, validate_only: bool
) -> Altered:
    """Change the configs of a topic or broker, or none of them; `replace` resets the others."""
    try:
        _alter(state, kind, name, changes, replace=replace, validate_only=validate_only)
    except BrokerError as error:
        return Altered(error.code, str(error))
    except ConfigurationError as error:
        return Altered(ErrorCode.INVALID_CONFIG, str(error))
    return Altered()


def _alter(
    state: BrokerState, kind: int, name: str, changes: list[Change], *, replace: bool, validate_only: bool
) -> None:
    """Raises: BrokerError: with the code of the response. ConfigurationError: a bad value."""
    if len({change.name for change in changes}) != len(changes):
        raise BrokerError("the request names a config twice", code=ErrorCode.INVALID_REQUEST)
    if kind == TOPIC:
        topic = state.topics.require(name)
        wanted = _applied(topic_keys(), {} if replace else topic.configs, _in_force(state, changes, topic.configs))
        check_topic_configs(wanted)
        if not validate_only:
            state.topics.set_configs(topic, wanted)
    elif kind == BROKER and name in {"", str(state.node_id)}:
        _check_dynamic(changes)
        present = state.configs.dynamic.get(name, {})
        wanted = _applied(broker_keys(), {} if replace else present, _lists_of_broker(state, changes))
        for one, value in wanted.items():
            broker_keys()[one].parse(value)
        if not validate_only:
            state.topics.set_broker_configs(name, wanted)
    elif kind == CLIENT_METRICS:
        _alter_client_metrics(state, name, changes, replace=replace, validate_only=validate_only)
    elif kind == BROKER:
        raise BrokerError(f"this is broker {state.node_id}, not {name}", code=ErrorCode.INVALID_REQUEST)
    else:
        raise BrokerError(f"this broker has no configs for resources of type {kind}", code=ErrorCode.INVALID_REQUEST)


def _alter_client_metrics(
    state: BrokerState, name: str, changes: list[Change], *, replace: bool, validate_only: bool
) -> None:
    if not name:
        raise BrokerError("a client metrics subscription must have a name", code=ErrorCode.INVALID_REQUEST)
    present = state.configs.client_metrics.get(name, {})
    edits = [_Edit(change, present.get(change.name, "")) for change in changes]
    try:
        wanted = _applied(client_metrics_keys(), {} if replace else present, edits)
        for one, value in wanted.items():
            client_metrics_keys()[one].parse(value)
    except ConfigurationError as error:
        raise BrokerError(str(error), code=ErrorCode.INVALID_REQUEST) from None
    check_subscription(wanted)
    if not validate_only:
        state.topics.set_client_metrics(name, wanted)
        if state.client_metrics is not None:
            state.client_metrics.subscriptions_changed()


def _check_dynamic(changes: list[Change]) -> None:
    for change in changes:
        key = broker_keys().get(change.name)
        if key is None:
            raise ConfigurationError(f"Unknown broker config name: {change.name}")
        if not key.dynamic:
            raise BrokerError(f"{change.name} cannot be changed while the broker runs", code=ErrorCode.INVALID_REQUEST)


class _Edit(NamedTuple):
    """A change and the value in force, to which APPEND and SUBTRACT apply."""

    change: Change
    present: str


def _in_force(state: BrokerState, changes: list[Change], topic: Mapping[str, str]) -> list[_Edit]:
    return [
        _Edit(
            change, (state.configs.topic_value(change.name, topic).value if change.name in topic_keys() else "") or ""
        )
        for change in changes
    ]


def _lists_of_broker(state: BrokerState, changes: list[Change]) -> list[_Edit]:
    return [_Edit(change, state.configs.text(change.name) or "") for change in changes]


def _applied(keys: Mapping[str, ConfigKey], start: Mapping[str, str], edits: list[_Edit]) -> dict[str, str]:
    wanted = dict(start)
    for change, present in edits:
        key = keys.get(change.name)
        if key is None:
            raise ConfigurationError(f"Unknown config name: {change.name}")
        if change.operation == Operation.DELETE:
            wanted.pop(change.name, None)
            continue
        if change.value is None:
            raise BrokerError(f"{change.name} must have a value", code=ErrorCode.INVALID_REQUEST)
        if change.operation == Operation.SET:
            wanted[change.name] = change.value
        elif change.operation in {Operation.APPEND, Operation.SUBTRACT}:
            wanted[change.name] = _edited_list(key, change, present)
        else:
            raise BrokerError(f"unknown operation {change.operation}", code=ErrorCode.INVALID_REQUEST)
    return wanted


def _edited_list(key: ConfigKey, change: Change, present: str) -> str:
    if key.type is not ConfigType.LIST:
        raise ConfigurationError(f"{key.name} is not a list: {Operation(change.operation).name} is not possible")
    items = [item for item in present.split(",") if item]
    given = [item.strip() for item in (change.value or "").split(",") if item.strip()]
    if change.operation == Operation.APPEND:
        items += [item for item in given if item not in items]
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)
