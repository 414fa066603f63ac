"""The fields of log records: of the logger's owner, of the arguments, and of the line."""

from __future__ import annotations

import logging

import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConnectionFailed, DeliveryFailed
from aiokwire.log_fields import FIELDS, get_logger
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey
from aiokwire.types import TopicPartition

LOG = get_logger("aiokwire.test")


def fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name in FIELDS}


def test_a_line_has_the_fields_of_its_owner_its_arguments_and_its_own(caplog: pytest.LogCaptureFixture) -> None:
    log = LOG.bound(client_id="c", group_id=None).bound(node_id=3)
    log.warning("%s at %s: %s", TopicPartition("t", 1), TopicPartition("u", 2), ValueError("x"), extra={"offset": 7})
    (record,) = caplog.records
    assert fields(record) == {
        "client_id": "c", "node_id": 3, "topic": "t", "partition": 1, "error_type": "ValueError", "offset": 7,
    }  # fmt: skip
    assert record.getMessage() == "t[1] at u[2]: x"
    assert (record.name, record.filename) == ("aiokwire.test", "test_log_fields.py")
    assert record.funcName == "test_a_line_has_the_fields_of_its_owner_its_arguments_and_its_own"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            BrokerError("no", code=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic="t", partition=0),
            {"error_type": "BrokerError", "error_code": "NOT_LEADER_OR_FOLLOWER", "topic": "t", "partition": 0},
        ),
        (DeliveryFailed("late", topic="t"), {"error_type": "DeliveryFailed", "topic": "t"}),
        (ConnectionFailed("no", address="h:1"), {"error_type": "ConnectionFailed", "address": "h:1"}),
    ],
)
def test_an_error_brings_its_code_and_place(
    error: Exception, expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    LOG.error("failed: %s", error)
    LOG.error("failed", exc_info=error)
    try:
        raise error
    except type(error):
        LOG.exception("failed")
    assert [fields(record) for record in caplog.records[:2]] == [expected, expected]
    assert caplog.records[2].exc_info is not None


def test_a_line_below_the_level_costs_no_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    LOG.debug("%s", ValueError("x"))
    assert caplog.records == []


async def test_lines_of_a_member_name_client_group_and_partition(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokwire")
    await kafka_broker.create_topic("t", 1)
    async with Consumer(
        "t", bootstrap_servers=kafka_broker.bootstrap_servers, client_id="biller", group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:  # fmt: skip
        await consumer.assigned()
    lines = [record for record in caplog.records if record.name.startswith(("aiokwire.group", "aiokwire.consumer"))]
    named = [fields(record) for record in lines]
    assert {"client_id": "biller", "group_id": "billing"}.items() <= named[0].items()
    assert sum("member_id" in each for each in named) == 2, "those of joining and leaving"


async def test_the_line_of_a_lost_record_names_topic_partition_and_error(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await kafka_broker.create_topic("t", 1)
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        producer.submit_nowait("t", b"x")
        await producer.flush()
    lost = next(record for record in caplog.records if "never awaited" in record.getMessage())
    expected = {"topic": "t", "partition": 0, "error_code": "TOPIC_AUTHORIZATION_FAILED"}
    assert expected.items() <= fields(lost).items()
