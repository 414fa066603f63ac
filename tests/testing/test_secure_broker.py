"""The fixture `kafka_broker_secure`: clients log in by its options, in async tests and others."""

from __future__ import annotations

import re

from aiokwire.producer import Producer
from aiokwire.testing import SecureBroker, ThreadedSecureBroker


async def test_a_producer_logs_in_with_the_options_of_the_broker(kafka_broker_secure: SecureBroker) -> None:
    broker = kafka_broker_secure
    async with Producer(broker.bootstrap_servers, **broker.client_options) as producer:
        await producer.send("t", b"value")
    assert [one.value for one in broker.records("t")] == [b"value"]


def test_a_broker_in_a_thread_has_the_options_too(kafka_broker_secure: ThreadedSecureBroker) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:\d+", kafka_broker_secure.bootstrap_servers)
    assert kafka_broker_secure.client_options["security_protocol"] == "SASL_SSL"
    assert kafka_broker_secure.client_options["sasl_plain_password"] not in repr(kafka_broker_secure)
