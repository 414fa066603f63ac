"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.configs import broker_keys, topic_keys
from aiokwire.broker.log import Storage
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import alter_configs, describe_configs
from aiokwire.protocol.messages import incremental_alter_configs as incremental
from tests.broker.raw import RawClient, batch, produce_one

TOPIC = 2
BROKER = 4
SET, DELETE, APPEND, SUBTRACT = range(4)


async def _describe(
    client: RawClient, kind: int, name: str, *keys: str, version: int = 4
) -> describe_configs.DescribeConfigsResult:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=version >= 1)
    return (await client.ask(request, version)).results[0]


async def _value(client: RawClient, kind: int, name: str, key: str) -> tuple[str | None, int]:
    (found,) = (await _describe(client, kind, name, key)).configs
    return found.value, found.config_source


async def _change(
    client: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    resource = incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[incremental.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes],
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    result = (await client.ask(request, 1)).responses[0]
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", range(5))
async def test_every_config_is_described(client: RawClient, version: int) -> None:
    topic = await _describe(client, TOPIC, "t", version=version)
    assert {one.name for one in topic.configs} == set(topic_keys())
    broker = await _describe(client, BROKER, "1", version=version)
    assert {one.name for one in broker.configs} == set(broker_keys())
    if version >= 3:
        types = {one.name: one.config_type for one in topic.configs}
        assert (types["cleanup.policy"], types["retention.ms"], types["preallocate"]) == (7, 5, 1)
    secrets = [one for one in broker.configs if one.is_sensitive]
    assert secrets
    assert all(one.value is None for one in secrets)


async def test_a_value_names_its_source_and_what_it_hides() -> None:
    async with Broker(topics={"t": 1}, log_retention_hours=2) as broker:
        client = await RawClient.connect(broker)
        (found,) = (await _describe(client, TOPIC, "t", "retention.ms")).configs
        assert (found.value, found.config_source) == ("7200000", 4)
        assert [(one.name, one.value, one.source) for one in found.synonyms] == [
            ("log.retention.hours", "2", 4),
            ("log.retention.hours", "168", 5),
        ]
        assert await _change(client, TOPIC, "t", ("retention.ms", SET, "1000")) == (0, None)
        (found,) = (await _describe(client, TOPIC, "t", "retention.ms")).configs
        assert (found.value, found.config_source) == ("1000", 1)
        assert [one.source for one in found.synonyms] == [1, 4, 5]
        await client.close()


async def test_resources_that_do_not_exist_are_refused(client: RawClient) -> None:
    assert (await _describe(client, TOPIC, "none")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await _describe(client, BROKER, "7")).error_code == ErrorCode.INVALID_REQUEST
    assert (await _describe(client, 99, "x")).error_code == ErrorCode.INVALID_REQUEST


async def test_configs_are_set_deleted_and_edited(client: RawClient) -> None:
    assert await _change(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == (0, None)
    assert await _value(client, TOPIC, "t", "cleanup.policy") == ("delete,compact", 1)
    assert await _change(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == (0, None)
    assert await _value(client, TOPIC, "t", "cleanup.policy") == ("compact", 1)
    refused = await produce_one(client, "t", batch([b"a"]))
    assert refused.error_code == ErrorCode.INVALID_RECORD, "it takes effect at once"
    assert await _change(client, TOPIC, "t", ("cleanup.policy", DELETE, None)) == (0, None)
    assert await _value(client, TOPIC, "t", "cleanup.policy") == ("delete", 5)
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("retention", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", SET, "forget"), ErrorCode.INVALID_CONFIG),
        (("min.compaction.lag.ms", SET, str(2**63 - 1)), 0),
        (("max.compaction.lag.ms", SET, "0"), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_a_wrong_change_changes_nothing(
    broker: Broker, client: RawClient, change: tuple[str, int, str | None], code: int
) -> None:
    error_code, message = await _change(client, TOPIC, "t", ("segment.bytes", SET, "1048576"), change)
    assert (error_code, bool(message)) == (code, bool(code))
    assert bool(broker.state.topics.require("t").configs) == (code == 0)


async def test_a_config_named_twice_is_refused(client: RawClient) -> None:
    changes = (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    assert (await _change(client, TOPIC, "t", *changes))[0] == ErrorCode.INVALID_REQUEST


async def test_validate_only_changes_nothing(client: RawClient) -> None:
    assert await _change(client, TOPIC, "t", ("retention.ms", SET, "1"), validate_only=True) == (0, None)
    assert await _value(client, TOPIC, "t", "retention.ms") == ("604800000", 5)


async def test_broker_configs_change_while_it_runs_and_last(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 1}) as broker:
        client = await RawClient.connect(broker)
        assert await _change(client, BROKER, "", ("log.retention.ms", SET, "5000")) == (0, None)
        assert await _change(client, BROKER, "1", ("message.max.bytes", SET, "100")) == (0, None)
        assert await _value(client, TOPIC, "t", "retention.ms") == ("5000", 3)
        assert [one.name for one in (await _describe(client, BROKER, "")).configs] == ["log.retention.ms"]
        assert (await produce_one(client, "t", batch([b"x" * 200]))).error_code == ErrorCode.MESSAGE_TOO_LARGE
        await client.close()
    async with Broker(storage=storage) as broker:
        client = await RawClient.connect(broker)
        assert await _value(client, BROKER, "1", "message.max.bytes") == ("100", 2)
        assert await _value(client, TOPIC, "t", "max.message.bytes") == ("100", 2)
        assert await _change(client, BROKER, "1", ("message.max.bytes", DELETE, None)) == (0, None)
        assert (await produce_one(client, "t", batch([b"x" * 200]))).error_code == 0
        await client.close()


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("1", ("num.partitions", SET, "3"), ErrorCode.INVALID_REQUEST),
        ("1", ("no.such.config", SET, "3"), ErrorCode.INVALID_CONFIG),
        ("1", ("message.max.bytes", SET, "x"), ErrorCode.INVALID_CONFIG),
        ("2", ("message.max.bytes", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_wrong_changes_of_broker_configs_are_refused(
    client: RawClient, name: str, change: tuple[str, int, str | None], code: int
) -> None:
    assert (await _change(client, BROKER, name, change))[0] == code


@pytest.mark.parametrize("version", range(3))
async def test_alter_configs_replaces_all(client: RawClient, version: int) -> None:
    assert await _change(client, TOPIC, "t", ("retention.ms", SET, "1000")) == (0, None)

    async def alter(**values: str) -> int:
        configs = [alter_configs.AlterableConfig(name=key.replace("_", "."), value=one) for key, one in values.items()]
        resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=configs)
        return (
            (await client.ask(alter_configs.AlterConfigsRequest(resources=[resource]), version)).responses[0].error_code
        )

    assert await alter(segment_bytes="2000000") == 0
    assert await _value(client, TOPIC, "t", "retention.ms") == ("604800000", 5)
    assert await _value(client, TOPIC, "t", "segment.bytes") == ("2000000", 1)
    assert await alter(segment_bytes="x") == ErrorCode.INVALID_CONFIG
