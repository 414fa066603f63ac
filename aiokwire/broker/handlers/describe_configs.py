"""DescribeConfigs: v0-4

The configs of a topic or of this broker, with values in force and their sources.

Version notes:
- v1: synonyms, with the overridden values; sources instead of `is_default`
- v3: types and documentation (empty: Kafka's own describes each name)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aiokwire.broker.configs import (
    ConfigKey,
    ConfigSource,
    ConfigType,
    ConfigValue,
    broker_keys,
    client_metrics_keys,
    topic_keys,
)
from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, config_denial
from aiokwire.broker.security import AclOperation
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import describe_configs as messages


def handle(request: messages.DescribeConfigsRequest, call: Call) -> messages.DescribeConfigsResponse:
    """Respond at once."""
    results = []
    for resource in request.resources:
        result = messages.DescribeConfigsResult(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        denial = config_denial(call, AclOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        try:
            if denial is not ErrorCode.NONE:
                raise BrokerError(denial.description, code=denial)
            result.configs = _describe(resource, call, synonyms=request.include_synonyms)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return messages.DescribeConfigsResponse(results=results)


def _describe(
    resource: messages.DescribeConfigsResource, call: Call, *, synonyms: bool
) -> list[messages.DescribeConfigsResourceResult]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        topic = call.state.topics.require(name)
        return [
            _entry(key, call.state.configs.topic_value(key.name, topic.configs), chain, call, synonyms=synonyms)
            for key in _wanted(topic_keys().values(), resource)
            for chain in [call.state.configs.topic_chain(key.name, topic.configs)]
        ]
    if kind == BROKER and name == "":
        given = call.state.configs.dynamic.get("", {})
        values = {one: ConfigValue(one, value, ConfigSource.DYNAMIC_DEFAULT_BROKER) for one, value in given.items()}
        return [
            _entry(key, values[key.name], [values[key.name]], call, synonyms=synonyms)
            for key in _wanted(broker_keys().values(), resource)
            if key.name in values
        ]
    if kind == BROKER and name == str(call.state.node_id):
        return [
            _entry(key, chain[0], chain, call, synonyms=synonyms, read_only=not key.dynamic)
            for key in _wanted(broker_keys().values(), resource)
            for chain in [call.state.configs.chain(key.name)]
        ]
    if kind == CLIENT_METRICS and name:
        given = call.state.configs.client_metrics.get(name, {})
        return [
            _entry(key, value, [value], call, synonyms=False)
            for key in _wanted(client_metrics_keys().values(), resource)
            for value in [_client_metrics_value(key, given)]
        ]
    if kind == GROUP or (kind == BROKER_LOGGER and name == str(call.state.node_id)):
        return []
    raise BrokerError(f"the resource {name!r} of type {kind} does not exist", code=ErrorCode.INVALID_REQUEST)


def _client_metrics_value(key: ConfigKey, given: Mapping[str, str]) -> ConfigValue:
    if key.name in given:
        return ConfigValue(key.name, given[key.name], ConfigSource.CLIENT_METRICS)
    return ConfigValue(key.name, key.default, ConfigSource.DEFAULT)


def _wanted(keys: Iterable[ConfigKey], resource: messages.DescribeConfigsResource) -> list[ConfigKey]:
    names = resource.configuration_keys
    # An empty list meant everything before null did, and Kafka's admin client still sends it.
    return [key for key in keys if not names or key.name in names]


def _entry(
    key: ConfigKey, value: ConfigValue, chain: list[ConfigValue], call: Call, *, synonyms: bool, read_only: bool = False
) -> messages.DescribeConfigsResourceResult:
    secret = key.type is ConfigType.PASSWORD
    return messages.DescribeConfigsResourceResult(
        name=key.name,
        value=None if secret else value.value,
        read_only=read_only,
        is_default=call.version == 0 and value.source is ConfigSource.DEFAULT,
        config_source=value.source if call.version >= 1 else -1,
        is_sensitive=secret,
        synonyms=[
            messages.DescribeConfigsSynonym(name=one.name, value=None if secret else one.value, source=one.source)
            for one in chain
            if one.value is not None
        ]
        if synonyms and call.version >= 1
        else [],
        config_type=key.type if call.version >= 3 else 0,
        documentation=None,
    )
