"""What follows a delivery without awaiting it: callbacks, and its error."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, DeliveryFailed
from aiokwire.producer import Delivery, Producer
from aiokwire.protocol import ApiKey


async def test_a_callback_is_called_once_the_record_is_acknowledged_or_failed(kafka_broker: Broker) -> None:
    await kafka_broker.create_topic("t", 1)
    done: list[Delivery] = []
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        delivery = producer.submit_nowait("t", b"a")  # its partition is not known yet
        delivery.add_done_callback(done.append)
        assert delivery.error is None
        assert done == []
        await producer.flush()
        await anyio.lowlevel.checkpoint()
        assert done == [delivery]
        delivery.add_done_callback(done.append)
        assert len(done) == 1, "not within the call"
        await anyio.lowlevel.checkpoint()
        assert done == [delivery, delivery]
        failed = producer.submit_nowait("t", b"b")
        failed.add_done_callback(done.append)
        producer.purge()
        await anyio.lowlevel.checkpoint()
        assert done[2] is failed
        assert isinstance(failed.error, DeliveryFailed)


async def test_reading_the_error_of_a_delivery_does_not_keep_its_failure_out_of_the_log(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await kafka_broker.create_topic("t", 1)
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        delivery = producer.submit_nowait("t", b"a")
        await producer.flush()
        assert isinstance(delivery.error, BrokerError)
        del delivery
    assert "never awaited" in caplog.text
